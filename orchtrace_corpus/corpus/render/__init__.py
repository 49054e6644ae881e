"""Reports of the corpus as text: tables, pages, the list, figures. Nothing here prints."""
