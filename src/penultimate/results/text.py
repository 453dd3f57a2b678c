"""Words and numbers as readers see them: signs, digits, escapes."""

from __future__ import annotations

import json
import re

from penultimate.errors import legible
from penultimate.files import digest_bytes

MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"


def plain(text: object) -> str:
    r"""Return one line without the characters that neither XML nor a terminal may be given (`legible`).

    >>> plain("a\x1b[31m\nb")
    'a [31m b'
    """
    return " ".join(legible(text).split())


def shortened(text: str, longest: int) -> str:
    """Return one line of at most `longest` characters.

    >>> shortened("Label smoothing", 9)
    'Label sm…'
    """
    line = plain(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def as_name(*parts: str) -> str:
    """Return texts as one name of a file and an id; other texts have another name, on any file system.

    Short texts of small letters, digits and "_" are kept, with "--" between them; a digest makes up for what
    is replaced, and for capitals.

    >>> as_name("digits_smoke"), as_name("a", "b_c"), as_name("../Digits")
    ('digits_smoke', 'a--b_c', '_Digits---a4d4c6d7753a')
    """
    joined = "--".join(parts)
    if len(joined) <= 80 and all(re.fullmatch(r"[a-z0-9_]+", part) for part in parts):
        return joined
    digest = digest_bytes(json.dumps(parts).encode())[:12]
    return f"{re.sub(r'[^A-Za-z0-9_]+', '_', joined)[:60]}---{digest}"


def percent(fraction: float, digits: int = 1) -> str:
    """Return a fraction on the 0-100 scale.

    >>> percent(0.8519)
    '85.2'
    """
    return fixed(100 * fraction, digits)


def fixed(value: float, digits: int) -> str:
    """Return a number with a fixed number of decimals and a true minus sign; zero has no sign.

    A number that is half-way except for noise in its last digits, such as a kept row's, is rounded as
    half-way.

    >>> fixed(-0.934, 2), fixed(-0.001, 2)
    ('−0.93', '0.00')
    >>> fixed(3.75, 1), fixed(3.7499999, 1), fixed(3.7500001, 1)
    ('3.8', '3.8', '3.8')
    """
    rounded = f"{round(value, digits + 4):.{digits}f}"
    return f"{0:.{digits}f}" if float(rounded) == 0 else rounded.replace("-", MINUS)


def short(value: float) -> str:
    """Return a number with two decimals and without the zero before the point.

    >>> short(0.934), short(1.0), short(-0.02)
    ('.93', '1', '−.02')
    """
    rounded = f"{abs(value):.2f}"
    if float(rounded) == 0:
        return "0"
    sign = MINUS if value < 0 else ""
    return sign + (rounded.removeprefix("0") if abs(value) < 0.995 else rounded.rstrip("0").rstrip("."))


def p_value(p: float) -> str:
    """Return a p value with its relation: at most two significant digits and four decimals, never "0".

    >>> p_value(0.0042), p_value(0.37), p_value(2e-7)
    ('p = 0.0042', 'p = 0.37', 'p < 0.0001')
    """
    if p < 1e-4:
        return "p < 0.0001"
    return f"p = {p:.2f}" if p >= 0.1 else f"p = {float(f'{p:.2g}'):.{3 if p >= 0.01 else 4}f}".rstrip("0")


def signed(value: float, digits: int) -> str:
    """Return a number that always shows its sign, unless it is zero as shown.

    >>> signed(0.94, 2), signed(-0.001, 2), signed(0.0499999999, 1)
    ('+0.94', '0.00', '+0.1')
    """
    shown = fixed(value, digits)
    return shown if shown.startswith(MINUS) or float(shown) == 0 else f"+{shown}"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun; small counts in words.

    >>> counted(1, "seed"), counted(9, "objective"), counted(12, "run")
    ('one seed', 'nine objectives', '12 runs')
    """
    return f"{in_words(count)} {one if count == 1 else many or one + 's'}"


def in_words(count: int, none: str = "no") -> str:
    """Return a count, a small one in words.

    >>> in_words(3), in_words(12), in_words(0, none="none")
    ('three', '12', 'none')
    """
    words = (none, "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[count] if 0 <= count < len(words) else f"{count:,}"


def listed(words: list[str], last: str = "and") -> str:
    """Words as a phrase.

    >>> listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ('a, b and c', 'a or b')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else "none"


def typeset(text: str) -> str:
    """Text as a page sets it: curved quotes, true minus signs, no line break inside "p = 0.01" or before "%".

    >>> typeset("the paper's p = 0.01").replace("\N{NO-BREAK SPACE}", "~")
    'the paper’s p~=~0.01'
    >>> typeset("networks' features of 'a b'")
    'networks’ features of ‘a b’'
    >>> typeset("-0.62 on 2026-11-23, 8e-5, tau-0.1")
    '−0.62 on 2026-11-23, 8e-5, tau-0.1'
    """
    quoted = re.sub(r"(?<!\w)'([^']*)'(?!\w)", r"‘\1’", text)
    curved = re.sub(r"(?<=\w)'", "’", quoted)
    return unbroken(re.sub(r"(?<![\w.=-])-(?=\.?\d)", MINUS, curved))


def unbroken(text: str) -> str:
    """Text whose lines do not end inside "p = 0.01" or before a per cent sign.

    >>> unbroken("p = 0.01, 5 %").split(NO_BREAK)
    ['p', '=', '0.01, 5', '%']
    """
    return re.sub(r"(?<=[=<±≥≤]) | (?=[=<±≥≤%])", NO_BREAK, text)
