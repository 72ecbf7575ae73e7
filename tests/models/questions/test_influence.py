"""What bears on an answer: mutual information by enumeration, answers at changed parameters by changing them."""

from __future__ import annotations

import numpy as np
import pytest

import suffice as sf

ASIA = sf.load("asia")


def fitted() -> sf.BayesNet:
    return sf.fit(ASIA.dag, ASIA.sample(300, seed=1), prior=sf.BDeu(5))


@pytest.mark.parametrize("given", [{}, {"dysp": "yes"}])
def test_information_is_that_of_the_joint(given: dict[str, str]) -> None:
    answer = ASIA.influence("lung", given)
    assert list(answer.information) == sorted(answer.information, key=lambda n: (-answer.information[n], n))
    for name, nats in answer.information.items():
        joint = ASIA.query([name, "lung"], given).probs
        outer = joint.sum(1, keepdims=True) * joint.sum(0)
        positive = joint > 0
        assert nats == pytest.approx((joint[positive] * np.log(joint[positive] / outer[positive])).sum(), abs=1e-12)
        states, moved = answer.moved[name]
        for state, row in zip(states, moved, strict=True):
            assert row == pytest.approx(ASIA.query("lung", {**given, name: state}).probs, abs=1e-12)


def test_a_tornado_is_the_answer_of_changed_networks() -> None:
    bn = fitted()
    answer = bn.tornado("lung", "yes", {"xray": "yes", "smoke": "yes"}, level=0.9)
    assert answer.answer == bn.query("lung", {"xray": "yes", "smoke": "yes"})["yes"]
    assert [b.swing for b in answer.bends] == sorted((b.swing for b in answer.bends), reverse=True)
    for bend in answer.bends[:8]:
        for end, expected in ((bend.low, bend.at_low), (bend.high, bend.at_high)):
            tables = {n: np.array(bn[n].probs) for n in bn}
            parents = dict(bend.parents)
            row = tables[bend.node][tuple(bn.variables[p].states.index(parents[p]) for p in bn[bend.node].parents)]
            i = bn.variables[bend.node].states.index(bend.state)
            row *= (1 - end) / (1 - row[i])
            row[i] = end
            changed = sf.BayesNet(bn.dag, tables, bn.variables)
            assert changed.query("lung", {"xray": "yes", "smoke": "yes"})["yes"] == pytest.approx(expected, rel=1e-10)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(sf.SufficeError, match="no node 'lungs'; did you mean 'lung'"):
        ASIA.influence("lungs")
    with pytest.raises(sf.SufficeError, match="is given"):
        ASIA.influence("lung", {"lung": "yes"})
    with pytest.raises(sf.SufficeError, match="has no state 'maybe'"):
        fitted().tornado("lung", "maybe")
    with pytest.raises(sf.SufficeError, match="posterior"):
        ASIA.tornado("lung", "yes")
    numbers = sf.fit("x -> y", {"x": [0.0, 1.0, 2.5], "y": [0.2, 1.1, 2.0]})
    with pytest.raises(sf.SufficeError, match="is a number"):
        numbers.influence("y")


def test_they_print() -> None:
    assert "what bears on lung given xray=yes" in repr(ASIA.influence("lung", {"xray": "yes"}))
    assert "<table>" in ASIA.influence("lung")._repr_html_()
    assert repr(fitted().tornado("lung", "yes")).startswith("Tornado: p(lung=yes) = ")
