r"""Convert Unicode to LaTeX, and LaTeX to Unicode.

`decoded` restores what `encoded` writes. Plain text may hold a formula between dollars, of harmless commands, which
`encoded` writes as `\(...\)` and `decoded` keeps. Otherwise only commands of LaTeX's kernel are written, so that no
document needs a package. A character without a command stays, because LaTeX reads UTF-8 since 2018. A letter with an
accent becomes a BibTeX "special character", `{\'e}`, which BibTeX sorts correctly (Patashnik, BibTeXing, 1988,
section 4).

The encoder of pylatexenc writes 207 of the characters from U+00A0 to U+25FF as commands for other characters (`ű` as
`\'{u}`, `ħ` as `\={h}`, `Έ` as `\'{}E`), does not protect `--`, and takes four times as long.
"""

import json
import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.base.findings import quote

# The commands of characters; `raised` and `lowered` have the plain characters of exponents and indices.
_TABLES: dict[str, Any] = json.loads(text_beside(__file__, "latex.json"))
_NAMED, _ACCENTS = _TABLES["named"], _TABLES["accents"]
_SPECIAL = {c: f"\\{c}" for c in "&%#_$"} | {c: f"{{\\text{name}}}" for c, name in _NAMED.items()}
# LaTeX reads each of these pairs as one character, or as one blank.
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
# Commands allowed in formulas: none that reads, writes or defines, because typesetting a bibliography runs them.
_MATH = frozenset(_TABLES["formulas"].values()) | frozenset(_TABLES["mathematics"])
_MATH_WORDS = r"\\(?:text|math(?:rm|it|sf|bf|tt)|operatorname)\{[A-Za-z -]*\}"
_MORE_MACROS = {f"text{name}": c for c, name in _NAMED.items()} | {name: c for c, name in _TABLES["signs"].items()}
_MORE_MACROS |= _TABLES["more_macros"]
# The commands with an argument that a title or a name may hold.
_WITH_ARGUMENT = frozenset(_TABLES["with_argument"])


class LatexError(ValueError):
    """A text holds LaTeX that cannot be converted to characters; the message names the command."""


def encoded(text: str, *, unicode: bool = False) -> str:
    """Return one line of plain text as LaTeX; with `unicode`, characters beyond ASCII are not converted."""
    if _AS_IT_IS.fullmatch(text):  # fast for most texts
        return text
    if "$" in text:
        pieces = [(match[0], match.span()) for match in _DOLLARS.finditer(text) if is_formula(match[1])]
        if pieces:
            formula, (start, end) = pieces[0]
            before, after = (encoded(part, unicode=unicode) for part in (text[:start], text[end:]))
            return f"{before}\\({formula[1:-1]}\\){after}"
    parts = []
    for character, after in pairwise(f"{text}\0"):
        is_plain = character.isascii() or unicode
        parts.append(_SPECIAL.get(character, character) if is_plain else _command(character))
        if character + after in _JOINED:
            parts.append("{}")
    return "".join(parts)


def decoded(latex: str) -> str:
    r"""Return LaTeX as plain text on one line: commands become characters, and grouping braces are removed.

    A bare `%`, `&` or `#`, and a dollar outside of formulas, stay, because that is what authors of bibliographies mean.
    A formula stays as it is written, between dollars, if it cannot be converted or is between `\(` and `\)`.

    Raises:
        LatexError: A command outside of such formulas cannot be converted.
    """
    text = " ".join(latex.split())
    if set(text).isdisjoint("\\${}~^%&#") and not re.search("--|''|``|[?!]`", text):
        return text
    formulas: list[str] = []

    def formula(match: re.Match[str]) -> str:
        inner = next(part for part in match.groups() if part is not None)
        shown = f"\\ensuremath{{{re.sub(_SCRIPT, _script, inner)}}}"
        if not is_formula(inner):
            return shown
        if match[2] is None and not re.search(r"(?<!\\)[\^_]", shown) and not _read(shown)[1]:
            return shown
        formulas.append(f"${inner}$")
        return f"\0{len(formulas) - 1}\0"  # no text of a bibliography holds a zero byte

    text = re.sub(_FORMULA, formula, text)
    text = re.sub(r"\\text(super|sub)script\{([^{}]*)\}", _text_script, text)
    text = re.sub(_BARE, lambda match: match[0] if len(match[0]) == 2 else f"\\{match[0]}", text)
    plain, unknown = _read(text)
    if unknown:
        raise LatexError(f"holds LaTeX that stands for no characters: {quote(unknown[0])}; write it as plain text")
    plain = re.sub("\0(\\d+)\0", lambda match: formulas[int(match[1])], plain)
    return re.sub(r"\s*\n\s*", " ", plain.replace("\N{NO-BREAK SPACE}", " ")).strip()


def is_formula(inner: str) -> bool:
    """Return True if plain text may hold a formula between dollars: no prose, and only mathematical commands."""
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
    """Return a text with a blank for each formula."""
    return _DOLLARS.sub(lambda match: " " if is_formula(match[1]) else match[0], text)


def _read(text: str) -> tuple[str, list[str]]:
    try:
        return _reader().read(text)
    except RecursionError:
        raise LatexError("holds braces nested too deeply; write it with fewer") from None


@lru_cache(maxsize=1024)
def _command(character: str) -> str:
    """Return the command for a character beyond ASCII; the character itself if the kernel has no command."""
    if character in _COMMANDS:
        return f"{{{_COMMANDS[character]}}}"
    base, mark, *more = (*unicodedata.normalize("NFD", character), "")
    is_composed = unicodedata.normalize("NFC", character) == character
    if mark in _ACCENTS and more == [""] and base.isascii() and base.isalpha() and is_composed:
        accent = _ACCENTS[mark]
        letter = f"\\{base}" if base in "ij" and accent != "c" and accent != "d" else base
        return f"{{\\{accent}{{{letter}}}}}" if accent.isalpha() else f"{{\\{accent}{letter}}}"
    return character


def _script(match: re.Match[str]) -> str:
    """Return an exponent or index in raised or lowered characters; unchanged if one of them does not exist."""
    scripts = _RAISED if match[1] == "^" else _LOWERED
    content = match[2] if match[2] is not None else match[3]
    return "".join(scripts[c] for c in content) if content and set(content) <= scripts.keys() else match[0]


def _text_script(match: re.Match[str]) -> str:
    scripts = _RAISED if match[1] == "super" else _LOWERED
    return "".join(scripts[c] for c in match[2]) if set(match[2]) <= scripts.keys() else match[0]


class _Reader:
    """pylatexenc's reader, with only those commands whose text is what they typeset.

    By itself, it drops other commands, or writes them as `<cit.>`, without an error.
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
        """Return a text with its commands as characters, and the unknown commands."""
        self._unknown = []
        plain: str = self._reader.latex_to_text(text, latex_context=self._syntax)
        return plain, self._unknown


def _is_plain(spec: Any) -> bool:
    """Return True if a command of pylatexenc gives a character or a word, or its argument unchanged."""
    text = spec.simplify_repl
    if spec.macroname in _WITH_ARGUMENT:
        return bool(spec.macroname != "ensuremath")  # warns if the argument is missing
    return isinstance(text, str) and text.isprintable() and (len(text) == 1 or text.replace(" ", "").isalpha())


@lru_cache(maxsize=1)
def _reader() -> _Reader:
    return _Reader()
