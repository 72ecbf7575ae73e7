"""Proved optima of GOBNILP, from the rows in ../shared (`make reference`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import suffice as sf
from suffice.structure.constraints import Adjacent, Constraints, Forbid, NotAncestor
from suffice.structure.methods.exact import Exact
from suffice.structure.search import search

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"
BDEU, BGE, BIC = sf.Evidence(sf.BDeu(1)), sf.Evidence(sf.BGe()), sf.BIC()


def data(name: str) -> sf.Data:
    levels = json.loads((TABLES / "levels.json").read_text())[name]
    return sf.scan(TABLES / f"{name}.csv.gz", variables={c: sf.Finite(c, s) if s else sf.Real for c, s in levels.items()})


@pytest.mark.parametrize(
    ("constraints", "max_parents", "expected"),
    [
        (None, None, -24028.0947783535),
        (None, 1, -24933.77702265212),
        (Adjacent(("C", "F")), None, -24036.170710864524),
        (Adjacent(("C", "F")) + Forbid(("F", "E")), None, -24043.92054159024),
        (NotAncestor(("A", "E"), ("B", "E")), None, -24035.844609079217),
    ],
)
def test_learning_test(constraints: Constraints | None, max_parents: int | None, expected: float) -> None:
    found = search(data("learning.test"), BDEU, Exact(max_parents=max_parents), constraints)
    assert found.score == pytest.approx(expected, rel=1e-10)
    assert found.proved
    assert found.bound is not None


@pytest.mark.parametrize(
    ("score", "max_parents", "expected"),
    [(BGE, None, -53258.94161814058), (BGE, 3, -54052.41081344564), (BIC, None, -53221.34568733569)],
)
def test_gaussian_test(score: object, max_parents: int | None, expected: float) -> None:
    found = search(data("gaussian.test"), score, Exact(max_parents=max_parents))
    assert found.score == pytest.approx(expected, rel=1e-10)
    assert found.proved


def test_insurance_by_subsets_and_by_branches() -> None:
    """27 variables: a gibibyte of subsets, or, where there is less memory, branch and cut."""
    rows = data("insurance")
    for limit in (None, "900MB"):
        found = search(rows, BIC, Exact(max_parents=3), memory_limit=limit)
        assert found.score == pytest.approx(-264708.85975077713, abs=1e-3)
        assert found.proved


def test_alarm_has_a_small_gap_soon() -> None:
    found = search(data("alarm"), BIC, Exact(max_parents=3, gap=0.005), time_limit=300)
    assert found.score == pytest.approx(-218632.31567964845, abs=1e-3)
    assert found.gap is not None
    assert found.gap <= 0.005
