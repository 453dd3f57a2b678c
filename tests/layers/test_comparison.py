"""compare_networks against eq. 10 on activations taken by hand; networks restored; bad input; controls."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.oracles import similarity as oracle
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import penultimate as pu
from penultimate import RequestError
from penultimate.data.images import ChannelStatistics, ImageSet
from penultimate.layers.comparison import (
    at_initialisation,
    compare_grams,
    compare_networks,
    layer_grams,
    settle_batch_norm,
)
from penultimate.layers.profiles import profile_layers
from penultimate.networks.trained import TrainedNetwork, build


class SmallNet(nn.Module):
    """Convolutions with in-place ReLUs: what a hook keeps by reference is overwritten."""

    def __init__(self, width: int, depth: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential()
        channels = 3
        for _ in range(depth):
            self.body.extend([nn.Conv2d(channels, width, 3), nn.BatchNorm2d(width), nn.ReLU(inplace=True)])
            channels = width
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.body(x).mean((2, 3))))


def by_hand(net: nn.Module, x: Tensor) -> list[np.ndarray]:
    """bn and ReLU outputs of every layer of a SmallNet, each computed again, in float64."""
    body = net.body.double().eval()
    found = []
    with torch.no_grad():
        for end in range(len(body)):
            if end % 3:
                found.append(body[: end + 1](x.double()).numpy())
    body.float()
    return found


def networks() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"wide": SmallNet(6), "deep": SmallNet(4, depth=3)}


def images(*sizes: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(n, 3, 9, 9, generator=generator) + 2 for n in sizes]


PATTERNS = ["body.1", "body.2", "body.4", "body.5", "body.7", "body.8"]
LAYERS = {"wide": PATTERNS[:4], "deep": PATTERNS}


def test_equals_equation_10_for_networks_of_different_depth_and_batches_of_different_sizes() -> None:
    nets, batches = networks(), images(20, 20, 7)
    comparison = compare_networks(nets, [(batch, None) for batch in batches], LAYERS)
    layers = [by_hand(nets["wide"], batch) + by_hand(nets["deep"], batch) for batch in batches]
    assert np.abs(comparison.matrix - oracle.cka_matrix(layers)).max() < 1e-5
    assert np.abs(comparison.standard_error - oracle.jackknife(layers)).max() < 1e-5
    assert comparison.names == [(name, layer) for name in nets for layer in LAYERS[name]]
    assert comparison.between("wide", "deep").shape == (4, 6)
    assert comparison.matrix[0, 1] < 0.999, "batch norm and its in-place ReLU are different layers"
    assert comparison.sizes.tolist() == [20, 20, 7]
    assert "1 of 7" in repr(comparison)


def test_networks_are_left_as_they_were() -> None:
    nets = networks()
    nets["wide"].train()
    nets["wide"].drop.eval()
    nets["deep"].eval()
    before = {
        name: {key: value.clone() for key, value in net.state_dict().items()} for name, net in nets.items()
    }
    modes = {name: [module.training for module in net.modules()] for name, net in nets.items()}
    compare_networks(nets, images(8), LAYERS)
    with pytest.raises(RequestError):
        compare_networks(nets, [torch.full((8, 3, 9, 9), torch.nan)], LAYERS)
    for name, net in nets.items():
        assert [module.training for module in net.modules()] == modes[name]
        assert all(torch.equal(value, before[name][key]) for key, value in net.state_dict().items())
        assert not any(module._forward_hooks for module in net.modules())
        net(images(4)[0]).sum().backward()


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 4)

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.embed(pixel_values).mean(1)


@pytest.mark.parametrize(
    ("tokens", "pool"),
    [("flatten", lambda x: x), ("mean", lambda x: x.mean(1)), ("first", lambda x: x[:, 0])],
)
def test_tokens_are_flattened_or_pooled(tokens: str, pool) -> None:
    torch.manual_seed(0)
    nets = [Tokens(), Tokens()]
    x = torch.randn(10, 5, 3)
    batch = {"pixel_values": x, "labels": torch.zeros(10)}
    comparison = compare_networks(nets, [batch], "embed", tokens=tokens)
    expected = oracle.cka_matrix([[pool(net.embed(x)).detach().numpy() for net in nets]])
    assert np.abs(comparison.matrix - expected).max() < 1e-6
    with pytest.raises(RequestError, match="Did you mean 'flatten'"):
        compare_networks(nets, [batch], "embed", tokens="flaten")


def test_bad_input_is_named() -> None:
    nets = networks()
    with pytest.raises(
        RequestError, match=r"network 'wide': no layer matches 'bdy\.2'; the nearest names: body"
    ):
        compare_networks(nets, images(8), "bdy.2")
    with pytest.raises(RequestError, match=r"unknown network in layers 'wid'.*Did you mean 'wide'"):
        compare_networks(nets, images(8), {"wid": "body.2"})
    with pytest.raises(RequestError, match=r"^batch 1 of pass 0: HSIC_1 .* at least 4 examples; one holds 3"):
        compare_networks(nets, images(8, 3), LAYERS)
    bad = images(8, 8)
    bad[1][5, 0, 0, 0] = torch.nan
    with pytest.raises(RequestError, match=r"batch 1 of pass 0, network 'wide': layer 'body.1'.*in row 5"):
        compare_networks(nets, bad, LAYERS)
    with pytest.raises(RequestError, match="no batch"):
        compare_networks(nets, [], LAYERS)
    with pytest.raises(RequestError, match="no batch"):
        layer_grams(nets["wide"], [], PATTERNS[:2])
    with pytest.raises(RequestError, match=r"pass \[network\]"):
        compare_networks(nets["wide"], images(8))
    with pytest.raises(RequestError, match="no network"):
        compare_networks([], images(8))
    with pytest.raises(RequestError, match="'0' is a str"):
        compare_networks(["resnet50"], images(8))
    with pytest.raises(RequestError, match="2 passes over an iterator"):
        compare_networks(nets, iter(images(8)), LAYERS, passes=2)
    with pytest.raises(RequestError, match=r"passes must be a whole number of at least 1 .*; got 0"):
        compare_networks(nets, images(8), LAYERS, passes=0)
    with pytest.raises(RequestError, match=r"'1': it gives \[5\] for 8 examples"):
        compare_networks([nn.Sequential(nn.Conv2d(3, 5, 3), Folded())], images(8), ["0", "1"])


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (torch.zeros(8, 3, 9, 9), r"not a Tensor; for a single batch, pass \[batch\]"),
        ({"x": torch.zeros(8, 3, 9, 9)}, r"not a dict; for a single batch, pass \[batch\]"),
        (TensorDataset(torch.zeros(8, 3, 9, 9)), "TensorDataset gives single examples: pass DataLoader"),
        (None, "not a NoneType: give a list"),
        ("images", "not a str: give a list"),
    ],
)
def test_what_gives_no_batches_is_named(loader, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        compare_networks([networks()["wide"]], loader, "body.2")
    with pytest.raises(RequestError, match=message):
        profile_layers(networks()["wide"], loader, "body.2")


class Drained:
    """Iterable, but once only."""

    def __init__(self, batches: list[Tensor]) -> None:
        self.rest = iter(batches)

    def __iter__(self):
        return self.rest


def test_a_loader_that_is_empty_in_a_later_pass_is_refused() -> None:
    net = [networks()["wide"]]
    assert compare_networks(net, Drained(images(8, 8)), "body.2").passes.tolist() == [0, 0]
    with pytest.raises(RequestError, match="no batch in pass 1: it can be read only once"):
        compare_networks(net, Drained(images(8, 8)), "body.2", passes=2)


@pytest.mark.parametrize("image", ["x", "image"])
@pytest.mark.parametrize("ids", [[3, 1, 2, 0], ["d", "b", "c", "a"]])
def test_mappings_leave_out_labels_and_ids_and_a_single_other_key_is_the_image(image: str, ids: list) -> None:
    net, x = [networks()["wide"]], images(4)[0]
    batch = {image: x, "label": torch.arange(4) % 2, "id": ids}
    expected = compare_networks(net, [x], ["body.1", "body.2"])
    assert np.array_equal(compare_networks(net, [batch], ["body.1", "body.2"]).matrix, expected.matrix)
    (own,) = profile_layers(net[0], [batch], "body.2")
    assert own == profile_layers(net[0], [(x, batch["label"])], "body.2")[0]


@pytest.mark.parametrize(
    "wrap", [nn.DataParallel, lambda net: torch.compile(net, backend="eager")], ids=["parallel", "compiled"]
)
def test_a_wrapped_network_has_the_layers_and_values_of_the_one_inside(wrap) -> None:
    net = networks()["wide"]
    both = compare_networks({"bare": net, "wrapped": wrap(net)}, images(8, 8), PATTERNS[:2])
    assert both.layers("wrapped") == both.layers("bare")
    assert np.array_equal(both.between("bare", "wrapped"), both.between("bare", "bare"))


class Folded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((0, 2, 3))


def test_a_dead_layer_is_said_and_the_others_are_measured() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4))
    nn.init.zeros_(net[2].weight)
    comparison = compare_networks([net], [torch.randn(9, 3)], ["0", "1", "2"])
    assert np.isnan(comparison.matrix[2]).all()
    assert np.isfinite(comparison.matrix[:2, :2]).all()
    assert any("same for all examples: 2 of 0" in note for note in comparison.notes)


def glyph_network(seed: int) -> TrainedNetwork:
    card = {"objective": "softmax", "backbone": "glyphnet(width=2, features=8)", "num_classes": 3}
    body, head = build(card["objective"], card["backbone"], 3, seed)
    statistics = ChannelStatistics((0.5,) * 3, (0.25,) * 3)
    return TrainedNetwork(body.eval(), head.eval(), statistics, ("a", "b", "c"), card)


def glyph_images(n: int) -> ImageSet:
    pixels = np.random.default_rng(0).integers(0, 256, (n, 24, 24, 3), dtype=np.uint8)
    return ImageSet(pixels, np.zeros(n, int), np.arange(n), ("a", "b", "c"))


def test_trained_networks_take_an_image_set_of_which_each_pass_draws_other_batches() -> None:
    nets = {"one": glyph_network(0), "two": glyph_network(1)}
    data = glyph_images(45)
    comparison = compare_networks(nets, data, passes=2, batch_size=20, seed=3)
    assert comparison.sizes.tolist() == [15] * 6
    assert comparison.passes.tolist() == [0] * 3 + [1] * 3
    assert not comparison.notes
    other = compare_networks(nets, data, passes=2, batch_size=20, seed=4)
    assert not np.isclose(comparison.products[:, 0, 1], other.products[:, 0, 1], rtol=1e-6).any()
    assert np.array_equal(
        comparison.matrix, compare_networks(nets, data, passes=2, batch_size=20, seed=3).matrix
    )
    whole = compare_networks(nets, data, batch_size=45)
    features = [net.features(torch.from_numpy(data.images)).numpy() for net in nets.values()]
    pooled = pu.minibatch_cka([features[0]], [features[1]])
    top = compare_networks(nets, data, (), output="top", batch_size=45)
    assert top.matrix[0, 1] == pytest.approx(pooled, abs=1e-6)
    assert whole.layers("one") == ["block1", "block2", "bottleneck1", "bottleneck2"]
    with pytest.raises(RequestError, match="'bare' is a bare module"):
        compare_networks({"bare": nets["one"].backbone}, data)


def test_grams_of_batches_of_several_sizes_are_compared_as_the_networks_are() -> None:
    nets, batches = networks(), images(9, 9, 5)
    grams = {name: layer_grams(net, batches, LAYERS[name]) for name, net in nets.items()}
    found, whole = compare_grams(grams), compare_networks(nets, batches, LAYERS)
    assert (found.names, found.sizes.tolist()) == (whole.names, [9, 9, 5])
    assert np.abs(found.matrix - whole.matrix).max() < 1e-6
    with pytest.raises(RequestError, match="on the same batches"):
        compare_grams({**grams, "other": layer_grams(nets["deep"], images(9, 5, 9), LAYERS["deep"])})


def test_the_control_at_initialisation_has_moments_of_the_data_and_the_weights_of_its_seed() -> None:
    data = glyph_images(64)
    trained = glyph_network(0)
    control = at_initialisation(trained, data, seed=5, batch_size=64)
    assert torch.equal(
        control.backbone.stem.convolution.weight, glyph_network(5).backbone.stem.convolution.weight
    )
    assert not torch.equal(control.backbone.stem.convolution.weight, trained.backbone.stem.convolution.weight)
    assert not any(module.training for module in control.backbone.modules())
    found = {}
    norm = control.backbone.stem.normalisation
    handle = norm.register_forward_hook(lambda module, inputs, output: found.update(out=output))
    control.features(torch.from_numpy(data.images))
    handle.remove()
    assert found["out"].mean((0, 2, 3)).abs().max() < 1e-4
    assert (found["out"].var((0, 2, 3)) - 1).abs().max() < 1e-3


def test_settling_averages_over_batches_and_restores_modes_and_momenta() -> None:
    net = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3), nn.Dropout(0.5)).train()
    batches = [torch.randn(8, 2) + shift for shift in (0, 6)]
    assert settle_batch_norm(net, iter(batches)) is net
    assert torch.allclose(net[0].running_mean, torch.cat(batches).mean(0), atol=1e-6)
    assert torch.allclose(net[0].running_var, (batches[0].var(0) + batches[1].var(0)) / 2, atol=1e-6)
    assert net[0].momentum == 0.3
    assert net.training
    assert net[1].training
    with pytest.raises(RequestError, match="no batch"):
        settle_batch_norm(net, [])
    assert torch.allclose(net[0].running_mean, torch.cat(batches).mean(0), atol=1e-6)
