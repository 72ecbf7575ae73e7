"""Rows in, rows out, on an engine that is not here: steps are pickled on their way to the rows, and what they make of them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import suffice as sf
from suffice.engines import Data
from suffice.errors import SufficeNote
from suffice.numerics.inference.sampling.sampling import LikelihoodWeighting
from tests.toy_engine import toy


def over(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


class Far:
    """Another engine, to which steps travel."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        if name in ("engine", "store"):
            raise AttributeError(name)
        return getattr(self.engine, name)

    def declare(self, variables: Any) -> Far:
        return Far(self.engine.declare(variables))

    def fold(self, step: Any, names: Any, **how: Any) -> Any:
        return over(self.engine.fold(over(step), names, **how))

    def map(self, step: Any, names: Any, **how: Any) -> Iterator[Any]:
        return map(over, self.engine.map(lambda block: over(step)(over(block)), names, **how))


def far(x: Any) -> Data:
    data = sf.scan(x)
    return Data(Far(data.engine), data.columns)


def gappy(bn: sf.BayesNet, n: int, *, share: float = 0.3, whole: tuple[str, ...] = ()) -> pa.Table:
    """Rows of a network with missing cells in all columns but some."""
    rng, table = np.random.default_rng(n), bn.sample(n, seed=1)
    return pa.table(
        {c: pa.array(table[c].to_pylist(), mask=None if c in whole else rng.random(n) < share) for c in table.column_names}
    )


def hybrid() -> sf.BayesNet:
    cpds = {
        "u": [0.3, 0.7],
        "x": sf.Gaussian([0.0, 3.0], variance=[1.0, 2.0]),
        "y": sf.Gaussian(1.0, {"x": 0.5}, 1.0),
        "n": sf.regressions.Rates([2.0, 9.0]),
    }
    return sf.BayesNet("u -> x -> y; u -> n", cpds, {"u": ["a", "b"]})


def regressions() -> sf.BayesNet:
    rng, n = np.random.default_rng(0), 400
    x = rng.normal(size=n)
    z = rng.choice(["a", "b"], n)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-x - (z == "a"))), "yes", "no")
    return sf.fit("z -> y; x -> y", {"x": x, "z": z, "y": y}, families={"y": sf.Logistic()})


NETWORKS = {"finite": lambda: sf.load("asia"), "hybrid": hybrid, "regressions": regressions}


@pytest.fixture(params=NETWORKS)
def case(request: pytest.FixtureRequest) -> tuple[sf.BayesNet, pa.Table]:
    bn = NETWORKS[request.param]()
    return bn, gappy(bn, 300, whole=("x",) if request.param == "regressions" else ())


def test_predictions(case: tuple[sf.BayesNet, pa.Table]) -> None:
    bn, rows = case
    for target in [n for n in bn if n != "x" or not bn.compiled.open][:3]:
        assert bn.predict_proba(far(rows), target) == bn.predict_proba(rows, target)
        assert bn.predict(far(rows), target) == bn.predict(rows, target)
    last = next(n for n in reversed(list(bn)) if n != "x")
    pd.testing.assert_frame_equal(bn.predict_proba(toy(rows), last).to_pandas(), bn.predict_proba(rows.to_pandas(), last))


def test_filled_cells(case: tuple[sf.BayesNet, pa.Table]) -> None:
    bn, rows = case
    assert bn.impute(far(rows)).to_pydict() == bn.impute(rows).to_pydict()
    for here, there in zip(bn.impute(rows, draws=3, seed=5), bn.impute(far(rows), draws=3, seed=5), strict=True):
        assert there.to_pydict() == here.to_pydict()
    if not bn.compiled.reals:
        assert bn.impute(far(rows), joint=True).to_pydict() == bn.impute(rows, joint=True).to_pydict()


def test_probabilities_of_rows(case: tuple[sf.BayesNet, pa.Table]) -> None:
    bn, rows = case
    np.testing.assert_array_equal(bn.log_prob(far(rows)), bn.log_prob(rows))
    assert bn.log_likelihood(far(rows)) == bn.log_likelihood(rows)
    complete = bn.sample(100, seed=3)
    np.testing.assert_array_equal(bn.log_prob(far(complete)), bn.log_prob(complete))
    np.testing.assert_allclose(bn.log_prob(toy(complete, size=30)), bn.log_prob(complete), rtol=1e-12)
    assert bn.log_likelihood(far(complete)) == bn.log_likelihood(complete)


def test_draws_for_rows_without_a_formula() -> None:
    bn = regressions()
    rows = {"x": [0.5, None, None], "z": ["a", "b", None]}
    here = bn.predict_proba(pa.table(rows), "y", method=LikelihoodWeighting(500), seed=2)
    assert bn.predict_proba(far(pa.table(rows)), "y", method=LikelihoodWeighting(500), seed=2) == here
    with pytest.warns(SufficeNote, match="integrated by adaptive Gauss-Hermite"):
        assert bn.predict_proba(far(pa.table(rows)), "y") == bn.predict_proba(pa.table(rows), "y")


def test_impossible_rows_are_told_by_their_place() -> None:
    tables = {"x": [0.5, 0.5], "y": [[1.0, 0.0], [0.5, 0.5]], "z": [[0.5, 0.5], [1.0, 0.0]]}
    net = sf.BayesNet("x -> y; x -> z", tables, {"x": ["0", "1"], "y": ["0", "1"], "z": ["0", "1"]})
    rows = pa.table({"y": ["0"] * 40 + ["1"], "z": ["0"] * 40 + ["1"]})
    with pytest.warns(SufficeNote, match="cells of row 41 are impossible"):
        net.predict(far(rows), "x")
    with pytest.warns(SufficeNote, match="cells of partition 1, block 3, row 11 are impossible"):
        net.predict(toy(rows, size=15), "x")


def test_views_of_rows() -> None:
    bn = sf.load("asia")
    data = sf.scan(gappy(bn, 200)).with_variables(dict(bn.variables))
    sample = data.resample(4)
    assert len(bn.predict(sample, "lung")) == 200
    filled = bn.impute(sample)
    assert filled.num_rows == 200
    assert all(c.null_count == 0 for c in filled.columns)
    held = sample.hold()
    assert bn.predict(held, "lung") == bn.predict(sample, "lung")
    np.testing.assert_array_equal(bn.log_prob(held), bn.log_prob(sample))


def test_blocks_are_full_however_rows_come(tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    from suffice.engines.engine import ROWS
    from suffice.engines.scan import rows_of

    n = 2 * ROWS + 50
    table = pa.table({"x": pa.array(np.arange(n) % 3).cast(pa.string()), "i": np.arange(n)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7000)
    data = rows_of(tmp_path / "a.parquet").take(["x"])
    blocks = list(data.map(len_and_ends, keep=["i"]))
    assert blocks == [(0, ROWS, 0, ROWS - 1), (1, ROWS, ROWS, 2 * ROWS - 1), (2, 50, 2 * ROWS, n - 1)]
    assert data.place(1, 3).endswith(f"row {ROWS + 4}")


def len_and_ends(block: Any) -> tuple[int, int, int, int]:
    kept = block.kept["i"]
    return block.number, block.n_rows, kept[0].as_py(), kept[-1].as_py()
