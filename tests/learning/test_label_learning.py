"""Learning labels: margins beside a convex solver, and blocks that are kept outside memory."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import suffice as sf
from suffice.engines.local.kept import SpilledValue, ValueStore
from suffice.learning.crf import margin as planes
from suffice.learning.crf.fit import open_columns
from suffice.learning.crf.problem import LabelProblem
from tests.crf_oracles import enumerated, scores_of

CHAIN = sf.LinearChain("y", [sf.Window(["x"], at=(-1, 0)), sf.Window(["z"])])


def table(n: int = 60, length: int = 5, seed: int = 0) -> dict[str, Any]:
    """Labels that words tell mostly, and a number a little; the second half of sequences counts twice."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, n)
    y = np.where(rng.random(n) < 0.7, x // 2, rng.integers(0, 3, n))
    s = np.arange(n) // length
    z = (rng.normal(size=n) + (y == 1)).round(3)
    weight = np.where(s > s[-1] // 2, 2.0, 1.0)
    return {"s": s.tolist(), "x": [f"x{i}" for i in x], "y": [f"y{i}" for i in y], "z": z.tolist(), "k": weight.tolist()}


def rows(data: Any, **how: Any) -> sf.chains.Sequences:
    return sf.sequences(data, by="s", weights="k", **how)


def fitted(data: Any, tol: float = 1e-2, threads: int | None = None) -> sf.Crf:
    return sf.fit(CHAIN, rows(data), objective=sf.Margin("y"), penalty=sf.L2(0.4), tol=tol, threads=threads)


def least_objective(crf: sf.Crf, data: Any) -> float:
    """min c2 Σ w² + Σ weight · slack with a constraint for each labelling of each sequence, by a solver of another kind."""
    n, truth = crf.n_weights, [crf.labels.index(y) for y in data["y"]]
    lengths = np.bincount(data["s"])
    unit = [sf.Crf(crf.vocabulary, crf.features, np.eye(n)[k]) for k in range(n)]
    counts = [np.stack(v, axis=1) for v in zip(*(_values(one, data) for one in unit), strict=True)]
    share, rising, least, at = [], [], [], 0
    for q, own in enumerate(counts):
        paths = list(product(range(len(crf.labels)), repeat=int(lengths[q])))
        right = tuple(truth[at : at + lengths[q]])
        share.append(data["k"][at])
        for path, count in zip(paths, own, strict=True):
            slack = np.zeros(len(lengths))
            slack[q] = 1.0
            rising.append(np.concatenate([own[paths.index(right)] - count, slack]))
            least.append(sum(a != b for a, b in zip(path, right, strict=True)))
        at += lengths[q]
    A, b, price = np.array(rising), np.array(least, float), np.array(share)
    start = np.concatenate([np.zeros(n), lengths.astype(float)])
    found = minimize(
        lambda v: 0.4 * v[:n] @ v[:n] + price @ v[n:],
        start,
        jac=lambda v: np.concatenate([0.8 * v[:n], price]),
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda _v: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    return float(found.fun)


def _values(crf: sf.Crf, data: Any) -> list[np.ndarray]:
    return [enumerated(scores, crf.transitions)[1] for scores in scores_of(crf, rows(data))]


def test_the_gap_bounds_what_a_convex_solver_finds() -> None:
    data = table(12, 3, seed=3)
    crf = fitted(data, tol=1e-6)
    best = least_objective(crf, data)
    assert crf.run is not None
    assert crf.run.objective == pytest.approx(best, rel=2e-6)
    for step in crf.run.trace:
        assert step.objective - step.bound <= best + 1e-6
        assert step.objective >= best - 1e-6


def test_weights_are_repeated_sequences() -> None:
    data = table()
    again = [i for i, k in enumerate(data["k"]) if k == 2.0]
    twice = {n: c + [c[i] for i in again] for n, c in data.items()}
    twice["s"][len(data["s"]) :] = [s + 1000 for s in twice["s"][len(data["s"]) :]]
    twice["k"] = [1.0] * len(twice["s"])
    one, other = fitted(data, 1e-5), fitted(twice, 1e-5)
    assert one.run is not None
    assert other.run is not None
    assert one.run.objective == pytest.approx(other.run.objective, rel=1e-5)


def test_threads_change_nothing() -> None:
    data = table(3000, 7)
    one, two = fitted(data, threads=1), fitted(data, threads=2)
    assert one.weight_vector.tobytes() == two.weight_vector.tobytes()
    assert one.run is not None
    assert len(one.run.trace) < 40


@pytest.mark.parametrize(("slots", "most"), [(2, 4), (2, 2)])
def test_few_slots_are_enough_or_the_bound_says_so(monkeypatch: pytest.MonkeyPatch, slots: int, most: int) -> None:
    data = table(12, 3, seed=3)
    best = fitted(data, tol=1e-6).run
    monkeypatch.setattr(planes, "SLOTS", slots)
    monkeypatch.setattr(planes, "MOST_SLOTS", most)
    with pytest.warns(sf.SufficeNote, match="left before") if most == 2 else monkeypatch.context():
        few = sf.fit(CHAIN, rows(data), objective=sf.Margin("y"), penalty=sf.L2(0.4), tol=1e-4, max_iter=60).run
    assert best is not None
    assert few is not None
    assert few.objective - few.bound <= best.objective + 1e-9
    assert few.objective >= best.objective - best.bound - 1e-9


def test_blocks_outside_memory_give_the_same_bits() -> None:
    """Also where cells of the label are missing, and for each way to learn."""
    data = table(4000, 8)
    data["y"] = [None if i % 97 == 0 else y for i, y in enumerate(data["y"])]
    near, far = rows(data), rows(data, memory_limit=4096)
    problem = LabelProblem.of(CHAIN, open_columns(CHAIN, far))
    assert any(isinstance(kept, SpilledValue) for kept in problem.findings.blocks.values())
    for objective, penalty in ((None, sf.L2(1)), (sf.objectives.Perceptron("y", epochs=2), None), (sf.Margin("y"), sf.L2(1))):
        with pytest.warns(sf.SufficeNote):
            one, two = (sf.fit(CHAIN, x, objective=objective, penalty=penalty, max_iter=20) for x in (near, far))
        assert one.weight_vector.tobytes() == two.weight_vector.tobytes()
        assert list(one.predict(near)) == list(two.predict(far))


def test_values_are_kept_in_memory_up_to_a_limit() -> None:
    store = ValueStore(1000)
    values = [(np.arange(n), {"name": n}, None) for n in (50, 0, 500, 60)]
    kept = [store.keep(v, v[0].nbytes) for v in values]
    assert [isinstance(k, SpilledValue) for k in kept] == [False, False, True, False]
    assert store.n_spilled == 1
    for _ in range(2):
        for (array, *rest), one in zip(values, kept, strict=True):
            found, *others = one.read()
            assert others == rest
            np.testing.assert_array_equal(found, array)
