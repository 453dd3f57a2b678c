"""An objective in the place of a classifier's final layer, trained in a loop of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor, nn

import penultimate as pu
from penultimate import RequestError
from penultimate.objectives.objective import Objective

IMAGES = torch.randn(12, 3, 8, 8, generator=torch.Generator().manual_seed(0))
TARGETS = torch.arange(12) % 3


class Tokens(nn.Module):
    """A classifier that averages what its head makes of each position."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Conv2d(3, 6, 4, stride=4), nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.embed(x).relu().flatten(2).transpose(1, 2)).mean(1)
        return scores


def trunk() -> list[nn.Module]:
    torch.manual_seed(1)
    return [nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]


def plain() -> nn.Module:
    return nn.Sequential(*trunk(), nn.Flatten(), nn.Linear(6, 5))


def convolutional() -> nn.Module:
    return nn.Sequential(*trunk(), nn.Conv2d(6, 5, 1), nn.Flatten())


def replicated() -> nn.Module:
    return nn.DataParallel(plain())


def without() -> nn.Module:
    return nn.Sequential(*trunk(), nn.Flatten(), nn.Identity())


def objective(text: str = "softmax", features: int = 6) -> Objective:
    return pu.objective(text, num_features=features, num_classes=3)


@pytest.mark.long
@pytest.mark.parametrize("build", [plain, Tokens, convolutional, replicated, without])
@pytest.mark.parametrize("text", ["cosine_softmax", "sigmoid + dropout(keep=0.8)", "logit_penalty"])
def test_the_objective_is_on_what_the_final_layer_was_given(
    build: Callable[[], nn.Module], text: str
) -> None:
    module = build()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    expected = torch.from_numpy(pu.extract(module, [(IMAGES, TARGETS)]).features)
    head = objective(text)
    network = pu.replace_head(pu.Model(module, size=8), head)
    after = module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in after), "nothing was trained on noise"
    assert all(part.training for part in network.modules())
    network.eval()
    with torch.no_grad():
        torch.testing.assert_close(network(IMAGES), head(expected), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            network(IMAGES, TARGETS), head.loss(expected, TARGETS), rtol=1e-4, atol=1e-5
        )
    bank = pu.extract(network, [(IMAGES, TARGETS)])
    torch.testing.assert_close(torch.from_numpy(bank.features), expected, rtol=1e-4, atol=1e-5)


def test_with_a_projector_the_features_are_still_the_bodys() -> None:
    head = objective("cosine_softmax + projector(depth=1, width=4) + koleo")
    network = pu.replace_head(pu.Model(plain(), size=8), head)
    network(IMAGES, TARGETS).mean().backward()
    assert head.projector is not None
    assert all(parameter.grad is not None for parameter in head.projector.parameters())
    network.eval()
    with torch.no_grad():
        expected = network.body(IMAGES)
        torch.testing.assert_close(network(IMAGES), head(expected))
    assert expected.shape == (12, 6)
    for model in (network, pu.Model(network, layer="body")):
        bank = pu.extract(model, [(IMAGES[:5], TARGETS[:5]), (IMAGES[5:], TARGETS[5:])])
        torch.testing.assert_close(torch.from_numpy(bank.features), expected, rtol=1e-4, atol=1e-5)
    assert bank.logits is None
    logits = pu.extract(network, [(IMAGES, TARGETS)]).logits
    torch.testing.assert_close(torch.from_numpy(logits), head(expected))


def test_it_is_trained_and_its_weights_come_back() -> None:
    network = pu.replace_head(pu.Model(plain(), size=8), objective("cosine_softmax(temperature=0.1)"))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    images = IMAGES + 2 * TARGETS[:, None, None, None]
    losses = []
    for _ in range(30):
        loss = network(images, TARGETS).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    again = pu.replace_head(pu.Model(plain(), size=8), objective("cosine_softmax(temperature=0.1)"))
    again.load_state_dict(network.state_dict())
    network.eval()
    again.eval()
    assert torch.equal(network(images), again(images))


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(5, 3))

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3)) @ self.weight.T


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head = nn.Sequential(*trunk(), nn.Flatten()), nn.Linear(6, 5)
        self.head_dist = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        features = self.trunk(x)
        return (self.head(features) + self.head_dist(features)) / 2


class Pair(Two):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        features = self.trunk(x)
        return self.head(features), features


class Distilled(Two):
    def forward(self, x: Tensor) -> Tensor:
        features = self.trunk(x)
        return (self.head(features) + self.head_dist(features.relu() + features**2)) / 2


class Shifted(Two):
    def __init__(self) -> None:
        super().__init__()
        self.head_dist = nn.Identity()
        self.register_buffer("prior", torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.trunk(x)) + self.prior
        return scores


class Assisted(Two):
    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # type: ignore[override]
        features = self.trunk(x)
        scores: Tensor = self.head(features)
        return (scores, features) if self.training else scores


@pytest.mark.parametrize(
    ("build", "features", "message"),
    [
        (plain, 7, r"is on 7 features, and Sequential gives 6: pu.objective\(..., num_features=6\)"),
        (Functional, 3, "may be its final layer, without a module"),
        (Distilled, 12, r"without its final layer \('head', 'head_dist'\) Distilled does not give what"),
        (Shifted, 6, r"made of what 'head' gives in an unknown way"),
        (Assisted, 6, r"in training the body gives a tuple of \[2, 6\], \[2, 6\]; .* aux_logits=False"),
        (Pair, 6, r"\('head'\) Pair does not give what the layer is given, but a tuple"),
        (lambda: nn.Sequential(plain(), nn.Softmax(1)), 6, r"\('0.5'\) .* it may end in a softmax"),
    ],
)
def test_what_cannot_be_replaced_is_refused_and_left_as_it_was(
    build: Callable[[], nn.Module], features: int, message: str
) -> None:
    module = build()
    described = repr(module)
    with pytest.raises(RequestError, match=message):
        pu.replace_head(pu.Model(module, size=8), objective(features=features))
    assert repr(module) == described


def test_what_is_no_objective_and_a_layer_in_the_middle_are_refused() -> None:
    with pytest.raises(RequestError, match=r"got a Sequential and a Linear"):
        pu.replace_head(plain(), nn.Linear(6, 3))  # type: ignore[arg-type]
    module = nn.Sequential(nn.Sequential(*trunk(), nn.Flatten()), nn.Linear(6, 5))
    with pytest.raises(RequestError, match="behind the output of a module, not behind a layer"):
        pu.replace_head(pu.Model(module, size=8, layer="0"), objective())


def test_a_spec_makes_the_objective_for_the_features_that_there_are() -> None:
    network = pu.replace_head(pu.Model(plain(), size=8), "label_smoothing(alpha=0.2)", num_classes=7, seed=3)
    made = pu.objective("label_smoothing(alpha=0.2)", num_features=6, num_classes=7, seed=3)
    assert network.objective.spec == made.spec
    assert torch.equal(network.objective.head.weight, made.head.weight)
    for network, asked, classes, told in (
        (pu.Model(plain(), size=8), "softmax", None, "num_classes goes with the spec"),
        (pu.Model(plain(), size=8), objective(), 3, "num_classes goes with the spec"),
        ("softmax", plain(), 7, "the network comes first"),
    ):
        with pytest.raises(RequestError, match=told):
            pu.replace_head(network, asked, num_classes=classes)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="num_classes must be an integer >= 2"):
        pu.replace_head(pu.Model(plain(), size=8), "softmax", num_classes=1)


def test_what_timm_does_not_decay_keeps_its_name_in_the_new_network() -> None:
    class Positions(Tokens):
        def no_weight_decay(self) -> set[str]:
            return {"embed.bias"}

    network = pu.replace_head(pu.Model(Positions(), size=8), "softmax", num_classes=3)
    assert network.no_weight_decay() == {"body.embed.bias"} <= dict(network.named_parameters()).keys()
    assert pu.replace_head(pu.Model(plain(), size=8), objective()).no_weight_decay() == set()


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # of torch itself, while it compiles
def test_a_compiled_network_trains_as_the_plain_one() -> None:
    jaxtyping.config.update("jaxtyping_disable", True)
    losses = []
    for compiled in (False, True):
        network: Any = pu.replace_head(pu.Model(plain(), size=8), "cosine_softmax", num_classes=3)
        network = torch.compile(network, backend="eager") if compiled else network
        loss = network(IMAGES, TARGETS).mean()
        loss.backward()
        losses.append(loss.detach())
    jaxtyping.config.update("jaxtyping_disable", False)
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize(
    "change",
    [
        lambda net: nn.utils.weight_norm(net[0]) and net,
        lambda net: nn.utils.parametrizations.weight_norm(net[0]) and net,
        lambda net: nn.utils.weight_norm(net[4]) and net,
        lambda net: nn.utils.parametrizations.weight_norm(net[4]) and net,
        lambda net: nn.utils.spectral_norm(net[0]) and net,
        lambda net: net[4].half() and net,
        nn.Module.half,
        nn.Module.bfloat16,
    ],
    ids=[
        *("weight_norm of old", "weight_norm", "weight_norm of old on the head", "weight_norm on the head"),
        *("spectral_norm", "a half head", "float16", "bfloat16"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_weight_norm_and_half_precision_are_taken(change: Callable[[nn.Module], nn.Module]) -> None:
    made = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    )
    net = change(made)
    dtype = next(net.parameters()).dtype
    headed = pu.replace_head(pu.Model(net, size=32), "softmax", 3)
    assert headed(torch.randn(4, 3, 32, 32, dtype=dtype)).shape == (4, 3)
    assert next(headed.body.parameters()).dtype == dtype
