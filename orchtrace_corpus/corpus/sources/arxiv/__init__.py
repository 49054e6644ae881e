"""The client of arXiv's API, its searches, and the reader of its feeds."""
