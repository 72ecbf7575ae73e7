"""What a column is where nobody said it: one rule at the door, on every engine, with its doubts in a report and notes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.engines import Block
from suffice.engines.schema import NumberSummary, Summarise
from suffice.errors import SufficeNote
from tests.toy_engine import toy

N = 600
rng = np.random.default_rng(0)

TRAPS: dict[str, Any] = {
    "row": np.arange(N) + 1,
    "patient_id": rng.choice(10**9, N, replace=False),
    "name": [f"p{i}" for i in range(N)],
    "day": np.array([f"2024-{1 + i // 50:02d}-{1 + i % 28:02d}" for i in range(N)]),
    "sex": rng.choice(["f", "m"], N),
    "stage": rng.integers(1, 5, N),
    "flag": rng.integers(0, 2, N).astype(float),
    "lab": np.array(["<150" if i == 77 else str(x) for i, x in enumerate(rng.integers(150, 900, N))]),
    "comma": np.array([f"{a},{b}" for a, b in rng.integers(0, 9, (N, 2))]),
    "smoke": rng.choice(["yes", " yes", "no"], N),
    "gone": rng.choice(["?", "a", "b"], N),
    "age": rng.normal(50, 10, N).round(3),
    "salary": rng.integers(1, 10**8, N),
    "grade": rng.integers(0, 15, N),
}
DOUBTS = {
    "row": "all differ",
    "patient_id": "all differ",
    "name": "nearly as many states",
    "day": "dates, 336 of them",
    "stage": "4 values, taken for states",
    "flag": "2 values, taken for states",
    "lab": "numbers but for '<150'",
    "comma": "decimal commas",
    "smoke": "' yes' beside 'yes'",
    "gone": "'?': a missing cell",
    "grade": "15 values: states",
}
LEFT_OUT = ("row", "patient_id", "name", "day")


def in_memory(folder: Path, **options: Any) -> Any:
    return sf.scan(pd.DataFrame(TRAPS), **options)


def csv(folder: Path, **options: Any) -> Any:
    pd.DataFrame(TRAPS).to_csv(folder / "traps.csv", index=False)
    return sf.scan(folder / "traps.csv", **options)


def parquet(folder: Path, **options: Any) -> Any:
    pq.write_table(pa.table(TRAPS), folder / "traps.parquet", row_group_size=100)
    return sf.scan(folder / "traps.parquet", memory_limit="1KiB", **options)


def partitions(folder: Path, **options: Any) -> Any:
    return toy(TRAPS, n=3, size=97, **options)


ENGINES = [in_memory, csv, parquet, partitions]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_the_same_doubts(engine: Any, tmp_path: Path) -> None:
    data = engine(tmp_path)
    records = {r["column"]: r for r in data.schema.records()}
    for name in TRAPS:
        said = "; ".join(records[name]["doubts"])
        assert DOUBTS.get(name, "") in said, (name, said)
        assert bool(said) == (name in DOUBTS), (name, said)
    assert set(data.identifiers) == set(LEFT_OUT)
    assert data.schema["flag"] == sf.Finite("flag", ["0", "1"])
    assert records["flag"]["states"] == {"0": int((TRAPS["flag"] == 0).sum()), "1": int((TRAPS["flag"] == 1).sum())}
    assert data.schema["stage"] == sf.Finite("stage", ["1", "2", "3", "4"])
    assert data.schema["grade"] == sf.Real("grade")
    seen = sf.gather(data.select(["stage", "sex"]), "stage -> sex").counts(["stage", "sex"]).values
    np.testing.assert_array_equal(seen, pd.crosstab(TRAPS["stage"], TRAPS["sex"]).to_numpy())


@pytest.mark.parametrize("engine", ENGINES)
def test_notes_come_with_the_argument_that_settles_them(engine: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SufficeNote)
        found = sf.search(engine(tmp_path).select(["row", "day", "sex", "flag", "stage", "gone"]), method=sf.HillClimb())
    said = [str(w.message) for w in caught]
    assert found.names == ("flag", "gone", "sex", "stage")
    for what in (
        "'row': whole numbers that all differ, as in an identifier; searches leave such columns out, unless they are declared: "
        "variables={'row': Real}",
        "'day': dates, each of which is a state of its own; searches leave such columns out, unless they are declared: "
        "variables={'day': Finite}",
        "integers=Real) or variables={'",
        'missing=["?"]',
        "left out of the search, as an identifier: 'day', 'row'",
    ):
        assert sum(what in s for s in said) == 1, (what, said)
    assert sum("few different values, taken for states" in s for s in said) == 1


def test_what_the_notes_advise_is_so(tmp_path: Path) -> None:
    assert sf.scan(TRAPS, integers=sf.Real).schema["flag"] == sf.Real("flag")
    assert sf.scan(TRAPS, integers=sf.Real).schema["stage"] == sf.Real("stage")
    assert sf.scan(TRAPS, {"flag": sf.Real}).schema["flag"] == sf.Real("flag")
    assert sf.scan(TRAPS, integers=sf.Finite).schema["grade"].n_states == 15
    kept = sf.scan(TRAPS, {"row": sf.Real, "day": sf.Finite})
    assert set(kept.identifiers) == {"patient_id", "name"}
    assert sf.scan(TRAPS, {"smoke": ["no", "yes"]}).schema["smoke"].n_states == 2
    assert csv(tmp_path, missing=["<150"]).schema["lab"] == sf.Real("lab")


def test_the_rule() -> None:
    def kind(cells: Any) -> type:
        return type(sf.scan({"x": cells}).schema["x"])

    assert kind([0, 1, 1]) is sf.Finite
    assert kind([0.0, 1.0, None]) is sf.Real  # two cells have two values without meaning anything by it
    assert kind([0.5, 2.5] * 5) is sf.Finite
    assert kind([1, 2, 3] * 16) is sf.Real  # 48 rows
    assert kind([1, 2, 3] * 17) is sf.Finite
    assert kind([1.0, 2.0, np.nan] * 25 + [3.0]) is sf.Finite
    assert kind([1.5, 2.0, 3.0] * 30) is sf.Real
    assert kind(list(range(10)) * 6) is sf.Finite
    assert kind(list(range(11)) * 6) is sf.Real
    assert kind([-3, 7] * 30) is sf.Finite
    assert sf.scan({"x": [-0.0, 0.0, 1.0]}).schema["x"] == sf.Finite("x", ["0", "1"])


def test_missing_cells_of_float_frames_are_shown() -> None:
    frame = pd.DataFrame({"x": [0.5, np.nan, 2.5, 3.25], "y": [1.5, 2.5, 3.5, 4.5]})
    shown = str(sf.scan(frame).schema).splitlines()
    assert shown[0] == "4 rows"
    assert shown[4].split()[-1] == "1"
    assert sf.scan(frame, {"x": sf.Real, "y": sf.Real}).schema.records()[0]["missing"] == 1


def test_the_cells_that_are_there_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(np, "isnan", lambda x, isnan=np.isnan: asked.append(len(x)) or isnan(x))
    found = Summarise({"x": None, "y": 2}).of(Block({"x": np.array([0.5, np.nan, 2.5]), "y": np.array([1, 255, 1], np.uint8)}))
    assert (found["x"], found["y"].tolist(), asked) == (NumberSummary(2, 3.0, 0.5, 2.5), [0, 2], [3])


@pytest.mark.parametrize("text", ["0.0", "0", "0.00", " 0"])
def test_states_of_numbers_are_read_as_they_are_written_anywhere(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + f"{text},a\n1.0,b\n1,b\n" * 20)
    data = sf.scan(tmp_path / "a.csv")
    assert data.schema["x"] == sf.Finite("x", ["0", "1"])
    bn = sf.fit("x -> y", data, prior=sf.BDeu(1))
    (tmp_path / "b.csv").write_text(f"x\n{text}\n1.0\n1\n")
    assert [str(y) for y in bn.predict(tmp_path / "b.csv", "y").to_pylist()] == ["a", "b", "b"]
    frame = pd.DataFrame({"x": [0.0, 1.0, 1.0], "y": ["a", "b", "b"]})
    assert bn.update(frame)["y"].probs.shape == (2, 2)


def test_search_fit_and_predict_agree() -> None:
    x = rng.integers(0, 3, 400)
    rows = {"x": x, "y": np.where(rng.random(400) < 0.8, x, rng.integers(0, 3, 400)).astype(float)}
    found = sf.search(rows)
    bn = sf.fit(found.dag, rows, prior=sf.BDeu(1))
    assert all(isinstance(v, sf.Finite) for v in bn.variables.values())
    assert sf.learn(rows).dag == found.dag
    assert isinstance(sf.learn(rows, integers=sf.Real).variables["x"], sf.Real)
    assert isinstance(sf.learn(rows, variables={"x": sf.Real}).variables["x"], sf.Real)
    assert len(bn.predict(pd.DataFrame({"x": [0, 1, 2]}), "y")) == 3


def test_parents_of_a_declared_regression_stay_numbers() -> None:
    dose = rng.integers(0, 4, 500)
    ill = np.where(rng.random(500) < 1 / (1 + np.exp(1.5 - dose)), 1, 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SufficeNote)
        bn = sf.fit("dose -> ill", {"dose": dose, "ill": ill}, families={"ill": sf.Logistic()})
    assert bn.variables["dose"] == sf.Real("dose")
    assert bn.variables["ill"] == sf.Finite("ill", ["0", "1"])
    assert not any("'dose'" in str(w.message) and "taken for states" in str(w.message) for w in caught)
    assert sf.score("dose -> ill", {"dose": dose, "ill": ill}, families={"ill": sf.Logistic()}) < 0
    counted = sf.fit("ill -> dose", {"dose": dose, "ill": ill}, families={"dose": sf.regressions.PoissonLog()})
    assert counted.variables["dose"] == sf.Count("dose")
    declared = sf.scan({"dose": dose, "ill": ill}, {"dose": sf.Finite})
    assert isinstance(sf.fit("dose -> ill", declared, families={"ill": sf.Logistic()}).variables["dose"], sf.Finite)


def test_numbers_of_a_start_stay_numbers() -> None:
    bn = sf.fit("x -> y", {"x": rng.normal(size=50), "y": rng.normal(size=50)})
    few = {"x": [0.1, 0.2, 0.2, None], "y": [1.0, 2.0, 3.5, 4.0]}
    assert sf.em("x -> y", few, start=bn, max_iter=2).model.variables["x"] == sf.Real("x")
    assert bn.update({"x": [0.1, 0.2, 0.2], "y": [1.0, 2.0, 2.0]}).variables["x"] == sf.Real("x")


def test_distributions_by_themselves_read_numbers() -> None:
    from suffice import exponential as ef

    counts = rng.poisson(2, 300)
    seen = ef.Poisson().estimate(ef.Poisson().gather(sf.scan({"n": counts}), "n"))
    assert seen == ef.Poisson().estimate(ef.Poisson().statistic(counts))


def test_scikit_learn_arrays_stay_numbers() -> None:
    X = rng.integers(0, 2, (200, 2)).astype(float)
    model = sf.estimators.GLMClassifier().fit(X, X[:, 0].astype(int) ^ (rng.random(200) < 0.2))
    assert all(isinstance(v, sf.Real) for n, v in model.network_.variables.items() if n.startswith("x"))


def test_the_command_line_reports_the_schema(run: Any) -> None:
    csv(Path())
    code, out, err = run("schema", "traps.csv")
    assert code == 0
    assert out.startswith("600 rows\n\ncolumn")
    assert "numbers but for '<150'" in out
    assert "note: 'stage', 'flag': numbers with few" in err
    assert "--integers real, or --real stage" in err
    code, out, err = run("schema", "traps.csv", "--real", "stage", "--json")
    facts = {r["column"]: r for r in json.loads(out)}
    assert (facts["stage"]["kind"], facts["stage"]["doubts"]) == ("Real", [])


def test_words_among_numbers_with_decimal_commas_are_doubted_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "x;y\n" + "".join(f"{i},5;{'NA' if i % 9 == 0 else 'k.A.' if i % 7 == 0 else f'{i},25'}\n" for i in range(60))
    )
    with pytest.warns(sf.SufficeNote) as noted:
        said = sf.scan(file).schema.records()[1]["doubts"]
    assert said == ["numbers but for 'NA', 'k.A.'", "with decimal commas?"]
    notes = [str(n.message) for n in noted]
    assert any('missing=["NA", "k.A."]' in n for n in notes)
    assert any("'x', 'y': numbers with decimal commas" in n for n in notes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.SufficeNote)
        kinds = sf.scan(file, missing=["NA", "k.A."], decimal=",").schema
    assert all(isinstance(kinds[name], sf.Real) for name in "xy")


@pytest.mark.parametrize(("cell", "hint"), [("1,5", "decimal=','"), ("NA", "missing=")])
def test_a_cell_that_is_no_number_says_how_it_may_be_meant(cell: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"x;y\n1;a\n{cell};b\n")
    with pytest.raises(sf.SufficeError, match="is not a number; if") as refused:
        sf.scan(file, {"x": sf.Real}, separator=";").n_rows  # noqa: B018
    assert hint in str(refused.value)
