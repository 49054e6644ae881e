"""Tables for LaTeX: escaped, with a caption, as wide as a line; tests/corpus/test_external_formats.py sets them."""

import re

from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import Table, render


def latex(*tables: Table) -> str:
    return render(tables, "toy", Format.LATEX)


def test_a_narrow_table_is_a_float() -> None:
    table = Table(
        "beds", "Beds", ("garden_style", "count"), (("50% & more", 3), (None, 4)), ("A note_.",), caption="A #1"
    )

    assert (
        latex(table)
        == r"""% \usepackage{booktabs}

\begin{table}[htbp]
\centering
\caption{A \#1}\label{tab:a-1}
\begin{tabular}{@{}lr@{}}
\toprule
Garden style & Count \\
\midrule
50\% \& more & 3 \\
 & 4 \\
\bottomrule
\end{tabular}
\par\smallskip\footnotesize A note\_.
\end{table}
"""
    )


def test_a_wide_table_has_columns_of_fixed_widths_and_smaller_text_where_words_ask_for_it() -> None:
    row = ("rose_garden", 7, "Röses: A Garden in Four Beds, and What Grows there beside Them in a Long Summer")

    text = latex(Table("beds", "", ("key", "n", "title"), (row,)))

    widths = [int(width) for width in re.findall(r"\*(\d+)/1000", text)]
    assert text.startswith("% \\usepackage{booktabs,array}\n")
    assert (len(widths), sum(widths) <= 1000, widths[2] > 500) == (3, True, True)
    assert r"rose\_\allowbreak{}garden & 7 & R{\"o}ses" in text
    assert r"\caption{Beds}\label{tab:beds}" in text
    assert "\\small" in latex(Table("beds", "", ("key", "title"), (("x" * 40, "y" * 20 + " z"),)))


def test_a_table_longer_than_a_page_breaks_and_one_that_fits_nowhere_is_scaled() -> None:
    long = latex(Table("beds", "Beds", ("n",), tuple((number,) for number in range(50))))
    scaled = latex(Table("beds", "Beds", tuple(f"c{n}" for n in range(9)), (("unbreakable" * 2,) * 9,)))

    assert long.startswith("% \\usepackage{booktabs,longtable}\n")
    assert long.count("\\toprule") == 2
    assert long.endswith("49 \\\\\n\\end{longtable}\n}\n")
    assert scaled.startswith("% \\usepackage{booktabs,graphicx}\n")
    assert "\\resizebox{\\linewidth}{!}{%\n\\begin{tabular}" in scaled
