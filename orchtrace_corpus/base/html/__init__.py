"""HTML pages: templates that escape by default, one style, and a policy that lets no data run as a script.

Templates use Jinja2, which only this module imports. A page takes its styles and scripts either from files beside it
(a site) or from inside (a page in one file), and the Content-Security-Policy of the page names exactly those.
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
"""The source, in a policy, of the files that lie beside a page."""


def environment(module: str) -> "Environment":
    """The templates beside a module, given by its `__file__`; `base/NAME` reaches those of this package.

    Values are escaped unless they are `Markup`, and a name that is not defined is an error. In templates,
    `value | inert_json` embeds data, `address | web_address` is an address that a link may have, and
    `address | address_label` is what readers see of it.
    """
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

    folders = [os.path.join(os.path.dirname(path), "templates") for path in (module, __file__)]
    own, base = (FileSystemLoader(folder) for folder in folders)
    made = Environment(
        loader=ChoiceLoader([PrefixLoader({"base": base}), own]),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["inert_json"] = inert_json
    made.filters["web_address"] = web_address
    made.filters["address_label"] = address_label
    return made


def inert_json(value: object) -> str:
    """JSON for `<script type="application/json">`, which browsers neither run nor take for markup.

    No character of it can end the element or start another: `<`, `>` and `&`, and all that is not ASCII, are written
    as escapes. The result is `Markup`, so that templates do not escape it again.

    Raises:
        ValueError: A number is not finite.
        TypeError: A value has no form in JSON.
    """
    import json

    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    made: str = _markupsafe().Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
    return made


def web_address(address: str) -> str:
    """An address for `href`: itself with the schemes http and https, else "", so that no text becomes a script."""
    return address if address.lower().startswith(("https://", "http://")) else ""


def address_label(address: str) -> str:
    """Return a web address in short: its host and path; of a file in a repository, the file and its lines."""
    label = re.sub(r"^https?://(www\.)?|/$", "", address)
    if match := _FILE.match(label):
        first, last = match["first"], match["last"]
        lines = f", lines {first} to {last}" if last else f", line {first}" if first else ""
        return f"{match['repository']}: {match['path']}{lines}"
    return label


def content_security_policy(scripts: Sequence[str] = (), styles: Sequence[str] = (), images: Sequence[str] = ()) -> str:
    """The policy of a page: nothing is loaded, run, sent or framed but what is named.

    Args:
        scripts: Sources of scripts: `OWN_FILES`, or `source_hash` of a script inside the page.
        styles: Sources of style sheets, likewise.
        images: Sources of images, `OWN_FILES` or `data:`.

    Returns:
        The value of the header `Content-Security-Policy`, or of the `meta` element that stands for it.
        https://www.w3.org/TR/CSP3/
    """
    allowed = {"script-src": scripts, "style-src": styles, "img-src": images}
    named = [f"{directive} {' '.join(sources)}" for directive, sources in allowed.items() if sources]
    return "; ".join(["default-src 'none'", *named, "base-uri 'none'", "form-action 'none'"])


def source_hash(text: str) -> str:
    """The source, in a policy, of a script or a style inside the page that has exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def joined(parts: Iterable[str]) -> str:
    """Pieces of HTML, all of which templates have made, as one that templates do not escape again."""
    made: str = _markupsafe().Markup("".join(parts))
    return made


def escaped(text: str) -> str:
    """A text as a template would write it."""
    return str(_markupsafe().escape(text))


def notebook_table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    heats: Sequence[Sequence[int]] = (),
    note: str = "",
) -> str:
    """A table as a notebook shows it, every text escaped, its colours in the cells, since notebooks drop styles.

    Args:
        caption: What stands above it.
        columns: The heads of the columns.
        rows: The cells; the first of each row is its head, a number is set to the right.
        heats: The shade of each cell behind the first, 0 for none, to 4; without them no cell is shaded.
        note: What stands below it.
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
    """The library, imported by the first page: the statement costs as much as a short text, for each of many."""
    import markupsafe

    return markupsafe


@cache
def style_sheet() -> str:
    """The style that all pages share: the colours of drawings as custom properties, then `base.css`.

    A colour `heat1` of `drawing.PALETTE` is `var(--heat1)`, on light screens, dark ones and paper.
    """
    light, dark = ("".join(f"--{name}:{pair[i]};" for name, pair in PALETTE.items()) for i in (0, 1))
    schemes = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{color-scheme:light dark;{light}}}\n{schemes}\n{text_beside(__file__, 'base.css')}"
