"""One suite over the engines of one machine and Spark: from files and from a frame, in 1, 3 and 17 partitions, some empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.engines import Data, Sum
from suffice.engines.engine import ROWS
from suffice.engines.spark import Spark, SparkRows
from suffice.engines.views.sample import Distinct, Sample, Stretches
from tests.engines import test_one_door as door
from tests.engines.test_engines import DECLARED, REQUESTS, TABLE, assert_identical, opened
from tests.engines.test_one_door import HOLED, LEARNERS, WHOLE, learned_here
from tests.toy_engine import arrays

HERE = ("spill", "stream")
SPARK = ("spark1", "spark3", "spark17")
N = 2 * ROWS + 1234
FRACTIONS = {**TABLE, "w": np.random.default_rng(7).uniform(size=N)}


def in_blocks(folder: Path, table: dict[str, Any]) -> str:
    """Parquet files of whole blocks, each a row group, and one of the rest: what is drawn by block is what it is in memory."""
    rows = pa.table(table)
    folder.mkdir()
    pq.write_table(rows.slice(0, 0), folder / "none.parquet")
    for i in range(0, len(rows), ROWS):
        pq.write_table(rows.slice(i, ROWS), folder / f"{i:09}.parquet", row_group_size=ROWS)
    return str(folder / "*.parquet")


def on(engine: str, session: Any, folder: Path, table: dict[str, Any], **how: Any) -> Data:
    """The rows on an engine, in whole blocks where they are in files."""
    known = {"k": sf.Count} if "k" in table else None
    if engine == "memory":
        return sf.scan(table, known, **how)
    if engine in HERE:
        return opened(engine, folder, table, **how)
    paths = in_blocks(folder / "rows", table)
    if engine == "frame":
        return sf.scan(session.read.parquet(str(Path(paths).parent)), known, **how)
    return sf.scan(paths, known, engine=sf.Spark(session, partitions=int(engine[5:])), **how)


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("engine", [*HERE, *SPARK])
def test_tables_and_moments_have_the_same_bits(session: Any, tmp_path: Path, engine: str, weights: str | None) -> None:
    expected = sf.scan(FRACTIONS, {"k": sf.Count}, weights=weights).gather(REQUESTS)
    assert_identical(on(engine, session, tmp_path, FRACTIONS, weights=weights).gather(REQUESTS), expected)


def test_a_frame_gives_the_same_tables_and_moments_to_rounding(session: Any, tmp_path: Path) -> None:
    here, there = (on(e, session, tmp_path, TABLE).gather(REQUESTS) for e in ("memory", "frame"))
    for request in REQUESTS:
        if request.real:
            a, b = (s.moments(list(request.finite), list(request.real)) for s in (there, here))
            assert a.count.tobytes() == b.count.tobytes()
            np.testing.assert_allclose(a.mean, b.mean, rtol=1e-13)
            np.testing.assert_allclose(a.scatter, b.scatter, rtol=1e-8, atol=1e-8)
        else:
            a, b = (s.counts(list(request.finite)).values.tobytes() for s in (there, here))
            assert a == b


ROUNDING = (
    "fit numbers",
    "update",
    "naive Bayes with gaps in numbers",
    "discriminant",
    "shared discriminant with gaps",
    "tied linear",
    "logistic",
    "logistic after more rows",
    "Poisson",
    "negative binomial",
    "ordinal",
    "EM of tables",
    "EM with numbers",
    "EM with a regression",
    "EM with a hidden number",
    "hidden",
    "hidden class of numbers",
    "mixture",
    "mixture with gaps",
    "chain",
    "chain of numbers",
    "chain with gaps",
    "hidden chain",
    "log_prob",
)


def close(a: Any, b: Any) -> None:
    """The same but for rounding."""
    if isinstance(b, list):
        for x, y in zip(a, b, strict=True):
            close(x, y)
    else:
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ROUNDING)
def test_what_is_climbed_to_is_the_same_but_for_rounding(session: Any, tmp_path: Path, name: str) -> None:
    """From files; from a frame, where no rows come to the driver."""
    table, learn = LEARNERS[name]
    close(learn(on("spark3", session, tmp_path, _as_arrow(table))), learned_here(name))


def _as_arrow(table: dict[str, Any]) -> dict[str, Any]:
    return {k: pa.array(v, from_pandas=True) for k, v in table.items()}


METHODS: dict[str, Callable[[], Any]] = {
    "HillClimb": sf.HillClimb,
    "Tabu": sf.methods.Tabu,
    "GES": sf.methods.GES,
    "Orders": sf.Orders,
    "Exact": sf.Exact,
    "MMHC": sf.methods.MMHC,
    "ChowLiu": sf.methods.ChowLiu,
    "PC": sf.PC,
}


@pytest.mark.parametrize("engine", ["spark3", "spark17", "frame"])
def test_graphs_and_separating_sets_are_identical(session: Any, tmp_path: Path, engine: str) -> None:
    table = door.some(door.cells(3000), *door.FINITE)
    there, here = (on(e, session, tmp_path, table) for e in (engine, "memory"))
    for name, method in METHODS.items():
        a, b = (sf.search(data, method=method()) for data in (there, here))
        assert (a.cpdag, a.score) == (b.cpdag, b.score), name
        if name == "PC":
            pairs = [f"{x} -> {y}" for x, y in combinations(door.FINITE, 2)]
            assert [a.explain(p) for p in pairs] == [b.explain(p) for p in pairs]


def drawn(data: Data) -> list[Any]:
    """What is drawn by block: a sample, distinct rows, a bootstrap, folds."""
    finite = data.take(["a", "b", "c3"])
    rows = data.sample(50, seed=3)
    distinct = finite.distinct()
    strengths = sf.bootstrap(finite, method=sf.HillClimb(), n=3, seed=1)
    folds = sf.cross_validate(finite, method="a -> b; c3", folds=3, seed=1)
    return [
        *(rows.columns[n].tolist() for n in data.columns),
        rows.at.tolist(),
        *(distinct.columns[n].tolist() for n in finite.columns),
        distinct.weights.tolist(),
        {pair: strengths.strength(*pair) for pair in (("a", "b"), ("a", "c3"))},
        [fold.log_likelihood for fold in folds.folds],
    ]


DRAWN = {**{n: TABLE[n] for n in ("a", "b", "x", "k")}, "c3": np.where(TABLE["a"] == "a0", TABLE["b"], "other")}


@pytest.mark.parametrize("engine", ["spill", *SPARK])
def test_what_is_drawn_is_identical_where_blocks_are(session: Any, tmp_path: Path, engine: str) -> None:
    known = {n: DECLARED[n] for n in ("a", "b", "x", "k")}
    assert drawn(on(engine, session, tmp_path, DRAWN)) == drawn(sf.scan(DRAWN, known))


def test_what_is_drawn_from_a_frame_differs_by_chance_alone(session: Any, tmp_path: Path) -> None:
    there, here = (on(e, session, tmp_path, DRAWN) for e in ("frame", "memory"))
    for data in (there, here):
        rows = data.sample(2000, seed=3)
        assert abs(rows.columns["x"].mean() - TABLE["x"].mean()) < 5 / np.sqrt(2000)
    a, b = (sf.cross_validate(d.take(["a", "b"]), method="a -> b", folds=3, seed=1) for d in (there, here))
    n = N / 3
    for x, y in zip(a.folds, b.folds, strict=True):
        assert abs(x.log_likelihood - y.log_likelihood) / n < 5 / np.sqrt(n)
    assert sf.bootstrap(there.take(["a", "c3"]), method=sf.HillClimb(), n=3, seed=1).strength("a", "c3") == 1


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the rows are passed over, by what is done to them; a sum that has as many entries as there are rows is refused,
    but for those of `sample` and `distinct`, and so is every other way by which rows of a frame come to the driver."""
    from pyspark.sql.classic.dataframe import DataFrame

    seen: Counter[str] = Counter()

    def spying(name: str) -> None:
        real = getattr(SparkRows, name)

        def call(self: SparkRows, work: Any) -> Any:
            step = innermost(work)
            seen[type(step).__name__] += 1
            answer = real(self, work)
            if isinstance(answer, Sum) and not isinstance(step, (Sample, Distinct, Stretches)):
                n_rows = sum(piece.size for piece in self.pieces)
                assert not [a.shape for a in arrays(answer.value) if n_rows in a.shape], step
            return answer

        monkeypatch.setattr(SparkRows, name, call)

    spying("run")
    spying("sum")
    for way in ("collect", "toPandas", "toArrow", "toLocalIterator", "take", "head", "first"):
        monkeypatch.setattr(DataFrame, way, lambda *_, **__: pytest.fail("rows of a frame were collected"))
    return seen


def innermost(work: Any) -> Any:
    step = work.step
    while hasattr(step, "step"):
        step = step.step
    return step


@pytest.mark.parametrize("name", LEARNERS)
def test_no_rows_come_to_the_driver(session: Any, tmp_path: Path, passes: Counter[str], name: str) -> None:
    table, learn = LEARNERS[name]
    there = learn(on("frame", session, tmp_path, _as_arrow(table)))
    assert passes
    if name in ROUNDING:
        close(there, learned_here(name))


def test_how_often_the_rows_are_passed_over(session: Any, tmp_path: Path, passes: Counter[str]) -> None:
    rows = sf.load("alarm").sample(3000, seed=1)
    paths, where = tmp_path / "alarm.parquet", Spark(session, partitions=2)
    pq.write_table(rows, paths)
    known = dict(sf.load("alarm").variables)

    def counted(learn: Callable[[Data], Any], variables: Any = known) -> int:
        data = sf.scan(paths, variables, engine=where)
        passes.clear()
        learn(data)
        return passes.total()

    dag = sf.load("alarm").dag
    assert counted(lambda d: sf.fit(dag, d)) <= 2
    assert counted(lambda d: sf.fit(dag, d), None) <= 2
    assert counted(lambda d: sf.search(d, method=sf.Orders())) <= 10


def test_em_on_tables_reads_its_rows_once(session: Any, tmp_path: Path, passes: Counter[str]) -> None:
    data = on("spark3", session, tmp_path, _as_arrow(door.some(HOLED, *door.FINITE)))
    data.schema  # noqa: B018
    passes.clear()
    sf.em("a -> b -> c; a -> l", data)
    assert passes.total() <= 1


def test_a_hill_climb_reads_its_rows_at_most_once_a_step(session: Any, tmp_path: Path, passes: Counter[str]) -> None:
    data = on("spark3", session, tmp_path, door.some(WHOLE, *door.FINITE))
    data.schema  # noqa: B018
    passes.clear()
    found = sf.search(data, method=sf.HillClimb())
    assert passes.total() <= len(found.trace) + 1
