"""What bears on an answer: how much each other node says about a target, and how much each parameter moves the answer.

Mutual information is that of the target and one node under what is given:

    I(T; X | e) = Σ p(t, x | e) ln p(t, x | e) / (p(t | e) p(x | e))

from p(x | t, e) of all nodes x at once, one propagation for each state of the target. With one parameter θ = p(x | u) changed,
and the rest of its row in proportion, p(t, e) and p(e) are linear in θ (Castillo, Gutiérrez & Hadi 1997), with slopes that the
posteriors of the family give: so the answer at the ends of an interval is exact, and takes no further propagation.

The network is asked as anybody asks it, by `query` and `marginals`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.output.display import OneTable
from suffice.basis.variables import Finite
from suffice.errors import ModelError, listing, nearest, quantity
from suffice.numerics.inference.finite.network import Array

ROUNDING = 1e-13
"""What is less is nothing: rounding of sums of probabilities."""

MOST_ROWS = 30
"""Lines of a table that is printed."""


@dataclass(frozen=True, repr=False)
class Influence(OneTable):
    """How much each other node says about a target.

    `information[x]`: I(target; x | given), in nats. `moved[x]`: p(target | x, given), a row for each state of x; only finite
    nodes have one.
    """

    target: Finite
    probs: Array
    """p(target | given)."""
    information: Mapping[str, float]
    moved: Mapping[str, tuple[tuple[str, ...], Array]]
    given: Mapping[str, object]

    @property
    def entropy(self) -> float:
        """That of the target, in nats: as much as all others together can say."""
        p = self.probs[self.probs > 0]
        return float(-(p * np.log(p)).sum())

    def _headline(self) -> str:
        given = ", ".join(f"{n}={v}" for n, v in self.given.items())
        return f"what bears on {self.target.name}{f' given {given}' if given else ''}; its entropy is {self.entropy:.4g} nats"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = []
        for name, nats in [(n, nats) for n, nats in self.information.items() if nats][:MOST_ROWS]:
            states, moved = self.moved.get(name, ((), np.zeros((0, len(self.probs)))))
            where, most = "", ""
            if len(states):
                far = np.where(np.isnan(moved), 0.0, np.abs(moved - self.probs))
                i, t = np.unravel_index(int(far.argmax()), far.shape)
                where = f"{name}={states[i]}"
                most = f"p({self.target.name}={self.target.states[t]}) {self.probs[t]:.4g} → {moved[i, t]:.4g}"
            rows.append([name, nats, nats / self.entropy if self.entropy > 0 else 0.0, where, most])
        return ["node", "nats", "of entropy", "moves most", "to"], rows

    def _below(self) -> str:
        speak = sum(nats > 0 for nats in self.information.values())
        more = f"\n… and {quantity(speak - MOST_ROWS, 'more node')}" if speak > MOST_ROWS else ""
        silent = len(self.information) - speak
        return f"{more}\n{quantity(silent, 'other node')} {'says' if silent == 1 else 'say'} nothing about it" if silent else more


def influence(network: Any, target: str, given: Mapping[str, object] | None = None) -> Influence:
    """How much each other finite node says about a finite target."""
    own, given = _target(network, target, given), dict(given or {})
    probs = np.asarray(network.query(target, given).probs)
    answers = {t: network.marginals({**given, target: s}) for t, s in enumerate(own.states) if probs[t] > 0}
    others = [n for n, v in network.variables.items() if isinstance(v, Finite) and n != target and n not in given]
    information, moved = {}, {}
    for name in others:
        variable: Any = network.variables[name]
        joint = np.zeros((variable.n_states, own.n_states))
        for t, of_all in answers.items():
            joint[:, t] = probs[t] * np.asarray(of_all[name].probs)
        total = joint.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            nats = np.where(joint > 0, joint * np.log(joint / (total[:, None] * probs)), 0.0).sum()
            moved[name] = (variable.states, joint / total[:, None])
        information[name] = float(nats) if nats > ROUNDING else 0.0
    order = sorted(information, key=lambda n: (-information[n], n))
    return Influence(own, probs, {n: information[n] for n in order}, moved, given)


@dataclass(frozen=True)
class Bend:
    """A parameter, the ends of its interval, and the answer at these ends."""

    node: str
    parents: tuple[tuple[str, str], ...]
    state: str
    value: float
    low: float
    high: float
    at_low: float
    at_high: float

    @property
    def swing(self) -> float:
        """How far apart the two answers are."""
        return abs(self.at_high - self.at_low)

    def __str__(self) -> str:
        given = ", ".join(f"{n}={s}" for n, s in self.parents)
        return f"p({self.node}={self.state}{f' | {given}' if given else ''})"


@dataclass(frozen=True, repr=False)
class Tornado(OneTable):
    """The answer when one parameter after the other goes to the ends of its credible interval, the widest swing first."""

    question: str
    answer: float
    level: float
    bends: tuple[Bend, ...]

    def _headline(self) -> str:
        return (
            f"{self.question} = {self.answer:.4g}, and when one parameter is at the ends of its {100 * self.level:g} % interval"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        shown = self.bends[:MOST_ROWS]
        rows: list[list[object]] = [
            [str(b), b.value, f"{b.low:.4g} … {b.high:.4g}", f"{b.at_low:.4g} … {b.at_high:.4g}"] for b in shown
        ]
        return ["parameter", "value", "interval", "answer"], rows

    def _below(self) -> str:
        more = len(self.bends) - MOST_ROWS
        return f"\n… and {quantity(more, 'more parameter')}" if more > 0 else ""


def tornado(network: Any, target: str, state: str, given: Mapping[str, object] | None = None, level: float = 0.95) -> Tornado:
    """How far each parameter moves p(target = state | given), within its own interval."""
    own, given = _target(network, target, given), dict(given or {})
    if state not in own.states:
        raise ModelError(
            f"{target!r} has no state {state!r}{nearest(str(state), own.states)}; its states are {listing(own.states)}"
        )
    answer = float(network.query(target, given)[state])
    bends: list[Bend] = []
    for name in network.dag.nodes:
        cpd = network[name]
        if all(isinstance(network.variables[n], Finite) for n in (name, *cpd.parents)):
            bends += _bends(network, name, given, (target, state, answer), cpd.interval(level))
    order = sorted(bends, key=lambda b: (-b.swing, str(b)))
    words = ", ".join(f"{n}={v}" for n, v in given.items())
    return Tornado(
        f"p({target}={state}{f' | {words}' if words else ''})", answer, level, tuple(b for b in order if b.swing > ROUNDING)
    )


def _target(network: Any, target: str, given: Mapping[str, object] | None) -> Finite:
    if target not in network.variables:
        raise ModelError(f"there is no node {target!r}{nearest(str(target), network.variables)}")
    variable = network.variables[target]
    if not isinstance(variable, Finite):
        raise ModelError(
            f"{target!r} is a number; influence is on the states of a finite node: cut it into Bins when it is scanned"
        )
    if given and target in given:
        raise ModelError(f"{target!r} is given; ask about another node")
    return variable


def _bends(
    network: Any, name: str, given: Mapping[str, object], asked: tuple[str, str, float], ends: tuple[Array, Array]
) -> list[Bend]:
    """Those of all parameters of a table: with q(θ) = p(t, e) and r(θ) = p(e), both lines, the answer is q(θ)/r(θ)."""
    target, state, answer = asked
    cpd = network[name]
    theta = np.asarray(cpd.probs)
    of_e = _slopes(theta, _family(network, name, given))
    of_te = _slopes(theta, _family(network, name, {**given, target: state})) if answer > 0 else np.zeros_like(theta)
    variables: list[Any] = [network.variables[n] for n in (*cpd.parents, name)]
    result = []
    for cell in np.ndindex(*theta.shape):
        low, high = float(ends[0][cell]), float(ends[1][cell])
        slopes, value = (float(of_te[cell]), float(of_e[cell])), float(theta[cell])
        at = [_ratio(answer, *slopes, end - value) for end in (low, high)]
        states = [v.states[i] for v, i in zip(variables, cell, strict=True)]
        result.append(Bend(name, tuple(zip(cpd.parents, states[:-1], strict=True)), states[-1], value, low, high, *at))
    return result


def _ratio(answer: float, of_te: float, of_e: float, step: float) -> float:
    below = 1.0 + step * of_e
    return float(np.clip(answer * (1.0 + step * of_te) / below, 0.0, 1.0)) if below > 0 else answer


def _family(network: Any, name: str, given: Mapping[str, object]) -> Array:
    """p(parents, node | given), in the axes of the node's table."""
    names = (*network[name].parents, name)
    free = [n for n in names if n not in given]
    variables: list[Any] = [network.variables[n] for n in names]
    joint = np.asarray(network.query(free, given).probs) if free else np.ones(())
    place: list[Any] = [slice(None) if n in free else _code(network.variables[n], given[n]) for n in names]
    result = np.zeros([v.n_states for v in variables])
    result[tuple(place)] = joint
    return result


def _code(variable: Any, value: object) -> int:
    if not isinstance(value, str) or value not in variable.states:
        raise ModelError(f"{variable.name!r} is given as likelihoods; a tornado needs states that are certain")
    return int(variable.states.index(value))


def _slopes(theta: Array, family: Array) -> Array:
    """d ln p(e) / dθ of each cell, the rest of its row in proportion: p(x, u | e)/θ − p(not x, u | e)/(1 − θ)."""
    rest = family.sum(axis=-1, keepdims=True) - family
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(theta > 0, family / theta, 0.0)
        return np.asarray(up - np.where(theta < 1, rest / (1.0 - theta), 0.0))
