"""arXiv: what it is asked, and what its feeds say."""
