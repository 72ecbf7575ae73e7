"""States at prediction that the model has never seen: refused, or taken for missing and counted. `suffice impute`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import suffice as sf
from suffice.errors import DataError, SufficeNote

BN = sf.BayesNet(
    "x -> y; x -> z",
    {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]], "z": [[0.5, 0.5], [0.3, 0.7]]},
    variables=[sf.Finite(n, ["no", "yes"]) for n in "xyz"],
)
ROWS: dict[str, Any] = {"x": ["yes", "maybe", None, "no"], "y": [None, "no", "never", "maybe"], "z": ["yes", "no", "no", None]}
KNOWN = {n: [c if c in ("no", "yes") else None for c in cells] for n, cells in ROWS.items()}


def kinds(tmp_path: Path) -> dict[str, Any]:
    frame = pd.DataFrame(ROWS)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    return {
        "dict": ROWS,
        "pandas": frame,
        "categories": frame.astype("category"),
        "polars": pl.DataFrame(ROWS),
        "arrow": pa.table(ROWS),
        "csv": tmp_path / "rows.csv",
        "parquet": tmp_path / "rows.parquet",
        "data": sf.scan(ROWS),
    }


ASKED: dict[str, Any] = {
    "predict": lambda rows, **how: list(map(str, BN.predict(rows, "z", **how))),
    "predict_proba": lambda rows, **how: np.asarray(BN.predict_proba(rows, "z", **how)["yes"]).tolist(),
    "log_prob": lambda rows, **how: BN.log_prob(rows, **how).tolist(),
}


@pytest.mark.parametrize("kind", ["dict", "pandas", "categories", "polars", "arrow", "csv", "parquet", "data"])
@pytest.mark.parametrize("what", ASKED)
def test_unknown_states(tmp_path: Path, what: str, kind: str) -> None:
    rows = kinds(tmp_path)[kind]
    for how in ({}, {"unknown": sf.chains.Refuse()}):
        with pytest.raises(DataError, match=r"column '[xy]': 'maybe' is not a state"):
            ASKED[what](rows, **how)
    with pytest.warns(SufficeNote, match="taken for missing") as told:
        found = ASKED[what](rows, unknown=sf.chains.Missing())
    assert found == ASKED[what](KNOWN)
    notes = sorted(str(t.message) for t in told if "taken for missing" in str(t.message))
    assert notes == [
        "'x': 1 cell holds what is no known state, 'maybe', and is taken for missing",
        "'y': 2 cells hold what is no known state, 'maybe', 'never', and are taken for missing",
    ] or notes[1].startswith("'y': 2 cells hold what is no known state, 'never', 'maybe'")


def test_unknown_states_are_filled() -> None:
    with pytest.raises(DataError, match="is not a state"):
        BN.impute(ROWS)
    with pytest.warns(SufficeNote, match="taken for missing"):
        assert BN.impute(ROWS, unknown=sf.chains.Missing()) == BN.impute(KNOWN)
    with pytest.warns(SufficeNote, match="taken for missing"):
        assert BN.impute(ROWS, draws=2, unknown=sf.chains.Missing()) == BN.impute(KNOWN, draws=2)


def test_many_rows_in_many_blocks_are_counted_once(tmp_path: Path) -> None:
    n = 40_000
    pd.DataFrame({"x": ["yes", "maybe"] * n, "y": ["no"] * 2 * n}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.warns(SufficeNote, match="'x': 40,000 cells hold"):
        found = BN.predict_proba(tmp_path / "a.csv", "z", unknown=sf.chains.Missing())
    assert len(found) == 2 * n


def test_what_is_neither_is_refused() -> None:
    for call in (lambda: BN.predict(ROWS, "z", unknown="missing"), lambda: BN.log_prob(ROWS, unknown=None)):
        with pytest.raises(DataError, match=r"Refuse\(\) or Missing\(\)"):
            call()


def test_commands(run: Any) -> None:
    sf.write(BN, "m.json")
    pd.DataFrame(ROWS).assign(id=[7, 8, 9, 10]).to_csv("rows.csv", index=False)
    pd.DataFrame(KNOWN).assign(id=[7, 8, 9, 10]).to_csv("known.csv", index=False)
    code, _, err = run("predict", "m.json", "rows.csv", "--target", "z")
    assert code == 1
    assert "'maybe' is not a state" in err
    assert "--unknown missing takes such cells for missing" in err
    code, out, err = run("predict", "m.json", "rows.csv", "--target", "z", "--unknown", "missing")
    assert code == 0
    assert "2 cells hold" in err
    assert out == run("predict", "m.json", "known.csv", "--target", "z")[1]
    assert run("impute", "m.json", "rows.csv")[0] == 1
    code, _, err = run("impute", "m.json", "rows.csv", "--unknown", "missing", "-o", "filled.csv")
    assert code == 0, err
    filled = pd.read_csv("filled.csv")
    assert filled["id"].tolist() == [7, 8, 9, 10]
    expected = BN.impute(KNOWN)
    assert {n: filled[n].tolist() for n in "xyz"} == expected
    assert run("impute", "m.json", "known.csv")[1] == Path("filled.csv").read_text()
    assert run("impute", "m.json", "known.csv", "--joint", "-o", "joint.parquet")[0] == 0
    assert pd.read_parquet("joint.parquet")[list("xyz")].notna().all().all()
    assert run("impute", "m.json", "known.csv", "--draws", "3", "--seed", "5", "-o", "drawn.csv")[0] == 0
    drawn = pd.read_csv("drawn.csv")
    assert drawn["draw"].tolist() == [1] * 4 + [2] * 4 + [3] * 4
    again = BN.impute(KNOWN, draws=3, seed=5)
    assert [drawn["y"].tolist()[4 * i : 4 * i + 4] for i in range(3)] == [frame["y"] for frame in again]
    assert run("impute", "m.json", "drawn.csv", "--draws", "2")[0] == 1
    assert run("impute", "m.json", "known.csv", "--unknown", "nonsense")[0] == 1
    assert run("impute", "m.json", "known.csv", "-o", "known.csv")[0] == 1
