"""The objective: a head, a loss and penalties composed into one module from a spec string."""

from __future__ import annotations

import contextlib
import hashlib
import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.objectives.advice import few_classes
from penultimate.objectives.assembly import (
    checked_counts,
    compares_examples,
    component_function,
    expect_form,
    make_fixed_weight,
    make_projector,
)
from penultimate.objectives.heads import Head, has_background, initial_deviation, linear
from penultimate.objectives.losses import needs_class_counts, reading_of
from penultimate.objectives.presets import Composition, resolve
from penultimate.objectives.regularisers import needs_centres
from penultimate.specs import parse_sum

Array: TypeAlias = Tensor | npt.NDArray[Any]


def objective(
    text: str,
    num_features: int,
    num_classes: int,
    seed: int = 0,
    class_counts: Sequence[float] | Array | None = None,
) -> Objective:
    """Return the objective that a spec string names, with its own weight and bias.

    `text` joins presets, other parts and plug-ins with `+`: one projector, one head, one loss, any penalties
    and regularisers, dropout and a scale. Losses are not added up: `squared_error + sigmoid` is refused, and
    so is `softmax + squared_error`. `num_features` is M >= 1 and `num_classes` is K >= 2. The initial weights
    are drawn from `seed`, without touching torch's global generator. Dropout acts only in `.loss` and only in
    training mode. The defaults of squared error are the paper's, for 1000 classes; with few classes a
    UserWarning says what to set instead. `class_counts` [k] are the training images of each class, for a loss
    that asks for them; others ignore them. Raise RequestError for anything that `presets.resolve` refuses,
    and for sizes out of range.

    >>> from penultimate import objective
    >>> obj = objective("cosine_softmax + dropout(keep=0.9)", num_features=512, num_classes=100)
    >>> obj.spec
    'cosine_softmax(scale=1, temperature=0.05) + dropout(keep=0.9)'
    >>> features, labels = torch.rand(8, 512), torch.arange(8)
    >>> obj(features).shape, obj.loss(features, labels).shape
    (torch.Size([8, 100]), torch.Size([8]))

    Kornblith et al., NeurIPS 2021, section 2.
    """
    made = Objective(resolve(text), num_features, num_classes, seed, class_counts)
    for term in parse_sum(text):
        told = "" if term.arguments else few_classes(term, made.num_classes)
        if told:
            warnings.warn(told, stacklevel=2)
    return made


class Objective(nn.Module):
    """A head, a loss and what is added to it, on penultimate features [n m]; labels are class indices or
    distributions.

    With a projector, the head is on its output, and so is dropout; regularisers see the features themselves.
    `projector` is None without one, and `compares_examples` says whether a regulariser compares the examples
    of a batch.

    `obj(features)` returns the logits. `obj.loss(features, targets)` returns one value per example, and the
    caller takes the mean over the batch. `obj(features, targets)` returns the same values, for DataParallel
    and DistributedDataParallel, which wrap only the call itself. Dropout acts only in the loss and only in
    training mode; the logits are always without it. Everything is computed with autocast off, in float32, or
    in float64 if the features or the weights are, whatever the precision of the network's body.

    The paper does not state the following, and we chose it: W starts normal with standard deviation 0.01, or
    1/sqrt(M) for the cosine head; b starts at 0, except for the sigmoid loss, where the paper starts it at
    -log K, as we do with any head; penalties see the logits of the same forward pass as the loss, dropout
    included.
    """

    class_counts: Tensor | None

    def __init__(
        self,
        composition: Composition,
        num_features: int,
        num_classes: int,
        seed: int = 0,
        class_counts: Sequence[float] | Array | None = None,
    ) -> None:
        super().__init__()
        self.composition = composition
        self.num_features = _size("num_features", num_features, at_least=1)
        self.num_classes = _size("num_classes", num_classes, at_least=2)
        self._loss = component_function(composition.loss)
        self._penalties = [component_function(penalty) for penalty in composition.penalties]
        self._regularisers = [component_function(regulariser) for regulariser in composition.regularisers]
        self._reading = reading_of(self._loss.func)
        counts = None
        if needs_class_counts(self._loss.func):
            counts = checked_counts(composition.loss.name, class_counts, self.num_classes)
        self.register_buffer("class_counts", counts)
        self._stream: tuple[int, int, int] | None = None
        self._share = 0, 1
        self._masks_drawn = 0
        drawn = _derived_seed("projector", seed)
        self.projector = make_projector(composition.projector, self.num_features, drawn)
        width = self.num_features if self.projector is None else int(self.projector.num_features)  # type: ignore[arg-type]
        generator = torch.Generator("cpu").manual_seed(_derived_seed("first weights", seed))
        is_fixed = composition.has_fixed_head
        if is_fixed:
            function, hyperparameters = linear, {}
            weight = make_fixed_weight(composition.head, self.num_classes, width, generator)
        else:
            function, hyperparameters = composition.head.resolve(), composition.head.hyperparameters
            weight = torch.empty(self.num_classes, width, dtype=torch.float32, device="cpu")
            weight.normal_(0, initial_deviation(function, width), generator=generator)
        bias = torch.full_like(weight[:, 0], self._reading.initial_bias(self.num_classes))
        learns_centres = any(needs_centres(one.func) for one in self._regularisers)
        centres = weight.new_zeros(self.num_classes, self.num_features) if learns_centres else None
        background = None
        if has_background(function, hyperparameters):
            deviation = initial_deviation(function, width)
            background = torch.cat([torch.empty(width).normal_(0, deviation, generator=generator), bias[:1]])
        self.head = Head(function, hyperparameters, weight, bias, not is_fixed, centres, background)
        self.compares_examples = False
        self._rehearse()

    @property
    def spec(self) -> str:
        """The canonical spec string: `objective(obj.spec, ...)` builds the same objective."""
        return self.composition.canonical

    def forward(
        self, features: Array, targets: Array | None = None
    ) -> Float[Tensor, "n k"] | Float[Tensor, " n"]:
        """Return the logits [n k] of features [n m], always without dropout, or their `loss` [n] if targets
        are given.
        """
        if targets is not None:
            return self.loss(features, targets)
        features = self._checked_features(features)
        with _full_precision(features.device.type):
            return self.head(self._projected(features))  # type: ignore[no-any-return]

    def loss(self, features: Array, targets: Array, *, validate: bool = True) -> Float[Tensor, " n"]:
        """Return the loss of every example.

        scale * data_loss(z, t) + sum of penalties(z, head) + sum of regularisers(features, t, head),
        z = head(projector(features))

        Features are [n m]; targets are class indices [n] (any integer dtype) or distributions [n k] (Mixup,
        distillation). In training mode dropout acts on what the head is given: x * mask / keep.

        `validate=False` skips the checks that read values (labels in range, rows that sum to 1), because they
        force a GPU to synchronise; shapes and dtypes are always checked.

        Raise RequestError if the features or targets do not have this form.

        >>> obj = objective("softmax", num_features=4, num_classes=3)
        >>> obj.loss(torch.zeros(2, 4), torch.tensor([0, 2]))
        tensor([1.0986, 1.0986], grad_fn=...)
        """
        features = self._checked_features(features)
        with _full_precision(features.device.type):
            given = self._projected(features)
            if self.training and self.composition.keep < 1:
                given = self._dropped(given)
            logits = self.head(given)
            distributions = self._distributions(targets, logits, validate)
            per_example = self._data_loss(logits, distributions)
            if self.composition.scale != 1:
                per_example = self.composition.scale * per_example
            for penalty in self._penalties:
                per_example = per_example + penalty(logits, self.head)
            for regulariser in self._regularisers:
                per_example = per_example + regulariser(features, distributions, self.head)
        return per_example

    def log_probabilities(self, logits: Array, temperature: float = 1.0) -> Float[Tensor, "n k"]:
        """Return the logarithms of `probabilities`, which stay finite however small a probability is."""
        if not (isinstance(temperature, (int, float)) and 0 < temperature < math.inf):
            raise RequestError(f"temperature must be a number in (0, inf), got {temperature!r}")
        logits = _as_tensor(logits, self.head.weight.device)
        logits = logits.to(_working_dtype(logits.dtype, torch.float32))
        with _full_precision(logits.device.type):
            return (self._reading.log_scores(logits) / temperature).log_softmax(-1)

    def probabilities(self, logits: Array, temperature: float = 1.0) -> Float[Tensor, "n k"]:
        """Return the class probabilities [n k] of logits [n k].

        p = softmax(z / T);  for sigmoid losses p_k = s_k^(1/T) / sum_j s_j^(1/T), s = sigmoid(z)

        T is a calibration temperature; the head's own temperature is already in the logits. Sigmoids are
        renormalised to sum to 1, and T acts on their logarithms (our choice), so fitting T to
        `log_probabilities(z)` by a softmax likelihood works for every objective.

        Raise RequestError unless 0 < T < inf.

        >>> obj = objective("sigmoid", num_features=4, num_classes=2)
        >>> obj.probabilities(torch.tensor([[-1000.0, -1000.0], [0.0, 1000.0]]))
        tensor([[0.5000, 0.5000],
                [0.3333, 0.6667]])

        Kornblith et al., NeurIPS 2021, appendix C.2 (table C.3).
        """
        return self.log_probabilities(logits, temperature).exp()

    def reseed(self, seed: int, epoch: int, step: int, share: tuple[int, int] = (0, 1)) -> None:
        """Derive the next dropout masks from (seed, epoch, step) alone, so a resumed run repeats them.

        `share` is (index, count) for this process among those that divide a batch evenly: together they draw
        the masks that a single process would draw. Without `reseed`, masks come from torch's default
        generator.
        """
        self._stream, self._share = (seed, epoch, step), share
        self._masks_drawn = 0

    def extra_repr(self) -> str:
        return repr(self.spec)

    def _projected(self, features: Tensor) -> Tensor:
        """Return what the head is given, in the dtype of the features; the projector computes in its own."""
        if self.projector is None:
            return features
        own = next((value.dtype for value in self.projector.parameters()), features.dtype)
        projected: Tensor = self.projector(features.to(own))
        return projected.to(features.dtype)

    def _data_loss(self, logits: Tensor, distributions: Tensor) -> Tensor:
        """Return the loss proper of every example, without scale, penalties and regularisers."""
        if self.class_counts is None:
            return self._loss(logits, distributions)  # type: ignore[no-any-return]
        counts = self.class_counts.to(logits.dtype)
        return self._loss(logits, distributions, counts)  # type: ignore[no-any-return]

    def _dropped(self, features: Tensor) -> Tensor:
        keep, (index, count), n = self.composition.keep, self._share, len(features)
        generator = None
        if self._stream is not None:
            # A new generator for each mask leaves no state to save, copy or move between devices.
            drawn = _derived_seed("dropout", *self._stream, self._masks_drawn)
            generator = torch.Generator(features.device).manual_seed(drawn)
            self._masks_drawn += 1
        # The mask compares uniform float32 numbers, which is 2.5 times as fast as `bernoulli_`, and it does
        # not depend on the dtype of the features.
        uniform = torch.rand(
            (count * n, features.shape[1]), generator=generator, dtype=torch.float32, device=features.device
        )[index * n : (index + 1) * n]
        return features * (uniform < keep).to(features.dtype).div_(keep)

    def _checked_features(self, features: Array) -> Tensor:
        features = _as_tensor(features, self.head.weight.device)
        if features.ndim != 2 or features.shape[1] != self.num_features:
            raise RequestError(f"features must be [n {self.num_features}], got {list(features.shape)}")
        if features.dtype.is_complex:
            raise RequestError(f"features must be real, got {features.dtype}")
        return features.to(_working_dtype(features.dtype, self.head.weight.dtype))

    def _distributions(self, targets: Array, logits: Tensor, validate: bool) -> Tensor:
        """Return targets of either form as distributions [n k] in the dtype of the logits."""
        targets = _as_tensor(targets, logits.device)
        n, k = logits.shape
        if targets.shape == (n,):
            if targets.dtype.is_floating_point or targets.dtype.is_complex or targets.dtype is torch.bool:
                raise RequestError(f"targets [n] must be integer class indices, got {targets.dtype}")
            return _one_hot(targets.long(), k, logits.dtype, validate)
        if targets.shape != (n, k):
            expected = f"class indices [{n}] or distributions [{n} {k}]"
            raise RequestError(f"targets must be {expected} for {n} examples, got {list(targets.shape)}")
        if not targets.dtype.is_floating_point:
            raise RequestError(f"targets [n k] must be floating-point distributions, got {targets.dtype}")
        if validate:
            _check_distributions(targets)
        return targets.to(logits.dtype)

    @torch.no_grad()
    def _rehearse(self) -> None:
        """Compute the loss of two examples, so that an invalid plug-in fails here, with its name."""
        n, k = 2, self.num_classes
        composed, dtype = self.composition, self.head.weight.dtype
        logits = self.head(self.head.weight.new_zeros(n, self.head.weight.shape[1]))
        expect_form("head", composed.head.name, logits, (n, k), dtype)
        loss = self._data_loss(logits, torch.full_like(logits, 1 / k))
        expect_form("loss", composed.loss.name, loss, (n,), dtype)
        for component, penalty in zip(composed.penalties, self._penalties, strict=True):
            expect_form("penalty", component.name, penalty(logits, self.head), (n,), dtype)
        for component, regulariser in zip(composed.regularisers, self._regularisers, strict=True):
            self.compares_examples |= compares_examples(component, regulariser, self.head, self.num_features)


def _one_hot(labels: Tensor, num_classes: int, dtype: torch.dtype, validate: bool) -> Tensor:
    """Return class indices [n] as one-hot distributions [n k].

    On a CPU `scatter_` itself refuses indices out of range. On a GPU it would end the process, so the range
    is checked first.
    """
    if validate and labels.device.type != "cpu":
        _check_range(labels, num_classes)
    zeros = torch.zeros(len(labels), num_classes, dtype=dtype, device=labels.device)
    try:
        return zeros.scatter_(1, labels.unsqueeze(1), 1.0)
    except RuntimeError:
        _check_range(labels, num_classes)
        raise


def _check_range(labels: Tensor, num_classes: int) -> None:
    wrong = ((labels < 0) | (labels >= num_classes)).nonzero()
    if len(wrong):
        place = int(wrong[0])
        raise RequestError(
            f"labels must be class indices in 0..{num_classes - 1}, got {int(labels[place])}"
            f" at position {place}"
        )


def _check_distributions(targets: Tensor) -> None:
    # Half-precision probabilities have been rounded to 3 digits before they are summed.
    tolerance = 1e-3 if targets.dtype in (torch.float32, torch.float64) else 1e-2
    sums = targets.sum(1, dtype=_working_dtype(targets.dtype, torch.float32))
    fine = ((sums - 1).abs() <= tolerance) & (targets.amin(1) >= 0)
    if not fine.all():
        place = int((~fine).nonzero()[0])
        raise RequestError(
            "each row of targets [n k] must be a distribution (no negative entry, sum 1); row"
            f" {place} has sum {float(sums[place]):g} and smallest entry {float(targets[place].amin()):g}"
        )


def _as_tensor(values: Array, device: torch.device) -> Tensor:
    return values if isinstance(values, Tensor) else torch.tensor(values, device=device)


def _working_dtype(*dtypes: torch.dtype) -> torch.dtype:
    return torch.float64 if torch.float64 in dtypes else torch.float32


def _full_precision(device_type: str) -> contextlib.AbstractContextManager[Any]:
    if torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return contextlib.nullcontext()


def _size(name: str, value: int, at_least: int) -> int:
    try:
        size = operator.index(value)
    except TypeError:
        size = at_least - 1
    if size < at_least or isinstance(value, bool):
        raise RequestError(f"{name} must be an integer >= {at_least}, got {value!r}")
    return size


def _derived_seed(purpose: str, *numbers: int) -> int:
    """Return a 63-bit seed derived from a purpose and some numbers.

    The seed is the same in every process and different for every purpose.

    >>> _derived_seed("dropout", 0, 1, 2)
    1910593973060807192
    """
    digest = hashlib.blake2b(repr((purpose, *map(int, numbers))).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
