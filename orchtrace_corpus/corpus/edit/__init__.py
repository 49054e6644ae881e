"""Changes of records: proposals, what they break, and the new text of the data files."""
