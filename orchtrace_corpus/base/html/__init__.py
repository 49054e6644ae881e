"""HTML pages: templates that escape by default, one style sheet, and a Content-Security-Policy.

Only this module imports Jinja2. The styles and scripts of a site are in files of their own; those of a single page are
inside it. The policy of a page allows only these styles and scripts, so that no data can run as a script.
"""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.text.drawing import PALETTE

if TYPE_CHECKING:
    from jinja2 import Environment

_REPOSITORY_FILE = re.compile(
    r"(?P<repository>(?:github|gitlab)\.com/[^/]+/[^/]+)/(?:-/)?blob/[^/]+/(?P<path>[^?#]+)"
    r"(?:#L(?P<first>\d+)(?:-L?(?P<last>\d+))?)?$"
)
"""The address of a file on GitHub or GitLab, with its lines."""

OWN_FILES = "'self'"
"""In a Content-Security-Policy, allows files from the same place as the page."""


def environment(module: str) -> "Environment":
    """Return the Jinja2 environment with the templates in the folder `templates` next to a module.

    `base/NAME` is a template next to this module. Values are escaped unless they are `Markup`, and an undefined name is
    an error. Templates can use `inert_json`, `web_address` and `address_label` as filters.

    Args:
        module: The `__file__` of the module.
    """
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

    module_loader = FileSystemLoader(os.path.join(os.path.dirname(module), "templates"))
    base_loader = FileSystemLoader(os.path.join(os.path.dirname(__file__), "templates"))
    templates = Environment(
        loader=ChoiceLoader([PrefixLoader({"base": base_loader}), module_loader]),
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
    """Return a value as JSON for `<script type="application/json">`. Templates do not escape the JSON again.

    No character can end the element or start another: `<`, `>`, `&` and all characters beyond ASCII are escaped.

    Raises:
        ValueError: A number is not finite.
        TypeError: JSON cannot express a value.
    """
    import json

    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return _markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def web_address(address: str) -> str:
    """Return an address for `href`, or "" unless it begins with http or https: `javascript:` would run a script."""
    is_web = address.lower().startswith(("https://", "http://"))
    return address if is_web else ""


def address_label(address: str) -> str:
    """Return a short form of a web address: host and path; for a file in a repository, the file and its lines."""
    label = re.sub(r"^https?://(www\.)?|/$", "", address)
    match = _REPOSITORY_FILE.match(label)
    if match is None:
        return label
    lines = ""
    if match["last"]:
        lines = f", lines {match['first']} to {match['last']}"
    elif match["first"]:
        lines = f", line {match['first']}"
    return f"{match['repository']}: {match['path']}{lines}"


def content_security_policy(scripts: Sequence[str] = (), styles: Sequence[str] = (), images: Sequence[str] = ()) -> str:
    """Return a Content-Security-Policy (https://www.w3.org/TR/CSP3/) that allows only some sources.

    Args:
        scripts: Sources of scripts: `OWN_FILES`, or the `source_hash` of a script inside the page.
        styles: Sources of style sheets: `OWN_FILES`, or the `source_hash` of a style sheet inside the page.
        images: Sources of images: `OWN_FILES` or `data:`.
    """
    directives = ["default-src 'none'"]
    for name, sources in (("script-src", scripts), ("style-src", styles), ("img-src", images)):
        if sources:
            directives.append(f"{name} {' '.join(sources)}")
    return "; ".join([*directives, "base-uri 'none'", "form-action 'none'"])


def source_hash(text: str) -> str:
    """Return the source that allows a script or style sheet with this text inside a page."""
    digest = sha256(text.encode("utf-8")).digest()
    return f"'sha256-{b64encode(digest).decode('ascii')}'"


def join_html(parts: Iterable[str]) -> str:
    """Join pieces of HTML that templates made. Templates do not escape the result again."""
    return _markup("".join(parts))


def escape_text(text: str) -> str:
    """Return a text with HTML's special characters escaped, as templates escape it."""
    return str(_markupsafe().escape(text))


def _markup(html: str) -> str:
    """Return HTML as `Markup`, which templates do not escape again."""
    markup: str = _markupsafe().Markup(html)
    return markup


def notebook_table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    heats: Sequence[Sequence[int]] = (),
    note: str = "",
) -> str:
    """Return an HTML table for notebooks, with all texts escaped.

    Each cell has its own style, because notebooks drop style sheets.

    Args:
        caption: The text above the table.
        columns: The headings of the columns.
        rows: The cells; the first cell of a row is its heading, and numbers are aligned to the right.
        heats: For each row, the shade of each cell after the heading, from 0 (no shade) to 4 (darkest). Rows and cells
            that are not listed have no shade.
        note: The text below the table.
    """
    from html import escape

    lines = ["<table>"]
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    headings = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines += [f"<thead><tr>{headings}</tr></thead>", "<tbody>"]
    for row_index, (heading, *cells) in enumerate(rows):
        row_heats = heats[row_index] if row_index < len(heats) else ()
        html_cells = [f"<th>{escape(str(heading))}</th>"]
        for cell_index, cell in enumerate(cells):
            style = "text-align:right" if isinstance(cell, (int, float)) else "text-align:left"
            heat = row_heats[cell_index] if cell_index < len(row_heats) else 0
            if heat:
                background, _ = PALETTE[f"heat{heat}"]
                ink, _ = PALETTE["on-heat4" if heat == 4 else "ink"]
                style += f";background:{background};color:{ink}"
            html_cells.append(f'<td style="{style}">{escape(str(cell))}</td>')
        lines.append(f"<tr>{''.join(html_cells)}</tr>")
    lines += ["</tbody>", "</table>"]
    if note:
        lines.append(f"<p>{escape(note)}</p>")
    return "\n".join(lines)


@cache
def _markupsafe() -> Any:
    """Return the library. It is cached, because an import statement takes as long as escaping a short text."""
    import markupsafe

    return markupsafe


@cache
def style_sheet() -> str:
    """Return the style sheet of all pages: the colours of drawings as custom properties, then `base.css`.

    Style sheets name the colour `heat1` of `drawing.PALETTE` as `var(--heat1)`. It follows the scheme of the screen;
    paper has the light one.
    """
    light = dark = ""
    for name, (on_light, on_dark) in PALETTE.items():
        light += f"--{name}:{on_light};"
        dark += f"--{name}:{on_dark};"
    dark_scheme = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{color-scheme:light dark;{light}}}\n{dark_scheme}\n{read_text_beside(__file__, 'base.css')}"
