"""The algebra of presets: what they set, how they add up, what is refused; no tensor library is loaded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penultimate import RequestError, register, registry
from penultimate.objectives.presets import DEFAULTS, PRESETS, Preset, resolve
from penultimate.paper import published

# The paper's table A.1 (the ImageNet choice) and the numbers of its equations.
CANONICAL = {
    "softmax": ("softmax", 1),
    "label_smoothing": ("label_smoothing(alpha=0.1)", 2),
    "dropout": ("dropout(keep=0.7)", 3),
    "final_layer_l2": ("final_layer_l2(lambda_final=0.0008)", 4),
    "logit_penalty": ("logit_penalty(beta=0.0006)", 5),
    "logit_norm": ("logit_norm(temperature=0.04)", 6),
    "cosine_softmax": ("cosine_softmax(scale=1, temperature=0.05)", 7),
    "sigmoid": ("sigmoid", 8),
    "squared_error": ("squared_error(kappa=9, scale=10, target=60)", 9),
}
TERMS = st.sampled_from(
    [
        *PRESETS,
        "label_smoothing(alpha=0)",
        "dropout(keep=0.9)",
        "cosine_softmax(temperature=0.06, scale=0.5)",
        "squared_error(scale=1)",
        "squared_error(scale=0.3, target=1e1)",
        "linear",
        "cosine(temperature=1)",
        "squared_weight(strength=1)",
    ]
)


def outcome(terms: list[str]) -> object:
    try:
        return resolve(" + ".join(terms))
    except RequestError:
        return RequestError


@pytest.mark.parametrize("name", published.objectives())
def test_presets_are_the_papers(name):
    composition = resolve(name)
    assert (composition.canonical, PRESETS[name].equation) == CANONICAL[name]
    assert composition.preset == name
    assert composition.label == PRESETS[name].label


def test_each_preset_differs_from_the_default_in_its_own_slots_only():
    changed = {}
    for name in published.objectives():
        found = resolve(name)
        slots = {"head": found.head, "loss": found.loss, "dropout": found.keep, "scale": found.scale}
        changed[name] = {slot for slot, value in slots.items() if value != DEFAULTS[slot]}
        changed[name] |= {penalty.name for penalty in found.penalties}
    assert changed == {
        "softmax": set(),
        "label_smoothing": {"loss"},
        "sigmoid": {"loss"},
        "final_layer_l2": {"squared_weight"},
        "dropout": {"dropout"},
        "logit_penalty": {"squared_logits"},
        "logit_norm": {"head"},
        "cosine_softmax": {"head"},
        "squared_error": {"loss", "scale"},
    }


@given(terms=st.lists(TERMS, min_size=1, max_size=4), data=st.data())
def test_a_sum_commutes(terms, data):
    assert outcome(data.draw(st.permutations(terms))) == outcome(terms)


@given(terms=st.lists(TERMS, min_size=1, max_size=4))
def test_softmax_names_the_loss_and_the_canonical_string_is_a_fixed_point(terms):
    found = outcome(terms)
    if found is RequestError:
        assert outcome(["softmax", *terms]) is RequestError
    else:
        other_loss = found.loss != DEFAULTS["loss"]
        assert outcome(["softmax", *terms]) == (RequestError if other_loss else found)
        assert resolve(found.canonical) == found
        assert resolve(found.canonical).canonical == found.canonical


def test_equal_values_have_one_spelling():
    spellings = [
        "cosine_softmax",
        "cosine_softmax(scale=1.0)",
        " cosine_softmax ( temperature = 5e-2,scale=1 )",
    ]
    assert len({resolve(text).canonical for text in spellings}) == 1
    assert resolve("dropout(keep=1)") == resolve("dropout(keep=1.0)")


def test_a_sum_holds_what_each_term_sets():
    found = resolve(
        "logit_penalty + dropout(keep=0.8) + sigmoid + cosine_softmax(scale=0.05) + final_layer_l2"
    )
    assert found.head.name == "cosine"
    assert found.head.hyperparameters == {"temperature": 0.05}
    assert found.loss.name == "sigmoid_cross_entropy"
    assert [penalty.name for penalty in found.penalties] == ["squared_logits", "squared_weight"]
    assert (found.keep, found.scale, found.preset) == (0.8, 0.05, None)
    assert found.label == "Cosine softmax + Dropout + More final layer L² + Logit penalty + Sigmoid"
    assert "Cosine softmax (τ = 0.05, scale = 0.05) + Dropout (ρ = 0.8)" in found.detailed_label


@pytest.mark.parametrize(
    ("text", "slot", "first", "second"),
    [
        ("label_smoothing + sigmoid", "loss", "label_smoothing", "sigmoid"),
        ("squared_error + label_smoothing", "loss", "squared_error", "label_smoothing"),
        ("logit_norm + dropout + cosine_softmax", "head", "logit_norm", "cosine_softmax"),
        ("dropout + dropout(keep=0.9)", "dropout", "dropout", "dropout"),
        ("cosine_softmax(scale=0.5) + squared_error", "scale", "cosine_softmax", "squared_error"),
        ("logit_penalty + logit_penalty", "penalty squared_logits", "logit_penalty", "logit_penalty"),
        ("sigmoid + sigmoid", "loss", "sigmoid", "sigmoid"),
    ],
)
def test_a_slot_set_twice_names_the_slot_and_both_terms(text, slot, first, second):
    with pytest.raises(
        RequestError, match=rf"the {slot} is set twice, by {first} and by {second}\. \+ joins"
    ):
        resolve(text)


@pytest.mark.parametrize(
    ("text", "idle", "other", "slot"),
    [
        ("softmax + squared_error", "softmax", "squared_error", "loss"),
        ("sigmoid + softmax", "softmax", "sigmoid", "loss"),
        ("dropout + softmax + label_smoothing", "softmax", "label_smoothing", "loss"),
        ("label_smoothing(alpha=0) + sigmoid", "label_smoothing", "sigmoid", "loss"),
        ("softmax_cross_entropy + sigmoid", "softmax_cross_entropy", "sigmoid", "loss"),
        ("linear + cosine_softmax", "linear", "cosine_softmax", "head"),
        ("dropout(keep=1) + dropout(keep=0.5)", "dropout", "dropout", "dropout"),
    ],
)
def test_a_term_that_changes_nothing_beside_another_is_refused(text, idle, other, slot):
    with pytest.raises(RequestError) as raised:
        resolve(text)
    assert (
        f"{idle} changes nothing beside {other}, which sets the {slot}. + joins one projector, one head"
        in str(raised.value)
    )
    assert "it does not add losses up" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cosine_sofmax", "unknown objective 'cosine_sofmax'. Did you mean 'cosine_softmax'"),
        ("dropout(kep=0.5)", "dropout has no hyperparameter 'kep'. Did you mean 'keep'"),
        ("softmax(alpha=0.1)", "softmax has no hyperparameter 'alpha'. Known: none."),
        ("dropout(keep=0)", r"dropout: keep must be a number in (0, 1] (the probability of keeping"),
        ("dropout(keep=1.01)", "keep must be a number in (0, 1]"),
        ("label_smoothing(alpha=1)", "alpha must be a number in [0, 1)"),
        ("label_smoothing(alpha=-0.1)", "alpha must be a number in [0, 1)"),
        ("label_smoothing(alpha='0.1')", "got '0.1'"),
        ("dropout(keep=True)", "got True"),
        ("label_smoothing(alpha=None)", "got None"),
        ("label_smoothing(alpha=(0.1,))", "got (0.1,)"),
        ("cosine_softmax(temperature=0)", "temperature must be a number in (0, inf)"),
        ("cosine_softmax(scale=-1)", "scale must be a number in (0, inf)"),
        ("logit_norm(temperature=-0.04)", "temperature must be a number in (0, inf)"),
        ("logit_penalty(beta=-1e-4)", "beta must be a number in [0, inf)"),
        ("final_layer_l2(lambda_final=-1)", "lambda_final must be a number in [0, inf)"),
        ("squared_error(kappa=0)", "kappa must be a number in (0, inf)"),
        ("squared_error(target=1e999)", "arguments are finite numbers"),
        (f"squared_error(target={10**400})", "is not a literal"),
        ("softmax + ", "not of the form"),
        ("", "not of the form"),
        ("__import__('os')", "write the arguments"),
        ("dropout(keep=1/2)", "not a literal"),
    ],
)
def test_bad_requests_say_what_was_expected(text, message):
    with pytest.raises(RequestError) as raised:
        resolve(text)
    assert message in str(raised.value)


@pytest.fixture
def plugins():
    @register.loss(name="example_focal", paper="Lin et al., 2017")
    def focal(logits, targets, *, gamma=2.0, mode="mean", classes: int = 3):
        return logits.sum(1)

    @register.regulariser(name="example_penalty")
    def penalty(logits, head, *, strength):
        return logits.sum(1)

    @register.head(name="example_head")
    def head(features, weight, bias):
        return features @ weight.T

    yield
    for kind, name in (("loss", "focal"), ("penalty", "penalty"), ("head", "head")):
        registry.forget(kind, f"example_{name}")


@pytest.mark.usefixtures("plugins")
def test_plugins_fill_slots_like_presets():
    found = resolve("dropout + example_focal(gamma=1.0) + example_penalty(strength=3) + example_head")
    assert found.loss.hyperparameters == {"classes": 3, "gamma": 1, "mode": "mean"}
    assert [part.name for part in found.components] == ["example_head", "example_focal", "example_penalty"]
    assert "example_focal(classes=3, gamma=1, mode='mean')" in found.canonical
    assert resolve("example_focal").label == "Example focal"
    assert resolve("example_focal").preset is None
    assert found.has_plugins
    assert not resolve("sigmoid + dropout").has_plugins


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sigmoid + example_focal", "the loss is set twice, by sigmoid and by example_focal"),
        ("example_head + cosine_softmax", "the head is set twice"),
        ("example_penalty", "strength has no default"),
        ("example_focal(gama=1)", "Did you mean 'gamma'"),
        ("example_focal(gamma='x')", "gamma must be a number, got 'x'"),
        ("example_focal(classes=2.5)", "classes must be an integer, got 2.5"),
        ("example_vocal", "Did you mean 'example_focal'"),
    ],
)
def test_plugins_are_checked_like_presets(text, message):
    with pytest.raises(RequestError) as raised:
        resolve(text)
    assert message in str(raised.value)


def test_presets_and_components_are_listed_with_their_source():
    assert registry.names("objective") == list(PRESETS)
    for name, preset in PRESETS.items():
        entry = registry.entry("objective", name)
        assert entry.resolve() is preset
        assert isinstance(preset, Preset)
        assert entry.summary == preset.summary
        assert entry.paper.endswith(f"eq. {preset.equation}")
    for kind, component in {
        "head": "linear normalised_logits cosine",
        "loss": "softmax_cross_entropy sigmoid_cross_entropy weighted_squared_error",
        "penalty": "squared_weight squared_logits",
    }.items():
        for name in component.split():
            entry = registry.entry(kind, name)
            assert entry.resolve().__name__ == name
            assert entry.source_digest() == ""
