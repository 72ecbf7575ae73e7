"""Constraints against brute force over all graphs on four nodes, and all that is wrong with what users write."""

from __future__ import annotations

import copy
import pickle
import random
import time
from collections.abc import Callable, Iterator
from functools import cache, reduce
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.errors import FormatError, GraphError
from suffice.graphs import Cpdag, Dag
from suffice.graphs.text import spelling
from suffice.structure.constraints import (
    Adjacent,
    Candidates,
    Constraints,
    Forbid,
    MaxParents,
    NotAncestor,
    Require,
    Tiers,
    read_tiers,
)
from suffice.structure.rules import Parents, Rules

NAMES = ("a, b", "c -> d", 'say "x"', "x-ray")  # sorted, and none of them plain
EDGES = list(permutations(NAMES, 2))
KINDS: list[Callable[[str], Variable]] = [lambda name: Finite(name, ["no", "yes"]), Real, Count]
unhurried = settings(deadline=None, max_examples=40)


@cache
def all_dags() -> list[Dag]:
    """Every graph without cycles on the four names."""
    found = []
    for marks in product((None, False, True), repeat=6):
        pairs = [pair[:: -1 if back else 1] for pair, back in zip(combinations(NAMES, 2), marks, strict=True) if back is not None]
        if networkx.is_directed_acyclic_graph(networkx.DiGraph(pairs)):
            found.append(Dag(pairs, nodes=NAMES))
    assert len(found) == 543
    return found


@cache
def in_numbers(dag: Dag) -> list[Parents]:
    number = {name: i for i, name in enumerate(dag.nodes)}
    return [tuple(sorted(number[p] for p in dag.parents(x))) for x in dag.nodes]


def some(choices: Any, n: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(choices), max_size=n, unique=True)


@st.composite
def tiers(draw: st.DrawFn) -> Constraints:
    names = draw(some(NAMES, 4).filter(bool))
    cut = draw(st.integers(0, len(names) - 1))
    return Tiers(*filter(None, [names[:cut], names[cut:]]), within=draw(st.booleans()))


single_edges = st.one_of(
    some(EDGES, 5).map(lambda edges: Forbid(*edges)),
    some(EDGES, 5).map(lambda edges: Forbid(*edges)),
    st.builds(lambda dag, k: Require(*dag.edges[:k]), st.sampled_from(all_dags()), st.integers(0, 3)),
    tiers(),
    st.integers(0, 3).map(MaxParents),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3), min_size=1).map(MaxParents),
    st.dictionaries(st.sampled_from(NAMES), some(NAMES, 4)).map(
        lambda lists: Candidates({child: [p for p in parents if p != child] for child, parents in lists.items()})
    ),
)
pairs_too = st.one_of(
    single_edges,
    some(EDGES, 2).map(lambda pairs: Adjacent(*pairs)),
    some(EDGES, 3).map(lambda pairs: NotAncestor(*pairs)),
)


def kept_by(parts: list[Constraints], dag: Dag) -> bool:
    return not any(part.check(dag) for part in parts)


def total(parts: list[Constraints]) -> Constraints | None:
    """Their sum, None when it is refused."""
    try:
        return reduce(lambda a, b: a + b, parts, Constraints())
    except GraphError:
        return None


@unhurried
@given(st.lists(single_edges, max_size=3))
def test_rules_are_exactly_what_graphs_without_broken_constraints_have_in_common(parts: list[Constraints]) -> None:
    known = total(parts)
    kept = [dag for dag in all_dags() if kept_by(parts, dag)]
    assert (known is None) == (not kept)
    if known is None:
        return
    rules = known.rules([Real(name) for name in NAMES])
    assert [dag for dag in all_dags() if not known.check(dag)] == kept
    assert [dag for dag in all_dags() if rules.permits(in_numbers(dag))] == kept
    matrices = np.array([edges_of(dag) for dag in kept])
    np.testing.assert_array_equal(rules.allowed, matrices.any(0))
    np.testing.assert_array_equal(rules.required, matrices.all(0))
    assert rules.permits(rules.start())


def edges_of(dag: Dag) -> np.ndarray[Any, Any]:
    matrix = np.zeros((4, 4), bool)
    for child, parents in enumerate(in_numbers(dag)):
        matrix[child, list(parents)] = True
    return matrix


@unhurried
@given(st.lists(pairs_too, max_size=4), st.tuples(*[st.sampled_from(KINDS)] * 4))
def test_rules_never_contradict_check(parts: list[Constraints], kinds: Any) -> None:
    variables = [kind(name) for kind, name in zip(kinds, NAMES, strict=True)]
    finite, real = ({v.name for v in variables if isinstance(v, kind)} for kind in (Finite, Real))
    possible = [dag for dag in all_dags() if not any(a not in finite and b not in real for a, b in dag.edges)]
    kept = [dag for dag in possible if kept_by(parts, dag)]
    known = total(parts)
    rules = attempt(known, variables)
    if rules is None:
        assert not kept  # what is refused cannot be kept
        return
    assert all(rules.permits(in_numbers(dag)) for dag in kept)
    assert_sound(rules)


def attempt(known: Constraints | None, variables: list[Variable]) -> Rules | None:
    try:
        return None if known is None else known.rules(variables)
    except GraphError:
        return None


def assert_sound(rules: Rules) -> None:
    assert not (rules.required & ~rules.allowed).any()
    assert not rules.allowed.diagonal().any()
    assert (rules.required.sum(1) <= rules.max_parents).all()
    assert (rules.max_parents <= rules.n - 1).all()
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(rules.required.astype(int)))


@unhurried
@given(st.lists(pairs_too, max_size=4), st.randoms())
def test_sums_commute_and_values_hold(parts: list[Constraints], rng: random.Random) -> None:
    known = total(parts)
    shuffled = parts + parts[:1]
    rng.shuffle(shuffled)
    assert total(shuffled) == known
    if known is not None:
        assert hash(total(shuffled)) == hash(known)
        assert Constraints(*parts) == known == sum(parts, Constraints())
        assert eval(repr(known)) == known
        assert pickle.loads(pickle.dumps(known)) == copy.deepcopy(known) == known


@unhurried
@given(some(EDGES, 6))
def test_edges_may_be_given_in_many_ways(edges: list[tuple[str, str]]) -> None:
    known = Forbid(*edges)
    assert Forbid(edges) == Forbid(iter(edges)) == Forbid(map(list, edges)) == Forbid(set(edges)) == known
    assert Forbid(networkx.DiGraph(edges)) == Forbid({b: [a for a, c in edges if c == b] for _, b in edges}) == known
    if edges:
        assert Forbid("; ".join(f"{spelling(a)} -> {spelling(b)}" for a, b in edges)) == known


def test_a_graph_is_a_constraint_too() -> None:
    dag = Dag("a -> b -> c; lone")
    assert Require(dag) == Require("a -> b -> c") == Require("[a][b|a][c|b]") == Require({"b": "a", "c": ["b"]})
    assert Forbid("a -> b; b -> a") == Forbid("a -> b", ("b", "a"))
    assert Require(dag).check(dag) == []


def test_every_kind_is_constraints_that_never_change() -> None:
    kinds = [
        Forbid(("a", "b")),
        Require(("a", "b")),
        Tiers(["a"], ["b"]),
        MaxParents(1),
        Candidates({"a": []}),
        Adjacent(("a", "b")),
        NotAncestor(("b", "a")),
    ]
    for kind in kinds:
        assert isinstance(kind, Constraints)
        assert kind + Constraints() == Constraints() + kind == kind + kind == kind != Constraints()
        with pytest.raises(AttributeError, match="never change"):
            kind.required = ()  # type: ignore[misc]
        with pytest.raises(AttributeError, match="never change"):
            del kind.required
        with pytest.raises(AttributeError, match="never change"):
            kind.other = 1  # type: ignore[attr-defined]
    assert len({*kinds, *kinds}) == 7
    assert Forbid() == Require() == Adjacent() == NotAncestor() == Candidates({}) == Constraints()
    assert repr(Constraints()) == repr(Forbid()) == "Constraints()"
    with pytest.raises(GraphError, match="a constraint is Forbid"):
        Forbid(("a", "b")) + "a -> c"  # type: ignore[operator]


def test_maxima_and_candidates_add_up_to_the_narrower() -> None:
    both = MaxParents(2, {"a": 5, "b": 0}) + MaxParents({"a": 3, "c": 4})
    assert both == MaxParents(2, {"a": 3, "b": 0, "c": 2})
    assert [both.most_parents(x) for x in "abcd"] == [3, 0, 2, 2]
    assert MaxParents(np.int64(2), most=1) == MaxParents(2, {"most": 1})
    assert Candidates({"a": ["b", "c"]}) + Candidates({"a": iter(["c", "d"])}) == Candidates({"a": {"c"}})
    assert Tiers(["b", "a", "b"]) == Tiers({"a", "b"}) == Tiers(x for x in "ab")


def test_adjacent_and_not_ancestor_are_there_to_read() -> None:
    known = Adjacent(("F", "C"), ("C", "F")) + NotAncestor(("A", "E"), ("B", "E"))
    assert known.adjacent == (("C", "F"),)
    assert known.not_ancestor == (("A", "E"), ("B", "E"))


def test_rules_hold_what_follows() -> None:
    variables = [Real(x) for x in "abcd"]
    one_way = (Adjacent(("a", "b")) + Forbid(("a", "b"))).rules(variables)
    assert one_way.start() == [(1,), (), (), ()]
    step_by_step = Adjacent(("a", "b"), ("b", "c"), ("c", "d")) + Forbid(("b", "a")) + MaxParents(1)
    assert step_by_step.rules(variables).start() == [(), (0,), (1,), (2,)]
    blocked = (NotAncestor(("a", "d")) + Require("a -> b; c -> d")).rules(variables).allowed
    assert {("abcd"[p], "abcd"[c]) for c, p in np.argwhere(~blocked) if p != c} == {
        *[("a", "d"), ("b", "d"), ("a", "c"), ("b", "c")],  # would make a an ancestor of d
        *[("b", "a"), ("d", "c")],  # would close a cycle
    }


def test_numbers_are_parents_of_real_variables_only() -> None:
    variables: list[Variable] = [Count("count"), Finite("finite", ["x", "y"]), Real("real")]
    rules = Constraints().rules(variables)
    assert rules.allowed.tolist() == [[False, True, False], [False, False, False], [True, True, False]]
    assert (Adjacent(("real", "finite"))).rules(variables).start() == [(), (), (1,)]
    for numeric in ("real", "count"):
        with pytest.raises(GraphError, match=f"{numeric} -> finite is required, but it leads from a number to a finite variable"):
            Require((numeric, "finite")).rules(variables)
        with pytest.raises(GraphError, match=f"must be adjacent, but .*finite -> {numeric} is forbidden"):
            (Adjacent((numeric, "finite")) + Forbid(("finite", numeric))).rules(variables)


def test_no_variables_and_one() -> None:
    assert Constraints().rules([]).n == 0
    assert Constraints().rules([Real("a")]).max_parents.tolist() == [0]
    assert MaxParents(10**30).rules([Real("a"), Real("b")]).max_parents.tolist() == [1, 1]


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Forbid(("a", "b")) + Require("a -> b"), "the edge a -> b is required, but it is forbidden"),
    (lambda: Require(("b", "a")) + Tiers(["a"], ["b"]), "the edge b -> a is required, but it goes back from tier 2 to tier 1"),
    (
        lambda: Require(("b", "a")) + Tiers(["a", "b"], within=False),
        "the edge b -> a is required, but it is inside tier 1, where no edge may be",
    ),
    (
        lambda: Require(("a", "b")) + Candidates({"b": ["c"]}),
        "the edge a -> b is required, but it does not come from a candidate parent of 'b'",
    ),
    (lambda: Require("a -> b -> c") + Require("c -> a"), "the edges that must be there have a cycle: a -> b -> c -> a"),
    (lambda: Require("a, b -> c") + MaxParents(1), "'c' must have the parents 'a', 'b', but may have at most 1"),
    (lambda: Require("a -> c") + MaxParents(3, c=0), "'c' must have the parent 'a', but may have at most 0"),
    (
        lambda: Adjacent(("b", "a")) + Forbid(("a", "b")) + Tiers(["a"], ["b"]),
        "'a' and 'b' must be adjacent, but a -> b is forbidden, and b -> a goes back from tier 2 to tier 1",
    ),
    (
        lambda: Adjacent(("a", "b")) + MaxParents(0),
        "'a' and 'b' must be adjacent, but a -> b would be one parent more than the 0 that 'b' may have, "
        "and b -> a would be one parent more than the 0 that 'a' may have",
    ),
    (
        lambda: Adjacent(("a", "c")) + Forbid(("a", "c")) + Require("a -> b -> c"),
        "'a' and 'c' must be adjacent, but a -> c is forbidden, "
        "and c -> a would close a cycle with edges that must be there, a -> b -> c",
    ),
    (
        lambda: Adjacent(("a", "b")) + NotAncestor(("a", "b"), ("b", "a")),
        "'a' and 'b' must be adjacent, but a -> b would make 'a' an ancestor of 'b', which it must not be, "
        "and b -> a would make 'b' an ancestor of 'a', which it must not be",
    ),
    (
        lambda: Adjacent(("a", "b"), ("b", "c"), ("a", "c")) + Forbid("b -> a; c -> b; a -> c"),
        "the edges that must be there have a cycle: a -> b -> c -> a",
    ),
    (
        lambda: NotAncestor(("a", "c")) + Require("a -> b -> c"),
        "'a' must not be an ancestor of 'c', but edges that must be there lead to it: a -> b -> c",
    ),
    (lambda: Forbid(("a", "a")), "the node 'a' has an edge to itself"),
    (lambda: Candidates({"a": ["a"]}), "the node 'a' has an edge to itself"),
    (lambda: Adjacent(("a", "a")), "a pair is of two names, not 'a' twice"),
    (lambda: Forbid("a", "b"), "'a' has no edge in 'a'; an edge is written 'a -> b' or ('a', 'b')"),
    (lambda: Forbid("a -> b; c"), "'c' has no edge in 'a -> b; c'; an edge is written 'a -> b' or ('a', 'b')"),
    (lambda: Forbid(""), "there is no edge in ''; an edge is written 'a -> b' or ('a', 'b')"),
    (lambda: Forbid(("a", "b", "c")), "an edge is a pair of names, not ('a', 'b', 'c')"),
    (lambda: Forbid(("a", 3)), "the name of a node must be text, not 3"),
    (lambda: Forbid(("a", " ")), "the name of a node must not be blank, as ' ' is"),
    (lambda: Forbid(3), "expected pairs of names, not 3"),
    (lambda: Forbid(None), "expected pairs of names, not None"),
    (lambda: Forbid(Cpdag([("a", "b")])), "expected pairs of names, not Cpdag([('a', 'b')])"),
    (lambda: Adjacent("a -> b"), "an edge is a pair of names, not 'a -> b'"),
    (lambda: NotAncestor("a", "b"), "an edge is a pair of names, not 'a'"),
    (lambda: Tiers(), "there are no tiers; write Tiers(['age', 'sex'], ['smoke'])"),
    (lambda: Tiers(["a"], []), "tier 2 has no names"),
    (lambda: Tiers("abc"), "tier 1 should be a list of names, not 'abc'; write ['abc']"),
    (lambda: Tiers([["a"], ["b"]]), "tier 1 should be a list of names, not a list of lists; put a star before it"),
    (lambda: Tiers(["a"], None), "tier 2 should be a list of names, not None"),  # type: ignore[arg-type]
    (lambda: Tiers(["a", 1]), "the name of a node must be text, not 1"),  # type: ignore[list-item]
    (lambda: Tiers(["a"], ["b", "a"]), "'a' is in tier 1 and in tier 2"),
    (lambda: Tiers(["a"], within="b"), "within is True or False, not 'b'; each tier is a list of its own"),  # type: ignore[arg-type]
    (lambda: MaxParents(), "a maximum of parents is needed; write MaxParents(3) or MaxParents({'age': 0})"),
    (lambda: MaxParents(-1), "the maximum of parents of every variable is a whole number from 0 up, not -1"),
    (lambda: MaxParents(True), "the maximum of parents of every variable is a whole number from 0 up, not True"),
    (lambda: MaxParents({"a": 1.5}), "the maximum of parents of 'a' is a whole number from 0 up, not 1.5"),  # type: ignore[dict-item]
    (lambda: MaxParents("2"), "the maximum of parents of every variable is a whole number from 0 up, not '2'"),  # type: ignore[arg-type]
    (lambda: MaxParents(1, 2), "the maxima of some variables are a mapping from names to numbers, not 2"),  # type: ignore[arg-type]
    (lambda: Candidates({"a": "bc"}), "the list of candidates of 'a' should be a list of names, not 'bc'; write ['bc']"),
    (lambda: Candidates({"a": 1}), "the list of candidates of 'a' should be a list of names, not 1"),  # type: ignore[dict-item]
    (lambda: Candidates(["a"]), "candidates are a mapping from a child to a list of parents, not ['a']"),  # type: ignore[arg-type]
    (lambda: Constraints([Forbid()]), "a constraint is Forbid, Require, Tiers or another kind, not [Constraints()]"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("write", "sentence"), REFUSED)
def test_refused_in_one_sentence(write: Callable[[], object], sentence: str) -> None:
    with pytest.raises(GraphError) as refusal:
        write()
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    "known",
    [
        Forbid(("age", "smok")),
        Require(("smok", "age")),
        Tiers(["age"], ["smok"]),
        MaxParents({"smok": 1}),
        Candidates({"age": ["smok"]}),
        Candidates({"smok": []}),
        Adjacent(("smok", "age")),
        NotAncestor(("age", "smok")),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(known: Constraints) -> None:
    sentence = "the constraints name 'smok', which is not among the variables; did you mean 'smoke'?"
    with pytest.raises(GraphError) as refusal:
        known.rules([Real("age"), Real("smoke")])
    assert str(refusal.value) == sentence
    with pytest.raises(GraphError) as refusal:
        known.check("age -> smoke")
    assert str(refusal.value) == sentence


def test_check_names_each_constraint_that_is_broken() -> None:
    known = Forbid(("b", "a")) + Tiers(["a"], ["b"]) + Require("c -> d") + MaxParents(1) + Adjacent(("a", "d"))
    known += Candidates({"e": ["b", "c"]}) + NotAncestor(("b", "e"))
    assert known.check("b -> a; c -> a -> e; d") == [
        "the edge a -> e does not come from a candidate parent of 'e'",
        "the edge b -> a is forbidden",
        "the edge b -> a goes back from tier 2 to tier 1",
        "the edge c -> d is required, but it is not there",
        "'a' has 2 parents, but may have at most 1",
        "'a' and 'd' must be adjacent, but there is no edge between them",
        "'b' must not be an ancestor of 'e', but there is the path b -> a -> e",
    ]


TIER_TEXTS: list[tuple[bytes, Constraints]] = [
    (b"a, b\nc\n", Tiers(["a", "b"], ["c"])),
    (b"\xef\xbb\xbfa,b\r\n\r\n  # a comment, of course\r\n c c ,d", Tiers(["a", "b"], ["c c", "d"])),
    ('"a, b" , "say ""x"""\n"#1",é'.encode(), Tiers(["a, b", 'say "x"'], ["#1", "é"])),
    (b'a#b\n" c "', Tiers(["a#b"], [" c "])),
    (b"a\rb", Tiers(["a"], ["b"])),
]


@pytest.mark.parametrize(("text", "expected"), TIER_TEXTS)
def test_tiers_are_read(tmp_path: Path, text: bytes, expected: Constraints) -> None:
    path = tmp_path / "tiers.txt"
    path.write_bytes(text)
    assert read_tiers(path) == read_tiers(str(path)) == expected
    assert read_tiers(path, within=False).tiers[0].within is False


BAD_TIER_TEXTS: list[tuple[bytes, str]] = [
    (b"", ": there are no tiers in this file: each line should hold the names of one, as in 'age, sex'"),
    (b"# nothing\n\n", ": there are no tiers in this file: each line should hold the names of one, as in 'age, sex'"),
    (b"a\n\nb, a\n", ", line 3: 'a' is in line 1 too, but a name is in one tier only"),
    (b"a, a\n", ", line 1: 'a' is twice in this line, but a name is in one tier only"),
    (b"a\nb,,c\n", ", line 2: a name is missing beside a comma, or blank"),
    (b"a,\n", ", line 1: a name is missing beside a comma, or blank"),
    (b'a, " "\n', ", line 1: a name is missing beside a comma, or blank"),
    (
        b'a\nb, "c\nd"',
        ", line 2: a quote is out of place in '\"c': a name that holds a quote stands in quotes, with the quotes inside doubled",
    ),
    (
        b'5" pipe',
        ", line 1: a quote is out of place in '5\" pipe': "
        "a name that holds a quote stands in quotes, with the quotes inside doubled",
    ),
    (b"a\n\xff", ", line 2: byte 3 of the file is not UTF-8"),
]


@pytest.mark.parametrize(("text", "sentence"), BAD_TIER_TEXTS)
def test_bad_files_of_tiers_are_refused_with_the_line(tmp_path: Path, text: bytes, sentence: str) -> None:
    path = tmp_path / "tiers.txt"
    path.write_bytes(text)
    with pytest.raises(FormatError) as refusal:
        read_tiers(path)
    assert str(refusal.value) == f"{path}{sentence}"


def test_files_of_tiers_that_are_none(tmp_path: Path) -> None:
    def refusals() -> Iterator[str]:
        for path in (tmp_path / "none.txt", tmp_path, "a\0b", "/dev/zero", None):
            with pytest.raises(FormatError) as refusal:
                read_tiers(path)  # type: ignore[arg-type]
            yield str(refusal.value)

    missing, folder, _, endless, _ = refusals()
    assert missing.endswith("none.txt: the file cannot be read: No such file or directory")
    assert folder.endswith("the file cannot be read: Is a directory")
    assert endless.endswith("the file is larger than 64.0 MiB, too large for tiers")


def test_a_thousand_variables_take_no_time() -> None:
    rng = random.Random(1)
    names = sorted(f"v{i}" for i in range(1000))
    order = rng.sample(names, 1000)
    later = [(order[i], order[rng.randrange(i + 1, 1000)]) for i in range(800)]
    lists = {b: {a for a, c in later[:400] if c == b} | set(rng.sample(names, 20)) - {b} for b in names}
    known = (
        Forbid(*[(b, a) for a, b in later], *[(order[j], order[rng.randrange(j)]) for j in range(1, 1000) for _ in range(5)])
        + Require(*later[:400])
        + Tiers(order[:300], order[300:600], order[600:])
        + MaxParents(9, dict.fromkeys(names[:500], 5))
        + Candidates(lists)
    )
    variables = [Real(name) for name in names]
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        rules = known.rules(variables)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5  # some 0.02 s: a bound against loops over pairs, not against slow machines
    assert rules.permits(rules.start())
    assert known.check(Dag({name: [names[p] for p in ps] for name, ps in zip(names, rules.start(), strict=True)})) == []
