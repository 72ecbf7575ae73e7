"""Conditional Gaussian networks the slow and obvious way: all finite configurations, a dense Gaussian in each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import multivariate_normal

import suffice as sf


def random_hybrid(seed: int, n_finite: int = 3, n_real: int = 4, zeros: bool = False, density: float = 0.5) -> sf.BayesNet:
    """A network with random graph, states and parameters, named u… (finite) and x… (real), declared in mixed order."""
    rng = np.random.default_rng(seed)
    finite = [sf.Finite(f"u{i}", [f"s{k}" for k in range(rng.integers(1, 4))]) for i in range(n_finite)]
    reals = [sf.Real(f"x{i}") for i in range(n_real)]
    order = [*rng.permutation(np.array(finite, object)), *rng.permutation(np.array(reals, object))]
    edges = [
        (a.name, b.name)
        for i, a in enumerate(order)
        for b in order[i + 1 :]
        if rng.random() < density and not (isinstance(a, sf.Real) and isinstance(b, sf.Finite))
    ]
    variables = {v.name: v for v in rng.permutation(np.array([*finite, *reals], object))}
    dag = sf.Dag(edges, nodes=list(variables))
    return sf.BayesNet(dag, {n: random_cpd(rng, dag, variables, n, zeros) for n in dag.nodes}, variables)


def random_cpd(rng: np.random.Generator, dag: sf.Dag, variables: Mapping[str, Any], name: str, zeros: bool) -> Any:
    parents = [variables[p] for p in dag.parents(name)]
    shape = [p.n_states for p in parents if isinstance(p, sf.Finite)]
    if isinstance(variables[name], sf.Finite):
        table = rng.gamma(0.7, size=[*shape, variables[name].n_states]) + 1e-3
        if zeros:
            table *= rng.random(table.shape) < 0.7
            table[..., 0] += 1e-3
        return table / table.sum(-1, keepdims=True)
    coefficients = {p.name: rng.normal(size=shape) for p in parents if not isinstance(p, sf.Finite)}
    return sf.Gaussian(rng.normal(size=shape) * 3, coefficients, rng.gamma(2.0, size=shape) + 0.05)


def gaussian(bn: sf.BayesNet, states: Mapping[str, str]) -> tuple[list[str], Any, Any]:
    """Names, means and covariances of all real nodes given the finite ones: x = (I − B)⁻¹ (a + noise)."""
    names = [n for n in bn.dag.topological_order if not isinstance(bn.variables[n], sf.Finite)]
    a, B, v = np.zeros(len(names)), np.zeros((len(names), len(names))), np.zeros(len(names))
    for i, n in enumerate(names):
        cpd = bn[n]
        u = tuple(p.code(states[p.name]) for p in cpd.finite_parents)
        a[i], v[i] = cpd.intercept[u], cpd.variance[u]
        for j, p in enumerate(cpd.real_parents):
            B[i, names.index(p)] = cpd.coefficients[(*u, j)]
    inverse = np.linalg.inv(np.eye(len(names)) - B)
    return names, inverse @ a, inverse @ np.diag(v) @ inverse.T


class Part(NamedTuple):
    """One configuration of all finite variables: p(it, finite evidence) · p(real evidence | it), and the Gaussian given both."""

    states: dict[str, str]
    weight: float
    names: list[str]
    mean: Any
    covariance: Any


def parts(bn: sf.BayesNet, given: Mapping[str, Any]) -> Iterator[Part]:
    finite = [v for v in bn.variables.values() if isinstance(v, sf.Finite)]
    for choice in itertools.product(*(v.states for v in finite)):
        states = dict(zip((v.name for v in finite), choice, strict=True))
        weight = float(np.prod([_weight(bn, v, states, given) for v in finite]))
        names, mean, covariance = gaussian(bn, states)
        e = [i for i, n in enumerate(names) if n in given]
        t = [i for i, n in enumerate(names) if n not in given]
        if e:
            off = np.array([given[names[i]] for i in e]) - mean[e]
            weight *= float(multivariate_normal.pdf(off, np.zeros(len(e)), covariance[np.ix_(e, e)]))
            gain = np.linalg.solve(covariance[np.ix_(e, e)], covariance[np.ix_(e, t)]).T
            mean, covariance = mean[t] + gain @ off, covariance[np.ix_(t, t)] - gain @ covariance[np.ix_(e, t)]
        yield Part(states, weight, [names[i] for i in t], mean, covariance)


def _weight(bn: sf.BayesNet, v: sf.Finite, states: Mapping[str, str], given: Mapping[str, Any]) -> float:
    p = float(bn[v.name].predictive({q: states[q] for q in bn[v.name].parents})[v.code(states[v.name])])
    seen = given.get(v.name)
    if isinstance(seen, str):
        return p if states[v.name] == seen else 0.0
    return p if seen is None else p * float(seen[v.code(states[v.name])])


def probability(bn: sf.BayesNet, given: Mapping[str, Any]) -> float:
    return sum(p.weight for p in parts(bn, given))


def finite_posterior(bn: sf.BayesNet, targets: Sequence[str], given: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    result: dict[tuple[str, ...], float] = {}
    for p in parts(bn, given):
        key = tuple(p.states[t] for t in targets)
        result[key] = result.get(key, 0.0) + p.weight
    total = sum(result.values())
    return {k: w / total for k, w in result.items()}


def real_moments(bn: sf.BayesNet, targets: Sequence[str], given: Mapping[str, Any]) -> tuple[Any, Any]:
    """Mean and covariance of real targets."""
    total, mean, square = 0.0, np.zeros(len(targets)), np.zeros((len(targets), len(targets)))
    for p in parts(bn, given):
        t = [p.names.index(n) for n in targets]
        total += p.weight
        mean += p.weight * p.mean[t]
        square += p.weight * (p.covariance[np.ix_(t, t)] + np.outer(p.mean[t], p.mean[t]))
    mean /= total
    return mean, square / total - np.outer(mean, mean)


def real_density(bn: sf.BayesNet, target: str, x: float, given: Mapping[str, Any]) -> float:
    total = density = 0.0
    for p in parts(bn, given):
        i = p.names.index(target)
        total += p.weight
        density += p.weight * float(multivariate_normal.pdf(x, p.mean[i], p.covariance[i, i]))
    return density / total


def random_given(bn: sf.BayesNet, seed: int, share: float = 0.4, soft: bool = True) -> dict[str, Any]:
    """What a drawn row says of some variables; of some finite ones only likelihoods."""
    rng = np.random.default_rng(seed)
    row = bn.sample(1, seed=seed).to_pylist()[0]
    given: dict[str, Any] = {}
    for n, v in bn.variables.items():
        if rng.random() < share:
            given[n] = row[n]
            if soft and isinstance(v, sf.Finite) and rng.random() < 0.4:
                given[n] = list(rng.random(v.n_states) * 10.0 + 0.1)
    return given


def highest(bn: sf.BayesNet, reals: Sequence[str], given: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """The states of all finite variables and the values of some real ones where p(them, evidence) is highest, and its log."""
    best: dict[str, Any] = {}
    top = -np.inf
    for p in parts(bn, given):
        t = [p.names.index(n) for n in reals]
        spread = np.linalg.slogdet(2.0 * np.pi * p.covariance[np.ix_(t, t)])[1] if t else 0.0
        value = float(np.log(p.weight) - 0.5 * spread) if p.weight > 0 else -np.inf
        if value > top:
            best, top = {**p.states, **dict(zip(reals, p.mean[t].tolist(), strict=True))}, value
    return best, top
