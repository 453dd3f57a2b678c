"""AutoAugment and Mixup against torchvision's on the same draws, and Mixup against its literal equation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torchvision.transforms import AutoAugment, AutoAugmentPolicy
from torchvision.transforms.autoaugment import _apply_op
from torchvision.transforms.functional import InterpolationMode
from torchvision.transforms.v2 import MixUp

from penultimate.data import mixup
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
