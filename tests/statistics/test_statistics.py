"""Statistics: sums, marginals, files."""

from __future__ import annotations

import copy
import pickle
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.basis.variables import Finite
from suffice.engines.checkpoints import in_words
from suffice.errors import FormatError, StatisticsError
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.counts import RowFormula, common_variable, describe, distinct, equal_lines, log_factorial, log_factorials
from suffice.statistics.statistics import FlatCounts
from suffice.statistics.suppression import Lost, Suppression, without_small

X = Finite("x", ["a", "b"])
Y = Finite("y", ["u", "v", "w"])


def counts(values: object, *variables: Finite) -> Counts:
    return Counts(variables or (X, Y), np.array(values, dtype=float))


def moments_of(rows: np.ndarray, groups: np.ndarray | None = None) -> Moments:
    groups = np.zeros(len(rows), dtype=int) if groups is None else groups
    keys = np.unique(groups)
    parts = [rows[groups == k] for k in keys]
    centred = [p - p.mean(0) for p in parts]
    variables = () if not groups.any() else (Y,)
    return Moments(
        variables,
        tuple(f"r{i}" for i in range(rows.shape[1])),
        keys,
        [float(len(p)) for p in parts],
        [p.mean(0) for p in parts],
        [c.T @ c for c in centred],
    )


tables = st.lists(st.integers(0, 1000), min_size=6, max_size=6).map(lambda v: counts(np.reshape(v, (2, 3))))


@given(tables, tables, tables)
def test_counts_add_exactly(a: Counts, b: Counts, c: Counts) -> None:
    assert np.array_equal(((a + b) + c).values, (a + (b + c)).values)
    assert np.array_equal(((a + b) - b).values, a.values)
    assert np.array_equal((a + b).marginal(["y"]).values, a.marginal(["y"]).values + b.marginal(["y"]).values)


@given(tables, tables, st.floats(0.1, 5))
def test_sparse_counts_are_the_dense_ones(a: Counts, b: Counts, background: float) -> None:
    keys, values = a.listed()
    sparse = Counts((X, Y), values, keys)
    prior = Counts((X, Y), [], [], background)
    assert np.array_equal(sparse.dense(), a.values)
    assert np.array_equal((sparse + b).dense(), (a + b).values)
    assert np.allclose((sparse + prior).dense(), a.values + background)
    assert np.allclose((sparse + prior).marginal(["x"]).dense(), (a.values + background).sum(1))
    assert np.isclose((sparse + prior).total, a.values.sum() + 6 * background)
    assert np.array_equal(sparse.marginal(["y", "x"]).dense(), a.values.T)


@pytest.mark.parametrize("name", ["weight", "suppression"])
def test_statistics_never_change(name: str) -> None:
    own = Statistics([counts([[1, 2, 3], [4, 5, 6]])], 21)
    for value in (own, copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        with pytest.raises(AttributeError, match=f"the {name} of statistics never changes"):
            setattr(value, name, 5)
        assert value.weight == 21
        assert value == own


def test_taking_away_what_was_never_there_is_refused_by_cell() -> None:
    with pytest.raises(StatisticsError, match="x='b', y='u'"):
        counts([[1, 1, 1], [0, 1, 1]]) - counts([[0, 0, 0], [1, 0, 0]])


def test_states_are_united_by_name() -> None:
    a = Statistics([Counts((Finite("x", ["a", "c"], inferred=True),), [1, 2])], 3)
    b = Statistics([Counts((Finite("x", ["b", "c"], inferred=True),), [4, 8])], 12)
    both = (a + b).counts(["x"])
    assert both.variables[0].states == ("a", "b", "c")
    assert both.values.tolist() == [1, 4, 10]
    declared = Statistics([Counts((Finite("x", ["c", "a"]),), [5, 5])], 10)
    assert (a + declared).counts(["x"]).values.tolist() == [7, 6]
    with pytest.raises(StatisticsError, match="'b'"):
        b + declared


def test_statistics_of_other_graphs_do_not_add() -> None:
    with pytest.raises(StatisticsError, match="'x'"):
        Statistics([counts([1, 1], X)], 2) + Statistics([counts([1, 1, 1], Y)], 3)


@given(st.integers(0, 2**32 - 1), st.floats(-1e9, 1e9), st.integers(2, 30), st.integers(2, 30))
def test_moments_add_like_rows(seed: int, shift: float, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    rows = shift + rng.standard_normal((n + m, 2))
    whole, a, b = moments_of(rows), moments_of(rows[:n]), moments_of(rows[n:])
    tolerance = 1e-9 + 1e-13 * abs(shift)
    assert np.allclose((a + b).scatter, whole.scatter, atol=tolerance * (n + m))
    assert np.allclose((a + b).mean, whole.mean, rtol=1e-12)
    assert np.allclose(((a + b) - b).scatter, a.scatter, atol=1e-3 if abs(shift) > 1e6 else 1e-6)


def test_moments_of_a_far_mean_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((1000, 1))
    parts = [moments_of(1e9 + z[i : i + 100]) for i in range(0, 1000, 100)]
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    exact = ((z - z.mean()) ** 2).sum()
    assert abs(total.scatter[0, 0, 0] / exact - 1) < 1e-6  # the rows themselves hold 1e9 + z only to 1e-7


def test_marginal_moments_merge_groups() -> None:
    rng = np.random.default_rng(1)
    rows, groups = rng.standard_normal((50, 3)), rng.integers(0, 3, 50)
    got = moments_of(rows, groups).marginal([], ["r2", "r0"])
    want = moments_of(rows[:, [2, 0]])
    assert np.allclose(got.scatter, want.scatter)
    assert np.allclose(got.mean, want.mean)
    assert Statistics([moments_of(rows, groups)], 50).counts(["y"]).dense().tolist() == np.bincount(groups).tolist()


def test_files_keep_everything(tmp_path) -> None:
    rng = np.random.default_rng(2)
    s = Statistics([counts([[1, 2, 3], [4, 5, 5.0]]), moments_of(rng.standard_normal((20, 2)), rng.integers(0, 3, 20))], 20)
    s.save(tmp_path / "a.stats")
    t = Statistics.load(tmp_path / "a.stats")
    assert t.weight == 20
    assert t.variables == s.variables
    assert np.array_equal(t.counts(["x", "y"]).values, s.counts(["x", "y"]).values)
    assert np.array_equal(t.moments(["y"], ["r0", "r1"]).scatter, s.moments(["y"], ["r0", "r1"]).scatter)
    assert "Statistics of 20 rows" in repr(t)


def test_damaged_files_are_refused(tmp_path) -> None:
    path = tmp_path / "a.stats"
    with pytest.raises(FormatError, match="no such file"):
        Statistics.load(path)
    path.write_bytes(b"not a zip")
    with pytest.raises(FormatError, match=r"a\.stats"):
        Statistics.load(path)
    Statistics([counts([1, 1], X)], 2).save(path)
    with zipfile.ZipFile(path) as z:
        parts = {n: z.read(n) for n in z.namelist()}
    parts["numbers.npy"] = parts["numbers.npy"].replace(b"(2,)", b"(9,)")
    with zipfile.ZipFile(path, "w") as z:
        for n, body in parts.items():
            z.writestr(n, body)
    with pytest.raises(FormatError, match="not what its header says"):
        Statistics.load(path)


def test_statistics_compare_as_values() -> None:
    a, b = counts([[1, 2, 3], [4, 5, 6]]), counts([[1, 0, 0], [0, 0, 1]])
    s, t = Statistics([a], 21), Statistics([b], 2)
    assert s + t == t + s
    assert (s + t) - t == s
    assert s != t
    keys, values = b.listed()
    assert Counts((X, Y), values, keys) == b
    sparse = Counts((X, Y), values, keys) - Counts((X, Y), values[:1], keys[:1])
    assert sparse.listed()[0].tolist() == [5]
    assert "Statistics of 21 rows" in s._repr_html_()


def test_fingerprints_have_what_a_table_was_given_and_not_what_follows() -> None:
    said = in_words(Counts((Finite("x", ["a", "b"]),), [3.0, 1.0]))
    x = "Finite(name='x', states=['a', 'b'], cuts=None, inferred=False, family=None)"
    assert said.startswith(f"Counts(variables=[{x}], values=array(")
    assert said.endswith("), keys=None, background=0.0)")


def test_any_damage_to_a_file_is_refused_or_harmless(tmp_path) -> None:
    """Bytes turned here and there: what is read is possible, or a FormatError comes and nothing else."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 2))
    s = Statistics([counts([[1, 2, 3], [4, 5, 5]]), moments_of(rows, rng.integers(0, 3, 20))], 20)
    path = tmp_path / "a.stats"
    s.save(path)
    whole = path.read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 3):
            damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with suppress(FormatError):
            Statistics.load(path)


@pytest.mark.parametrize("values", [[np.nan, 1.0], [-1.0, 3.0], [5.0, 5.0]])
def test_impossible_statistics_are_refused(tmp_path, values) -> None:
    Statistics([Counts((X,), values)], 2).save(tmp_path / "a.stats")
    with pytest.raises(FormatError, match=r"a\.stats.*'x'"):
        Statistics.load(tmp_path / "a.stats")


def test_equal_rows_and_configurations_in_words() -> None:
    assert describe(1, [X]) == "x='b'"
    one, other = (Finite("x", states, inferred=True) for states in (["a", "b"], ["c"]))
    assert common_variable(one, other).states == ("a", "b", "c")
    first, kind = distinct([np.array([1, 0, 1]), np.array([2.5, 2.5, 2.5])], 3)
    assert (first.tolist(), kind.tolist()) == ([1, 0], [1, 0, 1])
    assert [same.tolist() for same in equal_lines(np.array([[1, 0], [0, 0], [1, 0]]))] == [[1], [0, 2]]


def test_derived_columns() -> None:
    assert np.exp(log_factorial(np.array([0.0, 3.0]))) == pytest.approx([1.0, 6.0])
    assert RowFormula("wait", "ln x").values(np.array([1.0, np.e])).tolist() == [0.0, 1.0]
    assert log_factorials(["n"]) == (RowFormula("n", "ln x!", 0.0),)


def test_what_small_cells_lose() -> None:
    assert Lost.of(3, 10, whole=True) == Lost(3, 3, 3.0, 27.0)
    assert Suppression(10, {}).in_words() == "cells of less than 10 rows were left out, and no table lost any"
    table, lost = without_small(Counts((X,), [3, 12]), 10)
    assert isinstance(table, Counts)
    assert (table.values.tolist(), lost.most_weight) == ([0.0, 12.0], 9.0)


def test_dense_tables_in_one_array() -> None:
    tables = FlatCounts.of([counts([[1, 2, 3], [4, 5, 6]])], {"x": X, "y": Y})
    assert tables.values.tolist() == [1, 2, 3, 4, 5, 6]
    tables = FlatCounts.of([counts([[1, 2], [3, 4], [5, 6]], Y, X)], {"x": X, "y": Y})
    assert tables.values.tolist() == [1, 3, 5, 2, 4, 6]  # axes in the order of names
    assert tables.starts(np.array([[0, 1]])).tolist() == [0]
    assert tables.starts(np.array([[0]])) is None
