"""Plain text as LaTeX and back: nothing is lost, nothing becomes a command, and what we cannot say is refused."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.text.latex import LatexError, decoded, encoded
from tests.corpus.made_papers import texts
from tests.effort import tries

LATEX = (
    r"""\ { } $ ^ _ a B % & # ~ - ' ` " 2 ! ? é {x} \" \c \emph \begin{x} \end{x} \verb \( \) \[ \] \ensuremath \left"""
)


@settings(max_examples=tries(300, 30), deadline=None)
@given(texts(), st.booleans())
def test_what_is_encoded_is_decoded_as_it_was(text: str, unicode: bool) -> None:
    assert decoded(encoded(text, unicode=unicode)) == text


def test_every_character_of_latin_greek_and_signs_comes_back() -> None:
    characters = [c for c in map(chr, range(0x21, 0x2300)) if c.isprintable()]

    assert [c for c in characters if decoded(encoded(f"x{c} y")) != f"x{c} y"] == []


@settings(max_examples=tries(300, 30), deadline=None)
@given(texts(), st.booleans())
def test_nothing_encoded_opens_or_closes_a_group_or_a_comment(text: str, unicode: bool) -> None:
    latex = encoded(text, unicode=unicode)

    assert latex.count("{") == latex.count("}")
    assert not any(latex[at] in "%&#_" and latex[at - 1 : at] != "\\" for at in range(len(latex)) if latex[at] in "%&#")


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("50% of R&D, #1 a_b $5", r"50\% of R\&D, \#1 a\_b \$5"),
        ("Müller Çelik Ångström", r"M{\"u}ller {\c{C}}elik {\AA}ngstr{\"o}m"),
        ("Íñigo Łoś ß", r"{\'I}{\~n}igo {\L}o{\'s} {\ss}"),
        ("naïve", r"na{\"\i}ve"),
        ("τ-bench, MARS², x₁₀ ≤ ∞", r"{$\tau$}-bench, MARS{$^2$}, x{$_1$}{$_0$} {$\leq$} {$\infty$}"),
        ("a{b}c\\d~e^f", r"a{\textbraceleft}b{\textbraceright}c{\textbackslash}d{\textasciitilde}e{\textasciicircum}f"),
        ("a -- b --- c", "a -{}- b -{}-{}- c"),
        ("“so” – it's", r"{\textquotedblleft}so{\textquotedblright} {\textendash} it's"),
        ("李 ế 𝒜", "李 ế 𝒜"),  # no command of the kernel: they stay
    ],
)
def test_text_as_latex(text: str, latex: str) -> None:
    assert encoded(text) == latex
    assert decoded(latex) == text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"MARTI-MARS$^2$", "MARTI-MARS²"),
        (r"$\tau$-bench in $O(n^{10})$", "τ-bench in O(n¹⁰)"),
        (r"$\alpha_1$ and \ensuremath{\beta}", "α₁ and β"),
        (r"Gr\'{e}goire, Fran\c cois, \v{S}ubert", "Grégoire, François, Šubert"),
        (r"``Quoted'' -- so~what", "“Quoted” – so what"),
        (r"\emph{very} \textbf{bold} \textsc{Small}", "very bold Small"),
        (r"CO\textsubscript{2} and m\textsuperscript{2}", "CO₂ and m²"),
        (r"$\mathcal{O}$ of $\mathbb{R}$", "𝒪 of ℝ"),
        ("50% & #1 for $5 and $6", "50% & #1 for $5 and $6"),  # sloppy, and clear
        ("{A {Nested} Title}", "A Nested Title"),
        (r"The {\TeX}book in \LaTeX{} and \BibTeX", "The TeXbook in LaTeX and BibTeX"),
        ("two\n   lines", "two lines"),
        (r"$\sqrt{T}$ Regret of $O(n^2)$ by $\alpha_i$", r"$\sqrt{T}$ Regret of O(n²) by $\alpha_i$"),
        (r"\(k_n\)-NN by \(\alpha_1\)", r"$k_n$-NN by $\alpha_1$"),
        (r"$x^{ab}$ and $f_{\theta}$ \& A$^*$", r"$x^{ab}$ and $f_{\theta}$ & A$^*$"),
    ],
)
def test_latex_as_text(latex: str, text: str) -> None:
    assert decoded(latex) == text


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        (r"$\sqrt{T}$ of 5% for $k$-NN, at $5", r"\(\sqrt{T}\) of 5\% for \(k\)-NN, at \$5"),
        (r"$x_{\text{best arm}} \le \mathbb{E}[x]$", None),
        (r"$x_{\text{best arm}} \le \mathbb{E}x$", r"\(x_{\text{best arm}} \le \mathbb{E}x\)"),
        (r"$\input{x}$", None),
        (r"$^^5cinput$", None),
        (r"$a}b{c$", None),
        ("US$5M and US$", None),
        (r"$a%b$", None),
    ],
)
def test_a_formula_is_written_as_one_unless_it_could_do_more_than_show(text: str, latex: str | None) -> None:
    written = encoded(text)

    assert written == latex if latex is not None else r"\(" not in written
    assert decoded(written) == text


@pytest.mark.parametrize(
    ("latex", "named"),
    [
        (r"\foo{bar}", r"\foo"),
        (r"x \cite{a}", r"\cite"),
        (r"\input{/etc/passwd}", r"\input"),
        (r"\href{https://example.org}{x}", r"\href"),
        (r"\begin{foo}a\end{foo}", r"\begin{foo}"),
        (r"\frac{1}{2}", r"\frac"),
        (r"$\input{x}$", r"\input"),
        (r"\(\write18{x}\)", r"\write"),
    ],
)
def test_latex_that_stands_for_no_characters_is_refused_by_name(latex: str, named: str) -> None:
    with pytest.raises(LatexError) as raised:
        decoded(latex)

    assert str(raised.value) == f"holds LaTeX that stands for no characters: '{named}'; write it as plain text"


@settings(max_examples=tries(300, 30), deadline=None)
@given(st.lists(st.sampled_from(LATEX.split(" ")), max_size=12).map("".join))
def test_broken_latex_never_crashes_the_reader(latex: str) -> None:
    with suppress(LatexError):
        assert "\n" not in decoded(latex)
