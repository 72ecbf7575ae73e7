"""Tables: uploads, what columns are, corrections, and rows one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf
from tests.interfaces.explorer.conftest import Client

CSV = "smoke,age,n,note\nno,17.5,0,a\nyes,64.25,1,b\nyes,,2,a\n,41.5,1,b\n"


@pytest.fixture
def page(opened: Callable[..., Client]) -> Client:
    return opened()


def uploaded(page: Client, text: str = CSV, name: str = "rows.csv") -> dict[str, Any]:
    reply = page.send("tables", text.encode(), name)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def test_a_table_is_told_column_by_column(page: Client) -> None:
    held = uploaded(page)
    assert (held["name"], held["rows"], held["columns"]) == ("rows.csv", 4, 4)
    told = page.get(f"tables/{held['id']}")
    columns = {column["name"]: column for column in told["columns"]}
    assert columns["smoke"]["states"] == [{"state": "no", "count": 1}, {"state": "yes", "count": 2}]
    assert (columns["age"]["kind"], columns["age"]["minimum"], columns["age"]["maximum"]) == ("real", 17.5, 64.25)
    assert [columns[name]["missing"] for name in ("smoke", "age", "note")] == [1, 1, 0]
    patterns = {tuple(p["columns"]): p["rows"] for p in told["missingness"]["patterns"]}
    assert patterns == {(): 2, ("age",): 1, ("smoke",): 1}


def test_corrections_make_a_new_table_beside_the_old(page: Client) -> None:
    old = uploaded(page)
    wanted = {
        "smoke": {"kind": "finite", "states": ["yes", "no", "never"]},
        "age": {"bins": 2},
        "n": {"kind": "count"},
        "note": {"kind": "ignore"},
    }
    new = page.post(f"tables/{old['id']}/schema", {"columns": wanted})
    assert new["id"] != old["id"]
    columns = {column["name"]: column for column in page.get(f"tables/{new['id']}")["columns"]}
    assert [state["state"] for state in columns["smoke"]["states"]] == ["yes", "no", "never"]
    assert len(columns["age"]["states"]) == 2
    assert columns["n"]["kind"] == "count"
    assert "note" not in columns
    assert page.get(f"tables/{old['id']}")["columns"][0]["states"][0]["state"] == "no"
    page.http.delete(f"/api/tables/{old['id']}")
    assert page.get(f"tables/{new['id']}")["rows"] == 4  # the file is still needed


@pytest.mark.parametrize(
    "columns",
    [
        {"smok": {"kind": "real"}},
        {"smoke": {"kind": "colour"}},
        {"smoke": "real"},
        {"smoke": {"kind": "real"}},
        {"smoke": {"states": ["yes"]}},
        {"smoke": {"states": "yes"}},
        {"age": {"bins": 1}},
        {"age": {"bins": "many"}},
        {name: {"kind": "ignore"} for name in ("smoke", "age", "n", "note")},
    ],
)
def test_corrections_that_cannot_be_are_refused(page: Client, columns: Any) -> None:
    held = uploaded(page)
    assert page.refusal("POST", f"tables/{held['id']}/schema", json={"columns": columns})
    assert len(page.get("state")["tables"]) == len({t["id"] for t in page.get("state")["tables"]})


@pytest.mark.parametrize("name", ["x.bif", "x.json", "x.exe", "x", "x.csv.gz", "x.parquet"])
def test_files_that_are_none_are_refused_by_their_own_name(page: Client, name: str) -> None:
    for data in (b"", b"hello", b"\x00\x01\x02" * 100, b'{"suffice": "bayes_net"', b"\xff\xfe"):
        for what in ("models", "tables"):
            reply = page.send(what, data, name)
            assert reply.status_code == 400, (what, data)
            assert str(page.page.shelf.room) not in reply.text, (what, data)
            assert not list(page.page.shelf.room.iterdir()), (what, data)


def test_models_come_and_go(page: Client, tmp_path: Any) -> None:
    sf.write(sf.load("cancer"), tmp_path / "cancer.xdsl")
    reply = page.send("models", (tmp_path / "cancer.xdsl").read_bytes(), "cancer.xdsl")
    assert reply.json()["n_nodes"] == 5
    assert not list(page.page.shelf.room.iterdir())


def test_cases_the_most_surprising_first(learned: Client, fitted: sf.BayesNet, rows: dict[str, list[str]]) -> None:
    logs = fitted.log_prob(rows)
    first = learned.get(f"models/{learned.model}/cases", table=learned.table, limit=10)
    assert first["total"] == 2000
    assert [case["log_prob"] for case in first["rows"]] == pytest.approx(np.sort(logs)[:10].tolist())
    case = first["rows"][0]
    assert dict(zip(first["columns"], case["cells"], strict=True)) == {name: rows[name][case["row"]] for name in first["columns"]}
    page = learned.get(f"models/{learned.model}/cases", table=learned.table, order="row", offset=1998, limit=50)
    assert [case["row"] for case in page["rows"]] == [1998, 1999]
    assert learned.get(f"models/{learned.model}/cases", table=learned.table, offset=5000)["rows"] == []


@pytest.mark.parametrize("query", [{"table": "d99"}, {}, {"order": "size"}, {"offset": -1}, {"limit": 0}, {"limit": "x"}])
def test_cases_that_cannot_be_shown(learned: Client, query: dict[str, Any]) -> None:
    own = {"table": learned.table, **query} if query else {}
    status = 404 if query.get("table") == "d99" else 400
    assert learned.refusal("GET", f"models/{learned.model}/cases", status, params=own)


def test_data_that_lacks_columns_or_has_new_states(asia: Client, rows: dict[str, list[str]]) -> None:
    lines = [",".join(["asia", "tub"]), "yes,no", "no,no"]
    lacking = uploaded(asia, "\n".join(lines))
    assert "no column" in asia.refusal("GET", f"models/{asia.model}/cases", params={"table": lacking["id"]})
    wrong = {name: column[:5] for name, column in rows.items()} | {"smoke": ["yes", "no", "pipe", "no", "no"]}
    text = "\n".join([",".join(wrong), *(",".join(line) for line in zip(*wrong.values(), strict=True))])
    strange = uploaded(asia, text, "strange.csv")
    assert "pipe" in asia.refusal("GET", f"models/{asia.model}/cases", params={"table": strange["id"]})
    job = asia.post(f"models/{asia.model}/strengths", {"table": strange["id"], "n": 5})
    assert "pipe" in asia.events(job["id"])[-1][1]["error"]
    for table in (lacking, strange):
        asia.http.delete(f"/api/tables/{table['id']}")
