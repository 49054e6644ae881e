"""Every rule explained: why it exists, what breaks it, and the same mended. Each wing registers its own part."""
