"""Reports of traces as text. Nothing here prints."""
