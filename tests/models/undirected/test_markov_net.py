"""Markov networks that are written down: what they show, what they draw, what they keep, what they refuse."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FormatError, GraphError, ModelError, SufficeNote, TooLarge

X, Y, Z = (sf.Finite(n, ["no", "yes"]) for n in "xyz")


def small() -> sf.MarkovNet:
    return sf.MarkovNet([(("y", "x"), [[1.0, 0.0], [0.5, 2.0]]), ("z", [0.0, 1.0]), (("x", "z"), [[0, 1], [2, -1]])], [X, Y, Z])


def test_named_axes_and_equality() -> None:
    net = small()
    first = net.factors[0]
    assert first.names == ("y", "x")
    assert (first["no", "yes"], first["yes", "no"]) == (0.0, 0.5)
    assert first == net.factors[0] != net.factors[2]
    assert net == pickle.loads(pickle.dumps(net)) == small()
    assert net != sf.MarkovNet([(("y", "x"), [[1.0, 0.0], [0.5, 2.0]])], [X, Y])
    assert net.graph == sf.Graph("x -- y; x -- z")
    assert net.separated("y", "z", given="x")
    assert "MarkovNet of 3 variables, 2 edges, 5 parameters" in repr(net)
    assert "<table>" in net._repr_html_()
    assert net.to_dot() == net.graph.to_dot()
    assert len(net) == 3
    assert "x" in net
    assert net.treewidth == 1


def test_weights_sum_to_zero_and_make_the_same_distribution() -> None:
    net = small()
    for w in net.weights.values():
        for axis in range(w.ndim):
            assert w.sum(axis=axis) == pytest.approx(np.zeros(w.sum(axis=axis).shape), abs=1e-12)
    again = sf.MarkovNet(net.weights, [X, Y, Z])
    assert again.query(["x", "y", "z"]).probs == pytest.approx(net.query(["x", "y", "z"]).probs, abs=1e-12)


def test_rows_in_and_out() -> None:
    net = small()
    rows = net.sample(20_000, seed=1)
    shares = sf.fit("x -- y -- z -- x", rows).query(["x", "y", "z"]).probs
    assert shares == pytest.approx(net.query(["x", "y", "z"]).probs, abs=0.02)
    assert net.predict_proba({"x": ["no"]}, "y")["yes"][0] == pytest.approx(net.query("y", given={"x": "no"})["yes"])
    assert net.impute({"x": ["yes"], "y": ["yes"], "z": [None]})["z"] == ["no"]
    assert list(net.predict({"x": ["yes"], "y": ["yes"]}, "z")) == ["no"]
    assert net.log_likelihood(rows) == pytest.approx(net.log_prob(rows).sum(), rel=1e-9)
    assert net.log_likelihood({"x": ["no", None], "y": ["no", "no"], "z": ["no", "no"]}) == pytest.approx(
        net.log_prob_of({"x": "no", "y": "no", "z": "no"}) + net.log_prob_of({"y": "no", "z": "no"})
    )


def test_a_large_grid_is_drawn_by_gibbs_sampling() -> None:
    n = 30
    names = [[f"v{i:02d}_{j:02d}" for j in range(n)] for i in range(n)]
    edges = [(names[i][j], names[i][j + 1]) for i in range(n) for j in range(n - 1)]
    edges += [(names[i][j], names[i + 1][j]) for i in range(n - 1) for j in range(n)]
    variables = [sf.Finite(x, ["-", "+"]) for row in names for x in row]
    net = sf.MarkovNet({e: 0.2 * np.array([[1, -1], [-1, 1]]) for e in edges}, variables)
    with pytest.raises(sf.SufficeError, match="too many for exact answers; PseudoLikelihood"):
        net.query(names[0][0])
    with pytest.warns(SufficeNote, match="Gibbs sampling"):
        rows = net.sample(30, seed=1)
    spins = {x: np.where(rows[x].to_numpy() == "+", 1, -1) for x in rows.column_names}
    together = np.mean([(spins[a] * spins[b]).mean() for a, b in edges])
    assert together == pytest.approx(0.2141, abs=0.02)  # Onsager 1944, of the infinite grid
    zero = sf.MarkovNet({e: [[0.0, -np.inf], [0.0, 0.0]] for e in edges}, variables)
    with pytest.raises(ModelError, match="rows cannot be drawn"):
        zero.sample(1, seed=0)


def test_moral_networks() -> None:
    asia = sf.load("asia")
    net = asia.moral()
    assert net.graph == asia.dag.moral()
    assert net.query("lung", given={"xray": "yes"})["yes"] == pytest.approx(0.488711, abs=1e-6)
    with pytest.raises(ModelError, match="is not finite"):
        sf.BayesNet("x", {"x": sf.Gaussian(0.0, [], 1.0)}).moral()


def test_files_keep_all(tmp_path: Path) -> None:
    net = small()
    for suffix in (".json", ".json.gz"):
        sf.write(net, tmp_path / f"net{suffix}")
        assert sf.read(tmp_path / f"net{suffix}") == net
    rows = net.sample(200, seed=0)
    models = [
        (sf.LogLinear.all(2, "xyz"), {"penalty": sf.L1(0.5) + sf.L2({("x", "y"): 1.0})}),
        (sf.Graph("x -- y -- z"), {"prior": sf.BDeu(2)}),
        (sf.Ising("x -- y; z"), {"penalty": sf.L2(np.ones((3, 3)))}),
        (sf.undirected.Features({"both": (("x", "y"), {("yes", "yes"): 1.0})}, over=[X, Y, Z]), {}),
    ]
    for model, how in models:
        fitted = sf.fit(model, sf.scan(rows, variables={"x": X, "y": Y, "z": Z}), **how)
        sf.write(fitted, tmp_path / "fitted.json")
        again = sf.read(tmp_path / "fitted.json")
        assert again == fitted == pickle.loads(pickle.dumps(fitted))
        assert (again.penalty, again.prior, again.objective) == (fitted.penalty, fitted.prior, fitted.objective)
        assert (again.fit_info, again.log_normaliser) == (fitted.fit_info, fitted.log_normaliser)
        assert (again.deviance, repr(again)) == (fitted.deviance, repr(fitted))
        assert again.flat_weights.tolist() == fitted.flat_weights.tolist()


def test_gaussian_networks_are_kept_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    net = sf.fit("a -- b; c", {n: rng.normal(size=50) for n in "abc"})
    sf.write(net, tmp_path / "net.json")
    again = sf.read(tmp_path / "net.json")
    assert again.precision.tolist() == net.precision.tolist()
    assert (again.graph, again.fit_info) == (net.graph, net.fit_info)
    with pytest.raises(FormatError, match=r"a Gaussian Markov network: write .json"):
        sf.write(net, tmp_path / "net.uai")


UAI = """MARKOV
3
2 3 2
5
2 0 1
1 2
0
1 2
2 2 0

6
 1 2 3
 4 5 6
2 0.5 1.5   # a comment
1 4.0
2 1 0
4 1 2 3 4
"""


def test_uai_function_tables(tmp_path: Path) -> None:
    """Several factors of one scope, an empty scope, a zero."""
    (tmp_path / "net.uai").write_text(UAI)
    net = sf.read(tmp_path / "net.uai")
    assert [f.names for f in net.factors] == [("x0", "x1"), ("x2",), (), ("x2",), ("x2", "x0")]
    assert np.exp(net.log_normaliser) == pytest.approx(4.0 * 0.5 * (6 * 1 + 15 * 2))
    assert net.query("x2")["1"] == 0.0
    assert net.query("x1").probs == pytest.approx(np.array([1 + 8, 2 + 10, 3 + 12]) / 36)
    with pytest.warns(SufficeNote, match="holds no names"):
        sf.write(net, tmp_path / "again.uai")
    again = sf.read(tmp_path / "again.uai")
    assert [f.names for f in again.factors] == [f.names for f in net.factors]
    for a, b in zip(again.factors, net.factors, strict=True):
        assert a.log == pytest.approx(b.log, abs=1e-15)
    assert net.log_likelihood({"x0": ["0"], "x1": ["0"], "x2": ["0"]}) == pytest.approx(np.log(1 / 36))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 1 0\n4", "2 -1 0\n4", "numbers of at least 0"),
        ("2 2 0\n", "2 2 2\n", "names a variable twice"),
        ("2 2 0\n", "2 2 7\n", "names variable 7"),
        ("1 4.0", "2 4.0 1", "has 2 numbers, and its variables have 1 joint states"),
        ("4 1 2 3 4\n", "4 1 2 3\n", "the file ends before the 4 numbers"),
        ("4 1 2 3 4\n", "4 1 2 3 4 5\n", "expected the end of the file"),
        ("2 0.5 1.5", "2 0.5 x", "'x' is not a number"),
        ("3\n2 3 2\n5", "3\n2 3 2\n999999", "more than the file has numbers"),
    ],
)
def test_damaged_uai_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "net.uai").write_text(UAI.replace(old, new, 1))
    with pytest.raises(FormatError, match=message):
        sf.read(tmp_path / "net.uai")


def test_damaged_json_files(tmp_path: Path) -> None:
    text = (tmp_path / "net.json").as_posix()
    sf.write(small(), text)
    whole = Path(text).read_text()
    changes = [('"log": [1.0', '"log": ["x"'), ('"names": ["y", "x"]', '"names": ["y", "q"]'), ('"factors"', '"fractions"')]
    for old, new in changes:
        assert old in whole
        Path(text).write_text(whole.replace(old, new))
        with pytest.raises(sf.SufficeError, match=r"damaged|must be"):
            sf.read(text)


@pytest.mark.parametrize("suffix", [".bif", ".net", ".dsc", ".xmlbif", ".xdsl"])
def test_formats_of_bayesian_networks_refuse(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FormatError, match=r"this is a Markov network: write .uai or .json; .*to_bayes_net"):
        sf.write(small(), tmp_path / f"net{suffix}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.MarkovNet({"q": [0.0, 1.0]}, [X]), "names 'q'"),
        (lambda: sf.MarkovNet({"x": [0.0, 1.0, 2.0]}, [X]), r"needs the shape \(2,\)"),
        (lambda: sf.MarkovNet({"x": [0.0, np.nan]}, [X]), "in logarithms"),
        (lambda: sf.MarkovNet({("x", "x"): [[0.0, 1.0]] * 2}, [X]), "twice"),
        (lambda: sf.MarkovNet({"r": [0.0]}, [sf.Real("r")]), "finite variables"),
        (lambda: sf.MarkovNet({"x": [-np.inf, -np.inf]}, [X]).query("x"), "rule out every joint state"),
        (lambda: small().fields, "those of an Ising model"),
        (lambda: small().deviance, "not fitted from data"),
        (lambda: small().log_likelihood({"x": ["no"]}), "no column"),
        (lambda: small().factors[0]["no"], "of 2 variables"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message):
        make()  # type: ignore[operator]


def test_a_dag_is_no_graph() -> None:
    with pytest.raises(GraphError, match=r"this is a Dag, not a Graph: take its .moral\(\)"):
        sf.Pairwise(sf.Dag("a -> b"))


def test_small_probabilities_do_not_vanish() -> None:
    """ln p of rows that show every cell comes from the factors: as probabilities these would be zero."""
    x, y = sf.Finite("x", ["a", "b"]), sf.Finite("y", ["u", "v"])
    net = sf.MarkovNet({"x": [0.0, -800.0], ("x", "y"): [[0.0, -900.0], [0.0, 0.0]]}, [x, y])
    rows = {"x": ["a", "a", "b", "b"], "y": ["u", "v", "u", "v"]}
    assert net.log_prob(rows) == pytest.approx([0.0, -900.0, -800.0, -800.0])
    assert net.log_prob_of({"x": "b", "y": "v"}) == pytest.approx(-800.0)
    assert net.log_likelihood(rows) == pytest.approx(-2500.0)
    assert net.log_prob({"x": ["a"], "y": [None]}) == pytest.approx([0.0])


def test_arrows_of_a_decomposable_network_join_nothing_new() -> None:
    """To eliminate the middle first costs nothing where its neighbours have one state, but would join them."""
    a, b, c = sf.Finite("a", ["only"]), sf.Finite("b", ["x", "y", "z"]), sf.Finite("c", ["only"])
    net = sf.MarkovNet({("a", "b"): [[0.0, 1.0, 2.0]], ("b", "c"): [[0.5], [0.0], [0.0]]}, [a, b, c])
    assert net.to_bayes_net().dag.skeleton() == net.graph


def grid(side: int, strength: float = 0.3) -> sf.MarkovNet:
    """A square of states that like their neighbours to be alike; beyond some 25 a side its tree is too large."""
    names = {(i, j): f"s{i}_{j}" for i in range(side) for j in range(side)}
    pairs = [(at, (at[0] + di, at[1] + dj)) for at in names for di, dj in ((0, 1), (1, 0))]
    factors = {(names[a], names[b]): strength * np.eye(2) for a, b in pairs if b in names}
    return sf.MarkovNet({**factors, names[0, 0]: [1.0, 0.0]}, {n: sf.Finite(n, ["no", "yes"]) for n in names.values()})


def test_marginals_by_gibbs_sampling_are_the_exact_ones_within_their_errors() -> None:
    net = grid(4)
    exact = net.marginals({"s3_3": "yes"})
    drawn = net.marginals({"s3_3": "yes"}, method=sf.methods.Gibbs(40_000), seed=1)
    assert drawn["s3_3"]["yes"] == 1.0
    for name in exact:
        if name != "s3_3":
            assert 0.0 < drawn[name].error.max() < 0.02
            assert abs(drawn[name]["yes"] - exact[name]["yes"]) < 5.0 * drawn[name].error.max()
    again = net.marginals({"s3_3": "yes"}, method=sf.methods.Gibbs(40_000), seed=1)
    assert all(np.array_equal(again[n].probs, drawn[n].probs) for n in drawn)


@pytest.mark.parametrize(
    ("given", "said"), [({"s9": "no"}, "no node 's9'"), ({"s0_0": [0.5, 0.5]}, "likelihoods"), ({"s0_0": "maybe"}, "maybe")]
)
def test_evidence_that_gibbs_sampling_does_not_take_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(sf.SufficeError, match=said):
        grid(2).marginals(given, method=sf.methods.Gibbs(100))


def test_a_picture_of_a_network_that_is_too_large_has_drawn_beliefs(monkeypatch: pytest.MonkeyPatch) -> None:
    net = grid(3)
    exact = net.query("s0_0")["no"]

    def too_large(self: sf.MarkovNet) -> sf.BayesNet:
        raise TooLarge("the tree is too large")

    monkeypatch.setattr(sf.MarkovNet, "_to_directed", too_large)
    scene = grid(3).picture()
    assert "by Gibbs sampling, 10,000 draws: standard errors up to 0.0" in scene.caption
    bar = next(node for node in scene.nodes if node.name == "s0_0").bars[0]
    assert bar.value == pytest.approx(exact, abs=0.05)
