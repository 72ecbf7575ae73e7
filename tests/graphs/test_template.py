"""Templates: ways to write them, first slices, graphs of n steps against hand-made ones, and what is refused."""

from __future__ import annotations

import copy
import pickle
import time
from itertools import combinations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import DataError, GraphError, SufficeError, TooLarge
from suffice.graphs import Cpdag, Dag, Graph, Template, lag
from suffice.graphs.lagged import unrolled_name, variable_and_lag

unhurried = settings(deadline=None, max_examples=40)
ODD_NAMES = [
    "a",
    "b c",
    'say "d"',
    "e->f",
    "g;h,i",
    "dose[mg]",
    "j\nk",
    "#l",
    "x-",
    "--",
    "m ",
    " n",
    "[o",
    "p\\",
    "é→",
    "q[t]",
    "-1]",
]
names_of_any_kind = st.one_of(st.sampled_from(ODD_NAMES), st.text(min_size=1, max_size=5).filter(str.strip))


def is_variable(name: str) -> bool:
    try:
        return variable_and_lag(name) == (name, 0)
    except SufficeError:
        return False


@st.composite
def templates(draw: st.DrawFn, names: st.SearchStrategy[str] = st.sampled_from("abcdef"), max_lag: int = 3) -> Template:  # noqa: B008
    """A random template; in half of the cases the first slices are given too, each with edges of its own."""
    variables = draw(st.lists(names.filter(is_variable), min_size=1, max_size=5, unique_by=str.rstrip))

    def parents(longest: int) -> dict[str, list[str]]:
        order = draw(st.permutations(variables))
        found = {x: [lag(p, k) for p in variables for k in range(1, longest + 1) if draw(st.integers(0, 3)) == 0] for x in order}
        for a, b in combinations(order, 2):
            found[b] += [a] if draw(st.booleans()) else []
        return {x: draw(st.permutations(ps)) for x, ps in found.items()}

    template = Template(parents(max_lag))
    return Template(template, first=[parents(t) for t in range(template.order)]) if draw(st.booleans()) else template


def same(a: Template, b: Template) -> bool:
    """Equal, and with the same order of parents at each step."""
    steps = range(max(a.order, b.order) + 1)
    ordered = all(a.parents_at(x, t) == b.parents_at(x, t) for x in a.nodes for t in steps)
    return a == b and hash(a) == hash(b) and ordered and repr(a) == repr(b)


@pytest.mark.parametrize(
    "x",
    [
        "state[-1] -> state -> y; u -> state; y[-2] -> y",
        "state[ -1 ], u -> state\ny[-02] -> y <- state",
        '"state[-1]" -> state <- u; y <- state, y[\u22122]',
        {"state": [lag("state"), "u"], "y": ["state", lag("y", 2)]},
        {"y": {"state", "y[-2]"}, "state": ["u", "state[-1]"]},
        [("state[-1]", "state"), ("u", "state"), ("state", "y"), ("y[-2]", "y")],
        np.array([["state[-1]", "state"], ["u", "state"], ["state", "y"], ["y[-2]", "y"]]),
        networkx.DiGraph([("state[-1]", "state"), ("u", "state"), ("state", "y"), ("y[-2]", "y")]),
        Dag('"state[-1]" -> state -> y; u -> state; "y[-2]" -> y'),
    ],
)
def test_ways_to_write_the_same_template(x):
    template = Template(x)
    assert template.nodes == ("state", "u", "y")
    assert template.edges == (("state", "y"), ("state[-1]", "state"), ("u", "state"), ("y[-2]", "y"))
    assert set(template.parents("state")) == {"state[-1]", "u"}
    assert template.order == 2
    assert template.lags == {"state": (1,), "y": (2,)}
    assert template.topological_order == ("u", "state", "y")
    assert template.slice == Dag("u -> state -> y")
    assert template == Template(template) == Template("state[-1], u -> state; state, y[-2] -> y")
    assert len(template) == 3
    assert "u" in template
    assert "state[-1]" not in template


def test_parents_keep_their_declared_order_and_equality_ignores_it():
    a, b = Template({"y": ["u", "y[-1]"]}), Template({"y": ["y[-1]", "u"]})
    assert a.parents("y") == ("u", "y[-1]")
    assert b.parents("y") == ("y[-1]", "u")
    assert a == b
    assert hash(a) == hash(b)
    assert a != Template("y[-2], u -> y")
    assert a != a.window
    assert Template("u[-1] -> y") == Template("u[-1] -> y; u")


def test_a_variable_may_occur_only_with_a_lag():
    template = Template("u[-1] -> y")
    assert template.nodes == ("u", "y")
    assert template.parents("u") == ()
    assert template.unroll(2) == Dag('"u[0]" -> "y[1]"; "u[1]"; "y[0]"')


def test_a_template_without_lags_is_a_graph():
    template = Template("[a][b|a][c]")
    assert template.order == 0
    assert template.lags == {}
    assert template.first == template.first_nodes == ()
    assert template.slice == template.window == template.parameter_graph == Dag("a -> b; c")
    assert template == Template("a -> b; c", first=[])
    assert template.parents_at("b", 0) == ("a",)
    assert repr(template) == "Template('a -> b; c')"


def test_first_slices_leave_out_the_parents_that_do_not_exist():
    template = Template("state[-1] -> state -> y; y[-2], u[-1] -> y")
    assert template.first == (Dag("state -> y; u"), Dag('"state[-1]" -> state -> y; "u[-1]" -> y; u'))
    assert template.first_nodes == (("state", 0), ("y", 0), ("y", 1))
    assert [template.parents_at("y", t) for t in range(3)] == [
        ("state",),
        ("state", "u[-1]"),
        ("state", "y[-2]", "u[-1]"),
    ]
    assert [template.own_at("y", t) for t in range(4)] == [True, True, False, False]
    assert not any(template.own_at("u", t) for t in range(4))
    assert template.parameter_graph == Dag(
        {
            "state": ["state[-1]"],
            "state[0]": [],
            "u": [],
            "y": ["state", "y[-2]", "u[-1]"],
            "y[0]": ["state"],
            "y[1]": ["state", "u[-1]"],
        }
    )
    assert template.parameter_graph.parents("y[1]") == ("state", "u[-1]")


def test_first_slices_may_be_given():
    template = Template("x[-2] -> x -> y", first=["y -> x", "x[-1] -> x -> y"])
    assert template.slice_at(0) == Dag("y -> x")
    assert template.slice_at(1) == template.slice_at(2) == template.slice
    assert template.first_nodes == (("y", 0), ("x", 0), ("x", 1)), "in slice 0 y comes before x"
    assert template.lags == {"x": (1, 2)}
    assert template.order == 2
    assert template.unroll(3) == Dag('"y[0]" -> "x[0]" -> "x[1]" -> "y[1]"; "x[0]" -> "x[2]" -> "y[2]"')
    assert template != Template("x[-2] -> x -> y")
    assert repr(template) == "Template('x[-2] -> x; x -> y', first=['y -> x', 'x[-1] -> x; x -> y'])"


def test_first_slices_that_say_nothing_new_change_nothing():
    plain = Template("y[-2], y[-1], u -> y")
    for first in (["u -> y", "u, y[-1] -> y"], plain.first, [Dag("u -> y"), Template("y[-1], u -> y")]):
        given_too = Template("y[-2], y[-1], u -> y", first=first)
        assert same(given_too, plain)
        assert "first" not in repr(given_too)


def test_a_shared_cpd_keeps_the_order_of_the_template():
    template = Template("b, a -> y; z[-1] -> z", first=["a, b -> y -> z"])
    assert template.parents_at("y", 0) == ("b", "a")
    assert template.first_nodes == (("z", 0),)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_graph_of_n_steps_is_the_one_made_by_hand(k):
    template = Template({"s": [lag("s", k), "u"], "y": ["s", lag("u", k)]})
    for n in range(1, 7):
        pairs = [(f"u[{t}]", f"s[{t}]") for t in range(n)] + [(f"s[{t}]", f"y[{t}]") for t in range(n)]
        pairs += [(f"s[{t - k}]", f"s[{t}]") for t in range(k, n)] + [(f"u[{t - k}]", f"y[{t}]") for t in range(k, n)]
        assert template.unroll(n) == Dag(pairs)
        assert len(template.unroll(n)) == 3 * n


@unhurried
@given(templates(), st.integers(1, 6))
def test_a_graph_of_n_steps_has_the_parents_of_each_step(template, n):
    dag = template.unroll(n)
    assert len(dag) == n * len(template)
    for t in range(n):
        for x in template.nodes:
            absolute = [unrolled_name(v, t - k) for v, k in map(variable_and_lag, template.parents_at(x, t))]
            assert list(dag.parents(unrolled_name(x, t))) == absolute
            assert template.own_at(x, t) == (set(template.parents_at(x, t)) != set(template.parents(x)))
        assert set(template.slice_at(t).nodes) == set(template.nodes)
    shown = [f"{x}[{t}]" for x, t in template.first_nodes]
    lagged = {p for p, _ in template.parameter_graph.edges} - set(template.nodes)
    assert set(template.parameter_graph.nodes) == {*template.nodes, *shown, *lagged}
    assert lagged == {lag(x, k) for x, ks in template.lags.items() for k in ks}
    assert [t for _, t in template.first_nodes] == sorted(t for _, t in template.first_nodes)


@unhurried
@given(templates(names_of_any_kind))
def test_text_and_pickles_give_the_template_back(template):
    assert same(pickle.loads(pickle.dumps(template)), template)
    assert same(copy.deepcopy(template), template)
    assert same(Template(template), template)
    assert Template(str(template)).edges == template.edges
    assert Template(template.window, first=template.first) == template
    assert Template(template.to_networkx(), first=template.first) == template
    if " ..." not in repr(template):
        assert same(eval(repr(template)), template)


def test_long_templates_are_cut_in_their_repr():
    template = Template({f"variable{i}": [f"variable{i}[-1]"] for i in range(100)})
    assert len(repr(template)) < 400
    assert repr(template).endswith("100 nodes, 100 edges)")
    assert Template(str(template)) == template


def test_pictures():
    template = Template("state[-1] -> state -> y")
    assert '"state[-1]" -> "state";' in template.to_dot()
    assert set(template.to_networkx().nodes) == {"state", "state[-1]", "y"}
    assert template._repr_html_().count("<rect") == 3
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert template.plot(ax=ax) is ax


def test_a_template_never_changes():
    template = Template("x[-1] -> x")
    with pytest.raises(AttributeError, match="a Template never changes"):
        template.order = 3
    with pytest.raises(TypeError):
        template.lags["x"] = (2,)


def test_lags():
    assert lag("y") == "y[-1]"
    assert lag("y", np.int64(3)) == "y[-3]"
    assert lag("dose[mg]") == "dose[mg][-1]"
    for wrong in (0, -1, 1.0, "1", True, None):
        with pytest.raises(GraphError, match="the lag of 'y' is a whole number of at least 1"):
            lag("y", wrong)
    with pytest.raises(GraphError, match="is a lag itself"):
        lag("y[-1]")
    with pytest.raises(GraphError, match="must be text"):
        lag(3)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("y -> state[-1]", r"an edge into the past: 'y' -> 'state\[-1\]'"),
        ("x[-2] -> x[-1]", "an edge into the past"),
        ({"x[-1]": ["x"]}, "an edge into the past"),
        ("a -> b -> c -> a; a[-1] -> a", "cycle within a step: a -> b -> c -> a"),
        ("x -> x", r"'x' has an edge to itself; its value one step before is 'x\[-1\]'"),
        ("x[0] -> x", r"'x\[0\]' is no name in a template"),
        ("x[-0] -> x", "no name in a template"),
        ("x[1] -> x", "no name in a template"),
        ("x[+1] -> x", "no name in a template"),
        ("x[t-1] -> x", "no name in a template"),
        ("x[-1.5] -> x", "no name in a template"),
        ("x[-1][-1] -> x", "no name in a template"),
        ('"[-1]" -> x', "no name in a template"),
        ({"x": ["x" + "[-1]" * 100_000]}, "no name in a template"),
        ("x[-1] -> x; x[ -1 ] -> x", r"the edge from 'x\[-1\]' to 'x' is given twice"),
        ({"x": ["u", "u"]}, "given twice"),
        ("x [-1] -> x", "differ only by a blank"),
        ("x[-1]; y", "has no child"),
        ("", "at least one variable"),
        ({}, "at least one variable"),
        (None, "expected pairs of names"),
        (3, "expected pairs of names"),
        (["a -> b"], "an edge is a pair"),
        ({"x": [1]}, "must be text"),
        (Graph([("a", "b")]), "expected pairs of names"),
        (networkx.Graph([("a", "b")]), "undirected"),
    ],
)
def test_refusals(x, message):
    with pytest.raises(GraphError, match=message):
        Template(x)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ([], r"\(here 2\); 0 given"),
        (["x", "x", "x"], r"\(here 2\); 3 given"),
        ("x", "first is a list of graphs"),
        (Dag("x"), "first is a list of graphs"),
        ({"x": []}, "first is a list of graphs"),
        (["x[-1] -> x", "x"], r"first\[0\]: 'x\[-1\]' would lie before the first step"),
        (["x", "x[-2] -> x"], r"first\[1\]: 'x\[-2\]' would lie before"),
        (["x", "x -> z"], r"first\[1\]: the graph has no node 'z'"),
        (["x -> y -> x", "x"], r"first\[0\]: the graph has a cycle within a step"),
        (["y -> x[-1]", "x"], r"first\[0\]: an edge into the past"),
        ([None, "x"], r"first\[0\]: expected pairs"),
    ],
)
def test_refusals_of_first_slices(first, message):
    with pytest.raises(GraphError, match=message):
        Template("x[-2] -> x -> y", first=first)


def test_refusals_of_steps():
    template = Template("x[-1] -> x")
    for wrong in (-1, 0.5, "0", True):
        with pytest.raises(GraphError, match="a step is a whole number of at least 0"):
            template.parents_at("x", wrong)
        with pytest.raises(GraphError, match="the number of steps is a whole number of at least 1"):
            template.unroll(wrong if wrong is not True else 0)
    for call in (template.parents, lambda x: template.parents_at(x, 0), lambda x: template.own_at(x, 5)):
        with pytest.raises(GraphError, match="no node 'z'"):
            call("z")


def test_sizes_are_refused_before_anything_is_built():
    start = time.perf_counter()
    with pytest.raises(TooLarge, match="1,000,000,000 steps make 1,000,000,000 nodes"):
        Template("x[-1] -> x").unroll(10**9)
    with pytest.raises(TooLarge, match="more than 99,999 steps"):
        Template(f"x[-{'9' * 5000}] -> x")
    with pytest.raises(TooLarge, match="99,999 steps make"):
        Template({f"v{i}": ["u[-99999]"] for i in range(100)})
    assert time.perf_counter() - start < 2


def test_where_a_dag_is_needed_a_template_is_refused_by_name():
    template = Template("x[-1] -> x")
    with pytest.raises(GraphError, match=r"this is a Template, not a Dag; fit it to sequences\(...\)"):
        Dag(template)
    with pytest.raises(DataError, match="a template is fitted to sequences, not to dict"):
        sf.fit(template, {"x": ["a", "b"]})
    with pytest.raises(GraphError, match="this is a Cpdag, not a Dag; one of its members"):
        Dag(Cpdag([], [("a", "b")]))
    assert Dag('"x[-1]" -> x').nodes == Dag("x[-1] -> x").nodes == ("x", "x[-1]"), "any name is a name of a Dag"


def test_where_a_template_is_needed_a_network_is_refused_by_name():
    net = sf.fit("a -> b", {"a": ["0", "1"], "b": ["0", "1"]})
    with pytest.raises(GraphError, match="this is a BayesNet, not a Template"):
        Template(net)
    assert Template(net.dag) == Template("a -> b")
