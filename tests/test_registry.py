"""Names, decorators and spec strings."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penultimate import registry
from penultimate.errors import RequestError
from penultimate.registry import register
from penultimate.specs import Spec, parse, parse_sum

literals = st.one_of(
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.text(max_size=8),
)
names = st.from_regex(r"[a-z][a-z_]{0,8}_", fullmatch=True)


@given(names, st.dictionaries(names, literals, max_size=4))
def test_a_spec_survives_being_written_and_read(name: str, arguments: dict[str, object]) -> None:
    spec = Spec(name, arguments)
    again = parse(str(spec))
    assert (again, str(again)) == (spec, str(spec))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "is not of the form") for text in ("", "a b", "a(", "a.b", "a[0]", "a - b", "a\x00")),
        *((text, "is not of the form") for text in ("(lambda: 1)()", "(" * 500, "-" * 1500 + "1")),
        ("a(1)", r"by name: a\(name=value\)"),
        ("a(**b)", "write the arguments of 'a' by name"),
        ("a(x=1, x=2)", "an argument of 'a' is given twice"),
        ("a(x=__import__('os'))", "nothing is evaluated"),
        ("a(x=1e999)", "is not a literal"),
        ("a(x=(1, [-1e999]))", "is not a literal"),
        ("a(x={1: 2})", "is not a literal"),
        ("a(x=b'1')", "is not a literal"),
        (f"a(x=1{400 * '0'})", "is not a literal"),
        ("a" * 2001, "is not of the form"),
    ],
)
def test_anything_but_names_and_literals_is_refused(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        parse_sum(text)


def test_one_name_is_not_a_sum() -> None:
    with pytest.raises(RequestError, match="2 terms"):
        parse("a + b")


def test_a_plugin_stays_a_function_and_a_second_one_of_its_name_is_refused() -> None:
    def plain(logits: float, targets: float, *, gamma: float = 2.0) -> float:
        """One line.

        More.
        """
        return logits * targets * gamma

    decorated = register.loss(name="for_this_test", paper="eq. 1")(plain)
    try:
        assert decorated is plain
        found = registry.entry("loss", "for_this_test")
        assert (found.summary, found.paper, found.resolve()) == ("One line.", "eq. 1", plain)
        with pytest.raises(RequestError, match="was defined or imported by this session"):
            found.source_digest()
        for again in (register.loss, register.regulariser):
            with pytest.raises(RequestError, match="registered twice"):
                again(name="for_this_test")(lambda logits, targets: logits)
    finally:
        registry.forget("loss", "for_this_test")
    with pytest.raises(RequestError, match="unknown loss"):
        registry.entry("loss", "for_this_test")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(RequestError, match="Did you mean 'quickstart'"):
        registry.entry("study", "quikstart")


@pytest.mark.parametrize(
    "kind", ["objective", "dataset", "backbone", "metric", "probe", "measurement", "study", "exhibit"]
)
def test_every_built_in_resolves_and_has_no_source_of_its_own(kind: str) -> None:
    listed = [registry.entry(kind, name) for name in registry.names(kind)]
    assert listed
    for entry in listed:
        assert entry.resolve() is not None
        assert entry.summary
        assert (entry.is_plugin, entry.source_digest()) == (False, "")


def test_only_the_room_of_the_kind_that_is_asked_for_is_opened() -> None:
    code = (
        "import sys; from penultimate import registry; registry.entry('loss', 'softmax_cross_entropy')\n"
        "print([room for rooms in registry.ROOMS.values() for room in rooms if room in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(answer.stdout.strip("[]\n").replace("'", "").split(", ")) == {"penultimate.objectives"}


def test_one_decorator_serves_functions_of_two_forms_and_those_that_are_gone_say_what_replaces_them() -> None:
    register.regulariser(name="of_logits")(lambda logits, head: logits.sum(-1))
    register.head(name="constructed")(lambda num_classes, num_features, generator: None)
    try:
        assert registry.entry("penalty", "of_logits").is_plugin
        assert registry.entry("fixed_head", "constructed").is_plugin
    finally:
        registry.forget("penalty", "of_logits")
        registry.forget("fixed_head", "constructed")
    for kind in ("metric", "probe", "penalty", "fixed_head"):
        with pytest.raises(
            RequestError, match=rf"register\.{kind} is gone: .*(measurement|regulariser|head)"
        ):
            getattr(register, kind)
    with pytest.raises(AttributeError, match="register has no 'los'"):
        _ = register.los
