"""Numbers of bnlearn for tests of independence, and the classes that PC and MMHC find, from ../shared (`make reference`)."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

import suffice as sf
from suffice.structure.independence import ChiSquared, FisherZ, GSquared, MutualInformation, independence_test
from suffice.structure.methods.orientation import Conservative, FirstSepset, Majority
from suffice.structure.methods.pc import MMHC, PC
from suffice.structure.search import search

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"
TRUE = {"learning.test": "[A][C][F][B|A][D|A:C][E|B:F]", "gaussian.test": "[A][B][E][G][C|A:B][D|B][F|A:D:E:G]"}


def data(name: str) -> sf.Data:
    levels = json.loads((TABLES / "levels.json").read_text())[name]
    return sf.scan(TABLES / f"{name}.csv.gz", variables={c: sf.Finite(c, s) if s else sf.Real for c, s in levels.items()})


@pytest.mark.parametrize(
    ("test", "question", "expected"),
    [
        (GSquared(), ("A", "B"), (2341.82788919426, 4, 0.0)),
        (GSquared(), ("B", "C", "A"), (12.4719295401757, 12, 0.408560316825093)),
        (GSquared(adjusted=True), ("B", "C", "A"), (12.4719295401757, 12, 0.408560316825093)),
        (GSquared(), ("B", "F", "E"), (247.572224515728, 6, 1.354e-50)),
        (ChiSquared(), ("A", "B"), (2208.19705435898, 4, 0.0)),
        (ChiSquared(), ("B", "C", "A"), (12.064511440639, 12, 0.440512651717825)),
        (ChiSquared(), ("B", "F", "E"), (256.990273682696, 6, 1.3145e-52)),
        (MutualInformation(), ("B", "C", "A"), (12.4719295401757 / 10_000, 12, 0.408560316825093)),
    ],
)
def test_bnlearns_tests_of_tables(test: GSquared, question: tuple[str, ...], expected: tuple[float, int, float]) -> None:
    result = independence_test(data("learning.test"), *question, test=test)
    assert result.statistic == pytest.approx(expected[0], rel=1e-13)
    assert result.df == expected[1]
    assert result.p_value == pytest.approx(expected[2], rel=1e-3 if expected[2] < 1e-40 else 1e-12, abs=1e-300)


def test_bnlearns_fisher_z() -> None:
    rows = data("gaussian.test")
    result = independence_test(rows, "A", "B", test=FisherZ())
    assert (result.statistic, result.p_value) == pytest.approx((-1.84658725091779, 0.0648069833), rel=1e-9)
    assert independence_test(rows, "A", "D", "F").statistic == pytest.approx(-28.851986955985, rel=1e-12)


@pytest.mark.parametrize("method", [PC(orient=o) for o in (Majority(), Conservative(), FirstSepset())] + [MMHC()], ids=repr)
@pytest.mark.parametrize("name", list(TRUE))
def test_the_true_class_is_found(name: str, method: PC | MMHC) -> None:
    assert search(data(name), method=method).cpdag == sf.Dag(TRUE[name]).cpdag()


@pytest.mark.parametrize("test", [GSquared(), ChiSquared(), MutualInformation()], ids=repr)
def test_the_class_of_learning_test_by_every_test(test: GSquared) -> None:
    assert search(data("learning.test"), method=PC(test=test)).cpdag == sf.Dag(TRUE["learning.test"]).cpdag()


def test_samples_of_alarm_come_out_close_to_the_truth() -> None:
    bn = sf.load("alarm")
    found = [search(bn.sample(10_000, seed=k), method=PC()) for k in range(5)]
    assert statistics.median(sf.shd(f.cpdag, bn.dag) for f in found) <= 5
    assert all(f.dag for f in found)
