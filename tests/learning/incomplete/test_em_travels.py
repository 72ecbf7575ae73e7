"""Learning from incomplete rows on another engine: every step and every sum is pickled, and blocks are dealt out otherwise.

What comes out has the same bits as on the local engine, so no learner sees rows, nor the order in which they are read.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, Sum


@dataclass(frozen=True)
class Blocks(Step[dict[int, Block]]):
    """All blocks by number: for the engine below, which only pretends that they are elsewhere."""

    def of(self, block: Block) -> dict[int, Block]:
        return {block.number: block}


class Elsewhere:
    """An engine that deals blocks out to three others, from the last one on; steps and sums travel."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        if name in ("store", "_engine"):  # the rows are not here
            raise AttributeError(name)
        return getattr(self._engine, name)

    def declare(self, variables: Any) -> Elsewhere:
        return Elsewhere(self._engine.declare(variables))

    def fold(self, step: Step[Any], names: Sequence[str], **_: Any) -> Any:
        blocks = self._engine.fold(Blocks(), names)
        total: Sum[Any] = Sum()
        for i in range(3):
            run = [blocks[number] for number in sorted(blocks, reverse=True)[i::3]]
            total += travelled(travelled(step)(run)) if run else Sum()
        return total.value


def travelled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def same_bits(a: sf.BayesNet, b: sf.BayesNet) -> None:
    for name in a:
        for part in ("probs", "rates", "intercept", "coefficients", "variance"):
            if hasattr(a[name], part):
                np.testing.assert_array_equal(getattr(a[name], part), getattr(b[name], part))


def data_of(columns: dict[str, Any], weights: Any = None) -> tuple[Data, Data]:
    """The same rows here and elsewhere; there are several blocks of them."""
    here = sf.scan(columns, weights=weights)
    return here, Data(Elsewhere(here.engine), here.columns)


def gone(values: Any, share: float, seed: int) -> Any:
    lost = np.random.default_rng(seed).random(len(values)) < share
    return np.where(lost, np.nan if values.dtype.kind == "f" else None, values)


def rows(n: int = 50_000) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=n)
    u = np.where(rng.random(n) < 0.2 + 0.6 * kind, "a", "b").astype(object)
    x = rng.normal(3.0 * kind)
    y = 1.0 + 0.5 * x + (u == "a") + rng.normal(size=n)
    v = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-x)), "p", "q").astype(object)
    w = np.where(rng.random(n) < 0.3 + 0.4 * kind, "s", "t").astype(object)
    return {"u": gone(u, 0.1, 1), "v": gone(v, 0.1, 2), "w": w, "x": gone(x, 0.1, 3), "y": gone(y, 0.1, 4), "z": x}


KIND = sf.Finite("kind", ["one", "two"])
WEIGHTS = {"none": None, "whole": np.arange(50_000) % 3, "fractional": 0.1 + np.random.default_rng(9).random(50_000)}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_finite_network_with_a_hidden_class(weights: str) -> None:
    columns = {n: c for n, c in rows().items() if n in "uvw"}
    runs = [
        sf.em("kind -> u; kind -> v; kind -> w; u -> w", d, hidden=[KIND], starts=2, max_iter=3)
        for d in data_of(columns, WEIGHTS[weights])
    ]
    assert runs[0].trace[-1].objective == runs[1].trace[-1].objective
    same_bits(runs[0].model, runs[1].model)


@pytest.mark.parametrize("hidden", [[], [KIND]])
def test_states_and_numbers_that_are_missing(hidden: list[sf.Finite], monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {n: c for n, c in rows().items() if n in "uxy"}
    dag = "u -> y; x -> y; kind -> u; kind -> x" if hidden else "u -> x; u -> y; x -> y"
    here, elsewhere = data_of(columns)
    runs = [sf.em(dag, d, hidden=hidden, starts=1, max_iter=3) for d in (here, elsewhere)]
    same_bits(runs[0].model, runs[1].model)
    monkeypatch.setattr("suffice.incomplete.numbers.mixed.HELD", 0)
    runs = [sf.em(dag, d, hidden=hidden, starts=1, max_iter=2) for d in (here, elsewhere)]
    same_bits(runs[0].model, runs[1].model)


def test_a_logistic_node() -> None:
    columns = {n: c for n, c in rows(20_000).items() if n in "uvz"}
    runs = [sf.em("z -> v; u -> v; u -> z", d, families={"v": sf.Logistic()}, max_iter=3) for d in data_of(columns)]
    same_bits(runs[0].model, runs[1].model)


def test_gradient_and_information() -> None:
    columns = {n: c for n, c in rows(20_000).items() if n in "uxy"}
    here, elsewhere = data_of(columns)
    runs = [sf.gradient("u -> x; u -> y; x -> y", d, max_iter=3) for d in (here, elsewhere)]
    same_bits(runs[0].model, runs[1].model)
    known = [sf.em("u -> x; u -> y; x -> y", d, tol=1e-3).information() for d in (here, elsewhere)]
    np.testing.assert_array_equal(known[0].matrix, known[1].matrix)


def test_an_impossible_row_is_named_where_it_stands() -> None:
    columns = {n: c for n, c in rows(20_000).items() if n in "ux"}
    columns["u"][17_000] = "c"
    here, elsewhere = data_of(columns)
    u = here.schema["u"]
    start = sf.BayesNet("u -> x", {"u": [0.5, 0.5, 0.0], "x": sf.Gaussian([0.0, 1.0, 2.0])}, [u])
    for data in (here, elsewhere):
        with pytest.raises(sf.SufficeError, match="row 17001 is impossible under the parameters"):
            sf.em("u -> x", data, start=start)
