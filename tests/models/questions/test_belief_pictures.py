"""Pictures of models and of what was learned: they say what the numbers say."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import suffice as sf
from suffice.basis.pictures.arrangement import lay_out
from suffice.basis.pictures.shapes import size_of

ASIA = sf.load("asia")
ROWS = ASIA.sample(300, seed=1)
FITTED = sf.fit(ASIA.dag, ROWS, prior=sf.BDeu(1))


def node(picture: Any, name: str) -> Any:
    return next(n for n in picture.nodes if n.name == name)


def test_bars_are_the_answers_with_their_intervals() -> None:
    picture = FITTED.picture({"xray": "yes"}, do={"smoke": "no"})
    done = FITTED.do({"smoke": "no"})
    for name in set(ASIA.nodes) - {"xray", "smoke"}:
        answer = done.query(name, {"xray": "yes"}, interval=0.95)
        bars = node(picture, name).bars
        assert np.allclose([b.value for b in bars], answer.probs, atol=1e-14)
        assert np.allclose([(b.low, b.high) for b in bars], np.transpose(answer.interval), atol=1e-12)
        assert [b.before for b in bars] == pytest.approx(FITTED.query(name).probs.tolist())
    assert (node(picture, "xray").mark, node(picture, "xray").heading) == ("observed", "xray=yes")
    assert (node(picture, "smoke").mark, node(picture, "smoke").heading) == ("set", "do(smoke=no)")
    assert "95 % credible intervals" in picture.caption
    assert picture.svg() == FITTED.picture({"xray": "yes"}, do={"smoke": "no"}).svg()


def test_marks_are_more_than_colours() -> None:
    root = ElementTree.fromstring(FITTED.picture({"xray": "yes"}, do={"smoke": "no"}, interval=None).svg())
    boxes = {e.get("class"): e for e in root.iter() if e.tag.endswith("}rect")}
    assert float(boxes["suffice-observed"].get("stroke-width", 1)) > 1
    words = [e.text for e in root.iter() if e.tag.endswith("}text") and e.get("font-weight") == "bold"]
    assert set(words) == {"xray=yes", "do(smoke=no)"}


def test_what_is_set_has_no_causes() -> None:
    edges = {(e.tail, e.head) for e in ASIA.picture(do={"bronc": "yes"}).edges}
    assert edges == set(ASIA.edges) - {("smoke", "bronc")}


def test_without_a_posterior_the_picture_says_so() -> None:
    picture = ASIA.picture({"dysp": "yes"})
    assert "no posterior" in picture.caption
    assert all(b.low is None for n in picture.nodes for b in n.bars)


def test_impossible_evidence_is_refused() -> None:
    with pytest.raises(sf.SufficeError, match="probability zero"):
        ASIA.picture({"tub": "yes", "either": "no"})
    with pytest.raises(sf.SufficeError, match="no state"):
        ASIA.picture({"tub": "perhaps"})
    with pytest.raises(sf.SufficeError, match="against goes without"):
        ASIA.picture({"tub": "yes"}, against=FITTED)


def test_numbers_and_regressions_have_lines_of_text() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.where(rng.random(200) < 1 / (1 + np.exp(-x)), "u", "v")
    rows = {"z": ["a", "b"] * 100, "x": x, "y": y, "w": 2 * x + rng.normal(size=200)}
    normal = sf.NormalInverseGamma()
    prior = {"z": sf.BDeu(1), "x": normal, "w": normal}
    bn = sf.fit("z -> y; x -> y; x -> w", rows, families={"y": sf.Logistic()}, prior=prior)
    picture = bn.picture()
    assert node(picture, "y").lines == ("no formula: observe its parents",)
    assert node(picture, "x").lines[0].startswith("mean ")
    assert len(node(bn.picture({"x": 1.0}), "y").bars) == 2
    moved = bn.picture({"x": 1.0})
    assert "density" in moved.caption
    assert node(moved, "x").heading == "x=1"
    set_to = bn.picture(do={"x": 1.0})
    assert node(set_to, "x").mark == "set"
    assert {(e.tail, e.head) for e in set_to.edges} == set(bn.edges)
    ElementTree.fromstring(moved.svg())
    assert bn._repr_svg_() is not None


def test_a_thousand_states_and_hostile_names() -> None:
    name, states = "<script>\n\"'", [f"<b>{i}" for i in range(999)] + ["\u202e" + "x" * 10_000]
    bn = sf.BayesNet({name: []}, {name: np.full(1000, 1e-3)}, variables=[sf.Finite(name, states)])
    for picture in (bn.picture(), bn.picture({name: states[3]}), bn.picture({name: np.linspace(0, 1, 1000)})):
        root = ElementTree.fromstring(picture.svg())
        assert not [e for e in root.iter() if e.tag.endswith("script")]
        assert max(len(e.text or "") for e in root.iter() if e.tag.endswith("}text")) < 120
    bundle = bn._repr_mimebundle_()
    assert "<script>" not in bundle["text/html"]


@pytest.mark.parametrize("name", ["asia", "alarm", "insurance"])
def test_no_edge_runs_through_bars(name: str) -> None:
    picture = sf.load(name).picture(interval=None)
    sizes = {n: size_of(node(picture, n)) for n in picture.order}
    parents: dict[str, list[str]] = {n: [] for n in sizes}
    for edge in picture.edges:
        parents[edge.head].append(edge.tail)
    assert not lay_out(sizes, parents).collisions()


def test_a_focus_on_a_large_network() -> None:
    picture = sf.load("hailfinder").picture(focus="Scenario", steps=1)
    assert len(picture.nodes) < 56
    assert node(picture, "Scenario").mark == "focus"
    with pytest.raises(sf.SufficeError, match="no node 'nobody'"):
        ASIA.picture(focus="nobody")


def test_undirected_networks_and_chains() -> None:
    moral = ASIA.moral()
    picture = moral.picture({"xray": "yes"})
    assert [b.value for b in node(picture, "lung").bars] == pytest.approx(ASIA.query("lung", {"xray": "yes"}).probs.tolist())
    gaussian = sf.undirected.GaussianMarkovNet("a -- b; c", [[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    assert gaussian.picture().edges[0].strength == pytest.approx(0.5)
    variables = {"x": ["a", "b"], "y": ["a", "b"]}
    cpds = {"x": [[1, 0], [0, 1]], "x[0]": [0.5, 0.5], "y": [[1, 0], [0, 1]]}
    chain = sf.Chain("x[-1] -> x -> y", cpds, variables=variables)
    assert {n.name: n.mark for n in chain.picture().nodes} == {"x[-1]": "past", "x": "", "y": ""}
    assert "stroke-dasharray" in chain.picture().svg()
    for model in (moral, gaussian, chain, ASIA):
        bundle = model._repr_mimebundle_()
        assert bundle["text/html"].startswith("<svg")
        assert "<table>" in bundle["text/html"]
        ElementTree.fromstring(bundle["image/svg+xml"])


def test_results_have_widths_with_a_legend() -> None:
    found = sf.search(ROWS)
    picture = found.picture()
    largest = max(found.losses.values())
    strengths = {(e.tail, e.head): e.strength for e in picture.edges}
    assert strengths == pytest.approx({e: w / largest for e, w in found.losses.items()})
    assert f"loss without the edge {largest:,.4g}" in picture.svg()
    sure = sf.bootstrap(ROWS, n=10)
    assert {e.strength for e in sure.picture().edges} == {sure.strength(a, b) for a, b in sure.averaged().edges}
    posterior = sf.methods.order_mcmc(ROWS, samples=50, max_parents=2)
    for edge in posterior.picture().edges:
        assert edge.strength == pytest.approx(min(1.0, posterior.adjacent(edge.tail, edge.head)))
        assert posterior.probability(edge.tail, edge.head) >= posterior.probability(edge.head, edge.tail)
    by_tests = sf.search(ROWS, method=sf.PC()).picture()
    assert not by_tests.widths
    for result in (found, sure, posterior):
        assert result._repr_mimebundle_()["text/html"].startswith("<svg")
    both = ASIA.picture(against=found)
    assert {e.style for e in both.edges} <= {"solid", "double", "dotted", "dashed"}
    assert len(both.legend) == 4


def test_a_network_too_large_for_bars_is_drawn_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.models.questions import beliefs

    monkeypatch.setattr(beliefs, "MOST_CELLS", 1)
    assert not any(n.bars for n in ASIA._notebook_picture().nodes)
    assert sf.load("munin1")._repr_svg_() is None


def test_numbers_are_drawn_as_densities() -> None:
    numbers = {"x": [1.0, 2.0, 4.0, 3.5] * 10, "y": [1.5, 2.0, 3.0, 3.9] * 10}
    bn = sf.fit("x -> y", numbers, prior=sf.NormalInverseGamma())
    scene = bn.picture({"x": 2.0}, interval=0.9)
    curve = next(node for node in scene.nodes if node.name == "y").curve
    assert curve is not None
    answer = bn.query("y", {"x": 2.0}, interval=0.9)
    at, heights = np.array(curve.points).T
    assert np.allclose(heights, answer.density(at))
    assert np.allclose([y for _, y in curve.before], bn.query("y").density(at))
    assert np.allclose(curve.mean, answer.mean_interval)
    assert next(node for node in scene.nodes if node.name == "x").curve is None  # it is known: there is no density
    assert "suffice-curve" in scene.svg()
