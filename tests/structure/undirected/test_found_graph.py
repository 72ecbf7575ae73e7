"""What a search for an undirected graph returns, and what constraints mean to it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.structure.results.found_graph import GraphOutcome, PathEntry, PenaltyPath
from suffice.structure.undirected.graph_method import GraphMethod

ROWS = {name: np.linspace(0.5, 9.5, 8) ** k for k, name in enumerate("abc", 1)}


@dataclass(frozen=True)
class AllEdges(GraphMethod):
    """Every edge that the rules allow."""

    def run(self, problem: Any) -> GraphOutcome:
        names = problem.names
        pairs = [(names[i], names[j]) for i, j in np.argwhere(np.triu(problem.rules.allowed)).tolist()]
        path = PenaltyPath([PathEntry(0.1, len(pairs), 2.0, 1.0, 0.0)])
        strengths = dict.fromkeys(pairs, 0.5)
        return GraphOutcome(sf.Graph(pairs, nodes=names), -2.0, strengths, path=path, model=lambda: "a model")


def test_search_returns_what_the_outcome_becomes() -> None:
    found = sf.search(ROWS, method=AllEdges())
    assert found.graph.edges == (("a", "b"), ("a", "c"), ("b", "c"))
    assert found.score == -2.0
    assert found.finished
    assert found.model == "a model"
    assert found.path[0].n_edges == 3
    assert found.strengths["a", "b"] == 0.5
    assert "a -- b" in repr(found)
    assert "AllEdges()" in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["edges"][0] == ["a", "b"]
    assert repr(found.explain("b", "a")) == "a -- b: an edge\n  strength  0.5"
    copy = pickle.loads(pickle.dumps(found))
    assert copy.graph == found.graph
    assert copy.model == "a model"
    assert repr(copy) == repr(found)
    with pytest.raises(sf.SufficeError, match="unpickled"):
        copy.problem  # noqa: B018
    with pytest.raises(sf.SufficeError, match="did you mean"):
        sf.search({"alpha": ROWS["a"], "b": ROWS["b"]}, method=AllEdges()).explain("alpa", "b")
    with pytest.raises(sf.SufficeError, match="graph only"):
        found.precision  # noqa: B018
    assert sf.search(ROWS, method=AllEdges(), dry_run=True).n_variables == 3


def test_constraints_speak_of_both_directions() -> None:
    def edges(constraints: Any) -> tuple[tuple[str, str], ...]:
        return sf.search(ROWS, method=AllEdges(), constraints=constraints).graph.edges

    assert edges(sf.Forbid(("b", "a"))) == edges(sf.Forbid(("a", "b"))) == (("a", "c"), ("b", "c"))
    assert edges(sf.constraints.Candidates({"a": ["c"]})) == (("a", "c"), ("b", "c"))
    assert len(edges(sf.Require(("c", "a")) + sf.constraints.Adjacent(("a", "b")))) == 3
    with pytest.raises(sf.SufficeError, match="'a' -- 'b' is required and not allowed"):
        edges(sf.Forbid(("b", "a")) + sf.Require(("a", "b")))
    with pytest.raises(sf.SufficeError, match="Tiers speaks of the direction"):
        edges(sf.Tiers(["a"], ["b"]))
    with pytest.raises(sf.SufficeError, match="NotAncestor speaks of the direction"):
        edges(sf.constraints.NotAncestor(("a", "b")))
    with pytest.raises(sf.SufficeError, match="MaxParents speaks of parents"):
        edges(sf.constraints.MaxParents(2))
    with pytest.raises(sf.SufficeError, match="'z', which is not among"):
        edges(sf.Forbid(("a", "z")))


def test_rows_that_an_undirected_search_does_not_take() -> None:
    with pytest.raises(sf.SufficeError, match=r"'a' 1.*EM for undirected models is not here"):
        sf.search({"a": [0.5, None, 1.5], "b": [0.5, 2.5, 1.5]}, method=AllEdges())
    with pytest.raises(sf.SufficeError, match="steps of sequences have one"):
        sf.search(sf.sequences(ROWS), method=AllEdges())
