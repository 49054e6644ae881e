"""The parts of a site for other programs: the feed of added papers and the map of its pages."""

from uuid import NAMESPACE_URL, uuid5

MOST_ENTRIES = 50


def permanent_id(address: str, name: str) -> str:
    """Return the name of a feed or of its entry for ever, wherever the site is: made from an address of its own."""
    return uuid5(NAMESPACE_URL, f"{address}#{name}").urn
