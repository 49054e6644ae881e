"""A trace as typed values: decoded, refused with places, written."""
