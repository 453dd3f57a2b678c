"""Equations in MathML, which browsers display without a library: a few functions that build them."""

from __future__ import annotations

from html import escape


def variable(name: str, bold: bool = False) -> str:
    """Return a letter, in upright bold for vectors and matrices."""
    return (
        f'<mi mathvariant="normal" class="vector">{escape(name)}</mi>' if bold else f"<mi>{escape(name)}</mi>"
    )


def number(value: object) -> str:
    return f"<mn>{escape(str(value))}</mn>"


def operator(sign: str) -> str:
    return f"<mo>{escape(sign)}</mo>"


def word(text: str) -> str:
    return f"<mi>{escape(text)}</mi>"


def row(*parts: str) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def below(base: str, index: str) -> str:
    """Return a subscript."""
    return f"<msub>{base}{index}</msub>"


def above(base: str, exponent: str) -> str:
    """Return a superscript."""
    return f"<msup>{base}{exponent}</msup>"


def both(base: str, index: str, exponent: str) -> str:
    return f"<msubsup>{base}{index}{exponent}</msubsup>"


def fraction(top: str, bottom: str) -> str:
    return f"<mfrac>{row(top)}{row(bottom)}</mfrac>"


def total(index: str) -> str:
    """Return a sum over an index."""
    return f'<munder><mo movablelimits="false">∑</mo><mi>{escape(index)}</mi></munder>'


def bracket(*parts: str, left: str = "(", right: str = ")") -> str:
    return f'<mrow><mo stretchy="true">{left}</mo>{"".join(parts)}<mo stretchy="true">{right}</mo></mrow>'


def norm(*parts: str) -> str:
    return bracket(*parts, left="‖", right="‖")


def math(*parts: str, spoken: str) -> str:
    """Return a displayed equation with the words for a screen reader."""
    return f'<math display="block" aria-label="{escape(spoken)}">{row(*parts)}</math>'
