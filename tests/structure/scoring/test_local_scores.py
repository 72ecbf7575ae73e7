"""Local scores: every source agrees with the families' own definitions, and with brute force."""

from __future__ import annotations

import pickle
import subprocess
import sys
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.engines import bitmaps as bitmaps_module
from suffice.engines.bitmaps import Bitmaps
from suffice.engines.engine import Block
from suffice.engines.steps.bits import BitLayout, CountTables, ScanTables, TableGroups, bit_block
from suffice.structure.rules import Rules
from suffice.structure.scoring import finite_scores
from suffice.structure.scoring.finite_scores import FiniteScores
from suffice.structure.scoring.local_scores import FamilyScores
from suffice.structure.scoring.parent_sets import families_of, lattice
from suffice.structure.scoring.score_sources import GaussianScores, LocalScores
from tests.oracles import allowed_families, pruned

FINITE = [
    sf.BIC(),
    sf.AIC(),
    sf.LogLikelihood(),
    sf.Evidence(sf.BDeu(1)),
    sf.Evidence(sf.BDeu(0.01)),
    sf.Evidence(sf.K2()),
    sf.Evidence(sf.Dirichlet(0.3)),
    sf.Evidence(sf.priors.BDs(2)),
]


def rows(seed: int, n: int, sizes: list[int], duplicate: bool = False) -> sf.Data:
    """Random rows that depend on each other, some states rare."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[str]] = {}
    before = np.zeros(n, int)
    variables = {}
    for i, r in enumerate(sizes):
        codes = np.where(rng.random(n) < 0.5, rng.integers(r, size=n), before % r)
        before = codes + rng.integers(2, size=n)
        columns[f"v{i:02d}"] = [f"s{c}" for c in codes]
        variables[f"v{i:02d}"] = sf.Finite(f"v{i:02d}", [f"s{k}" for k in range(r)])
    return sf.scan(columns, variables=variables)


def agree(a: object, b: object) -> None:
    assert len(a) == len(b)
    assert (a.first == b.first).all()
    assert (a.masks == b.masks).all()
    np.testing.assert_allclose(a.score, b.score, rtol=1e-10, atol=1e-8)


def agree_with(sets: object, slow: FamilyScores, rules: Rules, prune: bool = True) -> None:
    """The sets are those that the families have, one by one; the slow source finds them, too."""
    families = allowed_families(rules)
    agree(sets, pruned(rules, families, slow.families(families), prune=prune))
    agree(slow.parent_sets(rules, prune=prune), sets)


@pytest.mark.parametrize("score", FINITE, ids=repr)
def test_bitmaps_agree_with_the_families(score):
    data = rows(0, 700, [2, 3, 1, 4, 2, 5])
    scores = LocalScores(data, tuple(data.schema.values()), score)
    slow = FamilyScores(data, scores.variables, score)
    assert isinstance(scores, FiniteScores)
    within = np.random.default_rng(1).random((6, 6)) < 0.6
    for rules in (Rules.free(6), Rules.free(6, 2), Rules.free(6, 0), Rules.free(6, 3).within(within)):
        for prune in (True, False):
            agree_with(scores.parent_sets(rules, prune=prune), slow, rules, prune=prune)
    for mine, theirs in zip(scores.pairs(), slow.pairs(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    for child, parents in ((0, ()), (1, (0, 3)), (5, (0, 1, 2, 3, 4)), (2, (4,))):
        others = [i for i in range(6) if i != child]
        np.testing.assert_allclose(scores.toggles(child, parents, others), slow.toggles(child, parents, others), rtol=1e-10)


@pytest.mark.parametrize("score", [sf.BIC(), sf.scores.GraphPosterior(sf.BIC(), sf.scores.EdgePrice(0.5))], ids=repr)
def test_all_other_variables_are_put_in_or_taken_out_where_none_are_named(score):
    data = rows(0, 200, [2, 3, 4, 2])
    for scores in (
        LocalScores(data, tuple(data.schema.values()), score),
        FamilyScores(data, tuple(data.schema.values()), sf.BIC()),
    ):
        every = scores.toggles(1, (0, 3))
        assert np.isnan(every).tolist() == [False, True, False, False]
        for asked in ([0, 2, 3], range(4)):  # the child is no parent of its own
            np.testing.assert_array_equal(scores.toggles(1, (0, 3), asked), every)


def test_required_parents_are_in_every_set():
    data = rows(3, 300, [2, 3, 2, 2])
    scores = LocalScores(data, tuple(data.schema.values()), sf.BIC())
    rules = Rules.free(4, 2)
    rules.required[1, 3] = rules.required[0, 1] = True
    rules.allowed[3, 1] = rules.allowed[1, 0] = False
    sets = scores.parent_sets(rules)
    assert all(3 in parents for parents, _ in sets.of_child(1))
    assert all(1 in parents for parents, _ in sets.of_child(0))
    agree_with(sets, FamilyScores(data, scores.variables, sf.BIC()), rules)


@pytest.mark.parametrize("score", FINITE[::3], ids=repr)
def test_large_tables_are_counted_by_rows_or_listed(score, monkeypatch):
    """Wide columns, tables past every limit, few words in a block: the same scores."""
    data = rows(5, 900, [2, 140, 3, 9, 30])
    plain = LocalScores(data, tuple(data.schema.values()), score).parent_sets(Rules.free(5, 3), prune=False)
    for name, value in (("CORE", 3), ("FULL", 3)):
        monkeypatch.setattr(bitmaps_module, name, value)
    monkeypatch.setattr(finite_scores, "DENSE", 500)
    monkeypatch.setattr(finite_scores, "TABLES", 1000)
    other = LocalScores(data, tuple(data.schema.values()), score)
    agree(other.parent_sets(Rules.free(5, 3), prune=False), plain)
    slow = FamilyScores(data, other.variables, score)
    np.testing.assert_allclose(other.toggles(1, (0, 3), [0, 2, 3, 4]), slow.toggles(1, (0, 3), [0, 2, 3, 4]), rtol=1e-10)
    agree_with(other.parent_sets(Rules.free(5, 3)), slow, Rules.free(5, 3))


def test_bitmaps_that_do_not_fit_are_made_again_in_each_scan():
    data = rows(7, 40_000, [2, 3, 4, 2, 3])
    variables = tuple(data.schema.values())
    held = Bitmaps(data, variables)
    passing = Bitmaps(data, variables, memory_limit=1.0)
    assert held.bits.at_hand
    assert not passing.bits.at_hand
    sets = np.array(list(combinations(range(5), 3)), np.int32)
    for how in ("count_full", "count_core", "count_by_scan"):
        for mine, theirs in zip(getattr(held, how)(sets), getattr(passing, how)(sets), strict=True):
            assert (mine == theirs).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 300))
def test_tables_are_those_of_the_rows(seed, n_columns, n_rows):
    rng = np.random.default_rng(seed)
    data = rows(seed, n_rows, rng.integers(1, 5, n_columns).tolist())
    bitmaps = Bitmaps(data, tuple(data.schema.values()), threads=1 + seed % 2)
    size = int(rng.integers(1, n_columns + 1))
    sets = np.array(list(permutations(range(n_columns), size))[:20], np.int32)
    tables, at = bitmaps.count_full(sets)
    for g, members in enumerate(sets):
        names = [bitmaps.names[v] for v in members]
        expected = data.gather([sf.statistics.Request(tuple(names))]).counts(names).values.ravel()
        assert (tables[at[g] : at[g + 1]] == expected).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 200))
@example(2227, 2, 1)  # a row of weight 0 costs nothing
def test_steps_add_over_blocks_and_travel(seed, n_columns, n_rows):
    """Blocks wherever they are, of any size: what pickled steps count of each adds up to the weighted tables."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_columns)
    layout = BitLayout(tuple("abcde"[:n_columns]), tuple(sizes.tolist()), most=int(rng.integers(6, 10)))
    codes = [rng.integers(r, size=n_rows).astype(np.uint8) for r in sizes]
    weight = rng.integers(0, 70, n_rows) if seed % 2 else np.ones(n_rows, int)
    sets = np.array(list(permutations(range(n_columns), 2)), np.int32)
    groups = TableGroups.of(sets, sizes[sets].prod(1))
    steps = [ScanTables(layout, groups)] + [CountTables(layout, groups)] * bool(layout.narrow.all())
    cuts = np.unique([0, n_rows, *rng.integers(0, n_rows + 1, 3)])
    blocks = [
        Block({n: c[a:b] for n, c in zip(layout.names, codes, strict=True)}, 1.0 * weight[a:b] if seed % 2 else None)
        for a, b in pairwise(cuts)
    ]
    for step in steps:
        total = sum(pickle.loads(pickle.dumps(step))([block]).value for block in blocks)
        parts = np.zeros(step.n_cells, layout.counts)
        for block in blocks:
            bits = bit_block(block, layout)
            for part in step.parts(3, step.costs(bits)):
                part.add(bits, parts)
        assert (parts == total).all()
        for g, (x, y) in enumerate(sets):
            expected = np.zeros((sizes[x], sizes[y]))
            np.add.at(expected, (codes[x], codes[y]), weight)
            assert (total[groups.offsets[g] : groups.offsets[g + 1]] == expected.ravel()).all()


def weighed(seed: int, n: int, sizes: list[int], weights: np.ndarray) -> sf.Data:
    sample = rows(seed, n, sizes)
    states = {name: np.array(v.states)[sample.sample(n).columns[name]].tolist() for name, v in sample.schema.items()}
    return sf.scan(states, variables=dict(sample.schema), weights=weights)


@pytest.mark.parametrize("score", FINITE[::2], ids=repr)
@pytest.mark.parametrize("unit", [1, 0.37])
def test_scores_of_weighted_rows(score, unit):
    data = weighed(0, 300, [2, 3, 1, 4, 2], unit * np.random.default_rng(0).integers(0, 50, 300))
    scores = LocalScores(data, tuple(data.schema.values()), score)
    slow = FamilyScores(data, scores.variables, score)
    assert isinstance(scores, FiniteScores) == (unit != 0.37)
    np.testing.assert_allclose(scores.parent_sets(Rules.free(5, 3), prune=False).score,
                               slow.parent_sets(Rules.free(5, 3), prune=False).score, rtol=1e-10)  # fmt: skip
    for child, parents in ((0, ()), (1, (0, 3)), (3, (0, 1, 2, 4))):
        others = [i for i in range(5) if i != child]
        np.testing.assert_allclose(scores.toggles(child, parents, others), slow.toggles(child, parents, others), rtol=1e-10)


def test_more_rows_than_32_bits_count():
    """In a process of its own, as kernels are compiled for such counts when they come."""
    program = (
        "from tests.structure.scoring.test_local_scores import *; test_scores_of_weighted_rows(sf.Evidence(sf.BDeu(1)), 2**29)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_scores_do_not_depend_on_the_order_of_rows_states_or_threads():
    rng = np.random.default_rng(0)
    data = rows(11, 3000, [3, 4, 2, 5, 3])
    cells = data.sample(3000).columns
    frame = {n: np.array(v.states)[cells[n]] for n, v in data.schema.items()}
    first = LocalScores(data, tuple(data.schema.values()), sf.BIC(), threads=1).parent_sets(Rules.free(5))
    for threads in (1, 2, 3):
        order = rng.permutation(3000)
        columns = rng.permutation(list(frame))
        variables = {n: sf.Finite(n, list(rng.permutation(data.schema[n].states))) for n in columns}
        other = sf.scan({n: frame[n][order].tolist() for n in columns}, variables=variables)
        sets = LocalScores(other, tuple(other.schema.values()), sf.BIC(), threads=threads).parent_sets(Rules.free(5))
        assert (sets.score == first.score).all()  # to the last bit
        assert (sets.masks == first.masks).all()


def test_equivalent_graphs_score_exactly_alike():
    data = rows(13, 2000, [3, 2, 4])
    for score in (sf.BIC(), sf.AIC(), sf.Evidence(sf.BDeu(3))):
        scores = LocalScores(data, tuple(data.schema.values()), score)
        chains = [[(), (0,), (1,)], [(1,), (2,), ()], [(1,), (), (1,)]]
        totals = [scores.total(c) for c in chains]
        assert max(totals) - min(totals) < 1e-9


def test_whole_weights_are_rows_and_others_are_weighed():
    data = {"x": ["a", "b", "a", "b"], "y": ["u", "v", "v", "u"], "w": [5, 4, 2, 1]}
    out = {n: [v for v, w in zip(data[n], data["w"], strict=True) for _ in range(w)] for n in ("x", "y")}
    for factor in (1, 0.5):
        weighted = sf.scan({"x": data["x"], "y": data["y"]}, weights=[factor * w for w in data["w"]])
        scores = LocalScores(weighted, tuple(weighted.schema.values()), sf.LogLikelihood())
        plain = LocalScores(sf.scan(out), tuple(weighted.schema.values()), sf.LogLikelihood())
        np.testing.assert_allclose(scores.pairs()[1], factor * plain.pairs()[1])


@pytest.mark.parametrize("score", [sf.BIC(), sf.AIC(), sf.LogLikelihood(), sf.Evidence(sf.BGe())], ids=repr)
def test_one_matrix_agrees_with_the_families(score):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5)) + 1e3
    data = sf.scan({f"x{i}": x[:, i] for i in range(5)})
    scores = LocalScores(data, tuple(data.schema.values()), score)
    slow = FamilyScores(data, scores.variables, score)
    assert isinstance(scores, GaussianScores)
    for rules in (Rules.free(5), Rules.free(5, 1)):
        for prune in (True, False):
            agree_with(scores.parent_sets(rules, prune=prune), slow, rules, prune=prune)
    for mine, theirs in zip(scores.pairs(), slow.pairs(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    from_statistics = LocalScores(
        data.gather([sf.statistics.Request((), tuple(data.schema))]), tuple(data.schema.values()), score
    )
    assert from_statistics.total([(), (0,), (0, 1), (), (3,)]) == scores.total([(), (0,), (0, 1), (), (3,)])


def test_a_copied_real_column_is_never_a_parent_of_its_copy():
    x = np.random.default_rng(0).normal(size=100)
    data = sf.scan({"a": x, "b": 2 * x + 1, "c": x + np.random.default_rng(1).normal(size=100)})
    scores = LocalScores(data, tuple(data.schema.values()), sf.BIC())
    with pytest.warns(sf.SufficeNote, match="without an estimate"):
        assert scores.family(0, (1,)) == -np.inf


def test_the_lattice_holds_what_the_rules_need():
    rules = Rules.free(5, 2).within(np.triu(np.ones((5, 5), bool)))
    levels = lattice(rules)
    families = {(c, p) for c in range(5) for k in range(3) for p in combinations(range(c + 1, 5), k)}
    got = set()
    for level in levels:
        allowed = families_of(level.sets, rules)
        for g, members in enumerate(level.sets.tolist()):
            got |= {(members[j], tuple(m for m in members if m != members[j])) for j in range(len(members)) if allowed[g, j]}
        if level.sets.shape[1] > 1:
            below = levels[level.sets.shape[1] - 2].sets
            for g, members in enumerate(level.sets.tolist()):
                for j in range(len(members)):
                    assert below[level.sub[g, j]].tolist() == [m for m in members if m != members[j]]
    assert got == families


class Stopper:
    """Who watches, and stops the work when it was asked so many times."""

    def __init__(self, most: float = np.inf) -> None:
        self.calls, self.most = 0, most

    def __call__(self, *_: object) -> None:
        self.calls += 1
        if self.calls > self.most:
            raise KeyboardInterrupt


@pytest.mark.parametrize("score", [sf.BIC(), sf.Evidence(sf.K2())], ids=repr)
@pytest.mark.parametrize("edges", [None, Rules.free(9, 3).within(np.triu(np.ones((9, 9), bool)))], ids=["all", "some"])
def test_a_stop_is_heard_between_few_sets(score, edges, monkeypatch):
    rng = np.random.default_rng(0)
    data = sf.scan({f"x{i}": rng.choice(["a", "b", "c"], 60) for i in range(9)})
    rules = Rules.free(9, 3) if edges is None else edges
    usual = LocalScores(data, tuple(data.schema.values()), score).parent_sets(rules)
    monkeypatch.setattr("suffice.structure.scoring.parent_sets.PIECE", 10)
    n_sets = sum(len(level.sets) for level in lattice(rules))
    watch = Stopper()
    found = LocalScores(data, tuple(data.schema.values()), score, watch=watch).parent_sets(rules)
    assert watch.calls > 2 * n_sets / 10  # once for each ten sets that are listed, and that are chosen from
    assert all(np.array_equal(a, b) for a, b in zip(usual.pack()[1], found.pack()[1], strict=True))
    for most in range(0, watch.calls, 5):
        stopping = Stopper(most)
        with pytest.raises(KeyboardInterrupt):
            LocalScores(data, tuple(data.schema.values()), score, watch=stopping).parent_sets(rules)
        assert stopping.calls == most + 1


def test_too_many_sets_are_refused_before_they_are_made():
    with pytest.raises(sf.SufficeError, match=r"sets of .* variables"):
        lattice(Rules.free(3000, 4))


@pytest.mark.parametrize(
    "prior", [sf.BDeu(1e20), sf.BDeu(1e-300), sf.Dirichlet(1e10), sf.Dirichlet(1e-100), sf.priors.BDs(1e16)], ids=repr
)
def test_priors_of_any_strength(prior):
    rng = np.random.default_rng(0)
    data = sf.scan({f"v{j}": [f"s{k}" for k in rng.integers(0, 4, 200)] for j in range(3)})
    score = sf.Evidence(prior)
    scores = LocalScores(data, tuple(data.schema.values()), score)
    assert isinstance(scores, FiniteScores)
    for graph, dag in (([(), (), ()], "v0; v1; v2"), ([(), (0,), (0, 1)], "v0 -> v1; v0, v1 -> v2")):
        assert scores.total(graph) == pytest.approx(sf.score(dag, data, score), rel=1e-9)


@pytest.mark.parametrize("columns", ["id x", "id x y"])
def test_a_column_of_65536_states_is_scored_one_family_at_a_time(columns: str) -> None:
    rows = {"id": [str(7 * i) for i in range(60)], "x": ["a", "b", "c"] * 20, "y": np.linspace(0.0, 1.0, 60)}
    data = sf.scan({c: rows[c] for c in columns.split()}, {"id": sf.Finite("id", map(str, range(2**16)))})
    variables = tuple(data.schema.values())
    families = [(0, ()), (1, ()), (1, (0,))]
    slow = FamilyScores(data, variables, sf.BIC()).families(families)
    np.testing.assert_array_equal(LocalScores(data, variables, sf.BIC()).families(families), slow)
