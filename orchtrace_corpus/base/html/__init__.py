"""HTML pages: templates that escape by default, one style, and a policy that lets no data run as a script.

Only this module imports Jinja2. The styles and scripts of a page are in files beside it (a site) or inside it (a page
in one file), and its Content-Security-Policy allows exactly those.
"""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.base.text.drawing import PALETTE

if TYPE_CHECKING:
    from jinja2 import Environment

_FILE = re.compile(
    r"(?P<repository>(?:github|gitlab)\.com/[^/]+/[^/]+)/(?:-/)?blob/[^/]+/(?P<path>[^?#]+)"
    r"(?:#L(?P<first>\d+)(?:-L?(?P<last>\d+))?)?$"
)
"""The address of a file in a repository, with its lines."""

OWN_FILES = "'self'"
"""In a policy, the source of files beside the page."""


def environment(module: str) -> "Environment":
    """Return the templates beside a module, given by its `__file__`; `base/NAME` is a template of this package.

    Values are escaped unless they are `Markup`, and an undefined name is an error. In templates, `value | inert_json`
    embeds data, `address | web_address` is the target of a link, and `address | address_label` its text.
    """
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

    folders = [os.path.join(os.path.dirname(path), "templates") for path in (module, __file__)]
    of_module, base = (FileSystemLoader(folder) for folder in folders)
    templates = Environment(
        loader=ChoiceLoader([PrefixLoader({"base": base}), of_module]),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"inert_json": inert_json, "web_address": web_address, "address_label": address_label}
    return templates


def inert_json(value: object) -> str:
    """Return JSON for `<script type="application/json">`, as `Markup`, which templates do not escape again.

    No character can end the element or start another: `<`, `>`, `&` and all characters beyond ASCII are escaped.

    Raises:
        ValueError: A number is not finite.
        TypeError: A value has no form in JSON.
    """
    import json

    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return _markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def web_address(address: str) -> str:
    """Return an http or https address for `href`; empty for any other text, so that no text becomes a script."""
    return address if address.lower().startswith(("https://", "http://")) else ""


def address_label(address: str) -> str:
    """Return a short form of a web address: host and path; for a file in a repository, the file and its lines."""
    label = re.sub(r"^https?://(www\.)?|/$", "", address)
    if match := _FILE.match(label):
        first, last = match["first"], match["last"]
        lines = f", line {first}" if first else ""
        if last:
            lines = f", lines {first} to {last}"
        return f"{match['repository']}: {match['path']}{lines}"
    return label


def content_security_policy(scripts: Sequence[str] = (), styles: Sequence[str] = (), images: Sequence[str] = ()) -> str:
    """Return the Content-Security-Policy of a page (https://www.w3.org/TR/CSP3/), which allows only these sources.

    Args:
        scripts: Sources of scripts: `OWN_FILES`, or `source_hash` of a script inside the page.
        styles: Sources of style sheets, likewise.
        images: Sources of images, `OWN_FILES` or `data:`.
    """
    sources = {"script-src": scripts, "style-src": styles, "img-src": images}
    allowed = [f"{directive} {' '.join(places)}" for directive, places in sources.items() if places]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])


def source_hash(text: str) -> str:
    """Return the source, in a policy, of a script or style inside the page with exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def join_html(parts: Iterable[str]) -> str:
    """Join pieces of HTML, all made by templates, as `Markup`, which templates do not escape again."""
    return _markup("".join(parts))


def escape_text(text: str) -> str:
    """Return a text as a template would write it."""
    return str(_markupsafe().escape(text))


def _markup(text: str) -> str:
    markup: str = _markupsafe().Markup(text)
    return markup


def notebook_table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    heats: Sequence[Sequence[int]] = (),
    note: str = "",
) -> str:
    """Return a table for notebooks, with texts escaped, and colours in the cells, since notebooks drop style sheets.

    Args:
        caption: The text above it.
        columns: The heads of the columns.
        rows: The cells; the first cell of a row is its head, and numbers are aligned to the right.
        heats: The shade of each cell after the first, from 0 (none) to 4.
        note: The text below it.
    """
    from html import escape

    lines = ["<table>", f"<caption>{escape(caption)}</caption>"] if caption else ["<table>"]
    lines.append(f"<thead><tr>{''.join(f'<th>{escape(name)}</th>' for name in columns)}</tr></thead>")
    lines.append("<tbody>")
    shades = iter(heats)
    for head, *cells in rows:
        shade = next(shades, ())
        written = [f"<th>{escape(str(head))}</th>"]
        for place, cell in enumerate(cells):
            heat = shade[place] if place < len(shade) else 0
            style = "text-align:right" if isinstance(cell, (int, float)) else "text-align:left"
            ink = PALETTE["on-heat4" if heat == 4 else "ink"][0]
            style += f";background:{PALETTE[f'heat{heat}'][0]};color:{ink}" if heat else ""
            written.append(f'<td style="{style}">{escape(str(cell))}</td>')
        lines.append(f"<tr>{''.join(written)}</tr>")
    lines += ["</tbody>", "</table>", *([f"<p>{escape(note)}</p>"] if note else [])]
    return "\n".join(lines)


@cache
def _markupsafe() -> Any:
    """Import the library once: the import statement takes as long as a short text, and there are many."""
    import markupsafe

    return markupsafe


@cache
def style_sheet() -> str:
    """Return the style of all pages: the colours of drawings as custom properties, then `base.css`.

    The colour `heat1` of `drawing.PALETTE` is `var(--heat1)`, for light screens, dark screens and paper.
    """
    light, dark = ("".join(f"--{name}:{pair[i]};" for name, pair in PALETTE.items()) for i in (0, 1))
    schemes = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{color-scheme:light dark;{light}}}\n{schemes}\n{text_beside(__file__, 'base.css')}"
