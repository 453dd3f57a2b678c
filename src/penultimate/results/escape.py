"""One way to make text harmless for each output: HTML, LaTeX, and the cells of CSV files."""

from __future__ import annotations

import html as standard_html
import re

from penultimate.errors import legible
from penultimate.results.text import plain, typeset

WORSE = "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
"""The mark of a value that is worse than another beyond chance, in tables where most values are not."""
LATEX_SPECIALS = {
    "\\": r"\textbackslash{}",
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}"},
    **{'"': "''", "|": r"\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}", "-": "-{}"},
    **{"±": r"$\pm$", "−": r"$-$", "²": r"\textsuperscript{2}", "×": r"$\times$", "–": "--", "·": r"$\cdot$"},
    **{
        "†": r"\textdagger{}",
        "‡": r"\textdaggerdbl{}",
        "′": "$'$",
        "‖": r"$\Vert$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
    },
    **{"⁺": r"\textsuperscript{+}", WORSE: r"\textsuperscript{$\bigtriangledown$}"},
    **{letter: rf"\textsubscript{{{digit}}}" for digit, letter in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi"
    " omega Delta Lambda Sigma"
)
LATEX_SPECIALS |= {
    letter: rf"$\{name}$" for letter, name in zip("αβγδεζηθικλμνξπρστφχψωΔΛΣ", _GREEK.split(), strict=True)
}
_SPECIAL = re.compile(f"-(?=-)|[{re.escape(''.join(LATEX_SPECIALS.keys() - {'-'}))}]")
"""A character that LaTeX does not print as it is, or a hyphen before another, which would make a dash."""
_SIGNED = r"[+-][\d.,]*\d(e[+-]?\d+)?( ?%)?($| [^\W\d_][^|!\"]*$| \([^|!\"]*$)"
"""A number with its sign, alone or before words: no formula, since no operator follows the number."""
_FORMULA = re.compile(f"(?!{_SIGNED})[=+@＝＋－＠-]")
"""The beginning of a cell that spreadsheets evaluate (full-width signs too)."""
_CODE = re.compile(r"`([^`]+)`")


def html(text: object) -> str:
    """Return text as HTML, typeset; what stands between backticks is code.

    >>> html("<script> p = 1"), html("run `a --b`")
    ('&lt;script&gt; p\\xa0=\\xa01', 'run <code>a --b</code>')
    """
    parts = _CODE.split(legible(str(text)))
    return "".join(
        f"<code>{standard_html.escape(part)}</code>"
        if place % 2
        else standard_html.escape(typeset(part), False)
        for place, part in enumerate(parts)
    )


def latex(text: object) -> str:
    r"""Return text in LaTeX, with its special characters escaped.

    >>> latex("50% of R² \\input{x}")
    '50\\% of R\\textsuperscript{2} \\textbackslash{}input\\{x\\}'
    """
    return _SPECIAL.sub(lambda found: LATEX_SPECIALS[found[0]], plain(text))


def csv(cell: object) -> object:
    """Return a cell in a form that no spreadsheet evaluates.

    >>> csv("=HYPERLINK(1)"), csv("+0.43 points"), csv(-1.5)
    ("'=HYPERLINK(1)", '+0.43 points', -1.5)
    """
    if not isinstance(cell, str):
        return cell
    text = plain(cell)
    return f"'{text}" if _FORMULA.match(text) else text
