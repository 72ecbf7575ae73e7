"""Pictures: where things go, and what is drawn there."""

from __future__ import annotations

from suffice.basis.pictures import Picture
from suffice.basis.pictures.arrangement import in_layers, lay_out, pack_layouts
from suffice.basis.pictures.layout import Layout
from suffice.basis.pictures.plots import axes_of
from suffice.basis.pictures.scene import Bar, PictureNode, Scene
from suffice.basis.pictures.shapes import cut, escape_text, outline, percent
from tests.basis.crossings import crossings


def test_cut() -> None:
    assert cut("a name that is longer", 16) == "a name that is …"
    assert cut("two\nlines", 16) == "two lines"


def test_outline() -> None:
    assert outline(Scene.of({"b": ["a"]}, "ba")) == ({"a": (40.0, 26.0), "b": (40.0, 26.0)}, {"a": [], "b": ["a"]})


def test_percent() -> None:
    assert percent(0.5) == "50.0"
    assert percent(0.00004) == "<0.1"
    assert percent(1.0) == "100"
    assert percent(0.0) == "0"


def test_in_layers() -> None:
    at = in_layers({"a": (40, 26), "b": (40, 26)}, {"a": [], "b": ["a"]})
    assert at.paths["a", "b"] == [(20.0, 26.0), (20.0, 70.0)]
    assert at.box("b") == (0.0, 70.0, 40.0, 96.0)


def test_lay_out() -> None:
    at = lay_out({"a": (40.0, 26.0), "b": (40.0, 26.0)}, {"a": [], "b": ["a"]})
    assert at.collisions() == []


def test_pack_layouts() -> None:
    one = Layout({"a": (0, 0)}, {"a": (40, 26)}, {})
    assert pack_layouts([one, Layout({"b": (0, 0)}, {"b": (40, 26)}, {})]).centres == {"a": (20.0, 13.0), "b": (20.0, 63.0)}


def test_layout() -> None:
    at = Layout({"a": (20, 13)}, {"a": (40, 26)}, {})
    assert at.box("a") == (0.0, 0.0, 40.0, 26.0)
    assert at.move_to(0, 50).box("a") == (0.0, 50.0, 40.0, 76.0)


def test_layout_collisions() -> None:
    sizes = dict.fromkeys("abc", (40, 26))
    bad = Layout({"a": (0, 0), "b": (0, 50), "c": (0, 100)}, sizes, {("a", "c"): [(0, 13), (0, 87)]})
    assert bad.collisions() == [(("a", "c"), "b")]


def test_layout_crossings() -> None:
    at = Layout({}, {}, {("a", "b"): [(0, 0), (2, 2)], ("c", "d"): [(0, 2), (2, 0)]})
    assert crossings(at) == 1


def test_svg_of() -> None:
    assert Picture.of({}, ["<a>"]).svg().count("&lt;a&gt;") == 2


def test_escape_text() -> None:
    assert escape_text("a<b\x00") == "a&lt;b�"


def test_axes_of() -> None:
    assert axes_of(None, 3, 2).figure.get_size_inches().tolist() == [3.0, 2.0]


def test_picturenode_few_bars() -> None:
    assert PictureNode("x", bars=tuple(Bar(str(i), i / 190) for i in range(20))).few_bars()[1] == "8 more states: 0.1474"


def test_scene_weigh_edges() -> None:
    wide = Scene.of({"c": ["a", "b"]}, "abc").weigh_edges({("a", "c"): 2.0, ("b", "c"): 8.0}, "loss without the edge")
    assert wide.edges[0].strength == 0.25
    assert wide.edges[0].title == "a -> c: loss without the edge 2"
    assert wide.widths == ((0.25, "loss without the edge 2"), (1.0, "loss without the edge 8"))


def test_scene_against() -> None:
    both = Scene.of({"b": ["a"]}, "ab").against(Scene.of({"a": ["b"], "c": ["a"]}, "abc"))
    assert [(edge.tail, edge.head, edge.style) for edge in both.edges] == [("a", "b", "dashed"), ("a", "c", "dotted")]


def test_scene_near() -> None:
    chain = Scene.of({"b": ["a"], "c": ["b"]}, ["a", "b", "c"])
    assert [node.name for node in chain.near("a").nodes] == ["a", "b"]
    assert chain.near("a").caption == "2 of 3 nodes: at most 1 edge from a"
