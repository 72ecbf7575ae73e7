"""The page of benchmarks is drawn from what `make bench` recorded; what is left of earlier runs names its machine and script."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import building.recorded_runs
from building.recorded_runs import SCRIPT, figures, markdown, recorded, unrecorded

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
PLACES = re.compile(r"(?<![\w.<])/(?:home|root|tmp|work|var|usr|opt|Users|mnt)/|[A-Z]:\\\\")
MACHINES = {"Xeon", "EPYC", "Xeon, busy", "EPYC, busy"}
RUN = {
    "machine": {"processor": "P", "cores": 2, "memory": "8 GiB", "system": "Linux", "python": "3.11"},
    "versions": {"suffice": "0.2.0"},
    "day": "2026-01-01",
    "scripts": {"fit.py": {"seconds": 3.0, "load": 5.0, "output": ["-- small", "fit |x|: 0.5 s; pgmpy 5 s = 10.0x"]}},
}


def earlier_rows() -> list[str]:
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    return [line for line in page.splitlines() if line.startswith("|")][2:]


def test_lines_beside_other_programs_are_read() -> None:
    assert doctest.testmod(building.recorded_runs).failed == 0
    [f] = figures(["a: b, 3 rows: 34 ns a step; x 523 ns = 15.3x (wanted 9x: met); y-z 1,889 ns = 1,025.8x"])
    assert (f.work, f.ours, f.aim) == ("a: b, 3 rows", "34 ns a step", "9x: met")
    assert [(p.name, p.time, p.ratio) for p in f.peers] == [("x", "523 ns", 15.3), ("y-z", "1,889 ns", 1025.8)]
    [f] = figures(["17 labels: 0.049 s an iteration, crfsuite 0.148 s = 3.0x (wanted 2x: met)"])
    assert (f.ours, f.peers[0].name, f.aim) == ("0.049 s an iteration", "crfsuite", "2x: met")
    [f] = figures(["tree: 0.2 s; pgmpy, stopped after 60 s = 290.0x"])
    assert str(f.peers[0]) == "pgmpy over 60 s: over 290×"
    assert not figures(["log-likelihood: ours 3.0", "plain: 0.3 s", ""])


def test_a_run_becomes_a_page_with_its_load() -> None:
    page = "\n".join(markdown(RUN))
    assert "2 cores of P, 8 GiB" in page
    assert "at a load of 5.0 on 2 cores, busy" in page
    assert "| fit \\|x\\| | 0.5 s | pgmpy 5 s: 10× |" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert page.count("<circle") == 1
    assert "All that fit.py printed" in page


def test_a_row_of_an_earlier_run_goes_when_its_script_has_a_record() -> None:
    rows = ["| a | `fit.py` |", "| b | `fit.py small` |", "| c | `fit.py large` |", "| d | `em.py` |"]
    assert unrecorded(["| work | script |", "|---|---|", *rows], RUN["scripts"])[2:] == rows[2:]
    assert unrecorded(["| work | script |", "|---|---|", *rows[:2]], RUN["scripts"]) == []


@pytest.mark.parametrize("row", earlier_rows())
def test_an_earlier_figure_names_machine_and_script(row: str) -> None:
    named = SCRIPT.search(row)
    assert named is not None
    assert (SCRIPTS / named[1]).exists()
    assert re.split(r"(?<!\\)\|", row)[4].strip() in MACHINES


def test_the_record_has_no_place_of_a_machine() -> None:
    for script, result in recorded()["scripts"].items():
        assert (SCRIPTS / script).exists()
        assert not [line for line in result["output"] if PLACES.search(line)]
