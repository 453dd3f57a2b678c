"""Names, plug-ins and spec strings."""

from __future__ import annotations

import string
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
    st.text(string.printable, max_size=8),
)
names = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(
    lambda name: (
        name not in {"if", "in", "is", "or", "as", "and", "not", "for", "def", "del", "try", "with"}
        and not __import__("keyword").iskeyword(name)
    )
)


@given(names, st.dictionaries(names, literals, max_size=4))
def test_a_spec_survives_being_written_and_read(name: str, arguments: dict[str, object]) -> None:
    spec = Spec(name, arguments)
    again = parse(str(spec))
    assert again == spec
    assert str(again) == str(spec)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "a(",
        "a(1)",
        "a(**b)",
        "a(x=__import__('os'))",
        "a(x=1, x=2)",
        "a.b",
        "a[0]",
        "a - b",
        "(lambda: 1)()",
        "a(x=1e999)",
        "a(x=b)",
        "a(x={[]: 1})",
        "a\x00",
        "(" * 500,
    ],
)
def test_anything_but_literals_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        parse_sum(text)


@pytest.mark.parametrize(
    "argument", ["-" * 1500 + "1", "not " * 450 + "1", "+".join(["1"] * 900), "a" + ".a" * 900]
)
def test_what_is_nested_too_deeply_is_refused(argument: str) -> None:
    """What is too deep depends on the process: PyTorch's compiler has Python go deeper."""
    with pytest.raises(RequestError, match=r"is not (of the form|a literal)"):
        parse(f"softmax(x={argument})")
    with pytest.raises(RequestError, match="is not of the form"):
        parse(argument)


@pytest.mark.parametrize(
    "argument", ["(1e999,)", "[0, [-1e999]]", "{1: 2}", "{1, 2}", "b'1'", "1 + 2j", "..."]
)
def test_what_cannot_be_written_in_a_spec_is_refused(argument: str) -> None:
    with pytest.raises(RequestError, match=r"is not a literal|is not a finite number"):
        parse(f"softmax(x={argument})")


def test_a_long_text_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(RequestError, match="at most 2000"):
        parse_sum("a" * 2001)


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
        assert len(found.source_digest()) == 64
        with pytest.raises(RequestError, match="registered twice"):
            register.loss(name="for_this_test")(lambda logits, targets: logits)
    finally:
        registry.forget("loss", "for_this_test")
    with pytest.raises(RequestError):
        registry.entry("loss", "for_this_test")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(RequestError, match="Did you mean 'quickstart'"):
        registry.entry("study", "quikstart")


@pytest.mark.parametrize(
    "kind", ["objective", "dataset", "backbone", "metric", "probe", "measurement", "study", "exhibit"]
)
def test_every_built_in_resolves(kind: str) -> None:
    listed = registry.names(kind)
    assert listed
    for name in listed:
        assert registry.entry(kind, name).resolve() is not None
        assert registry.entry(kind, name).summary


def test_what_the_package_registers_itself_is_built_in_and_has_no_source_of_its_own() -> None:
    for name in registry.names("measurement"):
        entry = registry.entry("measurement", name)
        assert not entry.is_plugin
        assert entry.source_digest() == ""
        assert entry.location == f"{entry.resolve().__module__}:{name}"


def test_only_the_room_of_the_kind_that_is_asked_for_is_opened() -> None:
    code = (
        "import sys; from penultimate import registry; registry.entry('loss', 'softmax_cross_entropy')\n"
        "print([room for rooms in registry.ROOMS.values() for room in rooms if room in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(answer.stdout.strip("[]\n").replace("'", "").split(", ")) == {"penultimate.objectives"}


def test_the_probes_are_found_by_name() -> None:
    assert registry.names("probe")[:2] == ["linear", "knn"]
    assert registry.entry("probe", "linear").resolve().__name__ == "LinearProbe"
    assert registry.entry("probe", "knn").resolve().__name__ == "KNNProbe"


@pytest.mark.parametrize("kind", ["metric", "probe", "penalty", "fixed_head"])
def test_a_decorator_that_is_gone_names_the_one_that_replaces_it(kind: str) -> None:
    with pytest.raises(RequestError, match=rf"register\.{kind} is gone: .*(measurement|regulariser|head)"):
        getattr(registry.register, kind)(name="mine")


def test_one_decorator_serves_functions_of_two_forms() -> None:
    registry.register.regulariser(name="of_logits")(lambda logits, head: logits.sum(-1))
    registry.register.head(name="constructed")(lambda num_classes, num_features, generator: None)
    try:
        assert registry.entry("penalty", "of_logits").is_plugin
        assert registry.entry("fixed_head", "constructed").is_plugin
    finally:
        registry.forget("penalty", "of_logits")
        registry.forget("fixed_head", "constructed")
