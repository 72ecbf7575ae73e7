"""Scores of finite and real variables together are those of their families one by one, whatever the numbers look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.structure.rules import Rules
from suffice.structure.scoring import hybrid_scores
from suffice.structure.scoring.hybrid_scores import HybridScores
from suffice.structure.scoring.local_scores import FamilyScores
from suffice.structure.scoring.score_sources import LocalScores
from tests.oracles import allowed_families


def columns(seed: int, n: int, finite: int = 3, real: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    states = [rng.integers(2 + j % 2, size=n) for j in range(finite)]
    numbers = rng.normal(size=(real, n))
    for j in range(1, real):
        numbers[j] += 0.7 * numbers[j - 1] + states[j % finite]
    named = {f"c{j}": np.array(["u", "v", "w"])[s] for j, s in enumerate(states)}
    return named | {f"x{j}": x for j, x in enumerate(numbers)}


def rules_of(data: sf.Data, most: int | None = None) -> Rules:
    """All edges but those from numbers to states."""
    variables = [v for _, v in sorted(data.schema.items())]
    real = np.array([not isinstance(v, sf.Finite) for v in variables])
    counted = np.array([isinstance(v, sf.Count) for v in variables])
    within = ~(~real[:, None] & real) & ~(counted[:, None] & real)
    return Rules.free(len(variables), most).within(within)


def agree(data: sf.Data, score: Any = None, most: int | None = 3, digits: float = 1e-9) -> HybridScores:
    variables, score = tuple(data.schema.values()), score or sf.BIC()
    scores = LocalScores(data, variables, score)
    assert isinstance(scores, HybridScores)
    slow = FamilyScores(data, variables, score)
    families = allowed_families(rules_of(data, most))
    np.testing.assert_allclose(scores.families(families), slow.families(families), rtol=digits, atol=digits)
    sets, expected = (s.parent_sets(rules_of(data, most)) for s in (LocalScores(data, variables, score), slow))
    np.testing.assert_allclose(sets.score, expected.score, rtol=digits)  # copies of a column tie, and stand in any order
    return scores


@pytest.mark.parametrize("score", [sf.BIC(), sf.AIC(), sf.LogLikelihood()], ids=repr)
def test_scores_are_those_of_the_families(score):
    data = sf.scan(columns(0, 400))
    sets = agree(data, score).parent_sets(rules_of(data, 3))
    assert (sets.masks == FamilyScores(data, tuple(data.schema.values()), score).parent_sets(rules_of(data, 3)).masks).all()
    agree(sf.scan(columns(1, 60, 4, 2)), score, None)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 60), st.integers(1, 3), st.integers(1, 3))
@example(174, 14, 2, 2)
def test_scores_of_few_rows(seed, n, finite, real):
    """In three rows that nearly lie on a line the residual is the small difference of large numbers, and so is its logarithm."""
    rows = columns(seed, n, finite, real)
    agree(sf.scan(rows, variables={f"c{j}": list("uvw") for j in range(finite)}), digits=1e-7)


def test_weights_are_rows():
    rows, rng = columns(2, 200), np.random.default_rng(0)
    agree(sf.scan(rows, weights=rng.integers(0, 4, 200)))
    agree(sf.scan(rows, weights=rng.random(200)))


def test_numbers_of_any_size_and_place():
    rows = columns(3, 300)
    rows["x0"] = rows["x0"] + 1e9
    rows["x1"] = 1e-7 * rows["x1"]
    rows["x2"] = 1e12 * rows["x2"] - 1e14
    agree(sf.scan(rows))


def test_groups_that_lie_far_apart_lose_no_digits():
    """Within states the numbers differ by 1, between them by 1e7: sums about the common mean would hold no variance."""
    rows = columns(4, 300)
    rows["x0"] = rows["x0"] + 1e7 * (rows["c0"] == "u")
    rows["x1"] = rows["x1"] + 1e5 * (rows["c1"] == "u")
    agree(sf.scan(rows))


@pytest.mark.filterwarnings("ignore")
def test_families_without_an_estimate_are_left_out():
    """Copies, combinations, and columns that are constant in some states."""
    rows = columns(5, 200)
    rows["x3"], rows["x4"] = rows["x0"].copy(), rows["x0"] + 2 * rows["x1"]
    rows["x1"] = np.where(rows["c1"] == "u", 3.7, rows["x1"])
    rows["x2"] = np.where(rows["c0"] == "u", rows["x0"], rows["x2"])
    agree(sf.scan(rows))


def test_what_is_left_out_is_said_once_and_a_constant_is_refused():
    rows = columns(6, 100)
    rows["x1"] = np.where(rows["c1"] == "u", 3.7, rows["x1"])
    with pytest.warns(sf.SufficeNote, match="cannot be estimated are left out of the search; the first: 'x1' at c1='u'"):
        sf.search(sf.scan(rows), method=sf.HillClimb())
    rows["x1"] = np.full(100, 2.5)
    with pytest.raises(sf.SufficeError, match="'x1' cannot be fitted from 100 rows by maximum likelihood: there is no residual"):
        sf.search(sf.scan(rows))


def test_counts_are_numbers_as_parents_and_have_scores_of_their_own():
    rows = columns(7, 150)
    rows["k"] = np.random.default_rng(0).poisson(3, 150)
    agree(sf.scan(rows, variables={"k": sf.Count("k")}))


def test_tables_past_a_size_are_gathered_one_by_one(monkeypatch):
    monkeypatch.setattr(hybrid_scores, "CONFIGURATIONS", 3)
    monkeypatch.setattr(hybrid_scores, "NUMBERS", 100)
    monkeypatch.setattr(hybrid_scores, "KEPT", 50)
    scores = agree(sf.scan(columns(8, 200)))
    assert sum(t.scatter.size for t in scores._known.values()) <= 50


def test_the_same_bits_for_any_number_of_threads_and_near_the_same_for_any_order():
    rows = columns(9, 40_000)
    data = sf.scan(rows)
    first, *others = (
        LocalScores(data, tuple(data.schema.values()), sf.BIC(), threads=t).parent_sets(rules_of(data)).score for t in (1, 2, 3)
    )
    assert all((first == other).all() for other in others)
    order = np.random.default_rng(1).permutation(40_000)
    mixed = sf.scan({n: c[order] for n, c in rows.items()})
    again = LocalScores(mixed, tuple(mixed.schema.values()), sf.BIC()).parent_sets(rules_of(mixed)).score
    np.testing.assert_allclose(again, first, rtol=1e-12)


def test_a_search_of_both_kinds_needs_few_passes(monkeypatch):
    """Not one for each family: that was a minute for 200,000 rows of twenty columns."""
    data, folds = sf.scan(columns(10, 500, 4, 4)), []
    fold = type(data.engine).fold

    def counted(self, step, *arguments, **options):
        folds.append(type(step).__name__)
        return fold(self, step, *arguments, **options)

    monkeypatch.setattr(type(data.engine), "fold", counted)
    sf.search(data)
    assert folds.count("GroupedSums") <= 6
    assert folds.count("Gather") <= 8
