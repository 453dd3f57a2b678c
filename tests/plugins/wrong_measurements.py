"""Measurements, each with one thing wrong with it."""

import numpy as np

from penultimate import register
from penultimate.measures import Arrays, Features, Made, Number, Yield

SIZE = (Yield("size", "ratio"),)
TEST = (Features("test"),)


def measured(value=1.0, metric="size", unit="ratio"):
    return Number(metric, value, unit, "test")


@register.measurement
def undeclared(inputs):
    yield measured()


@register.measurement(version=1, per="network", needs=(Made("nothing_of_the_kind"),), yields=SIZE)
def needing_a_stage(inputs):
    yield measured()


@register.measurement(version=1, per="network", needs=TEST, yields=SIZE, stage=True)
def stage_with_rows(inputs):
    yield measured()


@register.measurement(version=1, per="network", needs=TEST, yields=SIZE)
def of_another_quantity(inputs):
    yield measured(metric="length")


@register.measurement(version=1, per="network", needs=TEST, yields=(Yield("curve", "points", ("x", "y")),))
def of_other_arrays(inputs):
    yield Arrays("curve", {"x": np.zeros(3)}, "test")


@register.measurement(version=1, per="network", needs=TEST, yields=SIZE)
def without_value(inputs):
    yield measured(float("nan"))


@register.measurement(version=1, per="network", needs=TEST, yields=SIZE)
def of_nothing(inputs):
    yield from ()


@register.measurement(version=1, per="network", needs=TEST, yields=SIZE)
def unseeded(inputs):
    yield measured(float(np.random.default_rng().random()))


@register.measurement(version=1, per="network", needs=TEST, yields=SIZE)
def asking_for_more(inputs):
    yield measured(float(inputs.features("train").features.mean()))


@register.measurement(version=1, per="network", needs=TEST, yields=SIZE)
def crashing(inputs):
    yield measured({}["size"])
