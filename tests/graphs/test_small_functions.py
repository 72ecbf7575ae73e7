"""What small functions of this room give, an example each."""

from __future__ import annotations

from suffice.graphs.comparison import marks
from suffice.graphs.directed import Cpdag, topological_order
from suffice.graphs.lagged import lagged_written, read_lagged, relative_name, unrolled_name, variable_and_lag, within
from suffice.graphs.paths import active_path, chain, class_edges, extension, find_cycle, links, meek, reach, shortest_path
from suffice.graphs.text import (
    all_nodes,
    has_lines,
    parse_modelstring,
    parse_text,
    quote_name,
    read_directed,
    read_pairs,
    read_undirected,
    show,
    spelling,
    statements,
    unknown_node,
    written_in_lines,
)
from suffice.graphs.undirected import fill_in, is_perfect, perfect_order, sequence_of_cliques


def test_perfect_order() -> None:
    assert perfect_order({"a": ["b"], "b": ["a", "c"], "c": ["b"]}) == ["c", "b", "a"]


def test_is_perfect() -> None:
    square = {"a": ["b", "d"], "b": ["a", "c"], "c": ["b", "d"], "d": ["a", "c"]}
    assert (is_perfect("abcd", square), is_perfect("ab", {"a": ["b"], "b": ["a"]})) == (False, True)


def test_fill_in() -> None:
    assert fill_in({"a": ["b", "d"], "b": ["a", "c"], "c": ["b", "d"], "d": ["a", "c"]}) == [("b", "d")]


def test_sequence_of_cliques() -> None:
    assert sequence_of_cliques({"a": ["b"], "b": ["a", "c"], "c": ["b"]}) == [(("a", "b"), ()), (("b", "c"), ("b",))]


def test_marks() -> None:
    assert marks(Cpdag([("b", "a")], [("a", "c")])) == {("a", "b"): "<-", ("a", "c"): "--"}


def test_what_language_a_text_is_in() -> None:
    assert parse_text("digraph { a -> b }") == parse_text("dag{a->b}") == parse_text("a -> b") == (["a", "b"], [("a", "b")])
    assert parse_text("dag -> b") == (["dag", "b"], [("dag", "b")])


def test_parse_dot() -> None:
    assert parse_text('digraph { rankdir=LR; node [shape=box]; a -> {b c} [color=red]; "d e"; }') == (
        ["a", "b", "c", "d e"],
        [("a", "b"), ("a", "c")],
    )
    assert parse_text('dag{ x [exposure,pos="0,1"] y [outcome] x -> y <- z }') == (["x", "y", "z"], [("x", "y"), ("z", "y")])


def test_relative_name() -> None:
    assert (relative_name("y", 2), relative_name("y", 0)) == ("y[-2]", "y")


def test_unrolled_name() -> None:
    assert unrolled_name("y", 0) == "y[0]"


def test_variable_and_lag() -> None:
    assert (variable_and_lag("y"), variable_and_lag("y[-2]"), variable_and_lag("dose[mg]")) == (
        ("y", 0),
        ("y", 2),
        ("dose[mg]", 0),
    )


def test_within() -> None:
    assert within({"x": ("x[-1]", "u"), "u": ()}) == {"x": ["u"], "u": []}


def test_lagged_written() -> None:
    assert (lagged_written("y[-1]"), lagged_written("heart rate[-1]")) == ("y[-1]", '"heart rate[-1]"')


def test_topological_order() -> None:
    assert topological_order({"a": ["b"], "b": [], "c": []}) == ("b", "a", "c")


def test_reach() -> None:
    assert sorted(reach(["c"], {"a": [], "b": ["a"], "c": ["b"], "d": []})) == ["a", "b", "c"]


def test_shortest_path() -> None:
    assert shortest_path("a", "d", {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) == ["a", "b", "d"]


def test_active_path() -> None:
    parents = {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}
    children = {"a": ["c"], "b": ["c"], "c": ["d"], "d": []}
    assert (active_path(parents, children, {"a"}, {"b"}, set()), active_path(parents, children, {"a"}, {"b"}, {"d"})) == (
        [],
        ["a", "c", "b"],
    )


def test_find_cycle() -> None:
    assert find_cycle({"a": ["b"], "b": ["a"], "c": ["a"]}) == ["a", "b", "a"]


def test_chain() -> None:
    assert (chain(["a", "b", "a"]), chain(list("abcdef"), limit=4)) == ("a -> b -> a", "a -> b -> c -> ... -> f")


def test_meek() -> None:
    assert meek([("a", "b")], [("b", "c")]) == ([("a", "b"), ("b", "c")], [])


def test_extension() -> None:
    assert extension("abc", [], [("a", "b"), ("b", "c")]) == {"a": [], "b": ["a"], "c": ["b"]}


def test_has_lines() -> None:
    assert (has_lines("a -- b; c"), has_lines("a -> b"), has_lines('"a -- b" -> c')) == (True, False, False)


def test_parse_modelstring() -> None:
    assert parse_modelstring("[a][b|a]") == (["a", "b"], [("a", "b")])


def test_read_directed() -> None:
    assert read_directed({"c": ["b", "a"]}) == (["c"], [("b", "c"), ("a", "c")])


def test_read_undirected() -> None:
    assert read_undirected("a -- b; c") == (["a", "b", "c"], [("a", "b")])


def test_read_pairs() -> None:
    assert read_pairs([("a", "b")]) == [("a", "b")]


def test_all_nodes() -> None:
    assert all_nodes(["e"], [("a", "b")]) == ("a", "b", "e")


def test_unknown_node() -> None:
    assert str(unknown_node("smok", ["smoke", "age"])) == "the graph has no node 'smok'; did you mean 'smoke'?"


def test_spelling() -> None:
    assert (spelling("x-ray"), spelling("lung cancer")) == ("x-ray", '"lung cancer"')


def test_written_in_lines() -> None:
    assert (written_in_lines("x-ray"), written_in_lines("x--ray")) == ("x-ray", '"x--ray"')


def test_quote_name() -> None:
    assert str(quote_name('say "a"')) == '"say \\"a\\""'


def test_show() -> None:
    assert (show("smoke"), len(show("x" * 1000))) == ("'smoke'", 62)


def test_read_lagged() -> None:
    assert read_lagged("y[ -1 ], u -> y") == {"u": (), "y": ("y[-1]", "u")}


def test_links() -> None:
    assert links([("a", "b")], ["c"]) == ({"c": [], "a": [], "b": ["a"]}, {"c": [], "a": ["b"], "b": []})


def test_class_edges() -> None:
    assert class_edges("abcd", {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}) == ([("a", "c"), ("b", "c"), ("c", "d")], [])
    assert class_edges("abc", {"a": [], "b": ["a"], "c": ["b"]}) == ([], [("a", "b"), ("b", "c")])


def test_parse_text() -> None:
    assert parse_text("a, b -> c; e") == (["a", "b", "c", "e"], [("a", "c"), ("b", "c")])


def test_statements() -> None:
    assert list(statements("abce", {"a": [], "b": [], "c": ["b", "a"], "e": []})) == ["b, a -> c", "e"]
