r"""Convert Unicode to LaTeX, and LaTeX to Unicode.

`decoded(encoded(text))` is the text. Plain text may have formulas of harmless commands between dollars. `encoded`
writes them as `\(...\)`, and `decoded` returns them unchanged. Outside of formulas, `encoded` writes only commands of
LaTeX's kernel, so that no document needs a package. A character without a command stays, because LaTeX reads UTF-8
since 2018. A letter with an accent becomes a BibTeX "special character", `{\'e}`, which BibTeX sorts correctly
(Patashnik, BibTeXing, 1988, section 4).

pylatexenc has an encoder, too. It writes 207 of the characters from U+00A0 to U+25FF as commands for other characters
(`ű` as `\'{u}`, `ħ` as `\={h}`, `Έ` as `\'{}E`), does not protect `--`, and takes four times as long.
"""

import json
import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.findings import quote

# Commands by character, but in `raised` and `lowered` the plain character of each raised or lowered one.
_TABLES: dict[str, Any] = json.loads(read_text_beside(__file__, "latex.json"))
_NAMED = _TABLES["named"]
_ACCENTS = _TABLES["accents"]
_ASCII_COMMANDS = {c: f"\\{c}" for c in "&%#_$"} | {c: "{\\text" + name + "}" for c, name in _NAMED.items()}
# LaTeX reads each of these pairs as one character, or as one blank.
_LIGATURES = frozenset(("--", "''", ",,", "  "))
_NOTHING_TO_ENCODE = re.compile(r"(?!.*(?:--|  ))[A-Za-z0-9.: -]*")
_COMMANDS = {character: f"\\{name}" for character, name in (_TABLES["letters"] | _TABLES["signs"]).items()}
_COMMANDS |= {character: f"$\\{name}$" for character, name in _TABLES["formulas"].items()}
_COMMANDS |= {character: f"$^{plain}$" for character, plain in _TABLES["raised"].items()}
_COMMANDS |= {character: f"$_{plain}$" for character, plain in _TABLES["lowered"].items()}
_RAISED = {plain: character for character, plain in _TABLES["raised"].items()}
_LOWERED = {plain: character for character, plain in _TABLES["lowered"].items()}

_DOLLAR_FORMULA = re.compile(r"(?<!\\)\$(?=\S)([^$]+)(?<=[^\s\\])\$(?!\d)")  # a dollar before a digit is money
# A formula: $...$ (group 1), \(...\) (group 2) or \ensuremath{...} (group 3).
_FORMULA = _DOLLAR_FORMULA.pattern + r"|\\\((.+?)\\\)|\\ensuremath\{((?:[^{}]|\{[^{}]*\})*)\}"
# An exponent or index: its sign (group 1), then its content in braces (group 2) or as one character (group 3).
_SCRIPT = r"([\^_])(?:\{([^{}]*)\}|([^\\{}\s]))"
_ESCAPED_OR_BARE_SIGN = r"\\.|[$%&#]"
# Commands allowed in formulas: none that reads, writes or defines, because typesetting a bibliography runs them.
_FORMULA_COMMANDS = frozenset(_TABLES["formulas"].values()) | frozenset(_TABLES["mathematics"])
_WORDS_IN_FORMULA = r"\\(?:text|math(?:rm|it|sf|bf|tt)|operatorname)\{[A-Za-z -]*\}"
_PROSE_OR_BRACE = r"[A-Za-z]{3}|\^\^|[{}]"  # a word, a character by its code (^^), or a brace without its partner
_TEXT_SIGN_OR_BLANK = (
    r"[%&#\"`~<\[]|--|''|\s\s|[^\S ]|^\s|\s$|\\$"  # signs of text, stray blanks, or a backslash at the end
)
# Commands that pylatexenc's table of macros does not have, with their characters.
_FURTHER_MACROS = {f"text{name}": c for c, name in _NAMED.items()} | {name: c for c, name in _TABLES["signs"].items()}
_FURTHER_MACROS |= _TABLES["more_macros"]
# The commands with an argument that a title or a name may hold.
_WITH_ARGUMENT = frozenset(_TABLES["with_argument"])


class LatexError(ValueError):
    """A text has LaTeX that cannot be converted to characters; the message names the command."""


def encoded(text: str, *, unicode: bool = False) -> str:
    """Return one line of plain text as LaTeX; with `unicode`, characters beyond ASCII are not converted."""
    if _NOTHING_TO_ENCODE.fullmatch(text):  # fast for most texts
        return text
    if "$" in text:
        for match in _DOLLAR_FORMULA.finditer(text):
            if is_formula(match[1]):
                before = encoded(text[: match.start()], unicode=unicode)
                after = encoded(text[match.end() :], unicode=unicode)
                return f"{before}\\({match[1]}\\){after}"  # `after` has the other formulas
    parts = []
    for character, following in pairwise(f"{text}\0"):
        if character.isascii() or unicode:
            parts.append(_ASCII_COMMANDS.get(character, character))
        else:
            parts.append(_command(character))
        if character + following in _LIGATURES:
            parts.append("{}")
    return "".join(parts)


def decoded(latex: str) -> str:
    r"""Return LaTeX as plain text on one line: commands become characters, and grouping braces are removed.

    A formula becomes characters if it can be converted, and else stays, between dollars. A formula between `\(` and
    `\)` always stays. A bare `%`, `&` or `#`, and a dollar outside of formulas, are taken as plain characters, because
    authors of bibliographies mean them so.

    Raises:
        LatexError: A command outside of formulas cannot be converted.
    """
    text = " ".join(latex.split())
    if set(text).isdisjoint("\\${}~^%&#") and not re.search("--|''|``|[?!]`", text):
        return text
    formulas: list[str] = []

    def convert_or_set_aside(match: re.Match[str]) -> str:
        """Return a formula as LaTeX to convert, or a placeholder with its index in `formulas`."""
        dollars, parentheses, ensured = match.groups()
        content = dollars or parentheses or ensured or ""
        convertible = f"\\ensuremath{{{re.sub(_SCRIPT, _script, content)}}}"
        if not is_formula(content):  # prose between dollars, since \ensuremath becomes its argument
            return convertible
        if parentheses is None:  # in parentheses, every formula stays
            has_scripts = re.search(r"(?<!\\)[\^_]", convertible) is not None
            if not has_scripts and not _read(convertible)[1]:
                return convertible
        formulas.append(f"${content}$")
        return f"\0{len(formulas) - 1}\0"  # no text of a bibliography has a zero byte

    text = re.sub(_FORMULA, convert_or_set_aside, text)
    text = re.sub(r"\\text(super|sub)script\{([^{}]*)\}", _text_script, text)
    # Escape bare signs; escaped ones, of two characters, stay.
    text = re.sub(_ESCAPED_OR_BARE_SIGN, lambda match: match[0] if len(match[0]) == 2 else f"\\{match[0]}", text)
    plain, unknown = _read(text)
    if unknown:
        raise LatexError(f"holds LaTeX that stands for no characters: {quote(unknown[0])}; write it as plain text")
    plain = re.sub("\0(\\d+)\0", lambda match: formulas[int(match[1])], plain)
    return re.sub(r"\s*\n\s*", " ", plain.replace("\N{NO-BREAK SPACE}", " ")).strip()  # `\[` starts a line


def is_formula(content: str) -> bool:
    """Return True if a text between dollars is a formula: no prose, and only mathematical commands."""
    rest = re.sub(_WORDS_IN_FORMULA, "", content)
    commands = re.findall(r"\\([A-Za-z]+|.)", rest)
    rest = re.sub(r"\\([A-Za-z]+|.)", " ", rest)
    while (without_inner_braces := re.sub(r"\{[^{}]*\}", " ", rest)) != rest:
        rest = without_inner_braces
    is_text = re.search(_PROSE_OR_BRACE, rest) or re.search(_TEXT_SIGN_OR_BLANK, content)
    return not is_text and _FORMULA_COMMANDS.issuperset(commands)


def without_formulas(text: str) -> str:
    """Return a text with a blank for each formula."""
    return _DOLLAR_FORMULA.sub(lambda match: " " if is_formula(match[1]) else match[0], text)


def _read(text: str) -> tuple[str, list[str]]:
    """Return LaTeX as plain text, and the unknown commands in it."""
    try:
        return _reader().read(text)
    except RecursionError:
        raise LatexError("holds braces nested too deeply; write it with fewer") from None


@lru_cache(maxsize=1024)
def _command(character: str) -> str:
    """Return the command for a character beyond ASCII; the character itself if the kernel has no command."""
    if character in _COMMANDS:
        return f"{{{_COMMANDS[character]}}}"
    decomposed = unicodedata.normalize("NFD", character)
    if len(decomposed) != 2 or unicodedata.normalize("NFC", character) != character:
        return character
    letter, mark = decomposed[0], decomposed[1]
    if mark not in _ACCENTS or not letter.isascii() or not letter.isalpha():
        return character
    accent = _ACCENTS[mark]
    if letter in "ij" and accent not in ("c", "d"):  # an accent above replaces the dot
        letter = f"\\{letter}"
    argument = f"{{{letter}}}" if accent.isalpha() else letter
    return f"{{\\{accent}{argument}}}"


def _script(match: re.Match[str]) -> str:
    """Return an exponent or index in raised or lowered characters; unchanged if Unicode lacks one of them."""
    characters = _RAISED if match[1] == "^" else _LOWERED
    content = match[2] if match[2] is not None else match[3]
    if not content or not set(content) <= characters.keys():
        return match[0]
    return "".join(characters[c] for c in content)


def _text_script(match: re.Match[str]) -> str:
    characters = _RAISED if match[1] == "super" else _LOWERED
    if not set(match[2]) <= characters.keys():
        return match[0]
    return "".join(characters[c] for c in match[2])


class _Reader:
    """Converts LaTeX with pylatexenc, restricted to commands whose conversion is what LaTeX prints.

    Without the restriction, pylatexenc drops other commands, or writes them as `<cit.>`, without an error.
    """

    def __init__(self) -> None:
        from pylatexenc import latex2text, latexwalker, macrospec

        def record_unknown(node: Any) -> str:
            name = getattr(node, "macroname", None)
            self._unknown.append(f"\\begin{{{node.environmentname}}}" if name is None else f"\\{name}")
            return ""

        self._unknown: list[str] = []
        conversions = macrospec.LatexContextDb()
        default_conversions = latex2text.get_default_latex_context_db()
        macros = {name: latex2text.MacroTextSpec(name, discard=False) for name in _WITH_ARGUMENT}
        macros |= {spec.macroname: spec for spec in default_conversions.iter_macro_specs() if _is_plain(spec)}
        macros |= {name: latex2text.MacroTextSpec(name, text) for name, text in _FURTHER_MACROS.items()}
        conversions.add_context_category("plain", macros.values(), (), default_conversions.iter_specials_specs())
        conversions.set_unknown_macro_spec(latex2text.MacroTextSpec("", record_unknown))
        conversions.set_unknown_environment_spec(latex2text.EnvironmentTextSpec("", record_unknown))
        self._reader = latex2text.LatexNodes2Text(conversions, math_mode="text", strict_latex_spaces=True)
        self._syntax = macrospec.LatexContextDb()
        default_syntax = latexwalker.get_default_latex_context_db()
        macros_with_argument = [macrospec.MacroSpec(name, "{") for name in sorted(_WITH_ARGUMENT)]
        self._syntax.add_context_category("plain", macros_with_argument, (), default_syntax.iter_specials_specs())
        self._syntax.set_unknown_macro_spec(macrospec.MacroSpec(""))
        self._syntax.set_unknown_environment_spec(macrospec.EnvironmentSpec(""))

    def read(self, text: str) -> tuple[str, list[str]]:
        """Return a text with its commands converted to characters, and the list of the unknown commands."""
        self._unknown = []
        plain: str = self._reader.latex_to_text(text, latex_context=self._syntax)
        return plain, self._unknown


def _is_plain(spec: Any) -> bool:
    """Return True if pylatexenc converts a command to a character, to a word, or to its unchanged argument."""
    text = spec.simplify_repl
    if spec.macroname in _WITH_ARGUMENT:
        return bool(spec.macroname != "ensuremath")  # ours stays: pylatexenc's warns without an argument
    return isinstance(text, str) and text.isprintable() and (len(text) == 1 or text.replace(" ", "").isalpha())


@lru_cache(maxsize=1)
def _reader() -> _Reader:
    return _Reader()
