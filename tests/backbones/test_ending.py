"""How networks end: the final layer is found by running them, whatever stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import penultimate as pu
from penultimate.backbones.ending import classifier, cut, ending
from penultimate.errors import RequestError

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


def test_a_tuple_without_a_final_layer_is_refused_with_the_way_out() -> None:
    net = Net(lambda net, x: (x, pooled(x)))
    with pytest.raises(RequestError, match=r"the model gave none: name one of its layers, layer="):
        pu.extract(net, [(IMAGES, torch.arange(5))])
    assert pu.extract(net, [(IMAGES[:, :, :1, :1], torch.arange(5))], layer="body").features.shape == (5, 6)


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
