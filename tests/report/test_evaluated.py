"""What a board of networks says of its first place."""

from __future__ import annotations

import numpy as np

from penultimate.report.evaluated import Task, board_of
from penultimate.report.networks import StudyObjective
from penultimate.statistics.paired import Answers


def test_the_first_is_said_to_be_level_with_one_that_it_is_level_with() -> None:
    """The second is behind beyond chance, the third, which errs on other images, is not."""
    first, second, third = (np.zeros(1000, bool) for _ in range(3))
    first[:900] = True
    second[:885] = True
    third[100:980] = True
    networks = tuple(StudyObjective(name, name, name) for name in ("first", "second", "third"))
    answers = Answers(np.stack([first, second, third]), np.zeros(1000, int))
    board = board_of((Task("digits", "Digits", networks, answers),))
    assert board is not None
    assert [standing.network.slug for standing in board.standings] == ["first", "second", "third"]
    told = {(one.slug, other.slug): pair.is_told_apart for one, other, pair in board.pairs}
    assert (told["first", "second"], told["first", "third"]) == (True, False)
    assert [standing.place for standing in board.standings] == ["1–2", "2–3", "1–3"]
    assert [standing.is_unbeaten for standing in board.standings] == [True, False, True]
    assert "it is not told apart from third (2.0 points, p = " in board.said()
    assert "second" not in board.said()
