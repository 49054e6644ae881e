"""What the corpus says: filters, counts, claims, agreement, differences. Nothing here opens a file."""
