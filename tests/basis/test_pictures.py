"""Pictures: no edge touches a node that it does not join, and every edge ends at the borders of its nodes, in both layouts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.pictures import Bar, Picture, PictureEdge, PictureNode
from suffice.basis.pictures.arrangement import by_graphlay, in_layers, lay_out
from suffice.basis.pictures.layout import Layout
from suffice.basis.pictures.shapes import size_of
from suffice.graphs import Dag, Graph
from tests.basis.crossings import crossings

matplotlib.use("Agg")

GRAPHS = {
    "chain with a shortcut": Dag("a -> b -> c; a -> c"),
    "long shortcuts": Dag("a -> b -> c -> d -> e; a -> c; a -> e; b -> e; a -> d"),
    "asia": sf.load("asia").dag,
    "alarm": sf.load("alarm").dag,
    "one node": Dag("a"),
    "no edges": Dag("a; b; c"),
}


def graphlay_layout(*graph: Any) -> Layout:
    return by_graphlay(pytest.importorskip("graphlay"), *graph, style="diagonal")


def of(dag: Dag) -> tuple[Any, Any]:
    return {n: size_of(PictureNode(n)) for n in dag.topological_order}, {n: dag.parents(n) for n in dag.nodes}


def on_border(point: tuple[float, float], box: tuple[float, float, float, float]) -> bool:
    (x, y), (left, top, right, bottom) = point, box
    across = left - 1e-6 <= x <= right + 1e-6 and (abs(y - top) < 1e-6 or abs(y - bottom) < 1e-6)
    along = top - 1e-6 <= y <= bottom + 1e-6 and (abs(x - left) < 1e-6 or abs(x - right) < 1e-6)
    return across or along


def check(layout: Layout, dag: Dag) -> None:
    assert set(layout.centres) == set(dag.nodes)
    assert set(layout.paths) == set(dag.edges)
    assert layout.collisions() == []
    for (parent, child), path in layout.paths.items():
        assert on_border(path[0], layout.box(parent)), (parent, child)
        assert on_border(path[-1], layout.box(child)), (parent, child)
    for a, b in itertools.combinations(dag.nodes, 2):
        (l1, t1, r1, b1), (l2, t2, r2, b2) = layout.box(a), layout.box(b)
        assert r1 < l2 or r2 < l1 or b1 < t2 or b2 < t1, (a, b)


@pytest.mark.parametrize("make", [in_layers, graphlay_layout], ids=["own", "graphlay"])
@pytest.mark.parametrize("name", GRAPHS)
def test_no_edge_touches_a_node_that_it_does_not_join(make: Any, name: str) -> None:
    check(make(*of(GRAPHS[name])), GRAPHS[name])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_no_edge_touches_another_node_of_any_graph(n: int, seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    names = [f"{'n' * int(rng.integers(1, 20))}{i}" for i in range(n)]
    dag = Dag({b: [a for a in names[:i] if rng.random() < share] for i, b in enumerate(names)})
    check(in_layers(*of(dag)), dag)
    assert not lay_out(*of(dag)).collisions()


def test_lines_and_boxes() -> None:
    def crosses(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return bool(Layout({"box": (1.0, 0.5)}, {"box": (2.0, 1.0)}, {("x", "y"): [a, b]}).collisions())

    assert crosses((-1, 0.5), (3, 0.5))
    assert crosses((1, 1), (1, 5))  # it touches
    assert not crosses((-1, 2), (3, 1.5))
    assert not crosses((3, -1), (3, 4))
    assert not crosses((-2, 0.5), (-1, 0.5))


def test_arrows_that_are_drawn_are_those_of_the_layout() -> None:
    dag = GRAPHS["asia"]
    ax = dag.plot()
    arrows = [p for p in ax.patches if type(p).__name__ == "FancyArrowPatch"]
    boxes = [p for p in ax.patches if type(p).__name__ == "FancyBboxPatch"]
    assert (len(arrows), len(boxes)) == (len(dag.edges), len(dag.nodes))
    assert all((a.shrinkA, a.shrinkB) == (0, 0) for a in arrows)
    assert dag._repr_html_().count("<polyline") == len(dag.edges)


def test_a_plot_without_axes_is_what_pyplot_saves(tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    plt.close("all")
    ax = Dag("a -> b").plot()
    assert plt.gcf() is ax.figure
    plt.savefig(tmp_path / "x.png")
    assert (plt.imread(tmp_path / "x.png")[..., :3] < 0.9).any()  # not a white page
    assert Dag("b -> c").plot().figure is not ax.figure  # two graphs do not lie on each other
    empty = plt.figure()
    assert Graph("a -- b").plot().figure is empty
    n = len(plt.get_fignums())
    Dag("a -> b").plot(tmp_path / "y.png")
    assert len(plt.get_fignums()) == n  # what goes to a file leaves no figure behind
    plt.close("all")


def test_a_plot_on_axes_of_ones_own_keeps_its_letters_in_its_boxes() -> None:
    from matplotlib.figure import Figure

    ax = Figure(figsize=(3, 2)).add_subplot()
    assert GRAPHS["alarm"].plot(ax=ax) is ax
    assert {t.get_fontsize() for t in ax.texts} == {ax.texts[0].get_fontsize()}
    assert ax.texts[0].get_fontsize() < 5


NAMES = [
    "<script>alert(1)</script>",
    'a "quoted" name',
    "two\nlines",
    "\u05e9\u05dc\u05d5\u05dd",
    "x" * 10_000,
    "\x00\x0b",
    "\u4e16\u754c",
    "&amp;",
]


def test_hostile_names_make_sound_pictures(tmp_path: Path) -> None:
    states = tuple(Bar(name, 1 / len(NAMES), 0.0, 0.3) for name in NAMES)
    picture = Picture(
        tuple(PictureNode(name, bars=states) for name in NAMES), tuple(PictureEdge(a, b) for a, b in itertools.pairwise(NAMES))
    )
    root = ElementTree.fromstring(picture.svg())
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert all(len(e.text or "") < 60 for e in root.iter() if e.tag.endswith("}text"))
    picture.save(tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1_000


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_edges_changes_nothing(random: Any) -> None:
    picture = GRAPHS["asia"].picture()
    nodes, edges = list(picture.nodes), list(picture.edges)
    random.shuffle(nodes)
    random.shuffle(edges)
    assert Picture(tuple(nodes), tuple(edges)).svg() == picture.svg()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 12), st.integers(0, 2**32 - 1), st.floats(0, 0.4), st.randoms(use_true_random=False))
def test_the_order_changes_nothing_of_any_graph(n: int, seed: int, share: float, random: Any) -> None:
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(n)]
    edges = [
        PictureEdge(a, b, arrow=bool(rng.random() < 0.7)) for a, b in itertools.combinations(names, 2) if rng.random() < share
    ]
    nodes = [PictureNode(name) for name in names]
    first = Picture(tuple(nodes), tuple(edges)).svg()
    random.shuffle(nodes)
    random.shuffle(edges)
    assert Picture(tuple(nodes), tuple(edges)).svg() == first


def test_parts_that_no_edge_joins_are_packed() -> None:
    dag = Dag({"b": ["a"], "d": ["c"], "f": ["e"], **{f"n{i}": [] for i in range(200)}})
    for make in (lay_out, in_layers):
        check(make(*of(dag)), dag)
    left, top, right, bottom = lay_out(*of(dag)).bounds
    assert 0.5 < (right - left) / (bottom - top) < 3


@pytest.mark.parametrize(("name", "most"), [("alarm", 8), ("insurance", 25), ("hailfinder", 6)])
def test_few_crossings(name: str, most: int) -> None:
    pytest.importorskip("graphlay")
    at = lay_out(*of(sf.load(name).dag))
    assert crossings(at) <= most
    assert not at.collisions()


@pytest.mark.parametrize("n", [0, 1, 1_000])
def test_isolated_nodes(n: int) -> None:
    root = ElementTree.fromstring(Picture(tuple(PictureNode(f"n{i}") for i in range(n))).svg())
    assert sum(e.tag.endswith("}rect") for e in root.iter()) == n


def test_every_graph_has_a_picture(tmp_path: Path) -> None:
    for graph in (Dag("a -> b"), Graph("a -- b"), Dag("a -> c <- b; c -> d").cpdag(), sf.Template("x[-1] -> x -> y")):
        graph.picture().save(tmp_path / "x.svg")
        ElementTree.parse(tmp_path / "x.svg")
        assert graph._repr_html_().startswith("<svg")
        graph.plot(tmp_path / "x.pdf")
    with pytest.raises(sf.SufficeError, match=r"saved as .svg, .png, .pdf, not .bmp"):
        Dag("a").picture().save(tmp_path / "x.bmp")
    with pytest.raises(sf.SufficeError, match="no node 'z'"):
        Dag("a").picture(focus="z")
    with pytest.raises(sf.SufficeError, match="against is another graph"):
        Dag("a").picture(against="b")  # type: ignore[arg-type]


def test_two_graphs_in_one_picture() -> None:
    both = Dag("a -> b -> c; a -> c").picture(against=Dag("b -> a; b -> c; c -> d"))
    assert {(e.tail, e.head): e.style for e in both.edges} == {
        ("a", "b"): "dashed",
        ("a", "c"): "double",
        ("b", "c"): "solid",
        ("c", "d"): "dotted",
    }
    heads = [e for e in ElementTree.fromstring(both.svg()).iter() if e.get("class") == "suffice-head"]
    assert len(heads) == 4
    cycle = Dag("a -> b -> c").picture(against=Dag("c -> a"))
    ElementTree.fromstring(cycle.svg())


def test_bars_do_not_make_edges_cross_boxes() -> None:
    bn = sf.load("alarm")
    nodes = tuple(PictureNode(v, bars=tuple(Bar(str(s), 0.5) for s in bn.variables[v].states)) for v in bn.dag.nodes)
    sizes = {name: size_of(next(n for n in nodes if n.name == name)) for name in bn.dag.topological_order}
    assert not lay_out(sizes, {n: bn.dag.parents(n) for n in bn.dag.nodes}).collisions()
    assert not in_layers(sizes, {n: bn.dag.parents(n) for n in bn.dag.nodes}).collisions()
