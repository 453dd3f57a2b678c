"""AutoAugment and Mixup against torchvision's on the same draws, and Mixup against its literal equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests.oracles.data import mixed
from torchvision.transforms import AutoAugment, AutoAugmentPolicy
from torchvision.transforms.autoaugment import _apply_op
from torchvision.transforms.functional import InterpolationMode
from torchvision.transforms.v2 import MixUp

from penultimate import RequestError
from penultimate.data import Augmentation, augment, mixup
from penultimate.data.augmentation.autoaugment import (
    LEVELS,
    MAGNITUDES,
    POLICY,
    SIGNED,
    apply_operation,
    apply_policy,
    autoaugment,
)

THEIRS = {
    "shear": "ShearX",
    "rotate": "Rotate",
    "colour": "Color",
    "contrast": "Contrast",
    "sharpness": "Sharpness",
    "posterize": "Posterize",
    "solarize": "Solarize",
    "autocontrast": "AutoContrast",
    "equalize": "Equalize",
    "invert": "Invert",
}
SIZES = [(24, 24), (25, 25), (7, 11), (2, 9)]


def pictures(n: int, h: int, w: int, c: int, seed: int = 0) -> torch.Tensor:
    """Noise, smooth images, narrow ranges, and images of one colour."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (n, h, w, c))
    ramp = np.add.outer(np.arange(h), np.arange(w))[None, :, :, None] * rng.integers(1, 12, (n, 1, 1, c))
    narrow = 90 + noise // 16
    flat = np.broadcast_to(rng.integers(0, 256, (n, 1, 1, c)), noise.shape)
    kinds = np.stack([noise, ramp % 256, narrow, flat])
    return torch.from_numpy(kinds[np.arange(n) % 4, np.arange(n)].astype(np.uint8))


def theirs(image: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    return change(image.permute(2, 0, 1)).permute(1, 2, 0)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("h", "w"), SIZES)
@pytest.mark.parametrize("operation", MAGNITUDES)
def test_every_operation_is_torchvisions_to_the_bit(operation: str, h: int, w: int, channels: int) -> None:
    sizes = list(MAGNITUDES[operation])
    sizes += [-size for size in sizes] if operation in SIGNED else []
    images = pictures(4 * len(sizes), h, w, channels)
    sizes = sizes * 4
    kept = images.clone()
    out = apply_operation(operation, images, sizes)
    for image, size, ours in zip(images, sizes, out, strict=True):
        expected = theirs(
            image, lambda x, size=size: _apply_op(x, THEIRS[operation], size, InterpolationMode.NEAREST, None)
        )
        assert torch.equal(ours, expected)
    assert torch.equal(images, kept)


def test_the_policy_is_torchvisions() -> None:
    table = AutoAugment(AutoAugmentPolicy.IMAGENET).policies
    ours = [tuple((THEIRS[name], p, level) for name, p, level in steps) for steps in POLICY]
    assert ours == [tuple((name, p, level or 0) for name, p, level in steps) for steps in table]
    space = AutoAugment()._augmentation_space(LEVELS, (24, 24))
    for name, magnitudes in MAGNITUDES.items():
        values, signed = space[THEIRS[name]]
        assert values.expand(LEVELS).tolist() == list(magnitudes)
        assert signed == (name in SIGNED)


@pytest.mark.parametrize(("h", "w"), [(24, 24), (25, 31)])
def test_the_policy_on_the_same_draws(monkeypatch: pytest.MonkeyPatch, h: int, w: int) -> None:
    n = 400
    images = pictures(n, h, w, 3)
    generator = torch.Generator().manual_seed(4)
    chosen = torch.randint(25, (n,), generator=generator)
    uniform = torch.rand((n, 2), generator=generator)
    signs = torch.randint(2, (n, 2), generator=generator)
    out = apply_policy(images, chosen, uniform, signs)
    reference = AutoAugment(AutoAugmentPolicy.IMAGENET)
    for i in range(n):
        draws = (int(chosen[i]), uniform[i], signs[i])
        monkeypatch.setattr(reference, "get_params", lambda count, draws=draws: draws)
        assert torch.equal(out[i], theirs(images[i], reference))
    assert torch.equal(out, autoaugment(images, torch.Generator().manual_seed(4)))


def test_autoaugment_follows_the_shift_and_depends_on_the_generator_alone() -> None:
    images = pictures(16, 24, 24, 3)
    both = Augmentation(shift=2, autoaugment=True)
    out = augment(images, both, torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    assert torch.equal(out, autoaugment(augment(images, Augmentation(shift=2), generator), generator))
    assert torch.equal(out, augment(images, both, torch.Generator().manual_seed(3)))
    assert not torch.equal(out, augment(images, both, torch.Generator().manual_seed(4)))
    assert not both.is_identity
    assert not Augmentation(shift=0, autoaugment=True).is_identity


def test_autoaugment_of_images_that_are_no_pictures_is_refused() -> None:
    with pytest.raises(RequestError, match=r"1 channel \(grey\) or 3 \(RGB\); these have 4"):
        autoaugment(pictures(2, 8, 8, 4), torch.Generator())


@pytest.mark.parametrize("alpha", [0.1, 0.4, 1.0, 100])
def test_mixup_is_its_equation(alpha: float) -> None:
    images, labels = torch.rand(9, 3, 5, 4), torch.tensor([0, 3, 1, 1, 2, 0, 3, 2, 1])
    out, targets = mixup(images, labels, 4, alpha, torch.Generator().manual_seed(7))
    generator = torch.Generator().manual_seed(7)
    order = torch.randperm(9, generator=generator).tolist()
    seed = int(torch.randint(2**63 - 1, (1,), generator=generator))
    share = np.random.default_rng(seed).beta(alpha, alpha)
    expected, distributions = mixed(images.numpy(), labels.tolist(), 4, share, order)
    np.testing.assert_allclose(out, expected, atol=1e-6)
    np.testing.assert_allclose(targets, distributions, atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.8, 1.0])
def test_mixup_is_torchvisions_on_the_same_draws(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    class Drawn:
        def beta(self, a: float, b: float) -> float:
            return share

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Drawn())
    monkeypatch.setattr(torch, "randperm", lambda n, generator: torch.arange(n).roll(1))
    images, labels = torch.rand(9, 3, 5, 4), torch.tensor([0, 3, 1, 1, 2, 0, 3, 2, 1])
    ours = mixup(images, labels, 4, 0.4, torch.Generator())
    reference = MixUp(alpha=0.4, num_classes=4)
    monkeypatch.setattr(reference, "make_params", lambda inputs: {"lam": share})
    for one, other in zip(ours, reference(images, labels), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("alpha", [0.4, 1.0, 3.0])
def test_the_shares_of_mixup_are_beta_distributed_and_its_orders_permutations(alpha: float) -> None:
    labels = torch.arange(8)
    shares = []
    for seed in range(400):
        _, targets = mixup(torch.zeros(8, 1, 1, 1), labels, 8, alpha, torch.Generator().manual_seed(seed))
        torch.testing.assert_close(targets.sum(0), torch.ones(8))
        torch.testing.assert_close(targets.sum(1), torch.ones(8))
        moved = targets.diagonal()[targets.diagonal() < 1 - 1e-6]
        shares += moved[:1].tolist()
    if alpha >= 1:  # a share of almost 1 cannot be told from an image that stayed
        assert stats.kstest(shares, stats.beta(alpha, alpha).cdf).pvalue > 1e-3
    assert np.mean(shares) == pytest.approx(0.5, abs=0.1)


BAD: list[Any] = [-0.1, 101, float("nan"), float("inf"), True, "0.2", None]


@pytest.mark.parametrize("alpha", BAD)
def test_an_alpha_that_cannot_be_is_refused(alpha: Any) -> None:
    with pytest.raises(RequestError, match=r"mixup is the alpha of Beta\(alpha, alpha\), from 0 .* to 100"):
        Augmentation(mixup=alpha)


def test_autoaugment_is_true_or_false() -> None:
    with pytest.raises(RequestError, match="augmentation: autoaugment is True or False, not 'imagenet'"):
        Augmentation(autoaugment="imagenet")  # type: ignore[arg-type]
