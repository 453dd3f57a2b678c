"""The catalogue: names, roles and cards; nothing heavy is imported to read it."""

from __future__ import annotations

import pytest

from penultimate import RequestError, register, registry
from penultimate.data import CARDS, DatasetCard, card
from penultimate.data.catalog import PRETRAINING_SPLITS, TRANSFER_SPLITS


@pytest.mark.parametrize("name", CARDS)
def test_every_card_is_whole_and_registered(name: str) -> None:
    described = card(name)
    assert described.name == name
    if described.source:
        assert described.splits == ("test",)
    elif described.has_several_labels:
        assert described.splits == ("train", "test", "validation")
    else:
        assert described.splits in (PRETRAINING_SPLITS, PRETRAINING_SPLITS[:4], TRANSFER_SPLITS)
    for words in (described.title, described.relation, described.licence, described.citation):
        assert words
    assert described.title in registry.entry("dataset", name).summary
    assert registry.entry("dataset", name).resolve().card is described


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(RequestError, match=r"unknown dataset 'syllabic'\. Did you mean 'syllabics'\?"):
        card("syllabic")


def test_a_plug_in_carries_its_card() -> None:
    def own(draw: int) -> None:
        """My own images."""

    try:
        register.dataset(name="test_catalog_own")(own)
        with pytest.raises(RequestError, match="data set 'test_catalog_own' has no card"):
            card("test_catalog_own")
        own.card = DatasetCard(  # type: ignore[attr-defined]
            "test_catalog_own", "Own", 2, {"train": 4, "test": 4}, "top1", "", "", ""
        )
        assert card("test_catalog_own").images == 8
    finally:
        registry.forget("dataset", "test_catalog_own")
