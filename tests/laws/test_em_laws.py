"""Laws of EM on finite networks: the E-step is enumeration, the objective never falls, reductions add."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.incomplete import finite
from suffice.incomplete.finite import FiniteComponents, Reduce
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.learning.incomplete.task import task_of
from tests.oracles import expected_counts, random_net, with_gaps


def with_reduction(problem, reduction):
    return replace(problem, components=FiniteComponents(reduction))


def problem_for(bn, columns, hidden=(), **options):
    shown = {n: c for n, c in columns.items() if n not in hidden}
    data = sf.scan(shown, variables={n: bn.variables[n] for n in shown}, weights=options.pop("weights", None))
    return ParameterProblem.of(task_of(bn.dag, data, hidden=[bn.variables[n] for n in hidden], **options))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([0.1, 0.4, 0.8]), st.booleans(), st.booleans())
def test_the_e_step_is_enumeration(seed: int, n_nodes: int, share: float, weighted: bool, zeros: bool) -> None:
    bn = random_net(seed, n_nodes, zeros)
    columns = with_gaps(bn.sample(12, seed=seed), share, seed)
    hidden = [bn.dag.nodes[0]] if seed % 3 == 0 else []
    weights = np.random.default_rng(seed).random(12) * 3 if weighted else None
    if any(all(x is None for x in c) for n, c in columns.items() if n not in hidden):
        return
    problem = problem_for(bn, columns, hidden, weights=weights)
    expected = problem.expect(problem.parameters({n: bn[n] for n in bn}))
    rows = [{n: c[i] for n, c in columns.items() if n not in hidden} for i in range(12)]
    counts, log_likelihood = expected_counts(bn, rows, weights)
    assert expected.log_likelihood == pytest.approx(log_likelihood, rel=1e-12, abs=1e-12)
    named = problem.statistics(expected.statistic)
    for n in bn:
        assert named.counts([*bn[n].parents, n]).values == pytest.approx(counts[n], rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("small", [1, 4, 10**9])
def test_buckets_of_any_size_give_the_same(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eliminated one by one, or all at once: every tree of a larger component is gone through."""
    bn = sf.load("asia")
    columns = with_gaps(bn.sample(40, seed=2), 0.9, 2)
    problem = problem_for(bn, columns)
    from suffice.numerics.kernels.inference import bucket_trees

    monkeypatch.setattr(bucket_trees, "compile_shapes", _with_small(bucket_trees.compile_shapes.in_python(), small))
    expected = problem.expect(problem.parameters({n: bn[n] for n in bn}))
    counts, log_likelihood = expected_counts(bn, [{n: c[i] for n, c in columns.items()} for i in range(40)])
    assert expected.log_likelihood == pytest.approx(log_likelihood, rel=1e-12)
    named = problem.statistics(expected.statistic)
    for n in bn:
        assert named.counts([*bn[n].parents, n]).values == pytest.approx(counts[n], rel=1e-11, abs=1e-13)


def _with_small(function, small):
    import types

    return types.FunctionType(function.__code__, {**function.__globals__, "SMALL": small}, closure=function.__closure__)


def test_programs_beyond_the_limit_are_made_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bn = sf.load("alarm")
    columns = with_gaps(bn.sample(200, seed=2), 0.3, 2)
    problem = problem_for(bn, columns)
    parameters = problem.parameters({n: bn[n] for n in bn})
    whole = problem.expect(parameters)
    monkeypatch.setattr(finite, "LIMIT", 20_000)
    again = with_reduction(problem, problem.components.reduction)
    assert again.components.programs is None
    parts = again.expect(parameters)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-13)
    assert parts.statistic.cells == pytest.approx(whole.statistic.cells, rel=1e-11, abs=1e-12)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(["mle", "mean", "mode"]))
def test_the_objective_never_falls(seed: int, kind: str) -> None:
    bn = random_net(seed, 4)
    columns = with_gaps(bn.sample(40, seed=seed), 0.3, seed)
    how = {"mle": {}, "mean": {"prior": sf.BDeu(3)}, "mode": {"prior": sf.Dirichlet(2), "estimate": sf.Mode()}}[kind]
    data = sf.scan(columns, variables=dict(bn.variables))
    for extra in ({}, {"accelerate": sf.methods.Squarem()}, {"batches": 4}):
        run = sf.em(bn.dag, data, max_iter=40, tol=0, **how, **extra)
        objective = np.array([t.objective for t in run.trace])
        assert (np.diff(objective) >= -1e-9 * (1 + np.abs(objective[1:]))).all()
        assert not run.converged


def test_reductions_add() -> None:
    bn = sf.load("alarm")
    columns = with_gaps(bn.sample(300, seed=2), 0.2, 2)
    problem = problem_for(bn, columns)
    block = problem.rows.sample(300)

    def part(rows: slice):
        return Reduce(problem.tables, exact=True).of(block.take(rows))

    both = (part(slice(0, 120)) + part(slice(120, 300))).reduction()
    assert both.n_rows == 300
    assert len(both.multiplicity) == len(problem.components.reduction.multiplicity)
    parameters = problem.parameters({n: bn[n] for n in bn})
    a, b = problem.expect(parameters), with_reduction(problem, both).expect(parameters)
    assert b.log_likelihood == pytest.approx(a.log_likelihood, rel=1e-13)
    assert b.statistic.cells == pytest.approx(a.statistic.cells, rel=1e-11, abs=1e-12)
