"""Restricted Boltzmann machines: all that they say equals sums over all states; what is drawn agrees with it; what is refused."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.special import expit
from threadpoolctl import threadpool_limits

import suffice as sf
from suffice.basis.variables import Count, Finite, Real
from suffice.engines import Block
from suffice.engines.data import Data
from suffice.errors import DataError, FitError, FormatError, MissingCells, ModelError, TooLarge
from suffice.learning.undirected.rbm import Descent, Learned, PseudoSums
from suffice.models.undirected.visible import VisibleColumns
from suffice.numerics.inference.sampling.boltzmann import LayerUnits, Machine, key_of, log_mean

MIXED = [Finite("a", ["no", "yes"]), Real("r"), Finite("b", list("xyz")), Finite("c", ["no", "yes"])]


def machine(n_hidden: int = 3, variables: list[Any] = MIXED, seed: int = 0, size: float = 0.7) -> sf.undirected.RBM:
    """A machine with random parameters."""
    rng = np.random.default_rng(seed)
    units, n_numbers = VisibleColumns.of({v.name: v for v in variables}).units, sum(isinstance(v, Real) for v in variables)
    numbers = {"centre": rng.normal(size=n_numbers), "scale": rng.uniform(0.5, 2, n_numbers)}
    shapes = (units.n, n_hidden), (units.n,), (n_hidden,)
    return sf.undirected.RBM(variables, *(size * rng.normal(size=s) for s in shapes), **numbers)


def energies(m: sf.undirected.RBM, v: np.ndarray) -> np.ndarray:
    """−E of a visible state with each hidden state, the number's own part included."""
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=len(m.hidden_biases))))
    n = m._machine.units.n_finite
    return v @ m.visible_biases - 0.5 * (v[n:] ** 2).sum() + hidden @ m.hidden_biases + hidden @ (v @ m.weights)


def finite_states(m: sf.undirected.RBM) -> list[np.ndarray]:
    return [row for block in m._machine.units.every_state() for row in block]


def binary(n: int) -> list[Finite]:
    return [Finite(f"x{i}", ["0", "1"]) for i in range(n)]


def test_probabilities_are_sums_over_hidden_states() -> None:
    m = machine(3, [*binary(3), Finite("b", list("xyz"))])
    logs = [np.logaddexp.reduce(energies(m, v)) for v in finite_states(m)]
    whole = np.logaddexp.reduce(logs)
    assert m.log_normaliser() == (pytest.approx(whole), 0.0)
    columns = {n: v.states for n, v in m.variables.items()}
    rows = dict(zip(columns, zip(*itertools.product(*columns.values()), strict=True), strict=True))
    rows = {n: list(cells) for n, cells in rows.items()}
    assert m.free_energy(rows) == pytest.approx([-x for x in logs])
    assert np.exp(m.log_prob(rows)).sum() == pytest.approx(1.0)
    assert m.log_likelihood(sf.scan(rows, weights=np.arange(24.0))) == pytest.approx(np.arange(24) @ (np.array(logs) - whole))


def test_either_layer_may_be_summed_over() -> None:
    small = machine(3, binary(5))
    turned = sf.undirected.RBM(binary(3), small.weights.T, small.hidden_biases, small.visible_biases)
    assert turned.log_normaliser().value == pytest.approx(small.log_normaliser().value)


def test_densities_integrate_to_one() -> None:
    m, x = machine(), np.linspace(-25, 25, 501)
    finite = {v.name: v.states for v in MIXED if isinstance(v, Finite)}
    each = [dict(zip(finite, states, strict=True)) for states in itertools.product(*finite.values())]
    logs = [m.log_prob({"r": x, **{n: [s] * len(x) for n, s in rest.items()}}) for rest in each]
    assert np.exp(logs).sum() * (x[1] - x[0]) == pytest.approx(1.0)


def test_transform_and_reconstruct_in_the_kind_of_frame_that_came() -> None:
    m = machine()
    rows = {"a": ["yes", "no"], "r": [0.3, -2.0], "b": ["z", "x"], "c": ["no", "yes"]}
    v = np.array([[1, 0, 0, 0, 1, 0], [0, 1, 1, 0, 0, 0]], float)
    v[:, 5] = (np.array(rows["r"]) - m.centre) / m.scale
    h = expit(v @ m.weights + m.hidden_biases)
    assert np.column_stack(list(m.transform(rows).values())) == pytest.approx(h)
    assert m.transform(pa.table(rows)).column_names == ["h0", "h1", "h2"]
    field = h @ m.weights.T + m.visible_biases
    back = m.reconstruct(rows)
    assert list(back) == ["a=yes", "c=yes", "b=x", "b=y", "b=z", "r"]
    assert back["a=yes"] == pytest.approx(expit(field[:, 0]))
    assert back["b=x"] + back["b=y"] + back["b=z"] == pytest.approx(np.ones(2))
    assert back["r"] == pytest.approx(field[:, 5] * m.scale[0] + m.centre[0])


def test_draws_have_the_probabilities_of_their_fields() -> None:
    units, n = LayerUnits(2, (3,), 1), 40_000
    field = np.array([0.5, -1.5, 0.2, 1.0, -1.0, 0.7])
    states, x = np.empty((n, 6), np.float32), np.full((n, 6), 0.5, np.float32)
    units.draw(x, (field - 0.5 * 2.0).astype(np.float32), key_of(3, 4), states, 2.0)
    means = units.means(field[None])[0]
    assert x[0] == pytest.approx(means, abs=1e-5)
    assert states.mean(axis=0) == pytest.approx(means, abs=0.02)
    assert states[:, 5].std() == pytest.approx(1.0, abs=0.02)
    assert set(np.unique(states[:, :5])) == {0.0, 1.0}
    assert (states[:, 2:5].sum(axis=1) == 1.0).all()
    assert np.abs(np.corrcoef(states[:, [0, 1, 2, 5]].T) - np.eye(4)).max() < 0.02


def test_samples_have_the_probabilities_of_the_machine() -> None:
    m = machine(2, [*binary(2), Finite("b", list("xyz"))])
    drawn = m.sample(20_000, seed=1, steps=30).to_pandas()
    share = drawn.value_counts(normalize=True)
    for states, p in share.items():
        row = {n: [s] for n, s in zip(drawn.columns, states, strict=True)}
        assert p == pytest.approx(float(np.exp(m.log_prob(row)[0])), abs=0.02)
    assert m.sample(3, seed=1, steps=2).equals(m.sample(3, seed=1, steps=2))
    assert m.sample(0).num_rows == 0


@pytest.mark.parametrize("variables", [binary(12), MIXED, [*binary(3), Finite("b", list("wxyz")), Real("r"), Real("s")]])
def test_annealed_importance_sampling_agrees_with_the_sum(variables: list[Any]) -> None:
    m = machine(6, variables, seed=5)
    value, error = m.log_normaliser(sf.methods.AIS(200, 500), seed=1)
    assert 0 < error < 0.05
    assert abs(value - m.log_normaliser().value) < 4 * error


@pytest.mark.filterwarnings("ignore:the weight of")
@pytest.mark.parametrize("side", [2.0, -2.0])
def test_annealing_does_not_depend_on_one_start(side: float) -> None:
    """Rows far from what the machine expects: chains from their means alone miss some of it, with a small error."""
    for drawn in range(3):
        rng = np.random.default_rng(drawn)
        w, c = rng.normal(size=(100, 4)), rng.normal(size=4)
        a = rng.normal(size=100) - 0.5 * w.sum(axis=1)
        m = sf.undirected.RBM(binary(100), w, a, c, base=side * np.sign(w[:, 0] + w[:, 1]))
        found = [m.log_normaliser(sf.methods.AIS(100, 300), seed=seed) for seed in range(4)]
        exact = m.log_normaliser().value
        assert all(abs(value - exact) < 3 * error for value, error in found)


@pytest.mark.filterwarnings("ignore:the weight of")
def test_annealing_of_machines_learned_by_persistent_chains_is_within_its_errors() -> None:
    rng = np.random.default_rng(0)
    causes, loads = rng.random((600, 6)) < 0.3, 2.0 * rng.normal(size=(6, 200))
    x = rng.random((600, 200)) < expit(causes @ loads - 2.0)
    for seed in range(3):
        goal = sf.ContrastiveDivergence(1, persistent=True)
        m = sf.undirected.rbm({f"x{i:03d}": x[:, i] for i in range(200)}, 8, objective=goal, epochs=20, seed=seed).model
        exact = m.log_normaliser().value
        found = [m.log_normaliser(sf.methods.AIS(100, 500), seed=s) for s in range(4)]
        assert all(abs(value - exact) < 3.5 * error for value, error in found)


def test_the_error_of_a_mean_of_uneven_weights_is_not_that_of_the_few_that_were_met() -> None:
    rng = np.random.default_rng(0)
    for spread, most in ((0.5, 1.2), (1.0, 1.2), (2.0, 1.6)):
        logs = rng.normal(0.0, spread, (500, 100))
        off = np.array([(found.value - spread**2 / 2) / found.error for found in map(log_mean, logs)])
        assert np.sqrt(np.mean(off**2)) < most
    assert log_mean(np.full(5, 3.0)) == (3.0, 0.0)


def test_pseudo_likelihood_is_that_of_each_cell_given_the_rest() -> None:
    m = machine()
    sums = PseudoSums(m._columns, m._machine, 0)
    columns = m._columns
    v = np.array([[1, 0, 0, 0, 1, 0.4], [0, 1, 1, 0, 0, -1.3]])
    assert sums.n_columns == 4

    def log_joint(row: np.ndarray) -> float:
        return float(np.logaddexp.reduce(energies(m, row)))

    for i in (0, 1):  # the bits
        flipped = v.copy()
        flipped[:, i] = 1.0 - v[:, i]
        expected = [log_joint(a) - np.logaddexp(log_joint(a), log_joint(b)) for a, b in zip(v, flipped, strict=True)]
        assert sums.log_conditionals(v, np.full(2, i)) == pytest.approx(expected)
    others = [np.where(np.arange(6) == j, 1.0, np.where((np.arange(6) >= 2) & (np.arange(6) < 5), 0.0, v)) for j in (2, 3, 4)]
    expected = [log_joint(v[r]) - np.logaddexp.reduce([log_joint(o[r]) for o in others]) for r in (0, 1)]
    assert sums.log_conditionals(v, np.full(2, 2)) == pytest.approx(expected)

    def at(x: float, row: np.ndarray) -> float:
        return float(np.exp(log_joint(np.append(row[:5], x))))

    expected = [log_joint(row) - np.log(quad(at, -20, 20, args=(row,), limit=200)[0]) - np.log(columns.scale[0]) for row in v]
    assert sums.log_conditionals(v, np.full(2, 3)) == pytest.approx(expected, abs=1e-6)
    assert sums.log_conditionals(v, np.array([0, 3]))[1] == pytest.approx(expected[1], abs=1e-6)


def learned(m: sf.undirected.RBM, chains: int = 0) -> Learned:
    arrays = [np.ascontiguousarray(a, np.float32) for a in (m.weights, m.visible_biases, m.hidden_biases)]
    moves = tuple(0.1 * np.ones_like(a) for a in arrays)
    return Learned(*arrays, moves, np.zeros((chains, len(m.hidden_biases)), np.float32))


def expected_products(m: sf.undirected.RBM) -> np.ndarray:
    """E[v hᵀ] by a sum over all states."""
    states = np.array(finite_states(m))
    logs = -m._machine.free_energy(states)
    p = np.exp(logs - np.logaddexp.reduce(logs))
    return (states * p[:, None]).T @ expit(states @ m.weights + m.hidden_biases)


def test_seen_less_expected_is_the_gradient_of_the_likelihood() -> None:
    m = machine(3, [*binary(3), Finite("b", list("xyz"))], seed=2)
    rows = {"x0": ["0", "1", "1"], "x1": ["1", "1", "0"], "x2": ["0", "0", "1"], "b": ["x", "z", "z"]}
    block = Block({n: np.array([m.variables[n].code(s) for s in cells]) for n, cells in rows.items()})  # type: ignore[union-attr]
    descent = Descent(m._columns, 1, False, 3, 0.1, 0.0, 0.0, 0.0, 0)
    x, p = descent.draw_units(learned(m), 0, m._columns.encode(block))
    gradient = x[:3].T @ p[:3] / 3 - expected_products(m)
    for i, j in itertools.product(range(len(m.units)), range(3)):
        step = np.zeros_like(m.weights)
        step[i, j] = 1e-4
        up, down = (sf.undirected.RBM(m.variables, m.weights + s, m.visible_biases, m.hidden_biases) for s in (step, -step))
        assert gradient[i, j] == pytest.approx((up.log_likelihood(rows) - down.log_likelihood(rows)) / 6e-4, abs=1e-5)


@pytest.mark.parametrize("persistent", [False, True])
def test_long_chains_give_what_is_expected(persistent: bool) -> None:
    m = machine(3, [*binary(3), Finite("b", list("xyz"))], seed=2)
    descent = Descent(m._columns, 60, persistent, 1, 0.1, 0.0, 0.0, 0.0, 0)
    v = np.zeros((1 if persistent else 20_000, 6), np.float32)
    v[:, 3] = 1.0
    x, p = descent.draw_units(learned(m, 20_000), 0, v)
    products = x[len(v) :].T @ p[len(v) :] / 20_000
    assert products == pytest.approx(expected_products(m), abs=0.015)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.3, 0.2)])
def test_a_step_is_momentum_gradient_and_penalty(momentum: float, l1: float, l2: float) -> None:
    m, rate = machine(2, binary(3), seed=4), 0.1
    at, x = learned(m), np.array([[1, 0, 1], [0, 1, 1]], np.float32)
    p, of = np.array([[0.3, 0.2], [-0.4, -0.1]], np.float32), np.array([0.5, -0.5], np.float32)
    Descent(m._columns, 1, False, 2, rate, momentum, l1, l2, 0)._step(at, x, p, of)
    moved = m.weights + momentum * 0.1 + rate * (x.T @ p - 2.0 * l2 * m.weights)
    assert at.weights == pytest.approx(np.sign(moved) * np.maximum(np.abs(moved) - rate * l1, 0.0), abs=1e-6)
    assert at.visible == pytest.approx(m.visible_biases + momentum * 0.1 + rate * (of @ x), abs=1e-6)
    assert at.hidden == pytest.approx(m.hidden_biases + momentum * 0.1 + rate * p.sum(axis=0), abs=1e-6)


def two_kinds(n: int = 1500) -> dict[str, Any]:
    """Rows of two kinds that bits, states and a number tell apart."""
    rng = np.random.default_rng(0)
    kind = rng.random(n) < 0.5
    rows: dict[str, Any] = {f"x{i}": np.where(rng.random(n) < 0.9, kind, ~kind) for i in range(5)}
    rows["s"] = np.array(list("uvw"))[np.where(kind, rng.integers(0, 2, n), 2)]
    return {**rows, "r": rng.normal(np.where(kind, 10.0, 14.0), 1.0)}


@pytest.mark.parametrize("objective", [sf.ContrastiveDivergence(), sf.ContrastiveDivergence(2, persistent=True, chains=50)])
def test_learning_raises_the_likelihood(objective: Any) -> None:
    rows = two_kinds()
    run = sf.undirected.rbm(rows, 3, objective=objective, epochs=25, rate=0.03, seed=1)
    assert run.converged
    assert run.n_iterations == 25
    assert run.trace[0].objective < run.objective
    independent = sf.undirected.rbm(rows, 1, epochs=1, rate=1e-6).model
    assert run.model.log_likelihood(rows) > independent.log_likelihood(rows) + 0.5 * 1500
    hidden = np.column_stack(list(run.model.transform(rows).values()))
    assert max(abs(np.corrcoef(h, rows["r"])[0, 1]) for h in hidden.T) > 0.7
    assert "pseudo-log-likelihood" in repr(run)
    assert "centred and scaled" in repr(run)


def test_rows_of_a_pass_come_in_minibatches_of_about_the_same_size() -> None:
    columns = VisibleColumns.of({v.name: v for v in binary(1)})
    block = Block({"x0": np.arange(205, dtype=np.uint8) % 2})
    assert [len(v) for v in columns.parts(block, 100)] == [68, 68, 69]
    assert np.array_equal(np.concatenate(list(columns.parts(block, 100)))[:, 0], np.arange(205) % 2)
    assert len(columns.encode(Block({"x0": np.zeros(0, np.uint8)}))) == 0


def test_the_same_machine_by_any_number_of_threads_and_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    rows = two_kinds(3000)
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    here = sf.undirected.rbm(rows, 3, epochs=2).model
    assert here == sf.undirected.rbm(tmp_path / "rows.parquet", 3, epochs=2).model
    for n in (1, 4):
        monkeypatch.setattr("suffice.engines.steps.blocks.os.sched_getaffinity", lambda _, n=n: set(range(n)))
        with threadpool_limits(n):
            assert here == sf.undirected.rbm(sf.scan(rows), 3, epochs=2).model
    assert here != sf.undirected.rbm(rows, 3, epochs=2, seed=1).model


def test_weights_of_rows() -> None:
    """Rows without weight do not count."""
    rows = two_kinds(400)
    double = {n: np.concatenate([c, np.roll(c, 1) if n[0] == "x" else c]) for n, c in rows.items()}
    weights = np.repeat([1.0, 0.0], 400)
    run = sf.undirected.rbm(sf.scan(double, weights=weights), 2, epochs=2, batch=800)
    assert run.model.hidden_biases == pytest.approx(sf.undirected.rbm(rows, 2, epochs=2, batch=400).model.hidden_biases, abs=0.02)


def test_a_column_of_one_state_has_no_unit() -> None:
    run = sf.undirected.rbm({"x": ["a", "b"] * 20, "k": ["only"] * 40}, 1, epochs=1)
    assert run.model.units == ("x=b",)
    assert run.model.sample(2)["k"].to_pylist() == ["only", "only"]


def test_files_and_pickles(tmp_path: Path) -> None:
    m = machine()
    sf.write(m, tmp_path / "m.json.gz")
    again = sf.read(tmp_path / "m.json.gz")
    assert again == m
    assert again.fit_info == m.fit_info
    assert pickle.loads(pickle.dumps(m)) == m
    with pytest.raises(FormatError, match=r"restricted Boltzmann machine: write .json"):
        sf.write(m, tmp_path / "m.bif")
    with pytest.raises(ValueError, match="read-only"):
        m.weights[0, 0] = 1.0
    text = tmp_path / "broken.json"
    text.write_text('{"suffice": "rbm", "version": 1, "variables": []}')
    with pytest.raises(FormatError, match="damaged"):
        sf.read(text)


def test_a_time_limit_ends_between_steps() -> None:
    with pytest.warns(sf.SufficeNote, match="stopped in pass"):
        run = sf.undirected.rbm(two_kinds(), 8, epochs=10_000, time_limit=0.2)
    assert not run.converged
    assert run.n_iterations < 10_000


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "hidden": ({"hidden": 0}, FitError, "hidden units is a whole number"),
    "rate": ({"rate": 0.0}, FitError, "rate is a number above 0"),
    "momentum": ({"momentum": 1.0}, FitError, "momentum is a number from 0"),
    "batch": ({"batch": 0}, FitError, "size of a batch"),
    "epochs": ({"epochs": 1.5}, FitError, "number of epochs"),
    "objective": ({"objective": sf.BIC()}, FitError, "objective=ContrastiveDivergence"),
    "seed": ({"seed": -1}, FitError, "seed"),
    "size": ({"hidden": 10**9}, TooLarge, "need .* for their weights"),
    "diverging": ({"rate": 1e30, "momentum": 0.9}, FitError, "smaller rate"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case: str) -> None:
    options, error, words = BAD[case]
    with pytest.raises(error, match=words), np.errstate(all="ignore"):
        sf.undirected.rbm(two_kinds(200), **options)


def test_rows_that_are_refused() -> None:
    with pytest.raises(MissingCells, match=r"'x' 1, of 3 rows.*impute"):
        sf.undirected.rbm({"x": ["a", None, "b"]}, 1)
    with pytest.raises(ModelError, match="'n' are counts"):
        sf.undirected.rbm(sf.scan({"n": [1, 2, 3]}, {"n": Count}), 1)
    with pytest.raises(DataError, match="'r' is constant"):
        sf.undirected.rbm(sf.scan({"r": [1.5] * 60, "x": ["a", "b"] * 30}, {"r": Real}), 1)
    with pytest.raises(ModelError, match="nothing to learn"):
        sf.undirected.rbm({"x": ["a", "a"]}, 1)
    with pytest.raises(DataError, match="'id' have nearly as many states"):
        sf.undirected.rbm({"id": [f"i{k}" for k in range(50)], "x": ["a", "b"] * 25}, 1)
    m = machine()
    with pytest.raises(DataError, match="no column 'c'"):
        m.transform({"a": ["yes"], "r": [1.0], "b": ["x"]})
    with pytest.raises(TooLarge, match=r"AIS\(chains=100"):
        machine(21, binary(21)).log_normaliser()
    with pytest.raises(FitError, match="chains of AIS"):
        sf.methods.AIS(1)
    with pytest.raises(ModelError, match=r"shape \(1, 1\), not \(2, 1\)"):
        sf.undirected.RBM(binary(1), [[1.0], [2.0]], [0.0], [0.0])


def test_rows_elsewhere_cannot_be_walked_through() -> None:
    from tests.toy_engine import toy

    there: Data = toy({"x": ["a", "b"] * 20}, n=2)
    with pytest.raises(DataError, match="no order to be taken in"):
        sf.undirected.rbm(there, 1)
    m = sf.undirected.RBM([Finite("x", ["a", "b"])], [[1.0]], [0.0], [0.0])
    assert m.log_likelihood(there) == pytest.approx(m.log_likelihood({"x": ["a", "b"] * 20}))
    assert m.free_energy(there) == pytest.approx(m.free_energy({"x": ["a", "b"] * 20}))


def test_the_machine_of_arrays_is_that_of_the_model() -> None:
    m = machine(2, binary(4))
    own = Machine(LayerUnits(4), m.weights, m.visible_biases, m.hidden_biases)
    v = np.random.default_rng(0).random((3, 4)).round()
    assert own.free_energy(v) == pytest.approx(m._machine.free_energy(v))
    assert own.log_partition() == pytest.approx(m.log_normaliser().value)
