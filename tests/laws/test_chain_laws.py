"""Laws of chains: every answer is enumeration, the E-step is too, sequences add, EM never falls."""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import FitError, TooLarge
from suffice.graphs.lagged import variable_and_lag
from suffice.learning.chains.chain_problem import ChainProblem, chain_problem_of
from suffice.learning.incomplete.coordinates import Atlas
from tests.chain_oracles import MOST, Case, Enumeration, Kinds, Rows, random_case

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")

SEEDS = st.integers(0, 10**6)
FINITE = Kinds(numbers=False, counts=False, regressions=False)


def law(n: int) -> Any:
    return settings(deadline=None, max_examples=n, derandomize=True)


def enumerations(case: Case) -> list[Enumeration]:
    found = [Enumeration(case.chain, rows) for rows in case.rows]
    assume(all(e.n <= MOST for e in found))
    return found


def open_names(case: Case, kind: type = object) -> list[str]:
    """The variables that some step does not show."""
    rows = [row for own in case.rows for row in own]
    return [n for n, v in case.chain.variables.items() if isinstance(v, kind) and any(row[n] is None for row in rows)]


def close(a: Any, b: Any, tolerance: float = 1e-8) -> None:
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def told(case: Case, table: Any, row: int, name: str) -> list[float]:
    """What an answer says of a variable in a row: probabilities, or mean and deviation."""
    v = case.chain.variables[name]
    columns = [f"{name}={s}" for s in v.states] if isinstance(v, sf.Finite) else [name, f"{name}_sd"]
    return [table[c][row] for c in columns]


def wanted(e: Enumeration, name: str, t: int) -> Any:
    return e.states(name, t) if isinstance(e.chain.variables[name], sf.Finite) else e.number(name, t)


def answers(ask: Any, *questions: Any, **how: Any) -> Any:
    """An answer; switching state spaces and joint states over budget are refused, rightly."""
    try:
        return ask(*questions, **how)
    except (FitError, TooLarge) as error:
        assume("switching" not in str(error) and "summed out" not in str(error) and "joint states" not in str(error))
        raise


@law(40)
@given(SEEDS, st.sampled_from([1, 2, 3]), st.booleans(), st.booleans())
def test_ln_p_filter_and_smoother_are_enumeration(seed: int, lags: int, weighted: bool, zeros: bool) -> None:
    case = random_case(seed, Kinds(lags=lags, zeros=zeros), weighted=weighted)
    whole, s = enumerations(case), case.sequences()
    logs = answers(case.chain.log_prob, s)
    close(logs, [e.log_prob for e in whole])
    names = open_names(case)
    if not names:
        return
    for ask, smooth in ((case.chain.smooth, True), (case.chain.filter, False)):
        table, row = ask(s), 0
        for e in whole:
            for t in range(len(e.rows)):
                own = e if smooth else Enumeration(case.chain, e.rows[: t + 1])
                for name in names if e.log_prob > -np.inf else ():
                    close(told(case, table, row, name), wanted(own, name, t), 1e-7)
                row += 1


@law(20)
@given(SEEDS, st.sampled_from([1, 2, 3]))
def test_numbers_with_gaps_are_the_joint_normal(seed: int, lags: int) -> None:
    """Also those that later steps depend on; states are all seen."""
    case = random_case(seed, Kinds(lags=lags, hidden=0, counts=False, regressions=False), longest=6, share=0.0)
    rng = np.random.default_rng([seed, 2])
    real = [n for n, v in case.chain.variables.items() if isinstance(v, sf.Real)]
    assume(real)
    rows = [[{n: None if n in real and rng.random() < 0.4 else x for n, x in row.items()} for row in own] for own in case.rows]
    case = replace(case, rows=rows)
    whole, s = enumerations(case), case.sequences()
    close(case.chain.log_prob(s), [e.log_prob for e in whole])
    for name in open_names(case):
        table = case.chain.smooth(s)
        places = [(e, t) for e in whole for t in range(len(e.rows))]
        for row, (e, t) in enumerate(places):
            close(told(case, table, row, name), wanted(e, name, t), 1e-7)


@law(15)
@given(SEEDS, st.sampled_from([1, 2]), st.booleans())
def test_a_column_that_is_not_there_is_missing_everywhere(seed: int, lags: int, last: bool) -> None:
    case = random_case(seed, Kinds(lags=lags))
    seen = [n for n in case.shown if n not in case.hidden]
    assume(len(seen) > 1)
    gone = seen[-1 if last else 0]
    rows = [[{**row, gone: None} for row in own] for own in case.rows]
    less = replace(case, rows=rows, hidden=(*case.hidden, gone))
    more = replace(case, rows=rows)
    close(answers(case.chain.log_prob, less.sequences()), answers(case.chain.log_prob, more.sequences()))
    a, b = case.chain.smooth(less.sequences()), case.chain.smooth(more.sequences())
    for name in open_names(less):
        close(*([told(less, table, row, name) for row in range(len(s_of(rows)))] for table in (a, b)), 1e-7)  # type: ignore[misc]


def s_of(rows: list[Rows]) -> Rows:
    return [row for own in rows for row in own]


@law(30)
@given(SEEDS, st.sampled_from([1, 2, 3]), st.booleans())
def test_paths_are_enumeration(seed: int, lags: int, zeros: bool) -> None:
    """What no other cell depends on is no part of a path, and summed out."""
    case = random_case(seed, Kinds(lags=lags, zeros=zeros))
    whole, s, chain = enumerations(case), case.sequences(), case.chain
    alone = answers(chain.posterior_decode, s) if open_names(case, sf.Finite) else {}
    places = [(e, t) for e in whole for t in range(len(e.rows))]
    for name in alone:
        for cell, (e, t) in zip(alone[name], places, strict=True):
            assert cell is None or e.states(name, t)[chain.variables[name].code(cell)] >= e.states(name, t).max() - 1e-8
            assert (cell is None) == (e.log_prob == -np.inf)
    path = [n for n in open_names(case, sf.Finite) if n not in case.shown or _children(chain, n)]
    assume(path)
    best = chain.decode(s, best=4)
    close(chain.decode(s).log_prob, best[0].log_prob)
    row = 0
    for i, e in enumerate(whole):
        logs = _paths(e, path)
        top = [*sorted(logs.values(), reverse=True), *[-np.inf] * 4][:4]
        close([d.log_prob[i] for d in best], top)
        cells = [_path(chain, path, d, row, len(e.rows)) for d, log_p in zip(best, top, strict=True) if log_p > -np.inf]
        assert len(set(cells)) == len(cells)
        close([logs[c] for c in cells], top[: len(cells)])
        row += len(e.rows)


def _children(chain: sf.Chain, name: str) -> bool:
    return any(variable_and_lag(p)[0] == name for node in chain for p in chain[node].parents)


def _paths(e: Enumeration, names: list[str]) -> dict[tuple[int, ...], float]:
    """ln p of each path of these variables."""
    groups = defaultdict(list)
    codes = np.array([e.codes[n, t] for n in names for t in range(len(e.rows))]).T
    for path, log_p in zip(codes.tolist(), e.log_weight, strict=True):
        groups[tuple(path)].append(log_p)
    return {path: float(np.logaddexp.reduce(logs)) for path, logs in groups.items()}


def _path(chain: sf.Chain, names: list[str], decoded: Any, start: int, n: int) -> tuple[int, ...]:
    return tuple(chain.variables[name].code(decoded[name][start + t]) for name in names for t in range(n))


@law(25)
@given(SEEDS, st.sampled_from([1, 2]), st.sampled_from([1, 2]))
def test_forecasts_are_enumeration(seed: int, lags: int, steps: int) -> None:
    case = random_case(seed, Kinds(lags=lags, hidden=1), longest=3)
    assume(not any(isinstance(case.chain.variables[n], sf.Real) for n in case.chain.template.lags))
    _check_forecast(case, steps)


@law(20)
@given(SEEDS, st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]))
def test_forecasts_of_autoregressions_are_enumeration(seed: int, lags: int, steps: int) -> None:
    """With hidden states and without."""
    case = random_case(seed, Kinds(lags=lags, hidden=seed % 2, counts=False, regressions=False), longest=3)
    assume(any(isinstance(case.chain.variables[n], sf.Real) for n in case.chain.template.lags))
    _check_forecast(case, steps)


def _check_forecast(case: Case, steps: int) -> None:
    empty = dict.fromkeys(case.chain.variables)
    longer = replace(case, rows=[[*rows, *[empty] * steps] for rows in case.rows])
    whole = enumerations(longer)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        table = answers(case.chain.forecast, case.sequences(), steps)
    assume(not any("no closed form" in str(n.message) for n in notes))  # regressions on numbers ahead are drawn
    places = [(e, t) for e in whole for t in range(len(e.rows) - steps, len(e.rows))]
    for row, (e, t) in enumerate(places):
        for name in case.chain.variables:
            close(told(case, table, row, name), wanted(e, name, t), 1e-7)


@law(20)
@given(SEEDS, st.sampled_from([1, 2, 3]))
def test_following_is_filtering(seed: int, lags: int) -> None:
    case = random_case(seed, Kinds(lags=lags), n=1)
    following = answers(case.chain.follow, hidden=open_names(case))
    [rows] = case.rows
    for t, row in enumerate(rows):
        e = Enumeration(case.chain, rows[: t + 1])
        assume(e.n <= MOST)
        following, answer = following.next({n: x for n, x in row.items() if x is not None})
        close(following.log_prob, e.log_prob)
        assert {n for n, x in row.items() if x is None} <= set(answer)
        for name, found in answer.items():
            if isinstance(case.chain.variables[name], sf.Finite):
                close(found.probs, e.states(name, t))
            else:
                close([found.mean, found.sd], e.number(name, t), 1e-7)


@law(15)
@given(SEEDS, st.sampled_from([1, 2, 3]))
def test_a_chain_is_its_unrolled_network(seed: int, lags: int) -> None:
    case = random_case(seed, Kinds(lags=lags), n=2, longest=4)
    enumerations(case)
    s, chain = case.sequences(), case.chain
    logs, row = answers(chain.log_prob, s), 0
    names = open_names(case, sf.Finite)
    table = chain.smooth(s) if open_names(case) else {}
    for i, rows in enumerate(case.rows):
        bn = chain.unroll(len(rows))
        seen = {f"{n}[{t}]": x for t, cells in enumerate(rows) for n, x in cells.items() if x is not None}
        close(logs[i], bn.log_prob_of(seen) if seen else 0.0)
        for t, cells in enumerate(rows):
            for n in (n for n in names if cells[n] is None):
                close(told(case, table, row, n), bn.query(f"{n}[{t}]", seen).probs, 1e-7)
            row += 1


@law(10)
@given(SEEDS)
def test_the_best_path_is_the_network_s_most_probable(seed: int) -> None:
    """What is missing besides hidden states must be part of the path for that: with nothing else missing it is."""
    case = random_case(seed, replace(FINITE, hidden=2), n=1, longest=4)
    [rows] = _complete(case, seed, 1).rows
    assume(case.hidden)
    rows = [{n: None if n in case.hidden else x for n, x in row.items()} for row in rows]
    case = replace(case, rows=[rows], labelled=())
    seen = {f"{n}[{t}]": x for t, cells in enumerate(rows) for n, x in cells.items() if x is not None}
    answer = case.chain.unroll(len(rows)).most_probable(seen)
    close(case.chain.decode(case.sequences()).log_prob[0], answer.log_prob)


def problem_of(case: Case, s: sf.chains.Sequences | None = None, **how: Any) -> ChainProblem:
    return answers(
        chain_problem_of, case.chain.template, s or case.sequences(), hidden=case.declared, families=case.families, **how
    )


def learnable(case: Case) -> None:
    """Every column has a cell that weighs, and numbers differ."""
    rows = [row for i, own in enumerate(case.rows) if case.weights is None or case.weights[i] > 0 for row in own]
    for name in case.shown:
        cells = {row[name] for row in rows} - {None}
        assume(len(cells) > (0 if isinstance(case.chain.variables[name], sf.Finite) else 1))


@law(40)
@given(SEEDS, st.sampled_from([1, 2, 3]), st.booleans(), st.booleans())
def test_the_e_step_is_enumeration(seed: int, lags: int, weighted: bool, zeros: bool) -> None:
    case = random_case(seed, Kinds(lags=lags, zeros=zeros), weighted=weighted)
    learnable(case)
    whole = enumerations(case)
    log_likelihood, found = expected(case)
    weights = case.weights or (1.0,) * len(whole)
    close(log_likelihood, sum(w * e.log_prob for w, e in zip(weights, whole, strict=True) if w))
    for key, got in found.items():
        name = key if key in case.chain.variables else key.rpartition("[")[0]
        each = [(w, e, t) for w, e in zip(weights, whole, strict=True) if w for t in range(len(e.rows))]
        total = np.zeros_like(got)
        for w, e, t in each:
            counted = isinstance(case.chain.variables[name], sf.Count) and e.rows[t][name] is None
            if e.node(name, t)[0] == key and not counted:  # a missing count says nothing of its rate
                finite = isinstance(case.chain.variables[name], sf.Finite)
                total += w * (e.counts(name, t) if finite else e.moments(name, t)).reshape(got.shape)
        close(got, total, 1e-6)


def expected(case: Case, s: sf.chains.Sequences | None = None, **how: Any) -> tuple[float, dict[str, Any]]:
    """ln p of a case under its own chain, and what its tables are expected to count, its numbers to sum to."""
    problem = problem_of(case, s, **how)
    e = problem.expect(problem.parameters({n: case.chain[n] for n in case.chain}))
    named, result = problem.statistics(e.statistic), {}
    for key in (key for key in case.chain if not case.chain[key].is_regression):
        cpd = case.chain[key]
        if isinstance(cpd.child, sf.Finite):
            result[key] = named.counts([*cpd.parents, key]).values
        else:
            result[key] = _second_moments(named.moments([p.name for p in cpd.finite_parents], [*cpd.real_parents, key]), cpd)
    return e.log_likelihood, result


def _second_moments(moments: Any, cpd: Any) -> Any:
    """Σ (1, x) (1, x)ᵀ by configuration, from centred moments."""
    d = len(cpd.real_parents) + 2
    result = np.zeros((int(np.prod([p.n_states for p in cpd.finite_parents])), d, d))
    for key, count, mean, scatter in zip(moments.keys, moments.count, moments.mean, moments.scatter, strict=True):
        x = np.concatenate([[1.0], mean])
        result[key] = count * np.outer(x, x)
        result[key][1:, 1:] += scatter
    return result


WAYS: dict[str, dict[str, Any]] = {
    "maximum likelihood": {},
    "mean": {"prior": sf.Dirichlet(1.0)},
    "mode": {"prior": sf.Dirichlet(1.5), "estimate": sf.Mode()},
}


@law(12)
@given(SEEDS, st.sampled_from([1, 2]), st.sampled_from(sorted(WAYS)))
def test_the_objective_never_falls(seed: int, lags: int, way: str) -> None:
    case = random_case(seed, Kinds(lags=lags), n=12)
    learnable(case)
    for how in ({}, {"accelerate": sf.methods.Squarem()}, {"batches": 2}):
        try:
            run = _run(case, max_iter=10, tol=0, starts=1, **WAYS[way], **how)
        except FitError as error:
            assume("collapsed" not in str(error) and "batches" not in str(error))
            raise
        objective = np.array([t.objective for t in run.trace])
        assert (np.diff(objective) >= -1e-8 * (1 + np.abs(objective[1:]))).all()
        if not how:
            close(run.model.log_likelihood(case.sequences()), run.log_likelihood, 1e-7)


def _run(case: Case, **how: Any) -> sf.results.EmRun:
    return answers(sf.em, case.chain.template, case.sequences(), hidden=case.declared, families=case.families, **how)


@law(8)
@given(SEEDS, st.sampled_from(sorted(WAYS)))
def test_the_gradient_is_that_of_difference_quotients(seed: int, way: str) -> None:
    case = random_case(seed, Kinds(counts=False, regressions=False, lags=2), n=3)
    learnable(case)
    problem = problem_of(case, **WAYS[way]).scaled
    theta = problem.parameters({n: replace_scaled(problem, case.chain[n]) for n in case.chain})
    statistic = problem.expect(theta).statistic
    atlas = Atlas.around(problem, theta, statistic)
    here = atlas.vector(theta)
    slope = atlas.scores(atlas.cpds(here), statistic)

    def objective(vector: Any) -> float:
        moved = problem.parameters(atlas.cpds(vector))
        return problem.expect(moved).log_likelihood + problem.log_prior(moved)

    for i in np.random.default_rng(seed).permutation(len(here))[:6]:
        h = 1e-5 * atlas.unit[i] * (np.arange(len(here)) == i)
        quotient = (objective(here + h) - objective(here - h)) / (2e-5 * atlas.unit[i])
        assert slope[i] == pytest.approx(quotient, rel=1e-5, abs=1e-5)


def replace_scaled(problem: ChainProblem, cpd: Any) -> Any:
    """A distribution of columns as one of scaled columns."""
    return problem.units.inward_cpd(cpd) if hasattr(cpd, "variance") else cpd


@law(15)
@given(SEEDS, st.sampled_from([1, 2]))
def test_sequences_add_in_any_order(seed: int, lags: int) -> None:
    case = random_case(seed, Kinds(lags=lags), n=6)
    parts = [_some(case, [0, 1, 2]), _some(case, [3, 4, 5]), _some(case, [5, 1, 3, 0, 4, 2]), case]
    for part in parts:
        learnable(part)
    (log_a, a), (log_b, b), (log_turned, turned), (log_p, whole) = map(expected, parts)
    close([log_a + log_b, log_turned], [log_p, log_p])
    for key in whole:
        close(a[key] + b[key], whole[key], 1e-7)
        close(turned[key], whole[key], 1e-7)


def _some(case: Case, some: list[int]) -> Case:
    return replace(case, rows=[case.rows[i] for i in some], weights=None)


@law(12)
@given(SEEDS, st.sampled_from([1, 2]))
def test_counted_steps_add(seed: int, lags: int) -> None:
    case = _complete(random_case(seed, Kinds(lags=lags, regressions=False), n=6), seed)
    a, b, whole = (sf.gather(_some(case, some).sequences(), case.chain.template) for some in ([0, 1, 2], [3, 4, 5], range(6)))
    for one, both in zip(a + b, whole, strict=True):
        parts = ("values",) if isinstance(one, sf.statistics.Counts) else ("keys", "count", "mean", "scatter")
        for part in parts:
            close(getattr(one, part), getattr(both, part))


def _complete(case: Case, seed: int, n: int = 6) -> Case:
    """The same chain with sequences that show everything."""
    lengths = np.random.default_rng(seed).integers(1, 6, n)
    drawn = case.chain.sample(n, length=5, seed=seed).drop(["sequence", "step"]).to_pylist()
    rows = [drawn[5 * i : 5 * i + int(length)] for i, length in enumerate(lengths)]
    return replace(case, rows=rows, labelled=case.hidden, weights=None)


@law(10)
@given(SEEDS, st.sampled_from([1, 2]))
def test_weights_are_repeats(seed: int, lags: int) -> None:
    case = random_case(seed, Kinds(lags=lags), n=3)
    times = np.random.default_rng(seed).integers(1, 4, 3)
    weighed = replace(case, weights=tuple(times.tolist()))
    repeated = replace(case, rows=[rows for rows, n in zip(case.rows, times, strict=True) for _ in range(n)])
    learnable(case)
    (log_a, a), (log_b, b) = expected(weighed), expected(repeated)
    close(log_a, log_b)
    close(case.chain.log_likelihood(weighed.sequences()), log_b)
    for key in a:
        close(a[key], b[key], 1e-7)


@law(8)
@given(SEEDS)
def test_all_labels_given_em_is_fit(seed: int) -> None:
    case = _complete(random_case(seed, Kinds(lags=1, regressions=False, hidden=2)), seed, 60)
    learnable(case)
    s = case.sequences()
    try:
        fitted = sf.fit(case.chain.template, s, prior=sf.Dirichlet(1.0))
        run = sf.em(case.chain.template, s, hidden=case.declared, prior=sf.Dirichlet(1.0), starts=1)
    except FitError:
        assume(False)  # too few steps for a variance
    for key in fitted:
        for part in ("probs", "rates", "intercept", "coefficients", "variance"):
            own = np.asarray(getattr(fitted[key], part, np.nan))
            seen = ~np.isnan(own)
            close(np.asarray(getattr(run.model[key], part, own))[seen], own[seen], 1e-6)


@law(10)
@given(SEEDS, st.sampled_from([1, 2]))
def test_what_shows_nothing_adds_nothing(seed: int, lags: int) -> None:
    """A sequence of which nothing is seen, and steps of which nothing is seen at the end."""
    case = random_case(seed, replace(FINITE, lags=lags, numbers=False))
    enumerations(case)
    empty: list[dict[str, Any]] = [dict.fromkeys(case.chain.variables)] * 2
    more = replace(case, rows=[*([*rows, *empty] for rows in case.rows), empty])
    close(answers(case.chain.log_prob, more.sequences()), [*case.chain.log_prob(case.sequences()), 0.0])


@law(12)
@given(SEEDS, st.booleans())
def test_cut_where_all_is_seen_nothing_changes(seed: int, numbers: bool) -> None:
    """ln p(0 … T) = ln p(0 … t) + ln p(t … T) − ln p(t) at a step t that shows everything, and so for what is expected."""
    case = random_case(seed, Kinds(lags=1, numbers=numbers), n=4, longest=6)
    rows = [own for own in case.rows if len(own) > 2]
    assume(rows)
    drawn = iter(case.chain.sample(1, length=len(rows), seed=seed).drop(["sequence", "step"]).to_pylist())
    rows = [[*own[:1], next(drawn), *own[2:]] for own in rows]
    case = replace(case, rows=rows, labelled=case.hidden, weights=None)
    cases = [replace(case, rows=[own[a:b] for own in rows]) for a, b in ((0, None), (0, 2), (1, None), (1, 2))]
    whole, head, tail, cut = (answers(case.chain.log_prob, c.sequences()) for c in cases)
    close(whole, head + tail - cut)


@law(10)
@given(SEEDS, st.sampled_from([1, 2]))
def test_the_order_of_states_does_not_matter(seed: int, lags: int) -> None:
    case = random_case(seed, replace(FINITE, lags=lags, hidden=2))
    turned = _turned(case.chain)
    s = case.sequences()
    t = replace(case, chain=turned).sequences()
    close(turned.log_prob(t), case.chain.log_prob(s))
    if open_names(case):
        a, b = case.chain.smooth(s), turned.smooth(t)
        assert set(a) == set(b)
        for column in a:
            close(a[column], b[column])


def _turned(chain: sf.Chain) -> sf.Chain:
    """The same chain, the states of all variables in the reverse order."""
    variables = {n: sf.Finite(n, v.states[::-1]) for n, v in chain.variables.items()}
    return sf.Chain(chain.template, {key: np.flip(chain[key].probs) for key in chain}, variables)


@law(8)
@given(SEEDS)
def test_threads_give_the_same_bits(seed: int) -> None:
    case = random_case(seed, Kinds(), n=8)
    learnable(case)
    (log_a, a), (log_b, b) = (expected(case, threads=n) for n in (1, 2))
    assert log_a == log_b
    for key in a:
        assert np.array_equal(a[key], b[key])


@law(10)
@given(SEEDS, st.integers(2, 4))
def test_a_stationary_chain_is_one_whose_first_slice_is_written_down(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    h, y = sf.Finite("h", [f"h{i}" for i in range(n)]), sf.Finite("y", ["u", "v", "w"])
    cpds = {"h": rng.dirichlet(np.ones(n), n), "y": rng.dirichlet(np.ones(3), n)}
    settled = sf.Chain("h[-1] -> h -> y", cpds, [h, y], first=sf.chains.Stationary())
    pi = settled.stationary()
    close(pi @ cpds["h"], pi)
    written = sf.Chain("h[-1] -> h -> y", {**cpds, "h[0]": pi}, [h, y])
    assert settled != written
    close(settled.first[0]["h"].probs, pi)
    table = written.sample(4, length=5, seed=seed)
    s = sf.sequences(table.drop(["h"]), by="sequence", order="step", variables={"y": y})
    close(settled.log_prob(s), written.log_prob(s))
    a, b = settled.smooth(s), written.smooth(s)
    close(a.to_pandas(), b.to_pandas())
    run = sf.em("h[-1] -> h -> y", s, hidden=[h], start=settled, first=sf.chains.Stationary(), tol=0, max_iter=8)
    objective = np.array([t.objective for t in run.trace])
    assert (np.diff(objective) >= -1e-9).all()
    close(run.model.log_likelihood(s), run.log_likelihood)


@law(8)
@given(SEEDS)
def test_a_template_without_lags_is_a_network(seed: int) -> None:
    rng, text = np.random.default_rng(seed), "h -> y; h -> x"
    h, y = sf.Finite("h", ["a", "b"]), sf.Finite("y", ["u", "v", "w"])
    cpds = {"h": rng.dirichlet([9, 9]), "y": rng.dirichlet(np.ones(3), 2), "x": sf.Gaussian([0, 3], {}, [1, 2])}
    bn, chain = sf.BayesNet(text, cpds, [h, y]), sf.Chain(text, cpds, [h, y])
    complete = bn.sample(30, seed=seed)
    gaps = [None if rng.random() < 0.2 else x for x in complete["y"].to_pylist()]
    rows = sf.scan({"y": gaps, "x": complete["x"].to_pylist()}, {"y": y})
    a = sf.em(text, sf.sequences(rows), hidden=[h], start=chain, max_iter=5, tol=0)
    b = sf.em(text, rows, hidden=[h], start=bn, max_iter=5, tol=0)
    close([t.objective for t in a.trace], [t.objective for t in b.trace])
    for part, n in (("probs", "h"), ("probs", "y"), ("intercept", "x"), ("variance", "x")):
        close(getattr(a.model[n], part), getattr(b.model[n], part))
    close(sf.fit(text, sf.sequences(complete)).log_likelihood(), sf.fit(text, complete).log_likelihood())
