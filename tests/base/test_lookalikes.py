"""Text that looks like another is found; words of one script are left alone."""

import pytest

from orchtrace_corpus.base.lookalikes import code_points, odd_parts


@pytest.mark.parametrize(
    ("text", "kind", "odd", "named"),
    [
        ("a p\u0430per", "scripts", "p\u0430per", "U+0430 CYRILLIC SMALL LETTER A"),
        ("x\u0444\u0444\u03b1", "scripts", "x\u0444\u0444\u03b1", "U+0444 CYRILLIC SMALL LETTER EF, U+03B1 GREEK SMALL LETTER ALPHA"),
        ("\uff21gent", "scripts", "\uff21gent", "U+FF21 FULLWIDTH LATIN CAPITAL LETTER A"),
        ("\u212aey", "scripts", "\u212aey", "U+212A KELVIN SIGN"),
        ("p\u0430\u0301per", "scripts", "p\u0430\u0301per", "U+0430 CYRILLIC SMALL LETTER A"),
        ("\u6771\u4eac\u0430", "scripts", "\u6771\u4eac\u0430", "U+6771 CJK UNIFIED IDEOGRAPH-6771, U+4EAC CJK UNIFIED IDEOGRAPH-4EAC, U+0430 CYRILLIC SMALL LETTER A"),
        ("https://m\u00fcnchen.example/x", "host", "m\u00fcnchen.example", "U+00FC LATIN SMALL LETTER U WITH DIAERESIS"),
        ("see http://a.b\u3002c", "host", "a.b\u3002c", "U+3002 IDEOGRAPHIC FULL STOP"),
        ("wo\u200drk", "invisible", "\u200d", "U+200D ZERO WIDTH JOINER"),
        ("a\ufe0fb", "invisible", "\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("a \u3164 b", "invisible", "\u3164", "U+3164 HANGUL FILLER"),
        ("a\u034fb", "invisible", "\u034f", "U+034F COMBINING GRAPHEME JOINER"),
    ],
)  # fmt: skip
def test_what_looks_like_another_is_found(text: str, kind: str, odd: str, named: str) -> None:
    assert [(part.kind, part.text, code_points(part.characters)) for part in odd_parts(text)] == [(kind, odd, named)]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "Müller, Łukasz and Nguyễn",
        "Пушкин, Александр",
        "Αθήνα",
        "\u03b1-GRPO",
        "\u03c42",
        "R\u00b2Orch",
        "Qwen\u6a21\u578b\u3067\u3059",
        "\u6771\u4eac\u30e2\u30c7\u30eb",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u2764\ufe0f",
        "\U0001f469\u200d\U0001f52c",
        "Hawai\u02bbi",
        "1\u00aa",
        "\u201cquoted\u201d \u2013 10 \u20ac",
        "https://example.org/\u043f\u0443\u0442\u044c",
    ],
)
def test_words_of_one_script_are_left_alone(text: str) -> None:
    assert list(odd_parts(text)) == []


def test_of_many_characters_the_first_are_named() -> None:
    (part,) = odd_parts("x" + "\u0430\u0431\u0432\u0433\u0434\u0435")

    assert code_points(part.characters).endswith("U+0433 CYRILLIC SMALL LETTER GHE and 2 more")
