"""What small functions of this room give, an example each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from suffice import Forbid, HillClimb, Orders, Real, scan
from suffice.basis.iteration import Progress
from suffice.basis.variables import Count, Finite
from suffice.families.chosen.exponential_node import ExponentialNode
from suffice.graphs.paths import meek
from suffice.graphs.undirected import Graph
from suffice.numerics.exponential import Beta, Gamma
from suffice.structure.constraints import MaxParents, Require, Tiers
from suffice.structure.methods.chow_liu import best_forest, branching, reroot, spanning_tree
from suffice.structure.methods.cuts import cluster_cut
from suffice.structure.methods.exact import Pace, _stricter
from suffice.structure.methods.ges import Class, as_set, class_of, class_with, cliques, member, members
from suffice.structure.methods.orders import best_of_all
from suffice.structure.methods.orientation import triples
from suffice.structure.methods.pc import Separation, Separations
from suffice.structure.results.explanations import family, model_limit, spell
from suffice.structure.results.order_posterior import effective, r_hat
from suffice.structure.results.plan import in_words
from suffice.structure.rules import Rules, ancestors, toggle_parent
from suffice.structure.scoring.hybrid_scores import most_families
from suffice.structure.scoring.local_scores import TABLES, families_in, fingerprint, in_memory, room_for
from suffice.structure.scoring.parent_sets import families_of, pieces
from suffice.structure.scoring.regression_scores import seconds_each
from suffice.structure.search import problem_of, with_most_parents
from suffice.structure.undirected.coded_regression import contrasts
from suffice.structure.undirected.decomposable import dag_of
from suffice.structure.undirected.graph_method import GraphMethod, Penalties
from suffice.structure.undirected.node_regressions import CodedNodes, GaussianNodes
from suffice.structure.windows import among
from tests.oracles import parent_sets


def test_rules() -> None:
    assert Rules.free(3).allowed.sum() == 6


def test_rules_of_kinds() -> None:
    assert Rules.of_kinds([Finite("a", ["u", "v"]), Real("b")]).allowed.astype(int).tolist() == [[0, 0], [1, 0]]


def test_rules_n_families() -> None:
    assert Rules.free(3, 1).n_families == 9


def test_rules_without_parents() -> None:
    assert Rules.free(3).without_parents([0]).allowed.sum() == 4


def test_ancestors() -> None:
    assert ancestors([(), (0,), (1,)]).astype(int).tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]


def test_toggle_parent() -> None:
    assert (toggle_parent((1, 3), 2), toggle_parent((1, 3), 3)) == ((1, 2, 3), (1,))


def test_among() -> None:
    assert (
        repr(among(Require("a -> b", "c -> b") + MaxParents({"c": 1}) + Tiers(["a"], ["c"]), ["a", "b"]))
        == "Require(('a', 'b')) + Tiers(['a'])"
    )


def test_stricter() -> None:
    assert _stricter(Rules.free(2), [(0, 1)], None).start() == [(), (0,)]
    assert _stricter(Rules.free(2), [(0, 1), (1, 0)], None) is None


def test_best_forest() -> None:
    weight = np.array([[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    assert best_forest(weight, np.zeros((3, 3), bool), 1e-9).tolist() == [-1, 0, 0]
    assert best_forest(weight, np.zeros((3, 3), bool), 1e-9, root=2).tolist() == [2, 0, -1]


def test_spanning_tree() -> None:
    assert spanning_tree(np.array([[-np.inf, 1.0], [1.0, -np.inf]]), 0.0).tolist() == [-1, 0]


def test_reroot() -> None:
    assert reroot(np.array([-1, 0, 1]), 2).tolist() == [1, 2, -1]


def test_branching() -> None:
    assert branching(np.array([[-np.inf, 2.0], [3.0, -np.inf]]), 0.0).tolist() == [-1, 0]


def test_pace() -> None:
    assert Pace(Progress("searching", 60.0), 14).work == [12, 38, 52]


def test_cliques() -> None:
    assert [bin(c) for c in cliques(0b111, [0b010, 0b101, 0b010], 3)] == ["0b0", "0b1", "0b11", "0b10", "0b110", "0b100"]


def test_member() -> None:
    assert member(Class([0, 0, 0], [0b010, 0b101, 0b010])) == {0: [], 1: [0], 2: [1]}


def test_class_of() -> None:
    assert repr(class_of({0: [], 1: [0], 2: [1]})) == "Class(above=[0, 0, 0], beside=[2, 5, 2])"


def test_class_with() -> None:
    assert repr(class_with(3, *meek([(0, 1)], [(1, 2)]))) == "Class(above=[0, 1, 2], beside=[0, 0, 0])"


def test_best_of_all() -> None:
    assert best_of_all(parent_sets(2, [(0, (), -3.0), (0, (1,), -1.0), (1, (), -2.0), (1, (0,), -1.5)])) == [(1,), ()]


def test_separations_of() -> None:
    assert (
        repr(Separations({("a", "b"): Separation(("c",), 0.4)}, {("a", "c"): 0.001}, 3).of("b", "a"))
        == "Separation(given=('c',), p_value=0.4)"
    )


def test_model_limit() -> None:
    assert model_limit([Real("x"), Real("y")]) is None
    assert str(model_limit([Finite("ill", ["no", "yes"]), Real("sbp")])).startswith(
        "'sbp' is a number beside states: an edge between them can on"
    )
    assert model_limit([Finite("ill", ["no", "yes"]), Real("sbp")], ["ill"]) is None
    wait, share = ExponentialNode(Gamma()).variable("wait"), ExponentialNode(Beta()).variable("share")
    for numbers, laws in (
        ([Real("sbp")], "Gaussian"),
        ([Count("n")], "Poisson"),
        ([wait, Real("sbp"), share, Real("age")], "Gamma, Gaussian, Beta"),
    ):
        assert f"(conditional {laws})" in str(model_limit([Finite("ill", ["no", "yes"]), *numbers]))


def test_spell() -> None:
    assert (spell("x[-1]"), spell("heart rate")) == ("x[-1]", '"heart rate"')


def test_family() -> None:
    assert family("xray", ("lung", "tub")) == "xray | lung, tub"


def test_r_hat() -> None:
    rng = np.random.default_rng(0)
    same = rng.normal(size=(2, 1000))
    apart = same + np.array([[0.0], [3.0]])
    assert (round(r_hat(same), 2), r_hat(apart) > 1.5, r_hat(np.ones((2, 10)))) == (1.0, True, 1.0)


def test_effective() -> None:
    rng = np.random.default_rng(0)
    assert 1500 < effective(rng.normal(size=(2, 1000))) <= 2000
    slow = np.repeat(rng.normal(size=(2, 100)), 10, axis=1)
    assert 100 < effective(slow) < 400


def test_in_words() -> None:
    assert in_words(HillClimb(max_parents=3)) == "HillClimb(max_parents=3)"


def test_room_for() -> None:
    assert room_for(None) == 16 * TABLES


def test_most_families() -> None:
    assert (most_families(1e3), most_families(1e7)) == (9302325, 13315)


def test_in_memory() -> None:
    assert list(in_memory([3, 1, 2, 9], float, 5)) == [[3, 1], [2], [9]]


def test_fingerprint() -> None:
    assert fingerprint([(0, ()), (2, (0, 1))]) == [2, 2490138884, 2, 0, 1]


def test_families_of() -> None:
    assert families_of(np.array([[0, 1], [0, 2]]), Rules.free(3).without_parents([0])).tolist() == [[False, True], [False, True]]


def test_pieces() -> None:
    assert repr(list(pieces(3, list))) == "[slice(0, 3, None)]"


def test_parent_sets() -> None:
    sets = parent_sets(2, [(0, (), -3.0), (0, (1,), -1.0), (1, (), -2.0)])
    assert sets.of_child(0) == [((1,), -1.0), ((), -3.0)]


def test_parent_sets_below() -> None:
    sets, rows = parent_sets(2, [(0, (), 0.0), (1, (0,), -1.0), (1, (), -2.0)]).below([0])
    assert (sets.of_child(0), rows.tolist()) == ([((), -1.0), ((), -2.0)], [1, 2])


def test_seconds_each() -> None:
    assert round(seconds_each(1e5), 3) == 0.008


def test_with_most_parents() -> None:
    rows = {name: ["u", "v"] for name in "abcdef"}
    method, problem = with_most_parents(Orders(), problem_of(rows, None, MaxParents(None, {"a": 5})))
    assert (method.max_parents, problem.rules.max_parents.tolist()) == (5, [5, 3, 3, 3, 3, 3])


def test_coded_nodes() -> None:
    data = scan({"a": list("uuuuvvvv") * 9, "b": list("uuuvvvvu") * 9, "c": list("uv") * 36})
    nodes = CodedNodes.of(data, list(data.schema.values()))
    assert nodes.fit(np.full((3, 3), 0.05)).strengths.round(3).tolist() == [[0.0, 1.238, 0.0], [1.238, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_dag_of() -> None:
    assert repr(dag_of(Graph("a -- b -- c -- a; c -- d"))) == "Dag('a -> b; a, b -> c; c -> d')"


def test_graph_method_rules() -> None:
    assert GraphMethod().rules(Forbid(("a", "b")), [Real("a"), Real("b"), Real("c")]).allowed.astype(int).tolist() == [
        [0, 0, 1],
        [0, 0, 1],
        [1, 1, 0],
    ]


def test_gaussian_nodes() -> None:
    rows = scan({"x": [0.0, 1.0, 2.5], "y": [0.5, 0.0, 3.5]})
    nodes = GaussianNodes.of(rows, tuple(rows.schema.values()))
    assert nodes.fit(np.full((2, 2), 0.5)).strengths.round(3).tolist() == [[0.0, 0.357], [0.357, 0.0]]


def test_penalties_of() -> None:
    rules = replace(Rules.free(2), names=("a", "b"))
    assert [round(x, 3) for x in Penalties.of(None, 3, np.array([[1.0, 0.5], [0.5, 1.0]]), rules, ("a", "b")).multiples] == [
        0.5,
        0.158,
        0.05,
    ]


def test_cluster_cut() -> None:
    child, parents = np.array([0, 0, 1, 1]), np.array([[0, 0], [0, 1], [0, 0], [1, 0]], bool)
    cut = cluster_cut(child, parents, np.array([True, True]), 1)
    assert (cut.columns.tolist(), cut.values.tolist(), cut.most) == ([1, 3], [1.0, 1.0], 1.0)


def test_members() -> None:
    assert list(members(0b1011)) == [0, 1, 3]


def test_as_set() -> None:
    assert as_set((0, 1, 3)) == 11


def test_triples() -> None:
    assert triples(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)) == [(0, 1, 2)]


def test_families_in() -> None:
    assert families_in(np.array([[2, 5, 7]]), np.array([1])) == [(5, (2, 7))]


def test_contrasts() -> None:
    assert contrasts(2).tolist() == [[-0.5], [0.5]]
