"""EM: numbers of the texts, starts, symmetry, options, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import suffice as sf
from suffice.basis.limits import bytes_of, check_room
from suffice.families.categorical import Table
from suffice.incomplete.numbers.patterns import connected_sets
from suffice.incomplete.rows import best, pick_codes, support
from suffice.learning.incomplete.em_run import Optimum, n_bytes, spread
from suffice.learning.incomplete.starts import far_apart, indistinguishable_states, nearest_pairs
from suffice.numerics.inference.finite.network import Network
from tests.oracles import with_gaps

COINS = sf.Dag("coin -> a; coin -> b; coin -> c")
COIN = sf.Finite("coin", ["1", "2"])
TOSSES = {n: ["H", "T", "H", "T", "H"] for n in "abc"}


def coins(alpha: float, p: float, q: float) -> sf.BayesNet:
    sides = sf.Finite("a", ["H", "T"])
    tosses = {n: sf.Finite(n, sides.states) for n in "abc"}
    tables = {n: [[p, 1 - p], [q, 1 - q]] for n in "abc"}
    return sf.BayesNet(COINS, {"coin": [alpha, 1 - alpha], **tables}, [COIN, *tosses.values()])


def test_the_two_coins_of_the_text() -> None:
    """HHH TTT HHH TTT HHH from (.3, .3, .6): responsibilities .0508 and .6967, then (.3092, .0987, .8244)."""
    start = coins(0.3, 0.3, 0.6)
    assert start.query("coin", given={"a": "H", "b": "H", "c": "H"})["1"] == pytest.approx(0.0508, abs=5e-5)
    assert start.query("coin", given={"a": "T", "b": "T", "c": "T"})["1"] == pytest.approx(0.6967, abs=5e-5)
    run = sf.em(COINS, TOSSES, hidden=[COIN], start=start, max_iter=1)
    assert run.model["coin"].probs[0] == pytest.approx(0.3092, abs=5e-5)
    assert run.model["a"].probs[:, 0] == pytest.approx([0.0987, 0.8244], abs=5e-5)


def test_the_two_coins_of_do_and_batzoglou() -> None:
    """Nature Biotechnology 26 (2008), p. 897: heads 5 9 8 4 7 of 10, start .6 .5, each coin equally likely.

    All tosses of a set have one parameter; with every rotation of each set as a row of weight 1/10, ten tosses have, too.
    """
    heads, names = [5, 9, 8, 4, 7], [f"t{i}" for i in range(10)]
    sets = [np.roll(np.arange(10) < h, k) for h in heads for k in range(10)]
    rows = {n: np.where([s[i] for s in sets], "H", "T") for i, n in enumerate(names)}
    dag = sf.Dag([("coin", n) for n in names])
    coin = sf.Finite("coin", ["A", "B"])
    tables = {n: [[0.6, 0.4], [0.5, 0.5]] for n in names}
    start = sf.BayesNet(dag, {"coin": [0.5, 0.5], **tables}, [coin, *(sf.Finite(n, ["H", "T"]) for n in names)])
    data = sf.scan(rows, weights=np.full(50, 0.1))
    for n_iter, expected in {
        1: (0.7130122354, 0.5813393083),
        2: (0.7452920361, 0.5692557502),
        10: (0.7967441495, 0.5196586622),
        25: (0.7967890669, 0.5195831201),  # the limit; rounding makes ten free parameters part company only later
    }.items():
        run = sf.em(dag, data, start=start, fixed=["coin"], max_iter=n_iter, tol=0)
        assert run.model["coin"].probs.tolist() == [0.5, 0.5]
        assert run.model["t3"].probs[:, 0] == pytest.approx(expected, abs=1e-9)


def test_a_symmetric_start_is_noticed_and_broken() -> None:
    with pytest.warns(sf.SufficeNote, match="would never tell them apart"):
        run = sf.em(COINS, TOSSES, hidden=[COIN], start=coins(0.5, 0.5, 0.5))
    assert run.log_likelihood == pytest.approx(3 * np.log(0.6) + 2 * np.log(0.4), abs=1e-4)


def test_cells_missing_at_random_do_not_bias() -> None:
    """A → B → C, A deleted with probability .8 where C = 1; complete cases would give .419."""
    rng = np.random.default_rng(0)
    n = 20_000
    a = rng.random(n) < 0.5
    b = rng.random(n) < np.where(a, 0.8, 0.3)
    c = rng.random(n) < np.where(b, 0.7, 0.2)
    gone = c & (rng.random(n) < 0.8)
    rows = {"A": [None if g else str(int(x)) for x, g in zip(a, gone, strict=True)], "B": b.astype(str), "C": c.astype(str)}
    run = sf.em("A -> B -> C", rows)
    assert run.converged
    assert run.model["A"].probs[1] == pytest.approx(a.mean(), abs=0.01)
    assert a[~gone].mean() == pytest.approx(0.419, abs=0.01)


def test_fit_learns_from_missing_cells_and_says_so() -> None:
    rows = {"a": ["x", None, "y", "y"], "b": ["u", "u", None, "v"]}
    with pytest.warns(sf.SufficeNote, match="missing cells"):
        bn = sf.fit("a -> b", rows)
    assert "EM" in bn.fit_info
    assert bn.incomplete
    run = sf.em("a -> b", rows)
    assert bn == run.model
    with pytest.raises(sf.SufficeError, match=r"em\(dag, all_rows, start=bn\)"):
        bn.update({"a": ["x"], "b": ["u"]})
    with pytest.raises(sf.SufficeError, match=r"no posterior"):
        bn["a"].interval()


def test_complete_data_is_what_fit_gives() -> None:
    bn = sf.load("asia")
    rows = bn.sample(500, seed=1)
    for prior in (None, sf.BDeu(5)):
        run = sf.em(bn.dag, sf.scan(rows, variables=dict(bn.variables)), prior=prior)
        fitted = sf.fit(bn.dag, sf.scan(rows, variables=dict(bn.variables)), prior=prior)
        assert run.converged
        for n in bn:
            assert run.model[n].probs == pytest.approx(fitted[n].probs, abs=1e-14)


def test_starts_are_reproducible_and_told() -> None:
    rows = sf.load("asia").sample(300, seed=3).select(["smoke", "bronc", "dysp", "xray"])
    dag = sf.Dag("h -> smoke; h -> bronc; h -> dysp; h -> xray")
    hidden = [sf.Finite("h", ["0", "1"])]
    run, again = (sf.em(dag, rows, hidden=hidden, starts=5, seed=7) for _ in range(2))
    assert run.model == again.model
    assert len(run.optima) == 5
    assert [o.objective for o in run.optima] == sorted((o.objective for o in run.optima), reverse=True)
    assert run.optima[0].objective == run.objective
    assert "of 5 starts led to the best optimum" in repr(run)
    other = sf.em(dag, rows, hidden=hidden, starts=5, seed=8)
    assert other.objective == pytest.approx(run.objective, abs=1e-2)


def test_a_range_of_optima_is_told_only_where_it_is_one() -> None:
    optima = tuple(Optimum(i, -8298.9766 - 1e-9 * i, -8298.0, 9, converged=True) for i in range(3))
    assert spread(optima) == "3 of 3 starts led to the best optimum"
    apart = (*optima, Optimum(3, -8300.5, -8300.0, 9, converged=True))
    assert spread(apart) == ("3 of 4 starts led to the best optimum; the objectives lie between -8,300.5000 and -8,298.9766")


def test_the_number_of_threads_does_not_matter() -> None:
    bn = sf.load("alarm")
    data = sf.scan(with_gaps(bn.sample(400, seed=2), 0.5, 2), variables=dict(bn.variables))
    one, two = (sf.em(bn.dag, data, max_iter=3, threads=t) for t in (1, 2))
    assert one.trace[-1].objective == two.trace[-1].objective
    assert one.model == two.model


def test_acceleration_and_batches_reach_the_same_optimum() -> None:
    bn = sf.load("asia")
    data = sf.scan(with_gaps(bn.sample(400, seed=2), 0.3, 2), variables=dict(bn.variables))
    plain = sf.em(bn.dag, data, tol=1e-10, max_iter=5000)
    fast = sf.em(bn.dag, data, tol=1e-10, method=sf.methods.Squarem())
    parts = sf.em(bn.dag, data, tol=1e-10, max_iter=5000, method=sf.methods.Incremental(5))
    assert fast.objective == pytest.approx(plain.objective, abs=1e-6)
    assert parts.objective == pytest.approx(plain.objective, abs=1e-6)
    assert fast.n_iterations < plain.n_iterations
    assert parts.n_iterations < plain.n_iterations


def test_a_state_that_no_row_needs_is_told() -> None:
    rows = {"a": ["x"] * 30, "b": ["u"] * 30}
    data = sf.scan(rows, variables={"a": ["x", "y"], "b": ["u", "v"]})
    start = sf.BayesNet(
        "h -> a; h -> b",
        {"h": [0.5, 0.5], "a": [[0.99, 0.01], [0.01, 0.99]], "b": [[0.99, 0.01], [0.01, 0.99]]},
        [sf.Finite("h", ["0", "1"]), sf.Finite("a", ["x", "y"]), sf.Finite("b", ["u", "v"])],
    )
    with pytest.warns(sf.SufficeNote, match="no rows are left for '1'"):
        sf.em(start.dag, data, start=start)


def test_rows_without_cells_are_kept_and_told() -> None:
    with pytest.warns(sf.SufficeNote, match="1 rows have no observed cell"):
        run = sf.em("a -> b", {"a": ["x", "y", None], "b": ["u", "v", None]})
    assert run.expected.weight == 3
    assert run.log_likelihood == pytest.approx(2 * np.log(0.5))


def test_limits_keep_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    bn = sf.load("asia")
    data = sf.scan(with_gaps(bn.sample(200, seed=2), 0.3, 2), variables=dict(bn.variables))
    with pytest.warns(sf.SufficeNote, match="did not converge in 3 iterations"):
        run = sf.em(bn.dag, data, max_iter=3)
    assert not run.converged
    assert run.n_iterations == 3
    from suffice.learning import em as module

    def stop(*args: object) -> None:
        if len(args[-1].trace) == 2:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "_watch", stop)
    with pytest.warns(sf.SufficeNote, match="stopped before its end"):
        run = sf.em(bn.dag, data)
    assert run.n_iterations == 2
    assert not run.converged


REFUSED = {
    "all missing": (lambda: sf.em("a -> b", {"a": ["x", "y"], "b": [None, None]}), "every cell of 'b' is missing.*hidden"),
    "not there": (lambda: sf.em("h -> a", {"a": ["x", "y"]}), "the data have no column 'h', which the graph names; .*hidden="),
    "also in the data": (
        lambda: sf.em("h -> a", {"a": ["x", "y"], "h": ["0", None]}, hidden=[sf.Finite("h", ["0", "1"])]),
        "'h' is also a column of the data, with values in 1 rows",
    ),
    "more states than rows": (
        lambda: sf.em("h -> a", {"a": ["x", "y"]}, hidden=[sf.Finite("h", ["0", "1", "2"])]),
        "3 states, more than the 2 rows",
    ),
    "not in the graph": (lambda: sf.em("a", {"a": ["x"]}, hidden=[sf.Finite("h", ["0"])]), "'h' is not in the graph"),
    "no states": (lambda: sf.em("h -> a", {"a": ["x"]}, hidden=["h"]), "with its states"),
    "all hidden": (lambda: sf.em("h", {"a": ["x", "x"]}, hidden={"h": ["0", "1"]}), "every node of the graph is hidden"),
    "statistics": (lambda: sf.em("a", sf.gather({"a": ["x"]}, "a")), "statistics are of complete rows"),
    "tol": (lambda: sf.em("a", {"a": ["x"]}, tol=-1), "tol is a number from 0 up"),
    "max_iter": (lambda: sf.em("a", {"a": ["x"]}, max_iter=0), "max_iter is a whole number of at least 1"),
    "starts": (lambda: sf.em("a", {"a": ["x"]}, starts=0), "starts is a whole number"),
    "m_step": (lambda: sf.em("a", {"a": ["x"]}, m_step="newton"), "m_step"),
    "mode": (
        lambda: sf.em("a -> b", {"a": ["x", "y", None], "b": ["u", "v", "u"]}, prior=sf.Dirichlet(0.1), estimate=sf.Mode()),
        "the posterior has no mode",
    ),
    "time_limit": (lambda: sf.em("a", {"a": ["x", None]}, time_limit=0), "time_limit is a number of seconds above 0"),
    "threads": (lambda: sf.em("a", {"a": ["x", None]}, threads="a"), "threads is a whole number"),
    "a constant": (
        lambda: sf.em("w -> c", {"c": [3.7, 3.7, None, 3.7], "w": [1.0, 2.5, 3.0, None]}),
        "all values of 'c' are the same",
    ),
    "fixed": (lambda: sf.em("a", {"a": ["x", None]}, fixed=["a"]), "give it, start="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(sf.SufficeError, match=message):
        call()


def test_a_start_under_which_rows_are_impossible() -> None:
    a, b = sf.Finite("a", ["x", "y"]), sf.Finite("b", ["u", "v"])
    start = sf.BayesNet("a -> b", {"a": [0.5, 0.5], "b": [[1.0, 0.0], [1.0, 0.0]]}, [a, b])
    with pytest.raises(sf.SufficeError, match="rows with b='v', in which 'a' is missing, are impossible"):
        sf.em("a -> b", {"a": ["x", None, "y"], "b": ["u", "v", "u"]}, start=start)
    with pytest.raises(sf.SufficeError, match="rows with a='x', b='v' are impossible"):
        sf.em("a -> b", {"a": ["x", None, "y"], "b": ["v", "u", "u"]}, start=start)


def test_files_larger_than_the_memory_they_may_take(tmp_path: Path) -> None:
    """Rows that are spilled to disk give the same, bit for bit."""
    bn = sf.load("asia")
    columns = with_gaps(bn.sample(20_000, seed=2), 0.2, 2)
    pa.csv.write_csv(pa.table(columns), tmp_path / "rows.csv")
    held = sf.em(bn.dag, sf.scan(tmp_path / "rows.csv", variables=dict(bn.variables)))
    spilled = sf.em(bn.dag, sf.scan(tmp_path / "rows.csv", variables=dict(bn.variables), memory_limit=1000))
    assert spilled.model == held.model
    assert [t.objective for t in spilled.trace] == [t.objective for t in held.trace]


def test_a_run_is_pickled_without_its_data() -> None:
    run = sf.em("a -> b", {"a": ["x", None, "y"], "b": ["u", "v", "u"]})
    again = pickle.loads(pickle.dumps(run))
    assert (again.model, again.trace, again.optima) == (run.model, run.trace, run.optima)
    with pytest.raises(sf.SufficeError, match="left its data behind"):
        again.information()


def test_variables_of_more_states_than_a_byte_holds() -> None:
    for n_states in (254, 256, 300, 1000):
        states = [f"s{i}" for i in range(n_states)]
        rows = {"a": ["s1", "s2", None, states[-1]], "b": ["u", None, "v", "v"]}
        run = sf.em("a -> b", sf.scan(rows, {"a": states}), prior=sf.BDeu(1))
        assert run.expected.counts(["a"]).dense().sum() == pytest.approx(4.0)
        assert run.expected.counts(["a"]).dense()[-1] >= 1.0


def test_rows_whose_probability_is_below_the_smallest_double() -> None:
    rng = np.random.default_rng(1)
    h = rng.random(40) < 0.5
    rows = {f"x{j}": np.where(rng.random(40) < np.where(h, 0.3, 0.7), "a", "b") for j in range(1300)}
    run = sf.em(sf.Dag({x: ["h"] for x in rows}), rows, hidden=[sf.Finite("h", ["0", "1"])], starts=3)
    assert run.converged
    assert run.log_likelihood == pytest.approx(run.model.log_likelihood({**rows, "h": [None] * 40}), rel=1e-10)
    assert sorted(run.expected.counts(["h"]).dense().round(6).tolist()) == sorted([float(h.sum()), float((~h).sum())])


def test_numbers_of_any_size_in_the_tables() -> None:
    """Children of probability 1e-4 each: products near the smallest double, and below it."""
    for n in range(70, 90):
        names = [f"x{i}" for i in range(n)]
        states = {x: sf.Finite(x, ["rare", "common"]) for x in names}
        tables = {x: [[1e-4, 1 - 1e-4], [2e-4, 1 - 2e-4]] for x in names}
        h = sf.Finite("h", ["0", "1"])
        bn = sf.BayesNet(sf.Dag({x: ["h"] for x in names}), {"h": [0.5, 0.5], **tables}, {**states, "h": h})
        data = sf.scan({x: ["rare", "common"] for x in names}, states)
        run = sf.em(bn.dag, data, start=bn, fixed=names, max_iter=1)
        assert run.model["h"].probs.sum() == pytest.approx(1.0)
        assert run.model["h"].probs[1] == pytest.approx(0.5 * (1.0 + 1.0 / (1.0 + ((1 - 1e-4) / (1 - 2e-4)) ** n)), abs=1e-6)


def test_large_weights_do_not_make_rounding_a_fall() -> None:
    rows = {"a": ["x"] * 6 + [None], "b": ["u", None, "u", "u", None, "v", "u"]}
    data = sf.scan(rows, {"a": ["x", "y"], "b": ["u", "v"]}, weights=np.array([1e9] * 5 + [1e-3, 1]))
    assert sf.em("a -> b", data, prior=sf.Dirichlet(1), tol=0, max_iter=60).n_iterations == 60


def test_networks_are_written_after_em(tmp_path: Path) -> None:
    run = sf.em("a -> b", {"a": ["x", None, "y"], "b": ["u", "v", "u"]})
    for suffix in (".bif", ".json", ".xmlbif", ".net", ".uai"):
        sf.write(run.model, tmp_path / f"model{suffix}")
        assert len(sf.read(tmp_path / f"model{suffix}")) == 2


def test_a_network_with_hidden_variables_is_asked_about_rows_without_them(tmp_path: Path) -> None:
    run = sf.em(COINS, TOSSES, hidden=[COIN], starts=2)
    assert run.model.hidden == {"coin"}
    assert run.model.log_likelihood(TOSSES) == pytest.approx(run.log_likelihood)
    assert run.model.log_prob(TOSSES).sum() == pytest.approx(run.log_likelihood)
    sf.write(run.model, tmp_path / "coins.json")
    again = sf.read(tmp_path / "coins.json")
    assert again.incomplete
    assert again.log_likelihood(TOSSES) == pytest.approx(run.log_likelihood)
    with pytest.raises(sf.SufficeError, match="no column 'a'"):
        again.log_likelihood({n: c for n, c in TOSSES.items() if n != "a"})


def test_a_family_that_rows_show_whole_keeps_its_posterior() -> None:
    """Of what is only expected there is none: its intervals would be too narrow."""
    rng = np.random.default_rng(0)
    a = np.array(["u", "v"])[rng.integers(0, 2, 200)]
    lost = rng.random((2, 200)) < 0.1
    gappy = {"a": a, "b": np.where(lost[0], None, a), "x": np.where(lost[1], np.nan, rng.normal(size=200))}
    model = sf.em("a -> b; a -> x", gappy, prior=(sf.BDeu(1), sf.NormalInverseGamma())).model
    whole = sf.fit("a", {"a": a}, prior=sf.BDeu(1))
    np.testing.assert_allclose(model["a"].interval(0.9), whole["a"].interval(0.9), rtol=1e-12)
    for name in ("b", "x"):
        with pytest.raises(sf.SufficeError, match="has no posterior"):
            model[name].interval(0.9)


def test_rows_lie_far_apart_and_states_are_paired() -> None:
    points, weight = np.array([[0.0], [0.0], [9.0]]), np.array([1.0, 0.0, 1.0])
    assert far_apart(points, weight, 2, 0, np.random.default_rng(0)) == [0, 2]
    assert nearest_pairs(np.array([[3.0, 1.0], [1.0, 2.0]])).tolist() == [1, 0]
    assert nearest_pairs(np.roll(np.ones((7, 7)) - np.eye(7), 1, axis=1)).tolist() == [1, 2, 3, 4, 5, 6, 0]
    h, x = sf.Finite("h", ["a", "b"]), sf.Finite("x", ["u", "v"])
    cpds = {"h": Table(h, (), [0.5, 0.5]), "x": Table(x, (h,), [[0.3, 0.7], [0.3, 0.7]])}
    assert indistinguishable_states(sf.Dag("h -> x"), {"h": h, "x": x}, "h", cpds) == [("a", "b")]


def test_missing_variables_that_share_families_hang_together() -> None:
    assert [sorted(s) for s in connected_sets(frozenset("abcd"), ["ab", "bx", "xc", "cd"])] == [["a", "b"], ["c", "d"]]


def test_rows_that_are_impossible_have_no_states() -> None:
    tables = [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))]
    rows = np.array([[0, 1], [-1, 1], [1, -1]], np.int32)
    assert support(Network.of([2, 2], tables), rows)[0].tolist() == [True, False, False]
    assert best(np.array([[0.25, 0.75], [0.5, 0.5], [np.nan, np.nan]])).tolist() == [1, 0, -1]
    drawn = pick_codes(np.array([[0.25, 0.75, 0.0], [0.25, 0.75, 0.0], [np.nan] * 3]), np.array([0.2, 0.9, 0.5]))
    assert drawn.tolist() == [0, 1, -1]


def test_bytes_are_counted_once_and_refused_with_their_size() -> None:
    x = np.zeros(4)
    assert n_bytes({"a": x, "b": (x, np.zeros(1))}) == 40
    assert (bytes_of("2KiB"), bytes_of(100)) == (2048, 100)
    refusal = "this would take about 4.0 KiB of memory, and may take 100 B; take fewer columns, or more memory"
    with pytest.raises(sf.SufficeError, match=refusal):
        check_room(100.0, 4096.0, "this", "take fewer columns")
