"""Best labels of sequences side by side: as in other ways, for lengths and scores of any kind."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.numerics.inference.chains import conditional
from suffice.numerics.inference.chains.conditional import GroupScores, SequenceLayout, best_labels
from suffice.numerics.inference.chains.finite import best_paths


def given_for(rng: np.random.Generator, n: int, L: int, *, numbers: bool = False, cost: float | None = None) -> GroupScores:
    groups = rng.integers(0, 40, (2, n)).astype(np.int32)
    more = rng.normal(size=(n if numbers else 0, L))
    given = GroupScores(groups, rng.normal(size=(40, L)), more)
    return given if cost is None else given._replace(truth=rng.integers(0, L, n).astype(np.int32), cost=cost)


def step_scores(given: GroupScores, layout: SequenceLayout) -> Any:
    """The scores of all steps in their order."""
    scores = np.concatenate([given.at(part) for part in layout.parts])
    result = np.empty_like(scores)
    result[layout.order] = scores
    return result


def score(labels: Any, scores: Any, T: Any) -> float:
    return float(scores[np.arange(len(labels)), labels].sum() + T[labels[:-1], labels[1:]].sum())


@pytest.mark.parametrize(("numbers", "cost"), [(False, None), (True, 0.7)])
def test_all_labellings_are_compared(numbers: bool, cost: float | None) -> None:
    rng, lengths = np.random.default_rng(1), np.array([3, 1, 5, 4])
    layout, given, T = SequenceLayout.of(lengths), given_for(rng, 13, 3, numbers=numbers, cost=cost), rng.normal(size=(3, 3))
    T[2, 0] = -np.inf
    labels, found = best_labels(layout, given, T)
    scores = step_scores(given, layout)
    for q, end in enumerate(np.cumsum(lengths)):
        own = slice(end - lengths[q], end)
        best = max(score(np.array(y), scores[own], T) for y in product(range(3), repeat=lengths[q]))
        assert score(labels[own], scores[own], T) == pytest.approx(best)
        assert found[np.flatnonzero(layout.sequences == q)[0]] == pytest.approx(best)


@pytest.mark.parametrize("L", [1, 2, 5, 17])
def test_many_sequences_of_any_length(L: int) -> None:
    """As many as need several strips, parts, and scalings on the way; a long one is the same in stretches."""
    rng = np.random.default_rng(L)
    lengths = np.concatenate([rng.integers(1, 40, 700), [3000, 1]])
    layout, given, T = SequenceLayout.of(lengths), given_for(rng, int(lengths.sum()), L), rng.normal(size=(L, L))
    labels, found = best_labels(layout, given, T)
    scores, values = step_scores(given, layout), np.empty(len(lengths))
    values[layout.sequences] = found
    for q, end in enumerate(np.cumsum(lengths)):
        own = slice(end - lengths[q], end)
        best = float(best_paths(conditional.state_steps(scores[own], T, lengths[q : q + 1])).log_prob[0, 0])
        assert values[q] == pytest.approx(best, rel=1e-12)
        assert score(labels[own], scores[own], T) == pytest.approx(best, rel=1e-12)


def test_a_long_sequence_is_taken_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, lengths = np.random.default_rng(0), np.array([70_000, 5, 3])
    layout, given, T = SequenceLayout.of(lengths), given_for(rng, 70_008, 3), rng.normal(size=(3, 3))
    whole = best_labels(layout, given, T)
    monkeypatch.setattr(conditional, "SHORT", 100_000)
    cut = best_labels(layout, given, T)
    np.testing.assert_array_equal(whole.labels, cut.labels)
    np.testing.assert_allclose(whole.scores, cut.scores, rtol=1e-12)


def test_no_labels_are_possible() -> None:
    given = GroupScores(np.zeros((1, 3), np.int32), np.zeros((1, 2)), np.zeros((0, 2)))
    labels, scores = best_labels(SequenceLayout.of(np.array([2, 1])), given, np.full((2, 2), -np.inf))
    assert labels.tolist() == [-1, -1, 0]
    assert scores.tolist() == [-np.inf, 0.0]


def test_equals_go_to_the_smaller_label() -> None:
    given = GroupScores(np.zeros((1, 9), np.int32), np.zeros((1, 3)), np.zeros((0, 3)))
    assert not best_labels(SequenceLayout.of(np.array([4, 5])), given, np.zeros((3, 3))).labels.any()


def test_shapes_of_many_are_those_of_each() -> None:
    cells = ["McDonald", "été", "", "a\0b", "1999", "ß-X"]
    for column in (
        sf.labels.Shape("w"),
        sf.labels.Suffix("w", 2),
        sf.labels.Prefix("w", 2),
        sf.labels.Lower("w"),
        sf.labels.Derived("n", "w", str.title),
    ):
        for some in (cells, [c for c in cells if c.isascii()], cells[:2], []):
            assert column.each(some) == [column.of(c) for c in some]
