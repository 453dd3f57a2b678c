"""profile_layers against activations taken by hand; order of classes; bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.oracles import separation as oracle
from torch import Tensor, nn

import penultimate as pu
from penultimate import RequestError
from penultimate.data.images import ChannelStatistics, ImageSet
from penultimate.layers.comparison import compare_networks
from penultimate.layers.profiles import profile_layers
from penultimate.networks.trained import TrainedNetwork, build


def small_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3),
        nn.BatchNorm2d(5),
        nn.ReLU(inplace=True),
        nn.Conv2d(5, 4, 3),
        nn.ReLU(inplace=True),
    )


def batches(*sizes: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(n, 3, 7, 7, generator=generator), torch.randint(0, 3, (n,), generator=generator))
        for n in sizes
    ]


def network(classes: int = 3, n: int = 42) -> tuple[TrainedNetwork, ImageSet]:
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)
    images = ImageSet(pixels, random.integers(0, classes, n), np.arange(n), ("a", "b", "c"))
    card = {"objective": "softmax", "backbone": "glyphnet(width=2, features=8)", "num_classes": classes}
    body, head = build(card["objective"], card["backbone"], classes, seed=0)
    return TrainedNetwork(
        body.eval(), head.eval(), ChannelStatistics((0.5,) * 3, (0.3,) * 3), ("a", "b", "c"), card
    ), images


def test_values_are_those_of_all_activations_at_once() -> None:
    net, loader = small_net(), batches(9, 4, 13)
    net.eval()
    found = profile_layers(net, loader, ["1", "2", "4"])
    labels = torch.cat([labels for _, labels in loader]).numpy()
    for end, profile in zip((2, 3, 5), found, strict=True):
        with torch.no_grad():
            x = torch.cat([net[:end](batch) for batch, _ in loader])
        assert profile.layer == str(end - 1)
        assert profile.dimensions == x[0].numel()
        assert profile.nonzero_share == pytest.approx(float((x != 0).double().mean()), rel=1e-12)
        truth = oracle.class_separation(x.flatten(1).double().numpy(), labels, "cosine")
        assert profile.class_separation == pytest.approx(truth, rel=1e-6)
    assert net.training is False
    assert found[0].nonzero_share == 1  # batch norm's output, before the in-place ReLU overwrote it


def test_an_image_set_is_visited_class_by_class_and_ends_in_the_penultimate_features() -> None:
    trained, images = network()
    found = profile_layers(trained, images, batch_size=10)
    assert [one.layer for one in found] == ["block1", "block2", "bottleneck1", "bottleneck2", "penultimate"]
    bank = pu.extract(trained, images)
    assert found[-1].class_separation == pytest.approx(
        pu.class_separation(bank.features, bank.labels), rel=1e-6
    )
    assert found[-1].nonzero_share == pytest.approx(float((bank.features != 0).mean()))
    assert found[-1].dimensions == 8


def test_the_penultimate_layer_of_a_classifier_is_what_its_final_layer_is_given() -> None:
    net = nn.Sequential(small_net(), nn.Flatten(), nn.Linear(36, 10))
    loader = batches(9, 12)
    assert [one.layer for one in profile_layers(net, loader)] == ["0.2", "0.4", "penultimate"]
    (last,) = profile_layers(net, loader, "penultimate")
    assert profile_layers(net, loader, ["0.2", "penultimate"])[1] == last
    bank = pu.extract(net, loader)
    assert (last.dimensions, bank.features.shape) == (36, (21, 36))
    assert last.nonzero_share == pytest.approx(float((bank.features != 0).mean()), rel=1e-12)
    assert last.class_separation == pytest.approx(pu.class_separation(bank.features, bank.labels), rel=1e-6)


def test_a_network_whose_output_is_no_tensor_has_no_penultimate_layer() -> None:
    class Detector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = small_net()

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"boxes": self.body(x)}

    assert [one.layer for one in profile_layers(Detector(), batches(9))] == ["body.2", "body.4"]
    with pytest.raises(RequestError, match="the output is not a tensor"):
        profile_layers(Detector(), batches(9), "penultimate")


@pytest.mark.parametrize("says", ["entry", "num_classes", "fc"])
def test_what_may_be_class_scores_is_not_profiled_as_penultimate_features(says: str) -> None:
    class Sorted(nn.Module):
        """A classifier whose scores follow from its final layer in no known way."""

        def __init__(self) -> None:
            super().__init__()
            self.body = small_net()
            self.add_module("fc" if says == "fc" else "last", nn.Linear(4, 10))
            if says == "num_classes":
                self.num_classes = 10

        def forward(self, x: Tensor) -> Tensor | dict[str, Tensor]:
            last = self.fc if says == "fc" else self.last
            scores = last(self.body(x).mean((2, 3))).cumsum(1).sin().sort(1).values
            return {"scores": scores} if says == "entry" else scores

    assert [one.layer for one in profile_layers(Sorted(), batches(9))] == ["body.2", "body.4"]


def test_a_loader_may_promise_its_order_and_is_held_to_it() -> None:
    net = small_net()
    images, labels = batches(30)[0]
    order = labels.argsort()
    sorted_batches = list(zip(images[order].split(7), labels[order].split(7), strict=True))
    plain = profile_layers(net, sorted_batches, "4")
    assert profile_layers(net, sorted_batches, "4", by_class=True)[0].class_separation == pytest.approx(
        plain[0].class_separation
    )
    with pytest.raises(RequestError, match=r"batch 0: layer '4': .* comes back: sort them by label"):
        profile_layers(net, [(images, labels)], "4", by_class=True)


def test_bad_input_is_named() -> None:
    net, loader = small_net(), batches(8, 8)
    with pytest.raises(RequestError, match="no layer matches 'blok'"):
        profile_layers(net, loader, "blok")
    spoilt = [loader[0], (loader[1][0].clone(), loader[1][1])]
    spoilt[1][0][5, 0, 0, 0] = torch.nan
    with pytest.raises(RequestError, match=r"batch 1: layer '2': .*NaN.* in row 5"):
        profile_layers(net, spoilt, ["2"])
    with pytest.raises(RequestError, match="batch 0 has no labels"):
        profile_layers(net, [batch for batch, _ in loader], "2")
    with pytest.raises(RequestError, match="batch 0 has no labels"):
        profile_layers(net, [{"input": loader[0][0]}], "2")
    with pytest.raises(RequestError, match="8 examples"):
        profile_layers(net, [(loader[0][0][:7], loader[0][1])], "2")
    with pytest.raises(RequestError, match="no batch"):
        profile_layers(net, [], "2")
    net.add_module("penultimate", nn.ReLU())
    with pytest.raises(
        RequestError, match="has a layer 'penultimate', as its penultimate features are called"
    ):
        profile_layers(net, loader)
    with pytest.raises(RequestError, match="give a bare module batches"):
        profile_layers(net, network()[1], "2")


def test_the_output_of_a_network_is_compared_as_its_last_layer() -> None:
    trained, images = network()
    found = compare_networks({"one": trained}, images, output="penultimate", batch_size=21)
    assert found.layers("one")[-2:] == ["bottleneck2", "penultimate"]
    same = compare_networks({"one": trained}, images, (), output="penultimate", batch_size=21)
    assert found.products[:, -1, -1] == pytest.approx(same.products[:, 0, 0], rel=1e-4)
    with pytest.raises(RequestError, match="has a layer 'block1'"):
        compare_networks({"one": trained}, images, output="block1")


def test_what_is_overwritten_later_does_not_reach_a_profile() -> None:
    """The features of the final layer are taken before an operation in place changes them."""

    class Overwriting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.fc = nn.Sequential(nn.Linear(4, 6), nn.ReLU()), nn.Linear(6, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = self.body(x)
            logits: torch.Tensor = self.fc(features)
            features.add_(1)
            return logits

    net = Overwriting()
    images, labels = torch.randn(8, 4, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2
    (found,) = profile_layers(net, [(images[:4], labels[:4]), (images[4:], labels[4:])], "penultimate")
    with torch.no_grad():
        expected = float((net.body(images) != 0).float().mean())
    assert (found.dimensions, found.nonzero_share) == (6, pytest.approx(expected))
