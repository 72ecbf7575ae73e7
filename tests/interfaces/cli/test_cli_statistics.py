"""`suffice gather` and `merge`, and `learn` from what they write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import suffice as sf
from tests.statistics.test_every_family import finite_rows, parts


@pytest.fixture
def sites(run):
    """The rows of two sites, and of both, beside each other."""
    rows = finite_rows(400, 1)
    for name, part in zip(("a", "b"), parts(rows, 150), strict=True):
        _write(f"{name}.csv", part)
    _write("all.csv", rows)
    return run


def _write(path: str, rows: dict[str, Any]) -> None:
    lines = [",".join(rows), *(",".join(cells) for cells in zip(*rows.values(), strict=True))]
    Path(path).write_text("\n".join(lines) + "\n")


def test_two_sites_give_the_graph_of_all_rows(sites) -> None:
    for name in "ab":
        code, _, err = sites("gather", f"{name}.csv", "--max-parents", 2, "-o", f"{name}.stats")
        assert code == 0
        assert "gathering at most 41 tables" in err
    assert sites("merge", "a.stats", "b.stats", "-o", "all.stats")[0] == 0
    merged = json.loads(sites("learn", "all.stats", "--json")[1])
    of_rows = json.loads(sites("learn", "all.csv", "--max-parents", 2, "--json")[1])
    assert (merged["edges"], merged["score"]) == (of_rows["edges"], of_rows["score"])


def test_statistics_of_a_graph_and_their_decay(sites) -> None:
    for name in "ab":
        assert sites("gather", f"{name}.csv", "v0 -> v1", "-o", f"{name}.stats")[0] == 0
    assert sites("merge", "a.stats", "b.stats", "--decay", 0.5, "-o", "all.stats")[0] == 0
    assert sf.Statistics.load("all.stats").weight == 0.5 * 150 + 250
    assert sites("fit", "v0 -> v1", "all.stats", "-o", "net.json")[0] == 0


def test_the_size_is_told(sites) -> None:
    assert json.loads(sites("gather", "a.csv", "--max-parents", 2, "--dry-run", "--json")[1])["entries"] == 6 + 15 + 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("gather a.csv -o x.stats", "give a graph, --pairs, or --max-parents K"),
        ("gather a.csv --max-parents 2", "-o NAME.stats"),
        ("gather a.csv --max-parents 2 -o x.csv", "-o NAME.stats"),
        ("gather a.csv v0 --dry-run", "--dry-run says how large"),
        ("gather a.csv --max-parents 5 --memory-limit 10KB -o x.stats", "(--memory-limit)"),
        ("gather a.stats --max-parents 5 -o x.stats", "suffice merge"),
        ("merge a.csv -o x.stats", "no file of statistics"),
        ("merge nothing.stats -o x.stats", "no such file"),
    ],
)
def test_refusals(sites, arguments: str, said: str) -> None:
    code, _, err = sites(*arguments.split())
    assert code == 1
    assert said in err
    assert not Path("x.stats").exists()


def test_more_parents_than_gathered_and_files_that_differ(sites) -> None:
    sites("gather", "a.csv", "--max-parents", 1, "-o", "a.stats")
    sites("gather", "b.csv", "--max-parents", 2, "-o", "b.stats")
    code, _, err = sites("learn", "a.stats", "--max-parents", 3)
    assert code == 1
    assert "up to 1 parents" in err
    assert "up to 3" in err
    assert "suffice gather --max-parents 3" in err
    code, _, err = sites("merge", "a.stats", "b.stats", "-o", "x.stats")
    assert code == 1
    assert "b.stats does not add" in err
