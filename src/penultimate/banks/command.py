"""The command `penultimate bank`: what the features of a file organise."""

from __future__ import annotations

import argparse
from collections.abc import Callable

TEXT = (
    "Say what the features in a file organise (.npz, .safetensors or .parquet): R^2 and the accuracies of"
    " probes for each column of labels."
)


def takes(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", help="features and labels that something else wrote")
    parser.add_argument(
        "--features",
        metavar="NAMES",
        help="the array of features, or the columns that are one each, by commas (default: the only array of"
        " two dimensions)",
    )
    parser.add_argument(
        "--labels", metavar="NAMES", help="columns of labels, such as class,site (default: all there are)"
    )
    parser.add_argument(
        "--examples", type=int, default=10_000, help="what the probes use of the bank (default: 10000)"
    )


def bank(options: argparse.Namespace, say: Callable[..., None]) -> int:
    """Do it."""
    from penultimate.banks.organisation import organisation_lines

    features, labels = ([*filter(None, (of or "").split(","))] for of in (options.features, options.labels))
    say(*organisation_lines(options.file, features, labels, options.examples))
    return 0
