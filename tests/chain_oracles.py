"""Chains the slow and obvious way: all completions of a sequence's states, a dense Gaussian of its numbers in each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import suffice as sf
from suffice.graphs.lagged import variable_and_lag

Rows = list[dict[str, Any]]
"""A sequence: at each step the cells by variable, None where one is missing."""

MOST = 3000
"""Completions of a sequence that are enumerated."""


@dataclass(frozen=True)
class Kinds:
    """What a random template may have."""

    hidden: int = 2
    lags: int = 2
    numbers: bool = True
    counts: bool = True
    regressions: bool = True
    zeros: bool = False


ANY = Kinds()


@dataclass(frozen=True)
class Case:
    """A chain, and sequences of it with gaps; `hidden` are the variables that are declared so, `labelled` those of them of which
    some cells are there."""

    chain: sf.Chain
    rows: list[Rows]
    hidden: tuple[str, ...]
    labelled: tuple[str, ...]
    weights: tuple[float, ...] | None

    @property
    def shown(self) -> list[str]:
        return [n for n in self.chain.variables if n not in self.hidden or n in self.labelled]

    @property
    def declared(self) -> list[Any]:
        return [self.chain.variables[n] for n in self.hidden]

    @property
    def families(self) -> dict[str, Any]:
        return {n: self.chain[n].family for n in self.chain.template.nodes if self.chain[n].is_regression}

    def sequences(self, some: Sequence[int] | None = None, **how: Any) -> sf.chains.Sequences:
        """These of the sequences, or all."""
        return as_sequences(self, self.rows if some is None else [self.rows[i] for i in some], self._weights(some), **how)

    def _weights(self, some: Sequence[int] | None) -> Any:
        return self.weights if some is None or self.weights is None else [self.weights[i] for i in some]


def as_sequences(case: Case, rows: list[Rows], weights: Any = None, **how: Any) -> sf.chains.Sequences:
    """Sequences with the columns that a case shows."""
    flat = [row for own in rows for row in own]
    table: dict[str, Any] = {n: [row[n] for row in flat] for n in case.shown}
    table["id"] = [f"{i:03d}" for i, own in enumerate(rows) for _ in own]
    if weights is not None:
        how["weights"] = np.array([w for w, own in zip(weights, rows, strict=True) for _ in own])
    return sf.sequences(table, by="id", variables={n: case.chain.variables[n] for n in case.shown}, **how)


def random_template(rng: np.random.Generator, kinds: Kinds) -> tuple[sf.Template, dict[str, Any], tuple[str, ...]]:
    """A template, its variables, and which of them are hidden."""
    pool = ["f", *(["x", "y"] if kinds.numbers else []), *(["k"] if kinds.counts else []), "u"]
    hidden = ["h", "g"][: int(rng.integers(0, kinds.hidden + 1))]
    shown = sorted(rng.choice(pool, int(rng.integers(1, max(2, min(4 - len(hidden), len(pool)) + 1))), replace=False))
    names = [*hidden, *map(str, shown)]
    variables = {n: _variable(n, rng) for n in names}
    order = [str(n) for n in rng.permutation(names)]
    regress = kinds.regressions and rng.random() < 0.3
    parents: dict[str, list[str]] = {}
    for i, name in enumerate(order):
        now = [p for p in order[:i] if rng.random() < 0.5]
        past = [(p, k) for p in order for k in range(1, kinds.lags + 1) if rng.random() < (0.35 if k == 1 else 0.12)]
        if name in hidden and rng.random() < 0.8 and (name, 1) not in past:
            past.append((name, 1))
        wanted = [(p, 0) for p in now] + past
        own = [(p, k) for p, k in wanted if _fits(variables[name], variables[p], regress=regress)][:3]
        parents[name] = [sf.chains.lag(p, k) if k else p for p, k in own]
    return sf.Template(parents), variables, tuple(hidden)


def _variable(name: str, rng: np.random.Generator) -> Any:
    if name in "xy":
        return sf.Real(name)
    return sf.Count(name) if name == "k" else sf.Finite(name, [f"{name}{i}" for i in range(int(rng.integers(2, 4)))])


def _fits(child: Any, parent: Any, *, regress: bool) -> bool:
    if isinstance(parent, sf.Finite):
        return True
    return isinstance(parent, sf.Real) and (isinstance(child, sf.Real) or (regress and isinstance(child, sf.Finite)))


def random_chain(seed: int, kinds: Kinds) -> tuple[sf.Chain, tuple[str, ...]]:
    """A chain with random template, states and parameters; a state with a real parent is a logistic regression."""
    rng = np.random.default_rng(seed)
    template, variables, hidden = random_template(rng, kinds)
    regressions = {n for n in template.nodes if isinstance(variables[n], sf.Finite) and _numbers(template, variables, n)}
    cpds = {}
    for key, (name, parents) in _nodes(template).items():
        own = [(p, variables[variable_and_lag(p)[0]]) for p in parents]
        cpds[key] = _cpd(rng, key, variables[name], own, regress=name in regressions and bool(own), zeros=kinds.zeros)
    return sf.Chain(template, cpds, variables), hidden


def _numbers(template: sf.Template, variables: Mapping[str, Any], name: str) -> bool:
    return any(isinstance(variables[variable_and_lag(p)[0]], sf.Real) for p in template.parents(name))


def _nodes(template: sf.Template) -> dict[str, tuple[str, tuple[str, ...]]]:
    first = {template.parameter_name(n, t): (n, template.parents_at(n, t)) for n, t in template.first_nodes}
    return {**{n: (n, template.parents(n)) for n in template.nodes}, **first}


def _cpd(rng: np.random.Generator, key: str, child: Any, parents: list[tuple[str, Any]], *, regress: bool, zeros: bool) -> Any:
    shape = [v.n_states for _, v in parents if isinstance(v, sf.Finite)]
    if isinstance(child, sf.Real):
        effects = {p: 0.6 * rng.normal(size=shape) for p, v in parents if isinstance(v, sf.Real)}
        return sf.Gaussian(2 * rng.normal(size=shape), effects, rng.gamma(2.0, size=shape) + 0.1)
    if isinstance(child, sf.Count):
        return sf.regressions.Rates(rng.gamma(2.0, size=shape) + 0.1)
    if regress:
        own = tuple(renamed(v, p) for p, v in parents)
        n = child.n_states - 1
        terms = sum(v.n_states - 1 if isinstance(v, sf.Finite) else 1 for v in own)
        return sf.results.RegressionCpd(renamed(child, key), own, sf.Logistic(), rng.normal(size=n), rng.normal(size=(n, terms)))
    table = rng.gamma(1.0, size=[*shape, child.n_states]) + 0.02
    if zeros:
        table *= rng.random(table.shape) < 0.7
        table[..., 0] += 0.02
    return table / table.sum(-1, keepdims=True)


def renamed(variable: Any, name: str) -> Any:
    return sf.Finite(name, variable.states) if isinstance(variable, sf.Finite) else type(variable)(name)


def random_case(
    seed: int, kinds: Kinds = ANY, *, n: int = 3, longest: int = 5, weighted: bool = False, share: float | None = None
) -> Case:
    """A chain and n sequences drawn from it, with gaps wherever they can be: not where the parents of a regression or a count
    would be missing."""
    chain, hidden = random_chain(seed, kinds)
    rng = np.random.default_rng([seed, 1])
    drawn = [chain.sample(1, length=int(rng.integers(1, longest + 1)), seed=int(rng.integers(2**31))) for _ in range(n)]
    rows: list[Rows] = [[dict(row) for row in table.drop(["sequence", "step"]).to_pylist()] for table in drawn]
    labelled = tuple(h for h in hidden if rng.random() < 0.4)
    share = rng.choice([0.0, 0.15, 0.4]) if share is None else share
    needed = _needed(chain)
    for row in (row for own in rows for row in own):
        for name in chain.variables:
            lost = name in hidden and (name not in labelled or rng.random() < 0.6)
            if lost or (name not in needed and rng.random() < share):
                row[name] = None
    weights = tuple(float(w) for w in rng.integers(0, 4, n)) if weighted else None
    return Case(chain, rows, hidden, labelled, weights)


def _needed(chain: sf.Chain) -> set[str]:
    """The numbers that must not be missing: parents of regressions and, beside states that are unknown, of later steps."""
    template, variables = chain.template, chain.variables
    of_regressions = {variable_and_lag(p)[0] for n in template.nodes if chain[n].is_regression for p in template.parents(n)}
    return {n for n in of_regressions | set(template.lags) if isinstance(variables[n], sf.Real)}


@dataclass(frozen=True, eq=False)
class Enumeration:
    """All completions of one sequence."""

    chain: sf.Chain
    rows: Rows

    def node(self, name: str, t: int) -> tuple[str, Any]:
        """The distribution of a variable at a step, and its name."""
        key = self.chain.template.parameter_name(name, t)
        return key, self.chain[key]

    @cached_property
    def open(self) -> list[tuple[str, int]]:
        """The states that are not seen, by step and name."""
        finite = [n for n, v in self.chain.variables.items() if isinstance(v, sf.Finite)]
        return [(n, t) for t, row in enumerate(self.rows) for n in finite if row[n] is None]

    @property
    def n(self) -> int:
        return math.prod(self.chain.variables[n].n_states for n, _ in self.open)

    @cached_property
    def codes(self) -> dict[tuple[str, int], Any]:
        """The state of each cell in each completion."""
        assert self.n <= MOST
        choices = [range(self.chain.variables[n].n_states) for n, _ in self.open]
        cells = np.array(list(itertools.product(*choices)), np.int64).reshape(self.n, len(self.open))
        result = dict(zip(self.open, cells.T, strict=True))
        for t, row in enumerate(self.rows):
            for n, v in self.chain.variables.items():
                if isinstance(v, sf.Finite) and row[n] is not None:
                    result[n, t] = np.full(self.n, v.code(row[n]))
        return result

    def columns(self, name: str, t: int) -> dict[str, Any]:
        """The columns of a node in all completions."""
        key, cpd = self.node(name, t)
        places = {key: (name, t)} | {p: (b, t - k) for p in cpd.parents for b, k in [variable_and_lag(p)]}
        return {
            p: self.codes[at] if at in self.codes else np.full(self.n, self.rows[at[1]][at[0]], float) for p, at in places.items()
        }

    @cached_property
    def reals(self) -> list[tuple[str, int]]:
        return [
            (n, t) for t in range(len(self.rows)) for n in self.chain.template.slice_at(t).topological_order if self.is_real(n)
        ]

    def is_real(self, name: str) -> bool:
        return isinstance(self.chain.variables[name], sf.Real)

    @cached_property
    def gaussian(self) -> tuple[Any, Any, Any]:
        """In each completion ln p of the numbers that are seen, and mean and covariance of all given these."""
        R, C = len(self.reals), self.n
        a, B, v = np.zeros((C, R)), np.zeros((C, R, R)), np.zeros((C, R))
        for i, (name, t) in enumerate(self.reals):
            _, cpd = self.node(name, t)
            places = [(b, t - k) for p in cpd.parents for b, k in [variable_and_lag(p)]]
            states = tuple(self.codes[at] for at in places if at in self.codes)
            a[:, i], v[:, i] = cpd.intercept[states], cpd.variance[states]
            for j, at in enumerate(at for at in places if at not in self.codes):
                B[:, i, self.reals.index(at)] = cpd.coefficients[(*states, j)]
        inverse = np.linalg.inv(np.eye(R) - B)
        mean, cov = np.einsum("cij,cj->ci", inverse, a), np.einsum("cij,cj,ckj->cik", inverse, v, inverse)
        values = np.array([np.nan if self.rows[t][n] is None else self.rows[t][n] for n, t in self.reals], float)
        e = np.flatnonzero(~np.isnan(values))
        logs = np.zeros(C)
        if len(e):
            off, S = values[e] - mean[:, e], cov[:, e[:, None], e]
            solved = np.linalg.solve(S, off[..., None])[..., 0]
            logs = -0.5 * (np.einsum("ce,ce->c", off, solved) + np.linalg.slogdet(S)[1] + len(e) * np.log(2 * np.pi))
            gain = np.linalg.solve(S, cov[:, e]).transpose(0, 2, 1)
            mean = mean + np.einsum("cre,ce->cr", gain, off)
            cov = cov - gain @ cov[:, e]
            mean[:, e], cov[:, e], cov[:, :, e] = values[e], 0.0, 0.0
        return logs, mean, cov

    @cached_property
    def log_weight(self) -> Any:
        """ln p(completion, all that is seen)."""
        total = np.zeros(self.n) + self.gaussian[0]
        for t, row in enumerate(self.rows):
            for name, v in self.chain.variables.items():
                if isinstance(v, sf.Finite) or (isinstance(v, sf.Count) and row[name] is not None):
                    total = total + self.node(name, t)[1].log_prob(self.columns(name, t))
        return total

    @cached_property
    def log_prob(self) -> float:
        top = self.log_weight.max()
        return float(top + np.log(np.exp(self.log_weight - top).sum())) if top > -np.inf else -np.inf

    @cached_property
    def posterior(self) -> Any:
        return np.exp(self.log_weight - self.log_prob)

    def states(self, name: str, t: int) -> Any:
        """p(state) of a cell given all that is seen."""
        return np.bincount(self.codes[name, t], self.posterior, self.chain.variables[name].n_states)

    def number(self, name: str, t: int) -> tuple[float, float]:
        """Mean and standard deviation of a number given all that is seen."""
        if isinstance(self.chain.variables[name], sf.Count):
            if self.rows[t][name] is not None:
                return self.rows[t][name], 0.0
            _, cpd = self.node(name, t)
            means = cpd.rates[tuple(self.codes[b, t - k] for p in cpd.parents for b, k in [variable_and_lag(p)])]
            variances = means = np.broadcast_to(means, self.n)
        else:
            i = self.reals.index((name, t))
            means, variances = self.gaussian[1][:, i], self.gaussian[2][:, i, i]
        mean = float(self.posterior @ means)
        return mean, float(np.sqrt(max(0.0, self.posterior @ (variances + (means - mean) ** 2))))

    def counts(self, name: str, t: int) -> Any:
        """The expected counts of a node's table at a step."""
        _, cpd = self.node(name, t)
        places = [(b, t - k) for p in cpd.parents for b, k in [variable_and_lag(p)]] + [(name, t)]
        shape = [self.chain.variables[b].n_states for b, _ in places]
        index = np.ravel_multi_index([self.codes[at] for at in places], shape)
        return np.bincount(index, self.posterior, math.prod(shape)).reshape(shape)

    def moments(self, name: str, t: int) -> Any:
        """Σ p · (1, x) (1, x)ᵀ of the numbers of a node, parents and then child, within each configuration of its states."""
        _, cpd = self.node(name, t)
        places = [(b, t - k) for p in cpd.parents for b, k in [variable_and_lag(p)]]
        finite, numbers = [at for at in places if at in self.codes], [at for at in places if at not in self.codes] + [(name, t)]
        shape = [self.chain.variables[b].n_states for b, _ in finite]
        index = np.ravel_multi_index([self.codes[at] for at in finite], shape) if finite else np.zeros(self.n, int)
        if self.is_real(name):
            at = [self.reals.index(p) for p in numbers]
            mean, cov = self.gaussian[1][:, at], self.gaussian[2][:, at][:, :, at]
        else:
            mean, cov = np.full((self.n, 1), float(self.rows[t][name])), np.zeros((self.n, 1, 1))
        wide = np.concatenate([np.ones((self.n, 1)), mean], axis=1)
        second = wide[:, :, None] * wide[:, None, :]
        second[:, 1:, 1:] += cov
        result = np.zeros((math.prod(shape), *second.shape[1:]))
        np.add.at(result, index, self.posterior[:, None, None] * second)
        return result.reshape(*shape, *second.shape[1:])
