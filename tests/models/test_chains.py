"""Chains: the dishonest casino, first slices, engines, extremes, and what is refused."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.errors import DataError, SufficeError, SufficeNote
from suffice.learning.chains.chain_problem import chain_problem_of
from suffice.learning.incomplete.information import observed_information
from tests.toy_engine import toy

ROLLS = list("315116246446644245311321631164152133625144543631656626566666")
TRUTH = ["fair"] * 48 + ["loaded"] * 12
TEXT = "die[-1] -> die -> roll"
DIE, ROLL = sf.Finite("die", ["fair", "loaded"]), sf.Finite("roll", list("123456"))
STAY, FACES = [[0.95, 0.05], [0.1, 0.9]], [[1 / 6] * 6, [0.1] * 5 + [0.5]]
CASINO = sf.Chain(TEXT, {"die": STAY, "die[0]": [0.5, 0.5], "roll": FACES}, [DIE, ROLL])
SHUT = sf.Chain(TEXT, {"die": [[1, 0], [0, 1]], "die[0]": [1, 0], "roll": [[0.2] * 5 + [0], [0, 0, 0, 0, 0, 1]]}, [DIE, ROLL])


def seen(columns: dict[str, Any] | None = None, **how: Any) -> sf.chains.Sequences:
    """The rolls, or other columns."""
    table = {"roll": ROLLS} if columns is None else columns
    return sf.sequences(table, variables={n: v for n, v in {"die": DIE, "roll": ROLL}.items() if n in table}, **how)


ROLLED = seen()


def test_the_casino_is_read() -> None:
    assert CASINO.log_prob(ROLLED) == pytest.approx([-103.14082608456364], rel=1e-13)
    best = CASINO.decode(ROLLED)
    assert best.log_prob == pytest.approx([-106.40916438953309], rel=1e-13)
    assert list(best["die"]) == TRUTH
    assert CASINO.smooth(ROLLED)["die=loaded"][[0, -1]] == pytest.approx([0.18963926860200572, 0.9434741859841927], rel=1e-11)
    ahead = CASINO.forecast(ROLLED, 3)["roll=6"]
    assert ahead == pytest.approx([0.45065101936218793, 0.4247200331245264, 0.4026786948225141], rel=1e-11)
    gap = seen({"roll": [None if 10 <= i < 15 else r for i, r in enumerate(ROLLS)]})
    assert CASINO.log_prob(gap) == pytest.approx([-94.47175564261995], rel=1e-13)


def test_the_casino_with_its_labels() -> None:
    s = seen({"roll": ROLLS, "die": TRUTH})
    plain, smooth = sf.fit(TEXT, s), sf.fit(TEXT, s, prior=sf.Dirichlet(1))
    assert plain["roll"].probs[1, 3] == 0.0
    assert smooth["roll"].probs[1, [3, 5]] == pytest.approx([1 / 18, 5 / 9])
    assert np.diag(smooth["die"].probs) == pytest.approx([0.96, 12 / 13])
    assert plain.log_likelihood() == pytest.approx(plain.log_likelihood(s), rel=1e-13)
    assert plain.update(s).log_likelihood() == pytest.approx(2 * plain.log_likelihood(), rel=1e-13)
    gathered = sf.gather(s, TEXT)
    assert sf.fit(TEXT, gathered) == plain
    assert sf.fit(sf.Template(TEXT), gathered + gathered) == plain
    assert sum(sf.score(plain, s, sf.BIC(), by_node=True).values()) == pytest.approx(plain.bic())


def test_the_casino_is_learned() -> None:
    run = sf.em(TEXT, ROLLED, hidden=[DIE], start=CASINO, tol=0, max_iter=10)
    logs = [t.log_likelihood for t in run.trace]
    assert [logs[0], logs[1], logs[9]] == pytest.approx([-100.05231947497543, -98.78101300344962, -96.78375854369217], rel=1e-12)
    end = sf.em(TEXT, ROLLED, hidden=[DIE], start=CASINO, tol=1e-13, max_iter=2000)
    assert end.log_likelihood == pytest.approx(-96.78373869961268, abs=1e-9)
    labels = [die if i < 20 or i >= 56 else None for i, die in enumerate(TRUTH)]
    s = seen({"roll": ROLLS, "die": labels})
    assert CASINO.log_prob(s) == pytest.approx([-104.18681764537574], rel=1e-13)
    logs = [t.log_likelihood for t in sf.em(TEXT, s, hidden=[DIE], start=CASINO, tol=0, max_iter=10).trace]
    assert [logs[0], logs[9]] == pytest.approx([-98.60163020090678, -96.78382644894675], rel=1e-12)


def test_the_five_best_paths_are_different_and_in_order() -> None:
    best = CASINO.decode(ROLLED, best=5)
    logs = np.array([b.log_prob[0] for b in best])
    assert (np.diff(logs) <= 1e-9).all()
    assert len({tuple(b["die"]) for b in best}) == 5


def test_equal_gains_go_to_the_earlier_state() -> None:
    same = sf.Chain(TEXT, {"die": [[0.5, 0.5]] * 2, "die[0]": [0.5, 0.5], "roll": [[1 / 6] * 6] * 2}, [DIE, ROLL])
    assert set(same.decode(ROLLED)["die"]) == {"fair"}
    assert set(same.posterior_decode(ROLLED)["die"]) == {"fair"}


def test_answers_come_in_the_order_and_kind_of_the_input() -> None:
    rows = {"id": ["b", "a"] * 30, "day": list(range(60)), "roll": ROLLS}
    turned = np.random.default_rng(0).permutation(60)
    for kind in (pd.DataFrame, pl.DataFrame, pa.table):
        straight, shuffled = kind(rows), kind({n: [c[i] for i in turned] for n, c in rows.items()})
        a, b = (CASINO.smooth(seen_in(x)) for x in (straight, shuffled))
        assert type(a) is type(straight)
        assert np.asarray(a["die=loaded"])[turned] == pytest.approx(np.asarray(b["die=loaded"]), rel=1e-12)


def seen_in(frame: Any) -> sf.chains.Sequences:
    return sf.sequences(frame, by="id", order="day", variables={"roll": ROLL})


def test_draws_of_numbers_have_the_index_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    steps = pd.DataFrame({"id": np.repeat(np.arange(8), 20), "x": rng.normal(size=160), "u": rng.normal(size=160)})
    chain = sf.fit("x[-1] -> x; u -> x", sf.sequences(steps, by="id"))
    without = sf.sequences(steps[["id", "u"]].set_index(np.arange(100, 260)), by="id")
    [drawn] = chain.sample(given=without, seed=0)
    assert list(drawn.index) == list(range(100, 260))


def test_draws_of_paths_are_of_the_posterior() -> None:
    rolls, n = ["6", "1", "6"], 4000
    many = sf.sequences({"id": np.repeat(np.arange(n), 3), "roll": rolls * n}, by="id", variables={"roll": ROLL})
    [drawn] = CASINO.sample(1, given=many, seed=3)
    paths = Counter(map(tuple, np.asarray(drawn["die"]).reshape(n, 3).tolist()))
    one = sf.sequences({"roll": rolls}, variables={"roll": ROLL})
    best = CASINO.decode(one, best=8)
    for path in best:
        p = float(np.exp(path.log_prob[0] - CASINO.log_prob(one)[0]))
        assert paths[tuple(path["die"])] / n == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n) + 1e-9)


def test_samples_are_of_the_chain() -> None:
    table = CASINO.sample(300, length=40, seed=0)
    assert table.equals(CASINO.sample(300, length=40, seed=0))
    fitted = sf.fit(TEXT, sf.sequences(table, by="sequence", order="step", variables={"die": DIE, "roll": ROLL}))
    assert fitted["die"].probs == pytest.approx(np.array(STAY), abs=0.02)
    assert fitted["roll"].probs == pytest.approx(np.array(FACES), abs=0.03)


def test_missing_cells_are_filled() -> None:
    gap = seen({"roll": [None if i == 58 else r for i, r in enumerate(ROLLS)]})
    assert CASINO.impute(gap)["roll"][58] == "6"
    fills = [frame["roll"][58] for frame in CASINO.impute(gap, draws=20, seed=0)]
    assert set(fills) <= set("123456")
    assert fills == [frame["roll"][58] for frame in CASINO.impute(gap, draws=20, seed=0)]


def test_given_steps_are_what_is_known_of_the_future() -> None:
    told = CASINO.forecast(ROLLED, 2, given={"roll": ["6", "6"]})
    longer = CASINO.smooth(seen({"roll": [*ROLLS, "6", "6"]}))
    assert told["die=loaded"] == pytest.approx(longer["die=loaded"][-2:], rel=1e-12)
    assert "roll=6" not in told


def test_following_is_the_filter_and_takes_labels() -> None:
    following = CASINO.follow()
    for roll in ROLLS:
        following, answer = following.next({"roll": roll})
    assert following.log_prob == pytest.approx(-103.14082608456364, rel=1e-13)
    assert answer["die"]["loaded"] == pytest.approx(CASINO.filter(ROLLED)["die=loaded"][-1], rel=1e-12)
    _, answer = following.next({"roll": "6", "die": "fair"})
    assert answer["die"].probs.tolist() == [1.0, 0.0]
    after, answer = following.next({})
    assert after.log_prob == pytest.approx(following.log_prob)
    assert answer["roll"]["6"] == pytest.approx(0.45065101936218793, rel=1e-11)


def test_a_chain_is_a_value() -> None:
    again = pickle.loads(pickle.dumps(CASINO))
    assert again == CASINO
    assert sf.Chain(TEXT, {"die": STAY, "die[0]": [0.4, 0.6], "roll": FACES}, [DIE, ROLL]) != CASINO
    assert sf.Chain(TEXT, {"die": STAY, "roll": FACES}, [DIE, ROLL], first=sf.chains.Stationary()) != CASINO
    run = sf.em(TEXT, ROLLED, hidden=[DIE], start=CASINO, tol=0, max_iter=2)
    kept = pickle.loads(pickle.dumps(run))
    assert kept.model == run.model
    assert kept.trace == run.trace


def test_first_slices_that_are_given_stay() -> None:
    first = sf.chains.Given({"die": [0.25, 0.75]})
    for way in (sf.em, sf.gradient):
        model = way(TEXT, ROLLED, hidden=[DIE], first=first, starts=2, max_iter=20).model
        assert model.first[0]["die"].probs == pytest.approx([0.25, 0.75])
    assert sf.fit(TEXT, seen({"roll": ROLLS, "die": TRUTH}), first=sf.chains.Given(CASINO)).first[0]["die"].probs.tolist() == [
        0.5,
        0.5,
    ]


def test_what_is_seen_in_full_may_begin_as_it_settles() -> None:
    """The maximum of ln π(x₀) + Σ ln P, found by a search that knows nothing of EM."""
    from scipy.optimize import minimize

    x = sf.Finite("x", ["a", "b"])
    truth = sf.Chain("x[-1] -> x", {"x": [[0.9, 0.1], [0.3, 0.7]]}, [x], first=sf.chains.Stationary())
    s = sf.sequences(truth.sample(20, length=3, seed=1), by="sequence", order="step", variables={"x": x})
    fitted = sf.fit("x[-1] -> x", s, first=sf.chains.Stationary())

    def loss(z: Any) -> float:
        a, b = 1 / (1 + np.exp(-z))
        return -sf.Chain("x[-1] -> x", {"x": [[1 - a, a], [b, 1 - b]]}, [x], first=sf.chains.Stationary()).log_likelihood(s)

    assert fitted.log_likelihood(s) == pytest.approx(-minimize(loss, [0.0, 0.0], tol=1e-10).fun, abs=1e-6)


@pytest.mark.parametrize(
    "first", [None, sf.chains.Stationary(), sf.chains.Given({"die": [0.5, 0.5]})], ids=["free", "stationary", "given"]
)
def test_the_information_is_the_curvature(first: Any) -> None:
    how = {"hidden": [DIE], "prior": sf.Dirichlet(1.5), "first": first}
    run = sf.em(TEXT, ROLLED, start=CASINO, tol=1e-12, max_iter=3000, **how)
    found = observed_information(run.problem, run.point.parameters)
    atlas, held = found.atlas, {n: CASINO[n] for n in run.problem.fixed}
    here, h = atlas.vector(run.point.parameters), 1e-4

    def slope(vector: Any) -> Any:
        cpds = atlas.cpds(vector)
        return atlas.scores(cpds, atlas.problem.expect(atlas.problem.parameters({**held, **cpds})).statistic)

    steps = h * np.eye(len(here))
    curvature = -np.array([(slope(here + e) - slope(here - e)) / (2 * h) for e in steps])
    np.testing.assert_allclose(found.covariance @ curvature, np.eye(len(here)), atol=1e-4)


ENGINES = ("memory", "spill", "toy")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same(engine: str, tmp_path: Any) -> None:
    table = CASINO.sample(30, length=12, seed=0).to_pandas()
    die, states = table.pop("die"), {"roll": ROLL}
    whole = sf.sequences(table, by="sequence", order="step", variables=states)
    there = opened(engine, table, tmp_path, states)
    np.testing.assert_allclose(CASINO.log_prob(there), CASINO.log_prob(whole), rtol=1e-12)
    for ask in (CASINO.smooth, CASINO.filter, CASINO.forecast):
        a, b = (np.sort(np.asarray(ask(s)["die=loaded"], float)) for s in (there, whole))
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert CASINO.decode(there).log_prob == pytest.approx(CASINO.decode(whole).log_prob, rel=1e-12)
    a, b = (sf.em(TEXT, s, hidden=[DIE], start=CASINO, tol=0, max_iter=1) for s in (there, whole))
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-12)
    for name in CASINO:
        np.testing.assert_allclose(a.model[name].probs, b.model[name].probs, rtol=1e-10)
    with pytest.raises(SufficeError, match=r"sequence '1', step . .* is impossible under the parameters"):
        sf.em(TEXT, there, hidden=[DIE], start=SHUT)
    states["die"] = DIE
    known = table.assign(die=die)
    counts = [
        sf.gather(s, TEXT).counts(["die[-1]", "die"]).values
        for s in (opened(engine, known, tmp_path, states), sf.sequences(known, by="sequence", order="step", variables=states))
    ]
    assert (counts[0] == counts[1]).all()


def opened(engine: str, table: pd.DataFrame, folder: Any, variables: Any) -> sf.chains.Sequences:
    keys = {"by": "sequence", "order": "step"}
    if engine == "memory":
        return sf.sequences(table.sample(frac=1.0, random_state=1), variables=variables, **keys)
    if engine == "toy":
        return sf.sequences(toy(table, variables, n=3, size=120), **keys)
    path = folder / f"{len(table.columns)}.parquet"
    pq.write_table(pa.table(table), path, row_group_size=37)
    return sf.sequences(path, variables=variables, memory_limit=0, **keys)


def test_a_million_steps_do_not_underflow() -> None:
    n = 1_000_000
    codes = np.random.default_rng(0).integers(0, 6, n)
    s = sf.sequences({"roll": np.array(list("123456"))[codes]}, variables={"roll": ROLL})
    logs = CASINO.log_prob(s)[0]
    assert -2.2e6 < logs < -1.6e6
    run = sf.em(TEXT, s, hidden=[DIE], start=CASINO, tol=0, max_iter=1)
    assert run.expected.counts(["die"]).values.sum() == pytest.approx(n - 1, rel=1e-9)
    assert run.log_likelihood > logs


def test_likelihoods_of_1e_300_a_step() -> None:
    """Numbers 37 deviations from all means: only the differences of their logarithms count."""
    h = sf.Finite("h", ["a", "b"])
    chain = sf.Chain("h[-1] -> h -> x", {"h": STAY, "h[0]": [0.5, 0.5], "x": sf.Gaussian([0.0, 0.1], {}, [1.0, 1.0])}, [h])
    s = sf.sequences({"x": np.full(50, 37.0)})
    near = chain.smooth(sf.sequences({"x": np.full(50, 0.05 + 0.0)}))
    assert chain.log_prob(s)[0] < -50 * 680
    probs = chain.smooth(s)["h=b"]
    assert np.isfinite(probs).all()
    assert probs[25] > 0.97 > near["h=b"][25]


def test_numbers_of_mean_1e9_and_deviation_1() -> None:
    rng = np.random.default_rng(0)
    x = np.where(np.arange(400) // 50 % 2, 5.0, 0.0) + rng.normal(size=400)
    h = sf.Finite("h", ["a", "b"])
    a, b = (sf.em("h[-1] -> h -> x", sf.sequences({"x": x + off}), hidden=[h], starts=3, seed=0) for off in (0.0, 1e9))
    assert b.log_likelihood == pytest.approx(a.log_likelihood, abs=1e-3)
    assert b.model["x"].intercept - 1e9 == pytest.approx(a.model["x"].intercept, abs=1e-5)
    s = sf.sequences({"x": x + 1e9})
    assert b.model.log_likelihood(s) == pytest.approx(b.log_likelihood, abs=1e-3)


def test_a_hidden_variable_that_nothing_shows_is_expected_as_it_was() -> None:
    """Nothing speaks of the die: its pairs are those of its own chain."""
    s = sf.sequences({"x": NUMBERS[:5], "id": [1, 1, 1, 2, 2]}, by="id")
    cpds = {"die": STAY, "die[0]": [0.5, 0.5], "x": sf.Gaussian(0.0, {}, 1.0)}
    chain = sf.Chain("die[-1] -> die; x", cpds, [DIE])
    problem = chain_problem_of(chain.template, s, hidden=[DIE])
    found = problem.statistics(problem.expect(problem.parameters({n: chain[n] for n in chain})).statistic)
    assert found.counts(["die[0]"]).values == pytest.approx([1.0, 1.0])
    before = np.array([1.0, 1.0]) + np.array([0.5, 0.5]) @ np.array(STAY)  # two first steps, one second step
    expected = before[:, None] * np.array(STAY)
    assert found.counts(["die[-1]", "die"]).values == pytest.approx(expected)


def test_states_that_are_left_are_told() -> None:
    h, s = sf.Finite("h", list("abcdefgh")), seen({"roll": ["1", "2"] * 10})
    with pytest.warns(SufficeNote, match="no rows are left for .* of the hidden variable 'h'"):
        sf.em("h[-1] -> h -> roll", s, hidden=[h], starts=2, seed=1)


def test_a_hidden_variable_that_every_step_shows_is_told() -> None:
    with pytest.warns(SufficeNote, match="'die' is shown in every step: nothing of it is hidden"):
        sf.em(TEXT, seen({"roll": ROLLS, "die": TRUTH}), hidden=[DIE])


@pytest.mark.parametrize("ask", ["smooth", "filter", "decode", "posterior_decode", "forecast", "impute", "sample"])
def test_an_impossible_sequence_is_refused_with_its_step(ask: str) -> None:
    two = seen({"roll": ["1", *ROLLS[:30], *ROLLS[30:59]], "id": ["a"] * 30 + ["b"] * 30}, by="id")
    with pytest.raises(DataError, match=r"sequence 'a' \(and 1 more\) is impossible .* up to step 7 has the probability zero"):
        SHUT.sample(given=two) if ask == "sample" else getattr(SHUT, ask)(two)
    assert (SHUT.log_prob(two) == -np.inf).all()
    assert SHUT.log_likelihood(two) == -np.inf


def test_an_impossible_step_ahead_is_refused() -> None:
    """What `given` says of the next steps counts, too."""
    u, x = sf.Finite("u", ["0", "1"]), sf.Finite("x", ["a", "b"])
    chain = sf.Chain("x[-1] -> x; u", {"x[0]": [1, 0], "x": [[1, 0], [0, 1]], "u": [1, 0]}, [u, x])
    rows = sf.sequences({"x": ["a", "a"], "u": ["0", "0"]}, variables=[u, x])
    assert np.asarray(chain.forecast(rows, 2, given={"u": ["0", "0"]})["x=a"]).tolist() == [1, 1]
    with pytest.raises(DataError, match="the sequence is impossible under the chain: what is seen up to step 4 has"):
        chain.forecast(rows, 3, given={"u": ["0", "1", "0"]})


def test_impossible_numbers_are_refused() -> None:
    """A hidden level, and beside it a state that cannot be."""
    cpds = {
        "a": sf.Gaussian(0.0, {"a[-1]": 1.0}, 1.0),
        "a[0]": sf.Gaussian(),
        "y": sf.Gaussian(0.0, {"a": 1.0}, 1.0),
        "s": [1, 0],
    }
    chain = sf.Chain("a[-1] -> a -> y; s", cpds, [sf.Finite("s", ["u", "v"])])
    rows = sf.sequences({"y": [0.0, 1.0, 0.5], "s": ["u", "v", "u"]}, variables={"y": sf.Real("y"), "s": chain.variables["s"]})
    assert chain.log_prob(rows)[0] == -np.inf
    for ask in ("smooth", "filter", "decode", "forecast"):
        with pytest.raises(DataError, match="the sequence is impossible under the chain: what is seen up to step 2 has"):
            getattr(chain, ask)(rows)


def test_what_other_models_are_asked_is_named() -> None:
    with pytest.raises(AttributeError, match=r"Chain has no 'predict': decode\(sequences\) has the most probable path"):
        CASINO.predict(ROLLED)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="BayesNet has no 'smooth': that is asked of a Chain"):
        BN.smooth(FRAME)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"Chain has no 'abc'$"):
        CASINO.abc  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(BN, "smooth")
    assert pickle.loads(pickle.dumps(BN)) == BN


def test_what_is_fixed_is_named() -> None:
    with pytest.raises(SufficeError, match=r"fixed names nodes, \['state'\], or entries of them"):
        sf.em(TEXT, ROLLED, start=CASINO, fixed=3, **HID)  # type: ignore[arg-type]


NUMBERS = np.random.default_rng(0).normal(size=60)
FRAME = pd.DataFrame({"roll": ROLLS, "die": TRUTH})
MANY = [sf.Finite(f"h{i}", list("abcdefgh")) for i in range(8)]
BN = sf.fit("die -> roll", FRAME)
HID: dict[str, Any] = {"hidden": [DIE]}


def x_and(**more: Any) -> sf.chains.Sequences:
    return seen({"roll": ROLLS, "x": NUMBERS, **more})


REFUSED: dict[str, tuple[Any, str]] = {
    "an edge into the past": (lambda: sf.em("die -> roll[-1]", ROLLED, **HID), "an edge into the past: 'die' -> 'roll"),
    "a cycle": (lambda: sf.em("a -> b -> a; a[-1] -> a", ROLLED), "a cycle within a step"),
    "lag 0": (lambda: sf.Template({"a": [sf.chains.lag("a", 0)]}), "at least 1, not 0"),
    "a column that is not there": (lambda: sf.em("die[-1] -> die -> rol", ROLLED, **HID), "'rol', .*did you mean 'roll'"),
    "a hidden one undeclared": (
        lambda: sf.fit(TEXT, ROLLED),
        r"no column 'die', .*hidden=\[Finite\('die'",
    ),
    "gather a hidden one": (lambda: sf.gather(ROLLED, TEXT), "no column 'die'"),
    "an unknown label": (lambda: sf.em(TEXT, seen({"roll": ROLLS, "die": ["?", *TRUTH[1:]]}), **HID), "row 1, column 'die': '.'"),
    "all missing": (lambda: sf.em(TEXT, sf.sequences({"roll": ROLLS, "die": [None] * 60})), "every cell of 'die' is missing"),
    "impossible": (lambda: sf.em(TEXT, ROLLED, start=SHUT, **HID), r"step 6 \(row 6\) is impossible"),
    "an impossible row": (lambda: SHUT.follow(hidden=["die"]).next({"roll": "6"}), "impossible at step 1"),
    "a joint state over budget": (
        lambda: sf.em("h0 -> roll; " + "; ".join(f"h{i}[-1] -> h{i}" for i in range(8)), ROLLED, hidden=MANY),
        r"16,777,216 joint states at a step; passed on factor by factor they still need a table of 16,777,216 cells \(128",
    ),
    "more states than steps": (
        lambda: sf.em("h[-1] -> h -> roll", ROLLED, hidden=[sf.Finite("h", [str(i) for i in range(99)])]),
        "99 states, more than the 60 steps",
    ),
    "a frame": (lambda: sf.fit(sf.Template(TEXT), FRAME), r"not to DataFrame: .* sequences\(data, by='patient'"),
    "em of a frame": (lambda: sf.em(sf.Template(TEXT), FRAME, **HID), "not to DataFrame"),
    "lags of rows": (lambda: sf.fit(TEXT, FRAME), r"'die\[-1\]', a step of a sequence before another"),
    "a chain asked about rows": (lambda: CASINO.log_prob(FRAME), r"asked about sequences, not DataFrame: sequences\("),
    "a chain updated by rows": (lambda: sf.fit(TEXT, seen({"roll": ROLLS, "die": TRUTH})).update(FRAME), r"sequences\(data"),
    "a network asked about sequences": (lambda: BN.log_prob(ROLLED), "these are sequences, which a template is for"),
    "a network updated by sequences": (lambda: BN.update(ROLLED), "these are sequences, which a template is for"),
    "a network as template": (lambda: sf.em(BN, ROLLED), "this is a BayesNet, not a Template"),
    "a network as start": (lambda: sf.em(TEXT, ROLLED, start=BN, **HID), "is a Chain, not BayesNet"),
    "a switching state space": (
        lambda: sf.em("die[-1] -> die -> x; level[-1] -> level -> x", x_and(), hidden=[DIE, sf.Real("level")]),
        "'die' .*'level' .*switching state space",
    ),
    "a number missing beside states": (
        lambda: sf.em("die[-1] -> die -> x; x[-1] -> x", sf.sequences({"x": [None, *NUMBERS[1:]]}), **HID),
        "switching state space",
    ),
    "a number missing in a regression": (
        lambda: sf.em("die[-1] -> die; die, x -> roll", x_and(x=[None, *NUMBERS[1:]]), families={"roll": sf.Logistic()}, **HID),
        "cells of 'x' are missing, and 'roll' is not Gaussian in it but Logistic",
    ),
    "stationary of order 2": (
        lambda: sf.em("die[-2], die[-1] -> die -> roll", ROLLED, first=sf.chains.Stationary(), **HID),
        "largest lag is 1, and this one has 2",
    ),
    "stationary with inputs": (
        lambda: sf.em("die[-1], roll -> die -> x", x_and(), first=sf.chains.Stationary(), **HID),
        "'die' depends on 'roll'",
    ),
    "stationary, two classes": (
        lambda: sf.Chain(TEXT, {"die": np.eye(2), "roll": FACES}, [DIE, ROLL], first=sf.chains.Stationary()).log_prob(ROLLED),
        "keeps several",
    ),
    "stationary in batches": (
        lambda: sf.em(TEXT, ROLLED, first=sf.chains.Stationary(), method=sf.methods.Incremental(1), **HID),
        "leave it out",
    ),
    "diffuse states": (lambda: sf.em(TEXT, ROLLED, first=sf.chains.Diffuse(), **HID), "there are none: use Free"),
    "no first": (lambda: sf.em(TEXT, ROLLED, first="stationary", **HID), "not 'stationary'"),
    "first of rows": (lambda: sf.em("die -> roll", FRAME, first=sf.chains.Stationary()), "these are rows"),
    "given too little": (lambda: sf.em(TEXT, ROLLED, first=sf.chains.Given({}), **HID), r"no distribution of 'die\[0\]'"),
    "given a number": (lambda: sf.em(TEXT, ROLLED, first=sf.chains.Given(3), **HID), "takes a chain, or distributions by node"),
    "shared": (lambda: sf.em(TEXT, ROLLED, shared=[["die", "roll"]], **HID), "leave it out"),
    "batches": (lambda: sf.em(TEXT, ROLLED, method=sf.methods.Incremental(3), **HID), "batches=3\\) needs as many sequences"),
    "a singular covariance": (
        lambda: sf.em("die[-1] -> die -> x -> y <- die", sf.sequences({"x": NUMBERS, "y": 2 * NUMBERS}), starts=1, **HID),
        "has collapsed",
    ),
    "another hidden variable": (lambda: sf.em(TEXT, ROLLED, hidden=[DIE, sf.Finite("dye", ["a", "b"])]), "did you mean 'die'"),
    "families of no node": (lambda: sf.em(TEXT, ROLLED, families={"rol": sf.Logistic()}, **HID), "did you mean 'roll'"),
    "a family without EM": (
        lambda: sf.em(
            "die[-1] -> die -> k; x -> k",
            sf.sequences({"k": [1, 2, 3] * 20, "x": NUMBERS}, variables={"k": sf.Count}),
            families={"k": sf.regressions.PoissonLog()},
            **HID,
        ),
        "PoissonLog of 'k'",
    ),
    "a distribution too few": (lambda: sf.Chain(TEXT, {"die": STAY, "roll": FACES}, [DIE, ROLL]), r"the node 'die\[0\]'"),
    "a distribution too many": (
        lambda: sf.Chain(TEXT, {"die": STAY, "die[0]": [1, 0], "die[1]": [1, 0], "roll": FACES}, [DIE, ROLL]),
        r"no node 'die\[1\]'",
    ),
    "none of its columns": (lambda: CASINO.log_prob(sf.sequences({"z": [1.0]})), "none of the chain's columns"),
    "a slip in a column": (lambda: CASINO.log_prob(sf.sequences({"rol": ROLLS})), "did you mean 'rol'"),
    "nothing hidden": (lambda: CASINO.smooth(seen({"roll": ROLLS, "die": TRUTH})), "nothing to infer"),
    "no path": (lambda: CASINO.decode(seen({"roll": ROLLS, "die": TRUTH})), "no path to find"),
    "no best": (lambda: CASINO.decode(ROLLED, best=0), "at least 1, not 0"),
    "no steps": (lambda: CASINO.forecast(ROLLED, 0), "at least 1, not 0"),
    "too little given": (lambda: CASINO.forecast(ROLLED, 3, given={"roll": ["6"]}), "1 rows, and there are 3 steps"),
    "no such column given": (lambda: CASINO.forecast(ROLLED, 1, given={"rol": ["6"]}), "did you mean 'roll'"),
    "no length": (lambda: CASINO.sample(3), r"sample\(n, length=100\)"),
    "too much to draw": (lambda: CASINO.sample(10**9, length=10**6), "draw them in parts"),
    "no steps to unroll": (lambda: CASINO.unroll(0), "at least 1, not 0"),
    "no row": (lambda: CASINO.follow().next(["6"]), "a row is given by variable"),
    "no state of a row": (lambda: CASINO.follow().next({"roll": "9"}), "no state '9'"),
    "updated though incomplete": (
        lambda: sf.em(TEXT, ROLLED, start=CASINO, max_iter=1, tol=0, **HID).model.update(ROLLED),
        "whose statistics are expected, not seen",
    ),
    "no node": (lambda: CASINO["dye"], "did you mean 'die'"),
    "nothing settles": (lambda: sf.fit("die -> roll", sf.sequences(FRAME)).stationary(), "has no lags"),
    "statistics": (lambda: sf.em(sf.Template(TEXT), sf.gather(sf.sequences(FRAME), TEXT)), "em needs the sequences"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_input_is_refused_in_a_sentence(what: str) -> None:
    ask, words = REFUSED[what]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        with pytest.raises(SufficeError, match=words) as refusal:
            ask()
    assert "\n" not in str(refusal.value)


def test_a_problem_says_how_much_there_is() -> None:
    assert chain_problem_of(TEXT, ROLLED, **HID).amount == "60 steps of 1 sequence"


def test_columns_that_a_chain_does_not_know_are_told() -> None:
    chain = sf.fit("x[-1] -> x -> y", sf.sequences({"x": list("aabba"), "y": list("uvuvu")}), prior=sf.Dirichlet(1))
    with pytest.warns(SufficeNote, match="no column 'y': it is taken to be hidden; the chain does not use 'cough'"):
        chain.log_prob(sf.sequences({"x": list("aab"), "cough": list("uvu")}))
    assert "2" in repr(sf.sequences({"x": ["a", None, None]})).splitlines()[-1]
