"""Laws of the registry, and of priors, scores, tests and commands over it: what is listed there can be said, read and written."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.basis import registry
from suffice.families.categorical import Table
from suffice.families.chosen.node_kinds import ParameterPrior
from suffice.families.hierarchical.hierarchical import PartialPooling, Pool
from suffice.families.priors.priors import K2, PriorsByNode, Several
from suffice.families.protocol.family import prior_of
from suffice.formats.json import model as json_model
from suffice.formats.json.model import prior_from_dict, prior_to_dict
from suffice.interfaces.cli.words import prior_of as prior_in_words
from suffice.interfaces.cli.words import score_of
from suffice.models.parts.sharing import Tie, TiedPrior
from tests.oracles import random_rows
from tests.toy_engine import leaves

U, W = sf.Finite("u", ["a", "b"]), sf.Finite("w", ["p", "q", "r"])
KINDS = {kind: registry.every(kind) for kind in registry.PLACES}
NETWORK = sf.BayesNet("u; w", {"u": [0.5, 0.5], "w": [0.2, 0.3, 0.5]}, [U, W])
SHARES = sf.Dirichlet({"p": 1.0, "q": 2.0, "r": 3.0})
PRIORS: list[Any] = [
    sf.BDeu(2),
    sf.priors.BDs(1),
    sf.K2(),
    sf.Dirichlet(0.5),
    SHARES,
    sf.priors.HierarchicalDirichlet({"w": 4.0}, {"w": None}),
    sf.priors.LogisticNormal(variance=2.0),
    sf.NormalInverseGamma(2.0, mean={"x": 1.0}),
    sf.BGe(2.0),
    sf.priors.Gamma(2.0, 1.0),
    sf.priors.KnownVariance(1.0, 0.0, 2.0),
    sf.priors.Conjugate(2.0, [0.5]),
    ParameterPrior("Beta", (1.0, 2.0)),
    sf.BDe(NETWORK, 3),
    Several((sf.BDeu(1), sf.BGe())),
    PriorsByNode({"w": [1.0, 2.0, 3.0], "u": sf.K2()}),
    PartialPooling((Pool((("w", "u"),), "u"),), 3.0, sf.BDeu(1)),
    TiedPrior(sf.BDeu(1), (Tie((("w", "u"), ("v", "u"))),), (sf.BDeu(1),)),
]
FITTED = [
    sf.priors.HierarchicalDirichlet(),
    sf.priors.LogisticNormal(mean={"w": {"p": 0.3, "q": -0.5, "r": 0.2}}, variance=None),
    *(p for p in PRIORS if type(p) not in (sf.priors.BDs, PartialPooling, TiedPrior) and p != SHARES),
]
"""Those that any network may be fitted with: BDs is a score, and pools and ties are found by plates."""
SCORES = ["bic", "aic", "loglik", "ebic"]


def words_in(kind: str) -> list[tuple[str, str]]:
    return [(module, word) for module, words in registry.PLACES[kind].items() for word in words.split()]


@pytest.mark.parametrize("kind", registry.PLACES)
def test_a_word_is_where_the_table_says_and_no_other_is_left_out(kind: str) -> None:
    own = {word: piece for word, piece in KINDS[kind].items() if piece.__module__.startswith("suffice.")}
    assert {word: piece.__module__ for word, piece in own.items() if (kind, word) in registry._words} == {
        word: f"suffice.{module}" for module, word in words_in(kind)
    }
    for word, piece in own.items():
        assert kind == "commands" or word in (*piece.word.split(), *piece.types)
        assert registry.find(kind, word) is piece or registry.find_type(kind, word) is piece


def test_words_and_types_are_found() -> None:
    assert registry.words("scores")[:2] == ("bic", "aic")
    assert registry.find("priors", "k2") is K2
    assert registry.find("priors", "k3") is None
    assert registry.find_type("cpds", "table") is Table
    assert registry.find_type("cpds", "chair") is None
    assert {"chi2", "fisher-z", "g2", "likelihood-ratio", "mi"} <= set(registry.every("tests"))


def test_two_things_cannot_have_one_word() -> None:
    with pytest.raises(sf.SufficeError, match=r"Twin has the word 'bdeu' of .*\.BDeu, among priors: give it another"):
        type("Twin", (sf.BDeu,), {"word": "bdeu"})
    assert registry.find("priors", "bdeu") is sf.BDeu


def test_every_prior_and_score_is_here() -> None:
    assert {type(prior) for prior in PRIORS} == set(KINDS["priors"].values())
    assert set(SCORES) == set(KINDS["scores"])


@pytest.mark.parametrize("prior", [p for p in PRIORS if p.types], ids=lambda p: type(p).__name__)
def test_priors_are_read_as_they_were_written(prior: Any) -> None:
    assert prior_from_dict(json.loads(json.dumps(prior_to_dict(prior)))) == prior


@pytest.mark.parametrize("prior", [p for p in PRIORS if type(p) is not TiedPrior], ids=lambda p: type(p).__name__)
def test_a_prior_says_nothing_of_what_it_does_not_know_or_adds_to_what_is_seen(prior: Any) -> None:
    """Three methods, whoever asks: chosen and bound it imagines None, a belief, or a statistic that adds to the one seen."""
    rows = sf.scan(random_rows(0, 60), variables={"u": ["a", "b"], "w": ["p", "q", "r"]})
    seen = sf.gather(rows, "u -> w; x -> y")
    variables = {n: seen.variables[n] for n in ("u", "w", "x", "y")}
    nodes = [(W, [U], seen.counts(["u", "w"]))]
    bound = prior.choose(variables, nodes, seen).bind(variables, seen)
    for child, parents, own in (("w", ["u"], seen.counts(["u", "w"])), ("y", ["x"], seen.moments((), ["x", "y"]))):
        said = bound.imagine(variables[child], [variables[p] for p in parents], own)
        if said is not None and hasattr(said, "total"):
            assert (own + said).total >= own.total


@pytest.mark.parametrize("word", registry.words("priors"))
def test_a_prior_in_words_is_a_value_and_a_score(word: str) -> None:
    prior = KINDS["priors"][word]
    text = word if prior.after_colon is None else f"{word}:2"
    said = prior_in_words(text)
    assert type(said) is prior
    assert prior.after_colon is None or getattr(said, prior.after_colon[0]) == 2.0
    assert score_of(text) == sf.Evidence(said)


def network_with(prior: Any) -> tuple[sf.BayesNet, sf.Data]:
    """A network with this prior of what it speaks for, and others of the rest; and its rows."""
    own = random_rows(3, 60)
    counts = np.random.default_rng(3).poisson(2.0, 60)
    rows = sf.scan({**own, "n": counts}, variables={"u": ["a", "b"], "w": ["p", "q", "r"], "n": sf.Count})
    others = (sf.BDeu(1), sf.NormalInverseGamma(), sf.priors.Gamma())
    graph = "u -> w; u -> x; x -> y; w -> y; y -> z; n"
    return sf.fit(graph, rows, prior=None if prior is None else [prior, *others]), rows


@pytest.mark.parametrize("prior", [None, *FITTED], ids=lambda p: type(p).__name__)
def test_files_and_pickles_keep_networks_with_any_prior(prior: Any, tmp_path: Path) -> None:
    bn, rows = network_with(prior)
    sf.write(bn, tmp_path / "bn.json")
    later = bn.update(rows)
    for copy in (sf.read(tmp_path / "bn.json"), pickle.loads(pickle.dumps(bn))):
        assert copy == bn
        assert (copy.prior, copy.variables, copy.fit_info) == (bn.prior, bn.variables, bn.fit_info)
        assert json_model.write(copy) == json_model.write(bn)
        assert copy.update(rows) == later
        for node in bn if prior is not None else ():
            for one, other in zip(leaves(copy[node].interval(0.9)), leaves(bn[node].interval(0.9)), strict=True):
                assert isinstance(one, str) or one == pytest.approx(other, rel=1e-12)


def test_a_prior_that_names_no_type_is_not_written() -> None:
    class Own(sf.BDeu):
        pass

    with pytest.raises(sf.SufficeError, match="a prior of the type Own cannot be written"):
        Own(1).to_dict()
    with pytest.raises(sf.SufficeError, match="a prior of the type 'Nobody' is not known"):
        prior_of({"type": "Nobody"})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: d["cpds"]["x"].update(family="pareto"), "the distribution 'pareto' of 'x'"),
        (lambda d: d["cpds"]["u"].update(family={"type": "noisy-or"}), "the family 'noisy-or' of 'u'"),
        (lambda d: d["cpds"]["w"].update(type="regression", family="Cauchy", options={}), "the regression 'Cauchy' of 'w'"),
        (lambda d: d["cpds"]["w"].update(type="copula"), "the CPD 'copula' of 'w'"),
        (lambda d: d.update(prior={"type": "Hopeful"}), "a prior of the type 'Hopeful'"),
        (lambda d: d.update(objective={"type": "Shy"}), "an objective of the type 'Shy'"),
    ],
)
def test_a_file_that_needs_a_package_says_so(change: Any, what: str, tmp_path: Path) -> None:
    rows = {"u": ["n", "y"] * 10, "w": ["n", "y", "y", "n", "n"] * 4, "x": [0.5, 1.0, 2.0, 4.0, 0.1] * 4}
    families = {"x": sf.exponential.Exponential(), "w": sf.Logistic(ridge=1.0)}
    model = sf.fit("u -- w", rows) if "objective" in what else sf.fit("u -> x; u -> w", rows, families=families)
    sf.write(model, tmp_path / "model.json")
    d = json.loads((tmp_path / "model.json").read_text("utf-8"))
    change(d)
    (tmp_path / "model.json").write_text(json.dumps(d), encoding="utf-8")
    with pytest.raises(sf.SufficeError, match=rf"{what} is not known: a package that brings it may not be installed"):
        sf.read(tmp_path / "model.json")


@pytest.mark.parametrize("word", SCORES)
def test_a_score_is_the_sum_over_nodes_and_weights_are_rows(word: str) -> None:
    score, rows = KINDS["scores"][word](), random_rows(1, 50)
    weights = np.random.default_rng(0).integers(1, 4, 50)
    repeated = {k: np.repeat(v, weights) for k, v in rows.items()}
    for graph in ("u -> w", "x -> y; u -> y"):
        by_node = sf.score(graph, rows, score, by_node=True)
        assert sf.score(graph, rows, score) == pytest.approx(sum(by_node.values()), rel=1e-12)
        weighted = sf.score(graph, sf.scan({**rows, "n": weights.astype(float)}, weights="n"), score)
        assert weighted == pytest.approx(sf.score(graph, repeated, score), rel=1e-9)


@pytest.mark.parametrize("word", KINDS["tests"])
def test_a_test_of_independence_is_the_same_both_ways_and_weights_are_rows(word: str) -> None:
    rows, test, times = random_rows(2, 80), KINDS["tests"][word](), np.random.default_rng(0).integers(1, 4, 80)
    rows["s"] = np.where(rows["x"] > 0.5, "high", "low")
    x, y, given = ("x", "y", "z") if word == "fisher-z" else ("u", "w", "s")
    weighted = sf.scan({**rows, "n": times.astype(float)}, weights="n")
    repeated = {name: np.repeat(column, times) for name, column in rows.items()}
    for also in ((), (given,)):
        one, other = (sf.independence.independence_test(rows, *pair, also, test=test) for pair in ((x, y), (y, x)))
        assert one.p_value == pytest.approx(other.p_value, rel=1e-9)
        assert 0.0 <= one.p_value <= 1.0
        many, few = (sf.independence.independence_test(data, x, y, also, test=test) for data in (repeated, weighted))
        assert (few.statistic, few.p_value) == pytest.approx((many.statistic, many.p_value), rel=1e-9)
        assert few.df == many.df


@pytest.mark.parametrize("word", KINDS["commands"])
def test_a_command_explains_itself(run: Any, word: str) -> None:
    code, out, _ = run(word, "--help")
    assert code == 0
    assert len(out.splitlines()) > 3
    assert not re.search(f"<({'|'.join(registry.PLACES)})>", out)
