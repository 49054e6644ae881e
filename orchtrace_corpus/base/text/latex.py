r"""Unicode as LaTeX, and LaTeX as Unicode.

What `encoded` writes, `decoded` reads back as it was. A formula between dollars, of harmless commands, stands in plain
text as it is written: `encoded` writes it as `\(...\)`, and `decoded` keeps what stands so. Else only commands of
LaTeX's own kernel are written, so that no document needs a package for them; a character without one stays as it is,
which LaTeX reads as UTF-8 since 2018. A letter with an accent is a BibTeX "special character", `{\'e}`, which BibTeX
sorts and changes the case of rightly (Patashnik, BibTeXing, 1988, section 4).

The encoder of pylatexenc is no substitute: of the characters from U+00A0 to U+25FF it writes 207 as what stands for
others (`ű` as `\'{u}`, `ħ` as `\={h}`, `Έ` as `\'{}E`), leaves `--` as it is, and takes four times as long.
"""

import json
import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Any

from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.base.findings import quote

# Characters beyond letters and digits of ASCII, each with its command; `raised` and `lowered` with what they are of.
_TABLES: dict[str, Any] = json.loads(text_beside(__file__, "latex.json"))
_NAMED, _ACCENTS = _TABLES["named"], _TABLES["accents"]
_SPECIAL = {c: f"\\{c}" for c in "&%#_$"} | {c: f"{{\\text{name}}}" for c, name in _NAMED.items()}
# Two of these side by side would be one character to LaTeX, or one blank.
_JOINED = frozenset(("--", "''", ",,", "  "))
_AS_IT_IS = re.compile(r"(?!.*(?:--|  ))[A-Za-z0-9.: -]*")
_COMMANDS = {character: f"\\{name}" for character, name in (_TABLES["letters"] | _TABLES["signs"]).items()}
_COMMANDS |= {character: f"$\\{name}$" for character, name in _TABLES["formulas"].items()}
_COMMANDS |= {character: f"$^{plain}$" for character, plain in _TABLES["raised"].items()}
_COMMANDS |= {character: f"$_{plain}$" for character, plain in _TABLES["lowered"].items()}
_RAISED = {plain: character for character, plain in _TABLES["raised"].items()}
_LOWERED = {plain: character for character, plain in _TABLES["lowered"].items()}

_FORMULA = r"(?<!\\)\$(?=\S)([^$]+)(?<=[^\s\\])\$(?!\d)|\\\((.+?)\\\)|\\ensuremath\{((?:[^{}]|\{[^{}]*\})*)\}"
_SCRIPT = r"([\^_])(?:\{([^{}]*)\}|([^\\{}\s]))"
_BARE = r"\\.|[$%&#]"
_DOLLARS = re.compile(r"(?<!\\)\$(?=\S)([^$]+)(?<=[^\s\\])\$(?!\d)")
# What formulas may hold: nothing that reads, writes or defines, since whoever typesets a bibliography runs it.
_MATH = frozenset(_TABLES["formulas"].values()) | frozenset(_TABLES["mathematics"])
_MATH_WORDS = r"\\(?:text|math(?:rm|it|sf|bf|tt)|operatorname)\{[A-Za-z -]*\}"
_MORE_MACROS = {f"text{name}": c for c, name in _NAMED.items()} | {name: c for c, name in _TABLES["signs"].items()}
_MORE_MACROS |= _TABLES["more_macros"]
# Of the commands with an argument that pylatexenc knows, those that a title or a name may hold.
_WITH_ARGUMENT = frozenset(_TABLES["with_argument"])


class LatexError(ValueError):
    """A text holds LaTeX that no characters stand for; the message says which."""


def encoded(text: str, *, unicode: bool = False) -> str:
    """Return a text as LaTeX that typesets it: characters that LaTeX would act on are escaped.

    Args:
        text: One line of plain text.
        unicode: Leave letters and signs beyond ASCII as they are.
    """
    if _AS_IT_IS.fullmatch(text):  # most words of most texts: without a look at each character
        return text
    if "$" in text:
        pieces = [(found[0], found.span()) for found in _DOLLARS.finditer(text) if is_formula(found[1])]
        if pieces:
            formula, (start, end) = pieces[0]
            before, after = (encoded(part, unicode=unicode) for part in (text[:start], text[end:]))
            return f"{before}\\({formula[1:-1]}\\){after}"
    parts = []
    for here, after in pairwise(f"{text}\0"):
        parts.append(_SPECIAL.get(here, here) if here.isascii() or unicode else _command(here))
        if here + after in _JOINED:
            parts.append("{}")
    return "".join(parts)


def decoded(latex: str) -> str:
    r"""Return LaTeX as plain text, on one line: commands as characters, grouping braces gone.

    A bare `%`, `&` or `#`, and a dollar that belongs to no formula, are taken for the character, since
    who writes them into a bibliography means that. A formula that no characters stand for is kept as it is written,
    between dollars, and so is one between `\(` and `\)`.

    Raises:
        LatexError: It holds a command that has no characters, and belongs to no formula that is kept.
    """
    text = " ".join(latex.split())
    if set(text).isdisjoint("\\${}~^%&#") and not re.search("--|''|``|[?!]`", text):
        return text
    kept: list[str] = []

    def formula(found: re.Match[str]) -> str:
        inner = next(part for part in found.groups() if part is not None)
        shown = f"\\ensuremath{{{re.sub(_SCRIPT, _script, inner)}}}"
        is_kept = is_formula(inner)
        if not is_kept or (found[2] is None and not re.search(r"(?<!\\)[\^_]", shown) and not _read(shown)[1]):
            return shown
        kept.append(f"${inner}$")
        return f"\0{len(kept) - 1}\0"  # no text of a bibliography holds a zero byte

    text = re.sub(_FORMULA, formula, text)
    text = re.sub(r"\\text(super|sub)script\{([^{}]*)\}", _text_script, text)
    text = re.sub(_BARE, lambda found: found[0] if len(found[0]) == 2 else f"\\{found[0]}", text)
    plain, unknown = _read(text)
    if unknown:
        raise LatexError(f"holds LaTeX that stands for no characters: {quote(unknown[0])}; write it as plain text")
    plain = re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], plain)
    return re.sub(r"\s*\n\s*", " ", plain.replace("\N{NO-BREAK SPACE}", " ")).strip()


def is_formula(inner: str) -> bool:
    """Return True if a formula can stand between dollars in plain text: no prose, and only commands of mathematics."""
    rest = re.sub(_MATH_WORDS, "", inner)
    names = re.findall(r"\\([A-Za-z]+|.)", rest)
    rest = re.sub(r"\\([A-Za-z]+|.)", " ", rest)
    while (outer := re.sub(r"\{[^{}]*\}", " ", rest)) != rest:
        rest = outer
    return (
        _MATH.issuperset(names)
        and re.search(r"[A-Za-z]{3}|\^\^|[{}]", rest) is None
        and re.search(r"[%&#\"`~<\[]|--|''|\s\s|[^\S ]|^\s|\s$|\\$", inner) is None
    )


def without_formulas(text: str) -> str:
    """Return the text with a blank for each formula that can stand in it."""
    return _DOLLARS.sub(lambda found: " " if is_formula(found[1]) else found[0], text)


def _read(text: str) -> tuple[str, list[str]]:
    try:
        return _reader().read(text)
    except RecursionError:
        raise LatexError("holds braces nested too deeply; write it with fewer") from None


@lru_cache(maxsize=1024)
def _command(character: str) -> str:
    """Return the command for a character beyond ASCII; the character itself where the kernel has none."""
    if character in _COMMANDS:
        return f"{{{_COMMANDS[character]}}}"
    base, mark, *more = (*unicodedata.normalize("NFD", character), "")
    is_composed = unicodedata.normalize("NFC", character) == character
    if mark in _ACCENTS and more == [""] and base.isascii() and base.isalpha() and is_composed:
        accent = _ACCENTS[mark]
        letter = f"\\{base}" if base in "ij" and accent != "c" and accent != "d" else base
        return f"{{\\{accent}{{{letter}}}}}" if accent.isalpha() else f"{{\\{accent}{letter}}}"
    return character


def _script(found: re.Match[str]) -> str:
    """Return an exponent or index in characters of its own; as it was where one is missing."""
    scripts = _RAISED if found[1] == "^" else _LOWERED
    content = found[2] if found[2] is not None else found[3]
    return "".join(scripts[c] for c in content) if content and set(content) <= scripts.keys() else found[0]


def _text_script(found: re.Match[str]) -> str:
    scripts = _RAISED if found[1] == "super" else _LOWERED
    return "".join(scripts[c] for c in found[2]) if set(found[2]) <= scripts.keys() else found[0]


class _Reader:
    """pylatexenc's reader, with only those commands whose text is what they typeset.

    Others it would drop, or write as `<cit.>`, without a word.
    """

    def __init__(self) -> None:
        from pylatexenc import latex2text, latexwalker, macrospec

        def note(node: Any) -> str:
            name = getattr(node, "macroname", None)
            self._unknown.append(f"\\begin{{{node.environmentname}}}" if name is None else f"\\{name}")
            return ""

        self._unknown: list[str] = []
        texts = macrospec.LatexContextDb()
        known = latex2text.get_default_latex_context_db()
        shown = {name: latex2text.MacroTextSpec(name, discard=False) for name in _WITH_ARGUMENT}
        macros = {spec.macroname: spec for spec in known.iter_macro_specs() if _is_plain(spec)}
        more = {name: latex2text.MacroTextSpec(name, text) for name, text in _MORE_MACROS.items()}
        texts.add_context_category("plain", (shown | macros | more).values(), (), known.iter_specials_specs())
        texts.set_unknown_macro_spec(latex2text.MacroTextSpec("", note))
        texts.set_unknown_environment_spec(latex2text.EnvironmentTextSpec("", note))
        self._reader = latex2text.LatexNodes2Text(texts, math_mode="text", strict_latex_spaces=True)
        self._syntax = macrospec.LatexContextDb()
        grammar = latexwalker.get_default_latex_context_db()
        arguments = [macrospec.MacroSpec(name, "{") for name in sorted(_WITH_ARGUMENT)]
        self._syntax.add_context_category("plain", arguments, (), grammar.iter_specials_specs())
        self._syntax.set_unknown_macro_spec(macrospec.MacroSpec(""))
        self._syntax.set_unknown_environment_spec(macrospec.EnvironmentSpec(""))

    def read(self, text: str) -> tuple[str, list[str]]:
        """Return a text with its commands as characters, and the commands that it does not know."""
        self._unknown = []
        plain: str = self._reader.latex_to_text(text, latex_context=self._syntax)
        return plain, self._unknown


def _is_plain(spec: Any) -> bool:
    """Return True if a command of pylatexenc's stands for a character or a word, or shows its argument as it is."""
    text = spec.simplify_repl
    if spec.macroname in _WITH_ARGUMENT:
        return bool(spec.macroname != "ensuremath")  # whose own text warns where the argument is missing
    return isinstance(text, str) and text.isprintable() and (len(text) == 1 or text.replace(" ", "").isalpha())


@lru_cache(maxsize=1)
def _reader() -> _Reader:
    return _Reader()
