"""L: addresses that no longer lead where they did. Found by `corpus links`."""

from orchtrace_corpus.base.findings import Entry

ENTRIES = {
    "L101": Entry(
        "A dead link is a claim that nobody can check. Said where the server answers that the page is gone (404 or "
        "410); one that refuses programs (401, 403, 429) is not dead.",
        "urls: [https://example.org/a-page-that-is-gone]",
        "urls: [https://web.archive.org/web/2026/https://example.org/a-page-that-is-gone]",
    ),
    "L102": Entry(
        "A page that has moved for good (301 or 308) answers at its old address only as long as somebody keeps the "
        "sign up. Detours that the server calls temporary are left alone.",
        "urls: [http://example.org/old]",
        "urls: [https://example.org/new]",
    ),
    "L103": Entry(
        "The server cannot be found, does not answer or fails (5xx). That passes mostly; a link that stays so for "
        "weeks is dead, too.",
        "urls: [https://a-server-that-is-off.example.org/]",
        "urls: [https://example.org/]",
    ),
}
"""The explanation of each rule, by its code."""
