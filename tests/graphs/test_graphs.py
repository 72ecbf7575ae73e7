"""Graphs against brute force: paths, enumeration of all graphs on a few nodes, and hostile input."""

from __future__ import annotations

import builtins
import copy
import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import combinations, pairwise, permutations, product

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import GraphError, TooLarge
from suffice.graphs import Cpdag, Dag, Graph, compare, n_dags, shd

NAMES = "abcdefgh"
unhurried = settings(deadline=None, max_examples=40)


@st.composite
def dags(draw: st.DrawFn, max_nodes: int = 7) -> Dag:
    order = draw(st.permutations(NAMES[: draw(st.integers(1, max_nodes))]))
    pairs = [pair for pair in combinations(order, 2) if draw(st.booleans())]
    return Dag(pairs, nodes=order)


def all_dags(n: int) -> Iterator[Dag]:
    """Every graph without cycles on n nodes, from all marks of all pairs."""
    names = list(NAMES[:n])
    for marks in product((None, False, True), repeat=n * (n - 1) // 2):
        pairs = [
            (b, a) if mark else (a, b) for (a, b), mark in zip(combinations(names, 2), marks, strict=True) if mark is not None
        ]
        graph = networkx.DiGraph(pairs)
        if networkx.is_directed_acyclic_graph(graph):
            yield Dag(pairs, nodes=names)


def class_key(dag: Dag) -> tuple[object, ...]:
    """Verma & Pearl 1990: the same skeleton and the same colliders between nodes that are not joined."""
    joined = {frozenset(e) for e in dag.edges}
    colliders = {(x, p) for x in dag.nodes for p in combinations(sorted(dag.parents(x)), 2) if frozenset(p) not in joined}
    return dag.nodes, frozenset(joined), frozenset(colliders)


def shared(members: list[Dag]) -> Cpdag:
    """The class of some graphs by its definition: an arrow that all have is directed, an edge they differ on is not."""
    directed = set.intersection(*(set(m.edges) for m in members))
    rest = {(min(e), max(e)) for e in members[0].edges if e not in directed}
    return Cpdag(directed, rest, nodes=members[0].nodes)


@pytest.fixture(scope="module")
def classes() -> list[list[Dag]]:
    """All graphs on 1 to 4 nodes, by class."""
    found: dict[tuple[object, ...], list[Dag]] = {}
    for n in (1, 2, 3, 4):
        for dag in all_dags(n):
            found.setdefault(class_key(dag), []).append(dag)
    return list(found.values())


@pytest.mark.parametrize(
    "x",
    [
        "a -> b <- c; b -> d; e",
        "  a->b<-c \n\n b -> d;; e;\r\n",
        "a, c -> b; d <- b\ne",
        '"a" -> b <- "c"; b -> d; "e"',
        "a → b ← c; b → d; e",
        "[a][c][b|a:c][d|b][e]",
        " [e] [a][c]\n[d|b][ b | a : c ]",
        {"b": ["a", "c"], "d": "b", "e": ()},
        {"b": iter(["a", "c"]), "d": {"b"}, "e": []},
        networkx.DiGraph({"a": ["b"], "c": ["b"], "b": ["d"], "e": []}),
    ],
)
def test_ways_to_write_the_same_graph(x):
    dag = Dag(x)
    assert dag.nodes == ("a", "b", "c", "d", "e")
    assert dag.edges == (("a", "b"), ("b", "d"), ("c", "b"))
    assert dag.parents("b") == ("a", "c")
    assert dag == Dag([("a", "b"), ("c", "b"), ("b", "d")], nodes=[*"abcde"]) == Dag(dag)


def test_pairs_of_any_kind():
    for pairs in ([["a", "b"]], {("a", "b")}, iter([("a", "b")]), np.array([["a", "b"]]), (("a", "b"),)):
        dag = Dag(pairs)
        assert dag == Dag("a -> b")
        assert all(type(x) is str for x in dag.nodes)


def test_empty_graphs():
    for x in ("", " ;\n", (), {}, [], networkx.DiGraph()):
        assert Dag(x).nodes == Dag(x).edges == Dag(x).topological_order == ()
    assert str(Dag()) == ""
    assert len(Dag()) == 0
    assert Dag("") == Dag(str(Dag()))
    assert Dag().cpdag().to_dag() == Dag()
    assert Dag("", nodes=["b", "a"]).nodes == ("a", "b")
    assert "<code>" in Dag()._repr_html_()


def test_parents_keep_their_declared_order_and_equality_ignores_it():
    assert Dag({"c": ["b", "a"]}).parents("c") == ("b", "a")
    assert Dag("[b][a][c|b:a]").parents("c") == ("b", "a")
    assert Dag("c <- b; a -> c").parents("c") == ("b", "a")
    assert Dag("b, a -> c").parents("c") == Dag("c <- b, a").parents("c") == ("b", "a")
    assert Dag({"c": ["b", "a"]}) == Dag({"c": ["a", "b"]})
    assert hash(Dag({"c": ["b", "a"]})) == hash(Dag({"c": ["a", "b"]}))
    assert Dag("a -> b") != Dag("b -> a") != Dag("a; b")
    assert Dag("a") != Graph([], nodes="a")
    assert Dag({("b", "c"), ("a", "c")}).parents("c") == ("a", "b"), "a set has no order, so its pairs are sorted"


@unhurried
@given(dags(), st.randoms())
def test_the_order_of_input_does_not_matter(dag, rng):
    pairs, nodes = list(dag.edges), list(dag.nodes)
    rng.shuffle(pairs)
    rng.shuffle(nodes)
    other = Dag(pairs, nodes=nodes)
    assert other == dag
    assert hash(other) == hash(dag)
    assert other.topological_order == dag.topological_order
    assert other.cpdag() == dag.cpdag()
    assert other.to_dot() == dag.to_dot()


def test_nothing_depends_on_the_seed_of_hashes():
    script = (
        "from suffice.graphs import *; d = Dag({(f'x{i}', f'x{j}') for i in range(9) for j in range(i) if (i * j) % 3 != 1});"
        "print(d, d.cpdag(), d.cpdag().to_dag(), d.moral(), d.topological_order, Cpdag([('a', 'b'), ('c', 'd')],"
        "[('b', 'c'), ('b', 'e'), ('c', 'e'), ('e', 'f')]).completed(), d._repr_html_())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


names = st.text(min_size=1, max_size=6).filter(str.strip) | st.sampled_from(
    ["->", "--", "-", "[a]", '"', "\\", "a b", "x-ray", " a", "é→", "\\n", "#"]
)


@unhurried
@given(st.lists(names, unique=True, min_size=1, max_size=6), st.data())
def test_text_round_trip_of_any_names(found, data):
    pairs = [pair for pair in combinations(found, 2) if data.draw(st.booleans())]
    dag = Dag(pairs, nodes=found)
    again = Dag(str(dag))
    assert again == dag
    assert [again.parents(x) for x in dag.nodes] == [dag.parents(x) for x in dag.nodes]
    assert eval(repr(dag)) == dag or len(repr(dag)) > 300
    assert pickle.loads(pickle.dumps(dag)) == dag
    assert Dag(dag.to_networkx()) == dag


@unhurried
@given(st.text(alphabet='ab ->,<;\n"[]|:\\→', max_size=40))
def test_text_is_a_graph_or_refused(text):
    message, dag = outcome(text)
    assert "\n" not in message
    assert dag is None or Dag(str(dag)) == dag


def outcome(text: str) -> tuple[str, Dag | None]:
    """The message of a refusal, or the graph."""
    try:
        return "", Dag(text)
    except GraphError as error:
        return str(error), None


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("a -> b -> a", "the graph has a cycle: a -> b -> a"),
        ("z -> c -> b -> a -> c; a -> y", "the graph has a cycle: a -> c -> b -> a"),
        ("a -> b; b -> a", "the graph has a cycle: a -> b -> a"),
        ("a -> a", "the node 'a' has an edge to itself"),
        ("a -> b; b <- a", "the edge from 'a' to 'b' is given twice"),
        ({"b": ["a", "a"]}, "the edge from 'a' to 'b' is given twice"),
        ("a ->", "a name is missing at the end"),
        ("-> a", "a name is missing before '->' (character 1"),
        ("a -> ; b", "a name is missing before ';"),
        ("a,, b -> c", "a name is missing before ','"),
        ("a <-> b", "'<->' is not an arrow"),
        ("a --> b", "'-->' is not an arrow"),
        ("a -- b", "'--' is not an arrow"),
        ('"a -> b', "a quote that does not end (character 1"),
        ('"a" b -> c', "a quoted name must stand alone"),
        ('" " -> c', "a blank name"),
        ("[a][b|c]", "the graph has no node 'c'"),
        ("[smoke][b|smok]", "the graph has no node 'smok'; did you mean 'smoke'?"),
        ("[a][a]", "the model string has the node 'a' twice"),
        ("[a][b|a", "expected [node] or [node|parent:parent] (character 4"),
        ("[a]b", "expected [node]"),
        ("[a|]", "a name is missing"),
        ("[]", "a name is missing"),
        ({"a": None}, "the parents of 'a' must be a list of names, not None"),
        ({"a": [1]}, "the name of a node must be text, not 1"),
        ({" ": []}, "must not be blank, as ' ' is"),
        ([("a", "")], "must not be blank"),
        (["ab"], "an edge is a pair of names, not 'ab'"),
        ([("a", "b", "c")], "an edge is a pair of names, not ('a', 'b', 'c')"),
        ([3], "an edge is a pair of names, not 3"),
        (3, "expected pairs of names, not 3"),
        (networkx.Graph([("a", "b")]), "undirected"),
        (networkx.DiGraph([(1, 2)]), "must be text, not 1"),
        (networkx.MultiDiGraph([("a", "b"), ("a", "b")]), "given twice"),
    ],
)
def test_refusals_in_one_sentence(x, message):
    with pytest.raises(GraphError) as caught:
        Dag(x)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nodes_fix_the_node_set():
    assert Dag("a -> b", nodes=["c", "b", "a"]).nodes == ("a", "b", "c")
    for x in ("smok -> b", "smok", {"smok": []}, [("b", "smok")], Dag("smok")):
        with pytest.raises(GraphError, match=r"no node 'smok'; did you mean 'smoke'\?"):
            Dag(x, nodes=["smoke", "b"])
    with pytest.raises(GraphError, match="must be text, not 3"):
        Dag("", nodes=[3])  # type: ignore[list-item]


@pytest.mark.parametrize("ask", ["parents", "children", "ancestors", "descendants", "markov_blanket", "ancestral"])
def test_unknown_names_are_refused(ask):
    for name in ("smok", 3, ["smoke", "smok"]):
        with pytest.raises(GraphError, match="the graph has no node"):
            getattr(Dag("smoke -> cancer"), ask)(name)
    with pytest.raises(GraphError, match="did you mean 'smoke'"):
        getattr(Dag("smoke -> cancer"), ask)("smok")


@pytest.mark.parametrize(
    "text",
    [
        *(
            mark * (1_000_000 // len(mark))
            for mark in (";", "\n", "-", "->", ",", "[", "a", "a;", "a,", "a->", '"', '"\\', "[a|", " [")
        ),
        ",".join(map(str, range(70_000))) + "->" + ",".join(f"x{i}" for i in range(70_000)),
        "->".join(map(str, [*range(130_000), 0])),
        "["
        + "".join(chr(0x4E00 + i % 199) for i in range(300_000))
        + "][b|"
        + "".join(chr(0x4E00 + i % 198) for i in range(300_000))
        + "]",
    ],
    ids=lambda text: text[:6],
)
def test_hostile_texts_end_soon(text):
    start = time.process_time()
    message, dag = outcome(text)
    assert len(message) + len(repr(dag)) < 1500
    assert time.process_time() - start < 20, "a hang, not a slow machine"


def test_a_chain_of_30_000_nodes():
    chain = [f"{i:06d}" for i in range(30_000)]
    dag = Dag(pairwise(chain))
    assert dag.topological_order == dag.nodes == tuple(chain)
    assert len(dag.ancestors(chain[-1])) == len(dag.descendants(chain[0])) == 29_999
    assert not dag.d_separated(chain[0], chain[-1])
    assert dag.d_separated(chain[0], chain[-1], given=chain[15_000])
    assert dag.cpdag().to_dag() == pickle.loads(pickle.dumps(dag)) == dag
    assert len(repr(dag)) < 400


def test_graphs_never_change():
    for graph in (Dag("a -> b"), Graph([("a", "b")]), Dag("a -> b").cpdag()):
        with pytest.raises(AttributeError, match="never changes"):
            graph.nodes = ()  # type: ignore[misc]
        with pytest.raises(AttributeError, match="never changes"):
            del graph.nodes
        assert copy.deepcopy(graph) == graph == pickle.loads(pickle.dumps(graph))
        assert len({graph, copy.copy(graph)}) == 1
        assert "a" in graph
        assert "z" not in graph
        assert 3 not in graph
        assert ("a", "b") not in graph
        assert len(graph) == 2


@unhurried
@given(dags())
def test_relatives_against_networkx(dag):
    graph = dag.to_networkx()
    assert dag.topological_order == tuple(networkx.lexicographical_topological_sort(graph))
    assert dag.roots == tuple(x for x in dag.nodes if graph.in_degree(x) == 0)
    assert dag.leaves == tuple(x for x in dag.nodes if graph.out_degree(x) == 0)
    for x in dag.nodes:
        assert set(dag.parents(x)) == set(graph.predecessors(x))
        assert dag.children(x) == tuple(sorted(graph.successors(x)))
        assert dag.ancestors(x) == tuple(sorted(networkx.ancestors(graph, x)))
        assert dag.descendants(x) == tuple(sorted(networkx.descendants(graph, x)))
        assert dag.markov_blanket(x) == dag.moral().neighbours(x)
        assert dag.ancestral(x) == dag.subgraph({x, *dag.ancestors(x)})
    assert {frozenset(e) for e in dag.moral().edges} == {frozenset(e) for e in networkx.moral_graph(graph).edges}
    assert networkx.utils.graphs_equal(dag.skeleton().to_networkx(), graph.to_undirected())
    assert Graph(dag.skeleton().to_networkx()) == dag.skeleton() == dag.cpdag().skeleton()


def open_path(dag: Dag, a: str, b: str, known: set[str]) -> bool:
    """d-connection by its definition, over all paths."""
    joined = dag.skeleton().to_networkx()
    return any(
        all(
            bool(known & {y, *dag.descendants(y)}) if x in dag.parents(y) and z in dag.parents(y) else y not in known
            for x, y, z in zip(path, path[1:], path[2:], strict=False)
        )
        for path in networkx.all_simple_paths(joined, a, b)
    )


@unhurried
@given(dags(max_nodes=6), st.data())
def test_d_separation_against_all_paths(dag, data):
    where = {x: data.draw(st.sampled_from("abg-")) for x in dag.nodes}
    a, b, known = ({x for x, side in where.items() if side == s} for s in "abg")
    expected = not any(open_path(dag, x, y, known) for x in a for y in b)
    assert dag.d_separated(a, b, known) == dag.d_separated(b, a, known) == expected


def test_d_separation_takes_disjoint_known_names():
    dag = Dag("a -> c <- b")
    assert dag.d_separated("a", [], "b")
    for a, b, known in (("a", "a", ()), ("a", "b", "a"), ("a", ["b", "c"], ["c"])):
        with pytest.raises(GraphError, match="is in two of them"):
            dag.d_separated(a, b, known)
    for a, b, known in (("z", "a", ()), ("a", "z", ()), ("a", "b", ["z"])):
        with pytest.raises(GraphError, match="no node 'z'"):
            dag.d_separated(a, b, known)


def test_a_moral_graph_that_would_not_fit_is_refused():
    with pytest.raises(TooLarge, match="4,999,950,000 pairs"):
        Dag({"y": [f"x{i}" for i in range(100_000)]}).moral()


def test_cpdag_against_all_members(classes):
    assert len(classes) == 1 + 2 + 11 + 185, "Gillispie & Perlman 2002"
    for members in classes:
        expected = shared(members)
        assert {m.cpdag() for m in members} == {expected}
        assert expected.completed() == expected
        assert expected.to_dag() in members


def test_cpdag_against_all_members_on_5_nodes():
    rng = random.Random(0)
    for _ in range(150):
        order = rng.sample("abcde", 5)
        dag = Dag([pair for pair in combinations(order, 2) if rng.random() < 0.6], nodes=[*"abcde"])
        members = equivalent(dag)
        assert dag.cpdag() == shared(members)
        assert dag.cpdag().to_dag() in members


def equivalent(dag: Dag) -> list[Dag]:
    """All graphs of the class of a graph, from all directions of its edges."""
    found = []
    for flips in product((False, True), repeat=len(dag.edges)):
        pairs = [(b, a) if flip else (a, b) for (a, b), flip in zip(dag.edges, flips, strict=True)]
        if networkx.is_directed_acyclic_graph(networkx.DiGraph(pairs)) and class_key(
            other := Dag(pairs, nodes=dag.nodes)
        ) == class_key(dag):
            found.append(other)
    return found


@unhurried
@given(dags(max_nodes=5), st.data())
def test_forbidden_edges_leave_the_allowed_members(dag, data):
    others = [e for e in permutations(dag.nodes, 2) if e not in dag.edges]
    forbidden = data.draw(st.lists(st.sampled_from(others), max_size=4)) if others else []
    allowed = [m for m in equivalent(dag) if not set(forbidden) & set(m.edges)]
    found = dag.cpdag(forbidden)
    assert found == shared(allowed)
    assert found.to_dag() in allowed


def test_the_fourth_rule_of_meek():
    given_ = Cpdag([("d", "c"), ("c", "b")], [("a", "b"), ("a", "c"), ("a", "d")])
    assert given_.completed() == Cpdag([("d", "c"), ("c", "b"), ("a", "b")], [("a", "c"), ("a", "d")])


def test_forbidden_edges_are_known_and_not_there():
    with pytest.raises(GraphError, match="the edge 'a' -> 'b' is forbidden, but it is in the graph"):
        Dag("a -> b").cpdag(forbidden=[("a", "b")])
    with pytest.raises(GraphError, match="no node 'z'"):
        Dag("a -> b").cpdag(forbidden=[("a", "z")])


def test_extension_against_enumeration():
    """An extension is found exactly when some directions of the undirected edges make no cycle and no new collider."""
    rng = random.Random(1)
    n_without = 0
    for _ in range(400):
        marks = {pair: rng.choice(["", "->", "<-", "--", "--"]) for pair in combinations("abcd", 2)}
        directed = [(a, b) if mark == "->" else (b, a) for (a, b), mark in marks.items() if mark in ("->", "<-")]
        undirected = [pair for pair, mark in marks.items() if mark == "--"]
        members = extensions(directed, undirected)
        found = Cpdag(directed, undirected, nodes=[*"abcd"])
        if members:
            assert found.to_dag() in members
            continue
        n_without += 1
        with pytest.raises(GraphError, match="no directed graph extends this one"):
            found.to_dag()
    assert 20 < n_without < 380


def extensions(directed: list[tuple[str, str]], undirected: list[tuple[str, str]]) -> list[Dag]:
    joined = {frozenset(e) for e in [*directed, *undirected]}
    colliders = {(y, frozenset((a, b))) for (a, y), (b, z) in combinations(directed, 2) if y == z and {a, b} not in joined}
    found = []
    for flips in product((False, True), repeat=len(undirected)):
        pairs = directed + [(b, a) if flip else (a, b) for (a, b), flip in zip(undirected, flips, strict=True)]
        if networkx.is_directed_acyclic_graph(networkx.DiGraph(pairs)):
            new = {(y, frozenset((a, b))) for (a, y), (b, z) in combinations(pairs, 2) if y == z and {a, b} not in joined}
            if new == colliders:
                found.append(Dag(pairs, nodes=[*"abcd"]))
    return found


def test_no_extension_says_why():
    with pytest.raises(GraphError, match="it has a cycle: a -> b -> c -> a"):
        Cpdag([("a", "b"), ("b", "c"), ("c", "a")], [("c", "d")]).to_dag()
    with pytest.raises(GraphError, match="'a', 'b', 'c', 'd' cannot be directed without a cycle or a new collider"):
        Cpdag([], [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], nodes=[*"abcde"]).to_dag()


def test_cpdag_as_a_value():
    found = Cpdag([("b", "a")], [("d", "c")], nodes=[*"abcde"])
    assert found.directed == (("b", "a"),)
    assert found.undirected == (("c", "d"),)
    assert found.edges == {("b", "a"), frozenset("cd")}
    assert eval(repr(found)) == found
    assert eval(repr(Graph([("a", "b")], nodes=[*"abc"]))) == Graph([("b", "a")], nodes=[*"abc"])
    for directed, undirected in (([("a", "b"), ("b", "a")], []), ([("a", "b")], [("b", "a")]), ([], [("a", "b"), ("b", "a")])):
        with pytest.raises(GraphError, match="given twice"):
            Cpdag(directed, undirected)
    with pytest.raises(GraphError, match="edge to itself"):
        Graph([("a", "a")])


def test_cpdag_of_1000_nodes_is_quick():
    rng = random.Random(0)
    pairs = [(f"v{a:04d}", f"v{b:04d}") for b in range(1, 1000) for a in rng.sample(range(b), min(b, rng.randrange(10)))]
    dag = Dag(pairs)
    start = time.process_time()
    found = dag.cpdag()
    assert found.to_dag().cpdag() == found
    assert found.completed() == found
    assert time.process_time() - start < 20


def test_shd_of_equivalent_graphs_is_0_and_it_is_a_metric(classes):
    rng = random.Random(0)
    on_4 = [members for members in classes if len(members[0]) == 4]
    for _ in range(100):
        a, b, c = rng.sample(on_4, 3)
        assert shd(a[0], rng.choice(a)) == 0
        assert shd(a[0], b[0]) == shd(b[0], a[0]) == shd(rng.choice(a), b[0].cpdag()) > 0
        assert shd(a[0], c[0]) <= shd(a[0], b[0]) + shd(b[0], c[0])


def test_shd_counts_pairs():
    assert shd(Dag("a -> b <- c"), Dag("a; b; c")) == 2
    assert shd("a -> b <- c", "a -> b -> c") == 2
    assert shd("a -> b <- c; d", "a -> b <- c; c -> d") == 1
    with pytest.raises(GraphError, match="different nodes: 'c', 'd' only in one of them"):
        shd("a -> b; c", "a -> b; d")


def test_compare_dags():
    found = compare(Dag("a -> c <- b; c -> d"), Dag("a -> c; d -> c; b -> a"))
    assert (found.missing, found.extra, found.reversed) == ((("b", "c"),), (("b", "a"),), (("c", "d"),))
    assert found.adjacency_precision == found.adjacency_recall == found.adjacency_f1 == pytest.approx(2 / 3)
    assert found.arrow_precision == found.arrow_recall == found.arrow_f1 == pytest.approx(1 / 3)
    assert len(repr(found).splitlines()) == 6
    same = compare("a -> b", "a -> b")
    assert (same.shd, same.arrow_f1, same.missing, same.extra, same.reversed) == (0, 1, (), (), ())


def test_compare_a_dag_with_a_class_compares_classes():
    found = compare(Dag("a -> b; b -> c"), Dag("c -> b; b -> a").cpdag())
    assert found.shd == 0
    assert found.reversed == ()
    assert found.arrow_f1 == 1
    found = compare(Dag("a -> b <- c"), Dag("a -> b -> c").cpdag())
    assert found.shd == 2
    assert found.reversed == (("a", "b"), ("c", "b"))
    assert (found.arrow_precision, found.arrow_recall, found.arrow_f1) == (1, 0, 0)
    assert found.adjacency_f1 == 1


def test_compare_with_nothing_to_find():
    nothing = compare("a; b", "a; b")
    assert nothing.adjacency_precision == nothing.adjacency_recall == nothing.adjacency_f1 == nothing.arrow_f1 == 1
    none_found = compare("a -> b", "a; b")
    assert (none_found.adjacency_precision, none_found.adjacency_recall, none_found.adjacency_f1) == (1, 0, 0)
    all_wrong = compare("a; b", "a -> b")
    assert (all_wrong.adjacency_precision, all_wrong.adjacency_recall, all_wrong.adjacency_f1) == (0, 1, 0)


def test_number_of_dags():
    assert [n_dags(n) for n in range(7)] == [1, 1, 3, 25, 543, 29281, 3781503]
    assert [n_dags(n) for n in range(1, 5)] == [sum(1 for _ in all_dags(n)) for n in range(1, 5)]
    assert n_dags(20) == 2344880451051088988152559855229099188899081192234291298795803236068491263
    with pytest.raises(GraphError, match="not -1"):
        n_dags(-1)


def test_dot_quotes_names():
    assert '"say \\"a\\\\b\\"" -> "c\\nd";' in Dag([('say "a\\b"', "c\nd")]).to_dot()
    assert Dag("c -> a").cpdag().to_dot().splitlines()[3] == '  "a" -> "c" [dir=none];'


def test_html_escapes_names():
    html = Dag([("<script>", "b & c"), ("b & c", "x" * 50)])._repr_html_()
    assert html.startswith("<svg")
    assert html.endswith("</svg>")
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "b &amp; c" in html
    assert html.count("<polyline") == 2


def test_plot_saves_without_a_window(tmp_path):
    ax = Dag('smoke -> cancer <- pollution; cancer -> "$x_1$ and $"').plot(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").stat().st_size > 1000
    assert {"smoke", "cancer", "pollution", "$x_1$ and $"} <= {text.get_text() for text in ax.texts}
    assert Dag("a").plot(ax=ax) is ax
    Dag().plot(tmp_path / "empty.svg")


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(GraphError, match=r"pip install suffice\[plot\]"):
        Dag("a").plot()


def test_import_takes_no_networkx_or_matplotlib():
    script = "import sys, suffice.graphs as g; g.Dag('a -> b').cpdag(); print({'networkx', 'matplotlib'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dag{ a -> b }", "a -> b"),
        ('dag {\nbb="0,0,1,1"\nX [exposure,pos="0,1"]\nY [outcome]\nX -> Y\nZ -> X\nY <- Z\n}', "X, Z -> Y; Z -> X"),
        ("digraph G { rankdir=LR; node [shape=box]; a -> b -> c [color=red]; d; /* no */ // -> e\n}", "a -> b -> c; d"),
        ('strict digraph { "lung cancer" -> {x-ray y}; subgraph cluster_0 { y -> z } }', '"lung cancer" -> x-ray, y; y -> z'),
        ("dag{a->b b->c}", "a -> b -> c"),
        ("digraph { a:port -> b:n; }", "a -> b"),
        ("digraph {}", ""),
    ],
)
def test_graphviz_and_dagitty_are_read(text, expected):
    assert Dag(text) == Dag(expected)


def test_what_is_written_for_graphviz_is_read():
    dag = Dag('a -> b; "say \\"x\\" -> {y}" -> b; c')
    assert Dag(dag.to_dot()) == dag


@pytest.mark.parametrize(
    "text",
    [
        *("a - b", "a -- b", "a <-> b", "a => b", "a ~> b", "dagg{ a -> b }", "{a} -> b", "pdag{ a -> b }", "graph { a -- b }"),
        *("dag{ a <-> b }", "digraph { a -- b }", "digraph { a -> }", "digraph { a -> b", "digraph { a -> b } c"),
        *("dag{ a -> <b> }", "digraph " + "{" * 10_000),
    ],
)
def test_oddities_are_refused(text):
    with pytest.raises(GraphError, match=r"graph|arrow"):
        Dag(text)


def test_names_with_marks_in_them_still_stand():
    assert Dag("x-ray -> a_b; lung cancer -> x-ray").nodes == ("a_b", "lung cancer", "x-ray")
    assert Dag('"a - b" -> "{c}"').nodes == ("a - b", "{c}")
    assert Dag(str(Dag('"a - b" -> "{c}"'))) == Dag('"a - b" -> "{c}"')


def test_a_comparison_says_what_it_compares():
    drawn = compare(Dag("a -> b"), Dag("b -> a"))
    assert repr(drawn).splitlines()[0] == (
        "Comparison: shd 0 between the equivalence classes; all below is of the graphs as drawn (equivalent ones may differ)"
    )
    assert drawn.reversed == (("a", "b"),)
    classes = compare(Dag("a -> b").cpdag(), Dag("b -> a"))
    assert repr(classes).splitlines()[0].endswith("all below is of the classes, too")
    assert classes.reversed == ()
