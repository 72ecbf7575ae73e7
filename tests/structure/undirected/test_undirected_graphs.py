"""Undirected graphs: text, cliques, chordal graphs and their sequences, against definitions and networkx."""

from __future__ import annotations

import pickle
from itertools import combinations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Dag, Graph
from suffice.errors import GraphError


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> Graph:
    names = [f"v{i}" for i in range(draw(st.integers(1, most)))]
    pairs = list(combinations(names, 2))
    return Graph(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [], nodes=names)


@given(graphs())
def test_text_and_pickle_make_the_same_graph(graph: Graph) -> None:
    assert Graph(str(graph)) == graph == eval(repr(graph)) == pickle.loads(pickle.dumps(graph)) == Graph(graph)


@given(graphs())
def test_cliques_components_and_chords_are_those_of_networkx(graph: Graph) -> None:
    other = graph.to_networkx()
    assert set(graph.cliques()) == {tuple(sorted(c)) for c in networkx.find_cliques(other)}
    assert set(graph.components()) == {tuple(sorted(c)) for c in networkx.connected_components(other)}
    assert graph.is_decomposable == networkx.is_chordal(other)


@given(graphs())
def test_a_triangulation_is_decomposable_and_its_sequence_is_perfect(graph: Graph) -> None:
    chordal = graph.triangulated()
    assert chordal.is_decomposable
    assert set(graph.edges) <= set(chordal.edges)
    sequence, separators = chordal.perfect_sequence(), chordal.separators()
    assert sorted(sequence) == list(chordal.cliques())
    assert len(separators) == len(sequence) - 1
    for i, (clique, separator) in enumerate(zip(sequence[1:], separators, strict=True), 1):
        before = set().union(*map(set, sequence[:i]))
        assert set(separator) == set(clique) & before
        assert any(set(separator) <= set(c) for c in sequence[:i])


@given(graphs(6), st.data())
def test_separation_is_that_no_path_goes_around(graph: Graph, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.integers(0, 3), min_size=len(graph), max_size=len(graph)))
    a, b, known = ([x for x, p in zip(graph.nodes, parts, strict=True) if p == k] for k in range(3))
    left = graph.to_networkx()
    left.remove_nodes_from(known)
    assert graph.separated(a, b, known) == (not any(networkx.has_path(left, x, y) for x in a for y in b))


def test_text() -> None:
    assert Graph("a -- b, c; d\n# a remark\nx-ray--c").edges == (("a", "b"), ("a", "c"), ("c", "x-ray"))
    assert Graph('"a -- b" -- c').nodes == ("a -- b", "c")
    assert str(Graph([("x--y", "z")])) == '"x--y" -- z'
    assert not Graph("a -- b")._repr_html_().count("marker-end")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("a -> b", "'->' is an arrow"),
        ("a -- ", "a name is missing at the end"),
        ("a -- b; b -- a", "given twice"),
        ("a -- a", "edge to itself"),
        ("graph { a }", "Graphviz"),
        (Dag("a -> b"), "this is a Dag, not a Graph: take its .skeleton()"),
        (Dag("a -> b").cpdag(), "this is a Cpdag, not a Graph"),
        (networkx.DiGraph([("a", "b")]), "the networkx graph is directed"),
    ],
)
def test_refusals(x: object, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graph(x)
    assert message in str(caught.value)


def test_what_only_decomposable_graphs_have() -> None:
    square = Graph("a -- b -- c -- d -- a")
    with pytest.raises(GraphError, match="not decomposable"):
        square.separators()
    with pytest.raises(GraphError, match="is in two of them"):
        square.separated("a", "a")
    with pytest.raises(GraphError, match="this is a Graph, not a Dag"):
        Dag(square)
