"""A paper's way in: what is known of it, what a record would say, and where records and arXiv drift apart."""
