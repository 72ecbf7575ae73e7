"""Credible intervals of answers: the parameters are drawn from their posterior, and each draw is asked the question.

The point is the answer at the posterior means of the parameters; the interval's ends are quantiles of the answers at the
draws. Parameters that cannot change the answer are not drawn, and what the evidence says is cut out of the tables before.

Parameters that were learned from incomplete rows are drawn together, from a normal distribution of their coordinates whose
covariance is the inverse of the observed information (`parameter_covariance`). The point is at their estimates.

Regressions that were fitted by themselves are drawn by the normal approximation of their posterior, N(estimate, covariance), with
dispersions and the variance of a linear regression held at their estimates (`parameter_draws`); the point is at their estimates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Progress
from suffice.basis.variables import Finite, NotNormal
from suffice.errors import FitError, ModelError, TooLarge, checked_level, listing, quantity, whole
from suffice.errors.remedies import argument
from suffice.families.parameter_draws import DRAW, DrawnGaussian, DrawnLinear, DrawnNode, DrawnRegression, DrawnTable
from suffice.families.protocol.family import Interval, Mean
from suffice.models.parts.closed_forms import NoFormula, words
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork
from suffice.models.parts.parameter_covariance import ParameterCovariance
from suffice.models.questions import exact
from suffice.models.questions.question import Observed, Question, impossible
from suffice.numerics.inference.finite.junction_tree import JunctionTree
from suffice.numerics.inference.finite.network import NONE, Array, Ints, Network, greedy_order, part_of
from suffice.numerics.inference.finite.questions import posteriors
from suffice.numerics.inference.numbers.gaussian import GaussianNode, Gaussians
from suffice.statistics.counts import Counts, n_configurations, sizes

FEWEST = 1_000
MAX_NUMBERS = 2**25
"""Answers times draws: 256 MiB."""

NUMBERS = 2**22
"""A block of draws takes about this many numbers, some times over."""

CELLS = 2**28
"""Of products between two looks at the clock: about a second."""

DRAWING = 10.0
"""What a drawn number costs, in cells of products."""

MAX_CONFIGURATIONS = 2**18
"""Connected real nodes are conditioned once for each configuration of their finite parents; more are refused."""

PIECE, MAX_PIECES = 600.0, 100
"""ln of the ratio that one factor may hold, and factors that are made of one at most: below e^−60,000 a number may be 0."""


def answer_with_interval(
    bn: NetworkParts,
    targets: Sequence[str],
    evidence: Observed,
    level: float,
    draws: int,
    seed: int,
    clock: Progress[Any] | None = None,
) -> Any:
    """p(targets | evidence) at the posterior means, with the equal-tailed interval of each probability, or of each real mean; the
    clock, if there is one, is looked at between draws."""
    tail = (1.0 - checked_level(level)) / 2.0
    question = Question.of(bn, targets, evidence)
    size = len(question.reals) or n_configurations(question.finite)
    check_draws(draws, size)
    tables = all(isinstance(bn[n].imagined, Counts) for n in question.nodes)  # whose draws take no products of matrices
    with nullcontext() if tables else one_blas_thread:
        families = DrawnFamilies(question, whole(seed, "a seed", 0, ModelError))
        point: Any = exact.exact_answer(at_means(bn, question), targets, evidence)
        answers = families.answers(draws, size, clock)
    possible = answers[~np.isnan(answers).any(axis=1)]
    if not len(possible):
        raise impossible(evidence)
    interval, error = quantiles(possible, tail)
    how = how_in_words(question, level, draws, draws - len(possible), error, families.joint)
    if question.reals:
        return replace(point, mean_interval=Interval(*(end[0] if size == 1 else end for end in interval)), how=how)
    return replace(point, interval=Interval(*(end.reshape(point.probs.shape) for end in interval)), how=how)


def quantiles(answers: Array, tail: float) -> tuple[Interval, float]:
    """The quantiles tail and 1 − tail of each column, and the largest of their standard errors. That of a quantile q is half the
    way between the quantiles q ± √(q(1 − q)/n): so far the number of draws below the true one may be off, which is binomial
    (David & Nagaraja 2003, Order Statistics, 3rd ed., p. 159)."""
    step = math.sqrt(tail * (1.0 - tail) / len(answers))
    at = [max(0.0, tail - step), tail, tail + step]
    low = np.quantile(answers, at, axis=0)
    high = np.quantile(answers, [1.0 - q for q in at], axis=0)
    error = max(float((low[2] - low[0]).max()), float((high[0] - high[2]).max())) / 2.0
    return Interval(low[1], high[1]), error


def how_in_words(question: Question, level: float, draws: int, lost: int, error: float, joint: ParameterCovariance | None) -> str:
    """In words, where the point of an answer is, and what its interval was found from."""
    bn = question.bn
    regressions = [bn[n].is_regression for n in question.nodes]
    if joint is not None or (regressions and all(regressions)):
        point = "exact at the estimates"
    else:
        modes = "" if bn.estimate == Mean() else " (not the modes, which the network has)"
        point = f"exact at the posterior means{modes}" + (" and the estimates of regressions" if any(regressions) else "")
    without = f" less {lost:,} that rule the evidence out" if lost else ""
    normal = "" if joint is None else f" of {joint.kind}, by the {joint.how}"
    held = f"; {quantity(joint.n_held, 'parameter')} at 0, or that no row speaks for, held" if joint and joint.n_held else ""
    drawn = f"{draws:,} draws{normal}{without}{held}"
    return f"{point}; {100 * level:.10g} % interval from {drawn} (Monte-Carlo error of its ends {error:.2g})"


def at_means(bn: SomeNetwork, question: Question) -> SomeNetwork:
    """The network with the posterior means of the families that matter as their point values."""
    if bn.estimate == Mean():
        return bn
    cpds = {n: bn[n] for n in bn}
    for n in question.nodes:
        cpd = cpds[n]
        if cpd.imagined is not None:
            cpds[n] = cpd.family.estimate(cpd.child, cpd.parent_variables, cpd.seen, cpd.imagined, Mean())
    return bn.with_cpds(cpds)


def check_draws(draws: object, size: int) -> None:
    """Refuse too few draws, and more numbers than may be held."""
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < FEWEST:
        raise ModelError(f"the ends of an interval need at least {FEWEST:,} draws of the parameters, not {draws!r}")
    if draws * size > MAX_NUMBERS:
        raise TooLarge(f"{draws:,} draws of an answer of {size:,} numbers are {draws * size:,}; the limit is {MAX_NUMBERS:,}")


def check_drawable(cpd: Any, known: Mapping[str, Any], joined: Collection[str]) -> None:
    """Refuse an interval where the parameters of a count or a regression cannot be drawn, or no draw has a formula. Those that
    are `joined` are drawn together with others."""
    name, without = cpd.child.name, f"ask without {argument('interval')}"
    if not cpd.is_regression:
        what = "count" if cpd.child.whole else "number"
        raise ModelError(f"an interval cannot be found for answers that depend on the {what} {name!r}; {without}")
    about = f"the answer depends on {name!r}, a {words(cpd)}"
    if cpd.fitted is None and name not in joined:
        raise FitError(
            f"{about} that was not fitted (it was given by hand, or has a number that do(...) set): its coefficients have no "
            f"covariance to draw them by; {without}, or fit it to rows"
        )
    if name not in joined and not cpd.has_covariance:
        raise FitError(f"{about} whose coefficients have no finite covariance to draw them by; {without}")
    if cpd.family.linear:
        return
    if lacking := [p for p in cpd.real_parents if p not in known]:
        raise NoFormula(
            f"{about} on numbers of which {listing(lacking)} is not observed: there is no formula for the integral",
            lacking,
            f"observe {listing(lacking)}: an interval needs exact answers",
        )
    if not isinstance(cpd.child, Finite) and name not in known:
        raise ModelError(
            f"{about}: intervals are known of probabilities and of means of Gaussian numbers, not of its mean; {without}"
        )


@dataclass(frozen=True)
class Group:
    """Real nodes that are connected when what is observed is taken out, and their finite parents that are not observed."""

    members: tuple[int, ...]
    targets: tuple[int, ...]
    scope: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def n_configurations(self) -> int:
        return math.prod(self.sizes)


class DrawnFamilies:
    """The families that matter, each with a generator of its own, the same in all questions to a network.

    Variables are numbered anew, finite and real apart, those that are not observed first. Evidence is cut out of the tables, so
    a factor is over free variables alone. Groups of real nodes add one factor each, the density of what is observed of them."""

    def __init__(self, question: Question, seed: int) -> None:
        bn, known = question.bn, question.observed
        finite = [n for n in (*question.free, *known) if isinstance(bn.variables[n], Finite)]
        self._number = {n: i for i, n in enumerate(finite)}
        factors = [n for n in question.nodes if bn[n].is_regression and not bn[n].family.linear]
        real_nodes = [n for n in question.nodes if not isinstance(bn.variables[n], Finite) and n not in factors]
        others = [n for n in known if n not in self._number and n not in real_nodes]
        self._real_number = {n: i for i, n in enumerate([*real_nodes, *others])}
        self.question = question
        together = {node: tie.nodes[0] for tie in bn.ties for node in tie.nodes}
        self.joint = bn.covariance_beside_posteriors(question.nodes)
        joined: Collection[str] = () if self.joint is None else self.joint.charts
        for n in question.nodes:
            if bn[n].is_regression or isinstance(bn[n].child, NotNormal):
                check_drawable(bn[n], known, joined)
        table_nodes = [n for n in question.nodes if n in self._number and n not in factors]
        self._tables: list[Any] = [
            DrawnTable(bn[n], self._number, known, n in bn.interventions or n in joined, n in together or n in joined)
            for n in table_nodes
        ]
        self._tables += [DrawnRegression(bn[n], self._number, known) for n in factors]
        kinds = {n: DrawnLinear if bn[n].is_regression else DrawnNode if n in joined else DrawnGaussian for n in real_nodes}
        self._gaussians: list[Any] = [kind(bn[n], self._number, self._real_number) for n, kind in kinds.items()]
        self._groups = self._groups_of(real_nodes)
        names = [*table_nodes, *factors, *real_nodes]
        place = {n: i for i, n in enumerate(bn)}
        places = {n: place[together.get(n, n)] for n in names}  # nodes that share parameters have one
        seeds = [np.random.SeedSequence(seed, spawn_key=(i,)) for i in (*places.values(), len(place))]
        *rngs, self._joint_rng = map(np.random.default_rng, seeds)
        self._rngs = dict(zip(places, rngs, strict=True))
        self._likelihoods = [((self._number[n],), NONE, likelihood) for n, likelihood in question.soft.items()]
        self._network = self._as_network([1] * len(self._groups))
        drawn = sum(t.n_spare for t in self._tables) + sum(g.n_numbers for g in self._gaussians)
        conditioned = sum(g.n_configurations * len(g.members) for g in self._groups)
        self.n_numbers: int = self._network.tables.size + drawn + conditioned
        """Numbers that a draw takes."""

    def _as_network(self, pieces: Sequence[int]) -> Network:
        """The factors with their scopes, groups' in pieces; but for likelihood evidence their numbers come with each draw."""
        variables = [self.question.bn.variables[n] for n in self._number if n not in self.question.observed]
        sizes = [v.n_states for v in variables if isinstance(v, Finite)]
        factors = [(t.scope, t.child, np.ones(t.shape)) for t in self._tables]
        factors += [(g.scope, NONE, np.ones(g.sizes)) for g, k in zip(self._groups, pieces, strict=True) for _ in range(k)]
        return Network.of(sizes, [*factors, *self._likelihoods])

    def _groups_of(self, real_nodes: Sequence[str]) -> list[Group]:
        bn, known = self.question.bn, self.question.observed
        label: dict[str, int] = {}
        for i, name in enumerate(real_nodes):
            joined = {label[p] for p in bn[name].real_parents if p not in known}
            label = {n: i if at in joined else at for n, at in label.items()} if joined else label
            label[name] = i
        groups = []
        for at in sorted(set(label.values())):
            members = [n for n in real_nodes if label[n] == at]
            parents = {v.name: v for n in members for v in bn[n].finite_parents if v.name not in known}
            scope = tuple(self._number[n] for n in parents)
            targets = tuple(self._real_number[n] for n in members if n in self.question.reals)
            group = Group(tuple(self._real_number[n] for n in members), targets, scope, sizes(parents.values()))
            if group.n_configurations > MAX_CONFIGURATIONS:
                raise TooLarge(
                    f"an interval of this answer runs over {group.n_configurations:,} configurations of {listing(parents)} in "
                    f"each draw; the limit is {MAX_CONFIGURATIONS:,}"
                )
            groups.append(group)
        return groups

    @cached_property
    def n_cells(self) -> float:
        """Cells of the products that the answer to one draw takes, by a greedy order of elimination."""
        network = self._network
        return greedy_order(network, part_of(network, network.all_factors, network.no_evidence()), worth=0.0).cells

    def cost(self, ways: float = 1.0) -> float:
        """What a draw and its answer cost, in cells of products; messages go one way along a tree, or more."""
        return DRAWING * self.n_numbers + ways * self.n_cells

    def answers(self, n: int, size: int, clock: Progress[Any] | None = None) -> Array:
        """The answer at each of n draws: [n, size]. A draw to which the evidence is impossible answers NaN."""
        parts, targets = [], [self._number[v.name] for v in self.question.finite]
        for network, tables, means in self._draws(n, size, clock):
            # evidence is cut out of the tables: one row that shows no variable stands for all lines
            nothing = np.full((1, network.n_variables), NONE, np.int32)
            if not self.question.reals:
                parts.append(posteriors(network, targets, network.all_factors, nothing, tables, absolute=True)[0])
                continue
            averaged = {}  # over the configurations of the finite parents of the targets' groups
            for group in self._groups:
                weights = np.ones((len(tables), 1))
                if group.scope and group.targets:
                    weights = posteriors(network, group.scope, network.all_factors, nothing, tables, absolute=True)[0]
                for t in group.targets:
                    averaged[t] = np.where(weights == 0.0, 0.0, weights * means[t]).sum(axis=1)
            parts.append(np.column_stack([averaged[self._real_number[r]] for r in self.question.reals]))
        return np.concatenate(parts)

    def all_answers(self, n: int, clock: Progress[Any]) -> dict[str, Array]:
        """p(x) at each of n draws, [n, states], of every finite x that is not observed; NaN where the evidence is impossible."""
        tree, result, start = JunctionTree.of(self._network), [], self._network.starts
        for network, tables, _ in self._draws(n, int(start[-1]), clock, "of all nodes, {:,} of {:,} draws"):
            result.append((tree if network is self._network else JunctionTree.of(network)).marginals_in_rows(tables))
        every, names = np.concatenate(result), [x for x in self._number if x not in self.question.observed]
        return {x: every[:, start[i] : start[i + 1]] for i, x in enumerate(names)}

    def _draws(
        self, n: int, size: int, clock: Progress[Any] | None, what: str = ""
    ) -> Iterator[tuple[Network, Array, dict[int, Array]]]:
        """n draws of all tables, a line each, with the network that they are of, and the means of the targets in each. Some at a
        time: few that take long, where somebody looks at the clock."""
        step = NUMBERS // max(1, self.n_numbers, size)
        step = max(1, min(n, step if clock is None else min(step, int(CELLS / max(1.0, self.n_cells)))))
        for first in range(0, n, step):
            if clock is not None:
                clock.check(what.format(first, n))
            m = min(step, n - first)
            joint = {} if self.joint is None else self.joint.draw_parameters(m, self._joint_rng)
            families = zip([*self._tables, *self._gaussians], self._rngs.items(), strict=True)
            every = [family.cut(joint[name]) if name in joint else family.draw(m, rng) for family, (name, rng) in families]
            drawn, nodes = every[: len(self._tables)], every[len(self._tables) :]
            means: dict[int, Array] = {}
            pieces = []
            for group in self._groups:
                densities, of_targets = self._condition(group, nodes, m)
                drawn += densities
                pieces.append(len(densities))
                means |= dict(zip(group.targets, of_targets, strict=True))
            network = self._network if max(pieces, default=1) == 1 else self._as_network(pieces)
            drawn += [np.repeat(likelihood[None], m, axis=0) for _, _, likelihood in self._likelihoods]
            yield network, np.concatenate(drawn, axis=1) if drawn else np.zeros((m, 0)), means

    def _condition(self, group: Group, nodes: Sequence[GaussianNode], n: int) -> tuple[list[Array], list[Array]]:
        """For each draw and configuration the density of what is observed, up to a factor, and the means of the targets."""
        known, C = self.question.observed, group.n_configurations
        codes = np.unravel_index(np.arange(C), group.sizes) if group.scope else ()
        configurations: dict[int, int | Ints] = {i: known[name] for name, i in self._number.items() if name in known}
        configurations |= {v: np.tile(c.astype(np.int64), n) for v, c in zip(group.scope, codes, strict=True)}
        configurations[DRAW] = np.repeat(np.arange(n), C)
        values = {i: np.array([known[name]]) for name, i in self._real_number.items() if name in known}
        answer = Gaussians(nodes).condition(group.members, group.targets, values, configurations, n * C, joint=False)
        log_density = answer.log_density.reshape(n, C)
        with np.errstate(invalid="ignore"):
            below = log_density - log_density.max(axis=1, keepdims=True)
        # densities may differ by more than floats can hold: then they come as equal factors, whose product they are
        k = min(MAX_PIECES, max(1, math.ceil(-float(np.min(below, where=np.isfinite(below), initial=0.0)) / PIECE)))
        return [np.exp(below / k)] * k, [answer.mean[:, 0, j].reshape(n, C) for j in range(len(group.targets))]
