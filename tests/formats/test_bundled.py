"""What comes with the package: networks and tables, listed and as large as the list says."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import suffice as sf
from suffice.formats.registry import NETWORKS, TABLES


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_as_large_as_the_list_says(name: str) -> None:
    bn = sf.load(name)
    assert NETWORKS[name].size == f"{len(bn):,} nodes, {len(bn.dag.edges):,} edges, {bn.n_parameters:,} parameters"


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_as_large_as_the_list_says(name: str) -> None:
    rows = sf.table(name)
    assert TABLES[name].size == f"{rows.n_rows:,} rows, {len(rows.columns):,} columns"


def test_lists() -> None:
    assert "munin" in sf.formats.networks()
    assert "penguins" in sf.formats.tables()
    assert re.search(r"^asia +8 nodes, 8 edges, 18 parameters", repr(sf.formats.networks()), re.MULTILINE)
    assert "<table>" in sf.formats.networks()._repr_html_()
    with pytest.raises(sf.SufficeError, match="no bundled table 'penguin'; did you mean 'penguins'"):
        sf.table("penguin")


def test_every_bundled_file_is_in_the_notice_and_small_enough() -> None:
    folder = Path(str(resources.files("suffice") / "formats" / "bundled"))
    files = [f for f in folder.rglob("*") if f.is_file() and f.suffix != ".py"]
    assert sum(f.stat().st_size for f in files) < 3 * 2**20  # a wheel stays below 5 MB
    notice = Path(__file__).parents[2] / "NOTICE"
    for f in files:
        assert re.sub(r"munin\d", "munin", f.name.split(".")[0]) in notice.read_text("utf-8"), f


def test_names_on_the_command_line(run: Any) -> None:
    code, out, _ = run("networks")
    assert code == 0
    assert "munin4" in out
    assert "penguins" in out
    assert json.loads(run("networks", "--json")[1])["tables"] == list(sf.formats.tables())
    assert run("schema", "penguins")[1].startswith("344 rows")
