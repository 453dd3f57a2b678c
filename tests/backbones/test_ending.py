"""How networks end: the final layer is found by running them, whatever stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import penultimate as pu
from penultimate.backbones.ending import ending
from penultimate.backbones.final import classifier, cut
from penultimate.errors import RequestError
from penultimate.networks.given import network_of

IMAGES = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """A body of 6 features in maps of 4 x 4, and an end that a test chooses."""

    def __init__(self, end: Callable[[Net, Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU())
        self.norm = nn.BatchNorm1d(6)
        nn.init.uniform_(self.norm.running_mean, -1, 1)
        self.fc, self.other = nn.Linear(6, 10), nn.Linear(6, 10)
        self.pointwise = nn.Conv2d(6, 10, 1)
        self.whole = nn.Conv2d(6, 10, 4)
        self.end = end

    def forward(self, x: Tensor) -> Any:
        return self.end(self, self.body(x))


def pooled(x: Tensor) -> Tensor:
    return x.mean((2, 3))


ENDS: dict[str, tuple[Callable[[Net, Tensor], Any], tuple[str, ...], int]] = {
    "linear": (lambda net, x: net.fc(pooled(x)), ("fc",), 6),
    "a copy": (lambda net, x: net.fc(pooled(x)).clone(), ("fc",), 6),
    "pointwise": (lambda net, x: net.pointwise(x).mean((2, 3)), ("pointwise",), 6),
    "one pixel": (lambda net, x: net.pointwise(x.mean((2, 3), keepdim=True)).flatten(1), ("pointwise",), 6),
    "whole map": (lambda net, x: net.whole(x).squeeze((2, 3)), ("whole",), 96),
    "tokens": (lambda net, x: net.fc(x.flatten(2).transpose(1, 2)).mean(1), ("fc",), 6),
    "two heads": (
        lambda net, x: (net.fc(pooled(x)) + net.other(net.norm(pooled(x)))) / 2,
        ("fc", "other"),
        12,
    ),
    "sum": (lambda net, x: net.fc(pooled(x)) + net.other(net.norm(pooled(x))), ("fc", "other"), 12),
    "a tuple": (lambda net, x: (pooled(x), net.fc(pooled(x))), ("fc",), 6),
    "a dict": (lambda net, x: {"maps": x, "logits": net.fc(pooled(x))}, ("fc",), 6),
}


def tensor(output: Any) -> Tensor:
    parts = output.values() if isinstance(output, dict) else output
    return output if isinstance(output, Tensor) else next(part for part in parts if part.shape == (5, 10))


@pytest.mark.parametrize("name", ENDS)
def test_the_classifier_on_the_features_repeats_the_logits(name: str) -> None:
    end, layers, width = ENDS[name]
    net = Net(end).eval()
    with torch.no_grad():
        expected = tensor(net(IMAGES))
        found = ending(net, lambda: net(IMAGES))
        assert found is not None
        assert found.final is not None
        assert found.final.layers == layers
        assert found.features.shape == (5, width)
        assert found.logits is not None
        assert torch.equal(found.logits, expected)
        last = classifier(net, found.final)
        names = [part for part, _ in net.named_modules()]
        body = cut(net, found.final)
        assert torch.equal(body(IMAGES), found.features)
        assert [part for part, _ in body.named_modules()] == names
        assert last is not None
        torch.testing.assert_close(last(found.features), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ENDS)
def test_a_plain_module_on_a_plain_loader_gives_the_same_batch_by_batch(name: str) -> None:
    net = Net(ENDS[name][0])
    loader = [(IMAGES[:3], torch.arange(3)), (IMAGES[3:], torch.arange(2))]
    bank = pu.extract(net, loader)
    with torch.no_grad():
        found = ending(net.eval(), lambda: net(IMAGES))
    assert found is not None
    assert bank.logits is not None
    torch.testing.assert_close(torch.from_numpy(bank.features), found.features, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.from_numpy(bank.logits), found.logits, rtol=1e-5, atol=1e-6)


def assisted(net: Net, x: Tensor) -> Tensor:
    tokens = x.flatten(2).transpose(1, 2)
    return net.fc(tokens.mean(1)) + net.other(tokens).amax(1) / 2


def test_a_second_layer_that_assists_is_looked_at_in_every_batch() -> None:
    net = Net(assisted)
    bank = pu.extract(net, [(IMAGES[:3], torch.arange(3)), (IMAGES[3:], torch.arange(2))])
    assert bank.features.shape == (5, 6)
    assert bank.logits is not None
    with torch.no_grad():
        np.testing.assert_allclose(bank.logits, net.eval()(IMAGES), rtol=1e-5, atol=1e-6)


def test_copied_logits_of_a_batch_may_all_be_positive() -> None:
    """What the final layer is was seen with the batch before."""
    net = Net(ENDS["a copy"][0]).eval()
    with torch.no_grad():
        net.fc.bias.sub_(net(IMAGES[:1])[0]).add_(1e-3)
        expected = net(IMAGES)
    order = torch.tensor([*range(1, 5), 0])
    assert (expected[0] > 0).all()
    assert (expected[1:] < 0).any()
    bank = pu.extract(net, [(IMAGES[part], part) for part in (order[:4], order[4:])])
    assert bank.logits is not None
    np.testing.assert_allclose(bank.logits, expected[order], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("squashed", [F.log_softmax, F.softmax])
def test_of_probabilities_the_layers_own_output_is_the_logits(squashed: Callable[..., Tensor]) -> None:
    net = Net(lambda net, x: squashed(net.fc(pooled(x)), 1)).eval()
    with torch.no_grad():
        found = ending(net, lambda: net(IMAGES))
        assert found is not None
        assert found.logits is not None
        assert torch.equal(found.logits, net.fc(found.features))


@pytest.mark.parametrize(
    "end",
    [
        lambda net, x: F.relu(net.fc(pooled(x))),
        lambda net, x: F.relu_(net.fc(pooled(x))),
        lambda net, x: net.fc(pooled(x)) * net.other(pooled(x)).sigmoid(),
    ],
)
def test_an_output_of_no_final_layer_is_the_features_itself(end: Callable[[Net, Tensor], Any]) -> None:
    net = Net(end).eval()
    with torch.no_grad():
        found = ending(net, lambda: net(IMAGES))
        assert found is not None
        assert (found.logits, found.final) == (None, None)
        assert torch.equal(found.features, net(IMAGES))


def test_a_rectified_layer_whose_outputs_are_all_positive_is_no_final_one() -> None:
    net = Net(lambda net, x: F.relu(net.fc(pooled(x)))).eval()
    nn.init.constant_(net.fc.bias, 100.0)
    with torch.no_grad():
        found = ending(net, lambda: net(IMAGES))
    assert found is not None
    assert found.final is None


def test_values_that_are_not_numbers_are_told_when_features_are_extracted() -> None:
    net = Net(ENDS["linear"][0])
    nn.init.constant_(net.body[0].weight, float("nan"))
    with pytest.raises(RequestError, match=r"features.*not finite"):
        pu.extract(net, [(IMAGES, torch.arange(5))])


@dataclass
class Given:
    """An output with names, as networks of transformers have it."""

    maps: Tensor
    pooler_output: Tensor | None = None
    loss: Tensor | None = None


@pytest.mark.parametrize(
    ("end", "layer"),
    [
        (lambda net, x: {"avgpool": pooled(x)}, "output.avgpool"),
        (lambda net, x: {"avgpool": x.mean((2, 3), keepdim=True), "loss": x.mean()}, "output.avgpool"),
        (lambda net, x: (x, pooled(x)), "output.1"),
        (lambda net, x: [None, {"features": pooled(x)}], "output.1.features"),
        (lambda net, x: Given(x, pooled(x)), "output.pooler_output"),
    ],
)
def test_of_several_tensors_the_one_that_is_features_is_read(end: Callable[..., Any], layer: str) -> None:
    net, batches = Net(end).eval(), [(IMAGES, torch.arange(5))]
    with torch.no_grad():
        expected = pooled(net.body(IMAGES))
    np.testing.assert_allclose(pu.extract(net, batches).features, expected, rtol=1e-6)
    np.testing.assert_allclose(pu.extract(net, batches, layer=layer).features, expected, rtol=1e-6)
    np.testing.assert_allclose(network_of(pu.Model(net, size=8)).features(IMAGES), expected, rtol=1e-6)
    plain = pu.extract(lambda batch: net(batch), batches)
    np.testing.assert_allclose(plain.features, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        (lambda net, x: (pooled(x), pooled(x) - 1), r"name one of .*'output\.0'\)? or .*layer='output\.1'"),
        (lambda net, x: {"maps": x}, r"a dict of maps: \[\d, 6, 4, 4\]; name one of .*layer='output\.maps'"),
        (lambda net, x: Given(x), r"a Given of maps: .*layer='output\.maps'"),
        (lambda net, x: x, r"nn\.Sequential\(net, nn\.AdaptiveAvgPool2d\(1\)\) averages over its positions"),
        (lambda net, x: x.movedim(1, -1), r"net\(x\)\.mean\(\(1, 2\)\)"),
        (lambda net, x: x.flatten(2).mT, r"net\(x\)\.mean\(1\), the average of its tokens"),
        (
            lambda net, x: {"logits": net.norm(net.fc(pooled(x))[:, :6])},
            "the final layer of Net was not found",
        ),
    ],
)
def test_an_output_that_is_no_features_is_refused_with_the_way_out(
    end: Callable[..., Any], answer: str
) -> None:
    net = Net(end)
    with pytest.raises(RequestError, match=answer):
        pu.extract(net, [(IMAGES, torch.arange(5))])
    with pytest.raises(RequestError, match=answer):
        network_of(pu.Model(net, size=8))
    with pytest.raises(RequestError, match=r"features are one tensor|there is no 'output\.none'"):
        pu.extract(net, [(IMAGES, torch.arange(5))], layer="output.none")


def test_a_module_without_classes_has_no_final_layer_whatever_its_output_repeats() -> None:
    """An average of rectified maps, as that of a VGG without its classifier, ends as SqueezeNet does."""
    net = Net(lambda net, x: F.relu(net.pointwise(x)).mean((2, 3))).eval()
    net.num_classes = 10  # type: ignore[assignment]
    with torch.no_grad():
        found = ending(net, lambda: net(IMAGES))
        assert found is not None
        assert found.final is not None
        net.num_classes, net.get_classifier = 0, nn.Identity  # type: ignore[assignment]
        found = ending(net, lambda: net(IMAGES))
        assert found is not None
        assert (found.logits, found.final) == (None, None)
        assert torch.equal(found.features, net(IMAGES))


# -- a head that was cut off ---------------------------------------------------------------------------------


def trunk() -> nn.Sequential:
    """A trunk that ends as SqueezeNet does, in a convolution, a ReLU and an average."""
    torch.manual_seed(2)
    last = nn.Conv2d(6, 9, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), *last)


class Wrapped(nn.Module):
    """A trunk and a head under the names that a test gives them."""

    def __init__(self, trunk: nn.Module, **heads: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk
        for name, head in heads.items():
            self.add_module(name, head)

    def forward(self, x: Tensor) -> Tensor:
        for part in self.children():
            x = part(x)
        return x


class Timmish(Wrapped):
    """Says, as networks of timm do, what its classifier is."""

    num_classes = 9

    def get_classifier(self) -> nn.Module:
        return self.get_submodule("classifier")


class Residual(nn.Module):
    """Ends in a sum of linear layers, of which one is given what the other gave."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(192, 10), nn.Linear(10, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x.flatten(1))
        return x + self.other(x.relu())


def normalised() -> nn.Sequential:
    """A trunk whose batch normalisation changes nothing yet."""
    return nn.Sequential(nn.Conv2d(3, 9, 1), nn.BatchNorm2d(9), nn.AdaptiveAvgPool2d(1), nn.Flatten())


EMBEDDING = nn.Sequential(nn.Flatten(), nn.Linear(192, 9))
HEADLESS: dict[str, Callable[[], nn.Module]] = {
    "a trunk alone": trunk,
    "its last layer is taken off": lambda: nn.Sequential(*list(trunk().children())[:-1]),
    "fc is an Identity": lambda: Wrapped(trunk(), fc=nn.Identity()),
    "an Identity behind a linear embedding": lambda: Wrapped(EMBEDDING, head=nn.Identity()),
    "of a network within a network": lambda: Wrapped(Wrapped(EMBEDDING, fc=nn.Identity())),
    "the last of a head": lambda: Wrapped(trunk(), classifier=nn.Sequential(nn.Dropout(), nn.Identity())),
    "said by get_classifier": lambda: Timmish(trunk(), classifier=nn.Identity()),
    "batch normalisation": normalised,
    "frozen batch normalisation": lambda: nn.Sequential(
        *list(normalised())[:1], Affine(9), *list(normalised())[2:]
    ),
    "a residual sum": Residual,
    "an empty head": lambda: Wrapped(EMBEDDING, head=nn.Sequential()),
    "an empty projection": lambda: Wrapped(EMBEDDING, projector=nn.Sequential()),
    "a head of your own that passes on what it is given": lambda: Wrapped(EMBEDDING, head=Passes()),
    "a head of which a dropout is left": lambda: Wrapped(EMBEDDING, classifier=nn.Dropout()),
    "a head of which its first layers are left": lambda: Wrapped(
        EMBEDDING, fc=nn.Sequential(nn.Flatten(), nn.Dropout())
    ),
    "a head that is None as a plain attribute": lambda: without(Wrapped(EMBEDDING), "head"),
    "a traced network whose head is an Identity": lambda: torch.jit.trace(
        Wrapped(EMBEDDING, fc=nn.Identity()).eval(), IMAGES
    ),
    "an average of squashed maps": lambda: nn.Sequential(nn.Conv2d(3, 9, 1), nn.Softplus(), *trunk()[-2:]),
}


class Passes(nn.Module):
    """A head that does nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def without(net: nn.Module, head: str) -> nn.Module:
    """The network, with None in place of a head."""
    setattr(net, head, None)
    return net


class Affine(nn.Module):
    """A frozen normalisation: a factor and a summand for each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.factor, self.summand = torch.ones(1, channels, 1, 1), torch.zeros(1, channels, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor + self.summand


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("name", HEADLESS)
def test_of_a_network_without_a_head_the_output_is_the_features(name: str) -> None:
    net = HEADLESS[name]().eval()
    with torch.no_grad():
        expected = net(IMAGES).flatten(1)
    bank = pu.extract(net, [(IMAGES[:2], torch.arange(2)), (IMAGES[2:], torch.arange(3))])
    assert bank.logits is None
    np.testing.assert_allclose(bank.features, expected, rtol=1e-5, atol=1e-6)


def test_what_ends_in_a_non_linearity_is_no_class_scores_whatever_its_layers_are_called() -> None:
    net = Wrapped(nn.Flatten(), fc=nn.Linear(192, 9), bn=nn.BatchNorm1d(9), act=nn.ReLU()).eval()
    with torch.no_grad():
        found = ending(net, lambda: net(IMAGES))
    assert found is not None
    assert found.unclear == ""
    assert found.logits is None


def test_with_its_head_the_same_network_is_a_classifier() -> None:
    for net in (Wrapped(EMBEDDING, head=nn.Linear(9, 4)), Timmish(trunk(), classifier=nn.Linear(9, 9))):
        with torch.no_grad():
            found = ending(net.eval(), lambda net=net: net(IMAGES))
            assert found is not None
            assert found.final is not None
            assert torch.equal(found.features, net.trunk(IMAGES))


def test_a_head_that_is_none_where_another_is_there_removes_nothing() -> None:
    net = Wrapped(EMBEDDING, classifier=nn.Linear(9, 4))
    net.head = None  # type: ignore[assignment]
    net.forward = lambda x: net.classifier(net.trunk(x))  # type: ignore[method-assign]
    found = ending(net.eval(), lambda: net(IMAGES))
    assert found is not None
    assert found.final is not None
    assert found.final.layers == ("classifier",)
    net.classifier = None  # type: ignore[assignment]
    net.forward = lambda x: net.trunk(x)  # type: ignore[method-assign]
    found = ending(net, lambda: net(IMAGES))
    assert found is not None
    assert found.final is None


def test_class_scores_of_which_it_is_not_known_how_they_are_made_are_refused() -> None:
    net = Net(lambda net, x: net.fc(pooled(x)) * net.other(pooled(x)).sigmoid())
    net.num_classes = 10  # type: ignore[assignment]
    with pytest.raises(RequestError, match=r"the final layer of Net was not found: its output \(\[5, 10\]\)"):
        pu.extract(net, [(IMAGES, torch.arange(5))])
    assert pu.extract(net, [(IMAGES, torch.arange(5))], layer="output").features.shape == (5, 10)


@pytest.mark.long
@pytest.mark.parametrize(
    "end",
    [
        lambda net, f: torch.tanh(net.fc(f)),
        lambda net, f: torch.tanh(f @ net.code),
        lambda net, f: torch.from_numpy(net.fc(f).detach().numpy()),
        lambda net, f: net.bn(F.linear(f, net.code.T)),
        lambda net, f: F.layer_norm(f @ net.code, (10,)),
        lambda net, f: F.normalize(net.fc(f)),
        lambda net, f: (z := net.fc(f)) - z.mean(1, keepdim=True),
        lambda net, f: 2 * f @ net.code - (f**2).sum(1, keepdim=True) - (net.code**2).sum(0),
        lambda net, f: F.bilinear(f, f, net.quadratic),
        lambda net, f: F.bilinear(f, f.detach(), net.quadratic) + net.fc(f),
        lambda net, f: net.pair(f, f),
        lambda net, f: torch.einsum("ni,kij,nj->nk", f, net.quadratic, f),
        lambda net, f: filled(f, net.code),
        lambda net, f: torch.stack([net.code.T @ vector for vector in f]),
        lambda net, f: torch.stack([net.fc(vector) for vector in f]),
        lambda net, f: torch.cat([f @ net.code[:, :4], net.norm(f) @ net.code[:, 4:]], 1),
        lambda net, f: torch.cat([net.fc(f)[:, :5], net.fc(f)[:, 5:]], 1),
        lambda net, f: F.normalize((f @ net.code).softmax(1) ** 2, p=1),
    ],
)
def test_scores_that_may_be_of_classes_are_told(end: Callable[[Net, Tensor], Tensor]) -> None:
    net = Net(lambda net, x: end(net, pooled(x)))
    net.register_buffer("code", torch.randn(6, 10))
    net.quadratic = nn.Parameter(torch.randn(10, 6, 6))
    net.bn, net.pair = nn.BatchNorm1d(10), nn.Bilinear(6, 6, 10)
    with pytest.warns(UserWarning, match=r"taken for the features; if it is class scores, name a layer"):
        assert pu.extract(net, [(IMAGES, torch.arange(5))]).features.shape == (5, 10)
    with pytest.raises(RequestError, match=r"the final layer of Net was not found.*layer='output'"):
        network_of(pu.Model(net, size=8))


def test_an_embedding_that_is_normalised_is_features_without_a_word() -> None:
    net = Wrapped(trunk(), neck=nn.Linear(9, 4)).eval()
    unit = Wrapped(net, end=nn.Module())
    unit.end.forward = F.normalize  # type: ignore[method-assign]
    with torch.no_grad():
        expected = F.normalize(net(IMAGES))
    np.testing.assert_allclose(pu.extract(unit, [(IMAGES, torch.arange(5))]).features, expected, rtol=1e-5)


def filled(features: Tensor, code: Tensor) -> Tensor:
    """Class scores, written into a tensor class by class."""
    scores = features.new_zeros(len(features), 10)
    for number in range(10):
        scores[:, number] = (features * code[:, number]).sum(-1)
    return scores


class Pooled(nn.Module):
    """Six maps that a network ends in, and parameters of its own by which they are made features."""

    def __init__(self, end: Callable[[Pooled, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.body, self.end = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU()), end
        self.vector, self.places = nn.Parameter(torch.rand(6)), nn.Parameter(torch.rand(16, 6))
        self.power, self.first = nn.Parameter(torch.tensor([3.0])), nn.Parameter(torch.rand(1, 1, 6))
        self.layer_norm, self.batch_norm, self.gate = nn.LayerNorm(6), nn.BatchNorm1d(6), nn.Linear(6, 6)
        self.depthwise, self.conv = nn.Conv2d(6, 6, 3, groups=6), nn.Conv2d(6, 6, 3)
        self.transformer = nn.TransformerEncoderLayer(6, 1, 8, batch_first=True, dropout=0.0)
        self.gru, self.wide = nn.GRU(6, 6, batch_first=True), nn.Linear(6, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self, self.body(x))


def tokens(x: Tensor) -> Tensor:
    return x.flatten(2).transpose(1, 2)


def attended(net: Pooled, x: Tensor) -> Tensor:
    weights = (tokens(x) * net.vector).sum(-1).softmax(1)
    return (weights[..., None] * tokens(x)).sum(1)


@pytest.mark.long
@pytest.mark.parametrize(
    "end",
    [
        lambda net, x: pooled(x.clamp(min=1e-6) ** net.power) ** (1 / net.power),
        lambda net, x: pooled(x) * net.vector + net.vector,
        lambda net, x: F.normalize(pooled(x)) * net.vector,
        lambda net, x: net.layer_norm(pooled(x)),
        lambda net, x: net.batch_norm(pooled(x)),
        attended,
        lambda net, x: (tokens(x) * net.places[:, :1]).sum(1),
        lambda net, x: (tokens(x) + net.places).mean(1),
        lambda net, x: torch.cat([net.first.expand(len(x), 1, 6), tokens(x)], 1).mean(1),
        lambda net, x: torch.cat([pooled(x), x.amax((2, 3))], 1),
        lambda net, x: torch.stack([x[:, number].mean((1, 2)) for number in range(6)], 1),
        lambda net, x: torch.bmm(tokens(x).transpose(1, 2), tokens(x)).flatten(1),
        lambda net, x: pooled(x) * net.gate(pooled(x)).sigmoid(),
        lambda net, x: pooled(net.depthwise(x)),
        lambda net, x: pooled(net.conv(x)),
        lambda net, x: net.transformer(tokens(x)).mean(1),
        lambda net, x: net.gru(tokens(x))[0][:, -1],
        lambda net, x: F.glu(net.wide(pooled(x))),
    ],
)
def test_features_that_parameters_have_a_part_in_are_features_without_a_word(
    end: Callable[[Pooled, Tensor], Tensor],
) -> None:
    net = Pooled(end).eval()
    with torch.no_grad():
        expected = net(IMAGES)
    bank = pu.extract(net, [(IMAGES, torch.arange(5))])
    np.testing.assert_allclose(bank.features, expected, rtol=1e-4, atol=1e-6)
    assert bank.logits is None


class Tower(nn.Module):
    """A tower of CLIP's: what it gives is projected by a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.proj = trunk(), nn.Parameter(torch.randn(9, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.trunk(x) @ self.proj


@pytest.mark.parametrize(
    ("net", "name"),
    [
        (Tower(), "proj"),
        (Wrapped(trunk(), visual_embedding=nn.Linear(9, 4)), "visual_embedding"),
        (without(Wrapped(trunk(), fc=nn.Linear(9, 4)), "classifier"), "fc"),
    ],
)
def test_a_last_layer_that_may_be_an_embedding_is_told(net: nn.Module, name: str) -> None:
    batches = [(IMAGES, torch.arange(5))]
    with pytest.warns(UserWarning, match=rf"what '{name}' is given for its features; .*say layer='output'"):
        assert pu.extract(net, batches).features.shape == (5, 9)
    assert pu.extract(net, batches, layer="output").features.shape == (5, 4)


# -- class scores that are a function of the final layer's output --------------------------------------------

FUNCTIONAL: dict[str, Callable[[Net, Tensor], Tensor]] = {
    "F.linear": lambda net, f: F.linear(f, net.fc.weight, net.fc.bias),
    "a product": lambda net, f: f @ net.fc.weight.T + net.fc.bias,
    "a product from the left": lambda net, f: (net.fc.weight @ f.T).T,
    "einsum": lambda net, f: torch.einsum("nm,km->nk", f, net.fc.weight),
    "a temperature": lambda net, f: net.fc(f) / 0.07,
    "a learned temperature": lambda net, f: net.fc(f) * net.norm.weight[:1].exp(),
    "sigmoid": lambda net, f: net.fc(f).sigmoid(),
    "sigmoid in place": lambda net, f: net.fc(f).mul_(3).sigmoid_(),
    "logsigmoid": lambda net, f: F.logsigmoid(net.fc(f) * 2 - 1),
    "a capped logit": lambda net, f: 30 * torch.tanh(net.fc(f) / 30),
    "softmax of a temperature": lambda net, f: (net.fc(f) * 5).softmax(1),
    "the log of a softmax": lambda net, f: net.fc(f).softmax(1).clamp(min=1e-9).log(),
    "cosine": lambda net, f: 30 * F.linear(F.normalize(f), F.normalize(net.fc.weight)),
    "cosine by hand": lambda net, f: (f / f.norm(dim=1, keepdim=True)) @ F.normalize(net.fc.weight).T,
    "a learned scale on the features": lambda net, f: (
        (net.norm.weight[:1].exp() * F.normalize(f)) @ F.normalize(net.fc.weight).T
    ),
    "a class that is masked": lambda net, f: net.fc(f).masked_fill(torch.arange(10) == 3, -1e9),
    "squared distances": lambda net, f: -(torch.cdist(f, net.fc.weight) ** 2),
    "cosine_similarity": lambda net, f: F.cosine_similarity(f[:, None], net.fc.weight, dim=-1),
    "cosine_similarity of a temperature": lambda net, f: (
        nn.CosineSimilarity(2)(net.fc.weight[None], f[:, None]) / 0.07
    ),
    "a sum of products": lambda net, f: (f[:, None] * net.fc.weight).sum(-1) + net.fc.bias,
    "a sum of products over the first side": lambda net, f: (net.fc.weight.T * f[:, :, None]).sum(1),
    "squared distances by hand": lambda net, f: -((f[:, None] - net.fc.weight) ** 2).sum(-1),
    "distances by hand": lambda net, f: -(net.fc.weight - f[:, None]).norm(dim=-1),
    "pairwise distances": lambda net, f: -F.pairwise_distance(f[:, None], net.fc.weight[None]),
    "a layer for each class": lambda net, f: torch.stack([f @ row for row in net.fc.weight], 1),
    "a sum for each class": lambda net, f: torch.stack([(f * row).sum(-1) for row in net.fc.weight], 1),
    "a sum for each class and a bias": lambda net, f: torch.stack(
        [(f * row).sum(1) + bias for row, bias in zip(net.fc.weight, net.fc.bias, strict=True)], 1
    ),
    "columns beside each other": lambda net, f: torch.cat([f @ row[:, None] for row in net.fc.weight], 1),
    "a product and a bias for each class": lambda net, f: torch.stack(
        [torch.addmv(bias[None], f, row) for row, bias in zip(net.fc.weight, net.fc.bias, strict=True)], 1
    ),
    "two layers beside each other": lambda net, f: torch.cat(
        [F.linear(f, net.fc.weight[:4], net.fc.bias[:4]), F.linear(f, net.fc.weight[4:])], 1
    ),
    "a cosine for each class": lambda net, f: torch.stack(
        [F.cosine_similarity(f, row[None]) for row in net.fc.weight], 1
    ),
    "a distance for each class": lambda net, f: torch.stack(
        [-(f - row).pow(2).sum(1) for row in net.fc.weight], 1
    ),
    "the softmax of a sum for each class": lambda net, f: torch.stack(
        [(f * row).sum(-1) for row in net.fc.weight], 1
    ).softmax(1),
    "vmap": lambda net, f: torch.vmap(lambda row: (f * row).sum(-1), out_dims=1)(net.fc.weight),
    "a product of a batch": lambda net, f: torch.matmul(f[:, None], net.fc.weight.T)[:, 0],
    "vecdot": lambda net, f: torch.linalg.vecdot(f[:, None], net.fc.weight),
    "distances to prototypes": lambda net, f: -torch.cdist(f, net.fc.weight),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONAL)
def test_the_features_are_what_the_scores_are_made_of(name: str) -> None:
    net = Net(lambda net, x: FUNCTIONAL[name](net, pooled(x))).eval()
    with torch.no_grad():
        expected = pooled(net.body(IMAGES))
    bank = pu.extract(net, [(IMAGES[:2], torch.arange(2)), (IMAGES[2:], torch.arange(3))])
    np.testing.assert_allclose(bank.features, expected, rtol=1e-5, atol=1e-6)
    assert bank.logits is not None


def test_the_classifier_of_scaled_logits_repeats_them() -> None:
    for end in (lambda net, x: net.fc(pooled(x)) / 0.07, lambda net, x: 3 * net.pointwise(x).mean((2, 3))):
        net = Net(end).eval()
        with torch.no_grad():
            found = ending(net, lambda net=net: net(IMAGES))
            assert found is not None
            assert found.final is not None
            last = classifier(net, found.final)
            assert last is not None
            torch.testing.assert_close(last(found.features), net(IMAGES), rtol=1e-5, atol=1e-5)


class ByClass(nn.Module):
    """A linear layer for each group of classes; the second has no bias."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = trunk()
        self.groups = nn.ModuleList([nn.Linear(9, 1), nn.Linear(9, 2, bias=False), nn.Linear(9, 1)])

    def forward(self, x: Tensor) -> Tensor:
        features = self.trunk(x)
        return torch.cat([group(features) for group in self.groups], 1) / 2


def test_layers_beside_each_other_are_one() -> None:
    net = ByClass().eval()
    with torch.no_grad():
        found = ending(net, lambda: net(IMAGES))
        assert found is not None
        assert found.final is not None
        assert found.final.layers == ("groups.0", "groups.1", "groups.2")
        last = classifier(net, found.final)
        assert last is not None
        torch.testing.assert_close(last(found.features), net(IMAGES))
        torch.testing.assert_close(found.features, net.trunk(IMAGES))
        again = ending(net, lambda: net(IMAGES[:2]), found.calls)
        assert again is not None
        torch.testing.assert_close(again.features, found.features[:2])
    given = network_of(pu.Model(net, size=8))
    assert given.head_weight is None or given.head_weight.shape == (4, 9)


@pytest.mark.parametrize("how", ["traced", "scripted", "compiled"])
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_the_layers_of_scripted_and_compiled_modules_are_seen(how: str) -> None:
    net: Any = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)
    )
    net.eval()
    with torch.no_grad():
        expected = net[:-1](IMAGES)
    if how == "traced":
        net = torch.jit.trace(net, IMAGES)
    elif how == "scripted":
        net = torch.jit.script(net)
    else:
        net.compile(backend="eager")
        net(IMAGES)
    bank = pu.extract(net, [(IMAGES, torch.arange(5))])
    np.testing.assert_allclose(bank.features, expected, rtol=1e-5, atol=1e-6)


# -- layers that are given something else than the images ----------------------------------------------------


class Conditioned(Net):
    """Scales its features by what a linear layer makes of something else."""

    def __init__(self, code: Callable[[Tensor], Tensor]) -> None:
        super().__init__(lambda net, x: x)
        self.film, self.code = nn.Linear(4, 6), code

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(pooled(self.body(x)) * self.film(self.code(x)))


@pytest.mark.parametrize(
    "code",
    [
        lambda x: torch.ones(4),
        lambda x: torch.ones(1, 4),
        lambda x: torch.ones(1, 1, 4).expand(len(x), 1, 4)[:, 0],
        lambda x: x[0, 0, 0, :4],
        lambda x: x[:, 0, 0, :4],
    ],
)
def test_a_layer_that_is_given_a_vector_is_no_final_one(code: Callable[[Tensor], Tensor]) -> None:
    net = Conditioned(code).eval()
    with torch.no_grad():
        expected = pooled(net.body(IMAGES)) * net.film(code(IMAGES))
    bank = pu.extract(net, [(IMAGES, torch.arange(5))])
    np.testing.assert_allclose(bank.features, expected, rtol=1e-5, atol=1e-6)


def test_a_network_may_call_a_layer_with_no_example_at_all() -> None:
    def end(net: Net, x: Tensor) -> Tensor:
        net.other(x.new_zeros(0, 6))
        return net.fc(torch.cat([pooled(x), x.new_zeros(0, 6)]))

    net = Net(end)
    assert pu.extract(net, [(IMAGES, torch.arange(5))]).features.shape == (5, 6)


# -- what is overwritten -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda f: f.relu_(),
        lambda f: f.add_(1),
        lambda f: f.view(-1).mul_(2),
        lambda f: F.relu(f, inplace=True),
    ],
)
def test_what_the_final_layer_was_given_is_kept_although_it_is_overwritten(
    write: Callable[[Tensor], Any],
) -> None:
    def end(net: Net, x: Tensor) -> Tensor:
        features = pooled(x) - 0.1
        logits: Tensor = net.fc(features)
        write(features)
        return logits

    net = Net(end).eval()
    with torch.no_grad():
        expected = pooled(net.body(IMAGES)) - 0.1
        found = ending(net, lambda: net(IMAGES))
        assert found is not None
        assert found.final is not None
        np.testing.assert_allclose(found.features, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(cut(net, found.final)(IMAGES), expected, rtol=1e-5, atol=1e-6)


def test_an_output_that_was_overwritten_through_a_view_is_none_of_the_layers() -> None:
    def end(net: Net, x: Tensor) -> Tensor:
        logits: Tensor = net.fc(pooled(x))
        logits.view(-1).relu_()
        return logits

    net = Net(end).eval()
    found = ending(net, lambda: net(IMAGES))
    assert found is not None
    assert found.final is None


# -- in which mode a network is run --------------------------------------------------------------------------


def test_nothing_is_recorded_and_the_modes_of_the_caller_count_for_nothing() -> None:
    seen: list[tuple[bool, bool]] = []

    def end(net: Net, x: Tensor) -> Tensor:
        seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))
        return net.fc(net.norm(pooled(x)))

    net = Net(end)
    batches = [(IMAGES, torch.arange(5))]
    expected = pu.extract(net, batches).features
    with torch.autocast("cpu", torch.bfloat16):
        assert np.array_equal(pu.extract(net, batches).features, expected)
    with torch.inference_mode():
        made = Net(end)
        made.load_state_dict(net.state_dict())
        inside = [(IMAGES.clone(), torch.arange(5))]
        for one in (net, made):
            np.testing.assert_array_equal(pu.extract(one, inside).features, expected)
            pu.profile_layers(one, inside)
    np.testing.assert_array_equal(pu.extract(made, inside).features, expected)
    pu.profile_layers(net, batches)
    pu.compare_networks([net], [torch.randn(6, 3, 8, 8)])
    assert {*seen} == {(False, False)}


def test_an_input_of_inference_mode_may_be_overwritten_by_the_network() -> None:
    with torch.inference_mode():
        batches = [(IMAGES.clone(), torch.arange(5))]
    net = Net(lambda net, x: net.fc(pooled(x)))
    net.body.insert(0, nn.ReLU(inplace=True))
    assert pu.extract(net, batches).features.shape == (5, 6)
