"""A task whose rows are reduced to what iterations need: its nodes, their tables and units, and what the prior says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite
from suffice.engines.engine import add_up
from suffice.engines.gather import Groups
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import ANY_PRIOR, NORMAL_PRIOR
from suffice.families.categorical import Table
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Cpd, Estimate, Mode
from suffice.incomplete.components import Components, FlatTables, NodeFamily, Theta
from suffice.incomplete.numbers.units import Units, no_groups
from suffice.learning.incomplete.objective import HeldEntries
from suffice.learning.incomplete.task import Task
from suffice.models.parts.sharing import Tie
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.counts import sizes


def imagined_by(nodes: Mapping[str, NodeFamily], prior: Prior, how: Estimate) -> dict[str, Any]:
    """What the prior holds of each node; None where it says nothing, which is noted."""
    answers = {n: None if node.regression else prior.imagine(node.child, node.parents) for n, node in nodes.items()}
    unspoken = [n for n, answer in answers.items() if answer is None]
    if unspoken:
        note(f"the prior says nothing about {listing(unspoken)}: fitted by maximum likelihood")
    beliefs = [n for n, said in answers.items() if said is not None and nodes[n].by_table and not isinstance(said, Counts)]
    if beliefs and how != Mode():
        note(
            f"with missing cells the tables of {listing(beliefs)} are modes of the effects of LogisticNormal, to which EM can "
            "climb, and no posterior means"
        )
    return answers


def refuse_beliefs(said: Mapping[str, Any]) -> None:
    """Refuse priors that imagine no rows, where the M-step needs them."""
    for name, answer in said.items():
        if answer is not None and not isinstance(answer, (Counts, Moments)):
            raise FitError(
                f"the prior of {name!r} imagines no rows, which stationary first slices and hidden numbers need: give it "
                f"{ANY_PRIOR}"
            )


def refuse_constants(
    nodes: Mapping[str, NodeFamily], units: Units, spread: Any, imagined: Mapping[str, Any], ties: Iterable[Tie]
) -> None:
    """A column of equal numbers has no density, unless a prior gives it one, or a column that shares it."""
    tied = {node for tie in ties if any(units.variance.get(n, 0.0) > 0 for n in tie.nodes) for node in tie.nodes}
    for i, name in enumerate(units.centre):
        if name in tied or name not in nodes:
            continue
        square = float(spread.scatter[i, 0, 0]) / max(float(spread.weight[i]), 1e-300)
        same = square <= (1e-14 * float(spread.mean[i, 0])) ** 2
        if same and nodes[name].normal and imagined[name] is None:
            raise FitError(
                f"all values of {name!r} are the same, and a constant has no density: leave the column out, or use a prior "
                f"such as {NORMAL_PRIOR}"
            )


class ImaginedCells(NamedTuple):
    """What a prior says of the cells of all tables: `alpha`, what it imagines; `more`, what is added to counts, less 1 for modes;
    `once`, the same, but that of tied nodes only the first has it; `places`, the cells where there is any of that; `beliefs`,
    what it holds of tables of which it imagines no counts, whose estimates are modes."""

    alpha: Array
    more: Array
    once: Array
    places: Ints
    beliefs: dict[str, Any]


class ExpectedStatistic(NamedTuple):
    """What the data is expected to count, as in `Expectation`, and the parameters under which it was expected."""

    theta: Theta
    cells: Array
    moments: dict[str, Groups]
    steps: dict[str, Any]


class EStep(NamedTuple):
    """The result of an E-step: what is expected, in the form of the problem, and ln p(observed | θ)."""

    statistic: Any
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class ReducedTask(Task):
    """What starts and conventions of hidden numbers are made of; `ParameterProblem` iterates over it."""

    nodes: Mapping[str, NodeFamily] = field(kw_only=True)
    tables: FlatTables = field(kw_only=True)
    units: Units = field(kw_only=True)
    components: Components = field(kw_only=True)
    imagined: Mapping[str, Any] = field(kw_only=True)
    """What the prior imagines of each node, in the units of the columns; None where it says nothing."""
    output_units: Units = field(kw_only=True)
    """The units that distributions and statistics come out in: those of the columns, unless they stay scaled."""
    fixed: tuple[str, ...] = ()
    start: Theta | None = None
    """Where fixed nodes have their parameters from."""
    entries: Mapping[str, HeldEntries] = field(default_factory=dict)
    """Nodes of which only some entries are fixed."""

    @cached_property
    def hidden_names(self) -> frozenset[str]:
        """The names of all that no row shows."""
        return frozenset(self.hidden)

    def base(self, name: str) -> str:
        """The variable behind a name: the same for all lags."""
        return name

    @cached_property
    def others(self) -> list[NodeFamily]:
        """The nodes that are no tables."""
        return [node for node in self.nodes.values() if not node.by_table]

    @cached_property
    def imagined_cells(self) -> ImaginedCells:
        """What the prior says of tables."""
        alpha, more, once = (np.zeros(self.tables.n_cells) for _ in range(3))
        beliefs, again = dict[str, Any](), {node for tie in self.ties for node in tie.nodes[1:]}
        for name, said in self.imagined.items():
            if said is None or not self.nodes[name].by_table:
                continue
            if not isinstance(said, Counts):
                beliefs[name] = said
                continue
            cells, imagined = self.tables.cells[name], said.dense().reshape(-1)
            alpha[cells], more[cells] = imagined, imagined - self.estimate.less
            if name not in again:
                once[cells] = more[cells]
        return ImaginedCells(alpha, more, once, np.flatnonzero(once), beliefs)

    def offset_slopes(self, node: NodeFamily) -> dict[int, float]:
        """The slope of the offset of a linear regression, by its place: 1, but that the columns are scaled."""
        y = self.units.scale[node.name]
        return {j: self.units.scale[r] / y for j, r in enumerate(node.reals[:-1]) if r == node.family.offset}

    @property
    def weight(self) -> float:
        """The weight of all rows together."""
        return self.components.shown.weight

    @property
    def missing_share(self) -> float:
        """The share of the cells that is missing."""
        return sum(self.rows.missing.values()) / max(1, self.rows.n_rows * len(self.rows.columns))

    @property
    def amount(self) -> str:
        """How much data there is, in words."""
        return f"{self.weight:,.10g} rows"

    def with_nodes(self, theta: Theta, other: Theta, names: Iterable[str]) -> Theta:
        """The parameters, those of some nodes taken from others."""
        cells, others = theta.cells.copy(), dict(theta.others)
        for name in names:
            if name in others:
                others[name] = other.others[name]
            else:
                cells[self.tables.cells[name]] = other.cells[self.tables.cells[name]]
        return Theta(self.tables, cells, others)

    def cpds(self, theta: Theta) -> dict[str, Cpd]:
        """The parameters as distributions by node."""
        result: dict[str, Cpd] = {}
        for name, node in self.nodes.items():
            if node.by_table:
                own = theta.cells[self.tables.cells[name]].reshape(sizes(node.finite))
                result[name] = Table(node.child, node.parents, own)  # type: ignore[arg-type]
                continue
            cpd: Any = theta.others[name]
            cpd = self.output_units.outward_cpd(cpd) if node.normal else cpd
            result[name] = node.family.from_closed(cpd) if node.normal and node.regression else cpd
        return result

    def known_of(self, name: str) -> Any:
        """What the prior imagines of a node, None if it says nothing; of a linear regression the slope of its offset."""
        node, as_columns = self.nodes[name], self.output_units is self.units
        if node.normal and node.regression:
            return dict.fromkeys(self.offset_slopes(node), 1.0) if as_columns else self.offset_slopes(node)
        return self.imagined[name] if as_columns else self.imagined_scaled[name]

    @cached_property
    def imagined_scaled(self) -> dict[str, Any]:
        """What the prior imagines of scaled columns."""
        normal, units = {n: s for n, s in self.imagined.items() if self.nodes[n].normal and s is not None}, self.units
        moments = {n: units.inward_moments(s) for n, s in normal.items() if isinstance(s, Moments)}
        beliefs = {n: s.rescale(units.centre[n], units.scale[n]) for n, s in normal.items() if n not in moments}
        return {**self.imagined, **moments, **beliefs}

    def with_known(self, theta: Theta) -> Theta:
        """The parameters with the variances that the prior knows."""
        said = ((n, s) for n, s in self.imagined_scaled.items() if s is not None and self.nodes[n].normal)
        known, others = {n: s for n, s in said if not isinstance(s, Moments)}, dict[str, Any](theta.others)
        for name, belief in known.items():
            others[name] = replace(others[name], variance=np.full_like(others[name].variance, belief.variance))
        return replace(theta, others=others) if known else theta

    def outward_map(self, cpd: Cpd) -> Array | None:
        """∂ parameters of the columns / ∂ parameters as shown, where they differ."""
        if self.output_units is self.units or not self.nodes[cpd.child.name].normal:
            return None
        along = self.units.outward_map(cpd)
        return along if cpd.is_line else np.asarray(cpd.family.outward_map(cpd, along))

    def statistics(self, statistic: ExpectedStatistic) -> Statistics:
        """Expected counts and moments by name; of regressions the counts of the child."""
        plain = [self._statistic_of(node, statistic) for node in self.nodes.values() if not node.iterative]
        steps = {self.nodes[n].child: s for n, s in statistic.steps.items()}
        return Statistics([*plain, *(Counts((v,), s.counts) for v, s in steps.items() if isinstance(v, Finite))], self.weight)

    def of_node(self, name: str, statistic: ExpectedStatistic) -> Any:
        """What is expected of a node: counts, moments, or of a regression its parameters and what completed rows say at them."""
        if self.nodes[name].iterative:
            return statistic.theta.others[name], statistic.steps.get(name)
        return self._statistic_of(self.nodes[name], statistic)

    def _statistic_of(self, node: NodeFamily, statistic: ExpectedStatistic, units: Units | None = None) -> Counts | Moments:
        if node.by_table:
            return Counts(node.finite, statistic.cells[self.tables.cells[node.name]].reshape(sizes(node.finite)))
        groups = statistic.moments.get(node.name) or no_groups(len(node.reals), len(node.derived))
        return (units or self.output_units).outward_moments(node.finite, node.reals, groups, node.derived)

    def _fit_node(self, node: NodeFamily, cpd: Any, statistic: ExpectedStatistic, complete: bool) -> Cpd:
        """The distribution with what was expected of it; as in `fit`, a configuration that no row can have has no parameters.
        Only of a `complete` family, which rows show and which has parameters of its own, there is a posterior: of what is only
        expected intervals would be too narrow."""
        if node.regression:
            return cpd  # type: ignore[no-any-return]
        if not node.normal and not node.by_table:
            return replace(cpd, imagined=None) if cpd.imagined is not None else cpd  # type: ignore[no-any-return]
        seen = self._statistic_of(node, statistic, self.units)
        own: dict[str, Any] = {"imagined": self.imagined[node.name] if complete else None, "seen": seen}
        if self.imagined[node.name] is None and isinstance(seen, Moments):
            lost = seen.at(np.arange(cpd.variance.size)).count.reshape(cpd.variance.shape) <= 0
            if lost.any():
                own |= {part: np.where(lost, np.nan, getattr(cpd, part)) for part in ("intercept", "variance")}
                own["coefficients"] = np.where(lost[..., None], np.nan, cpd.coefficients)
        return replace(cpd, **own)  # type: ignore[no-any-return]

    def _log_prior(self, node: NodeFamily, cpd: Cpd) -> float:
        imagined, how = self.imagined_scaled[node.name], self.estimate
        if node.iterative:
            return float(node.family.log_prior(cpd))
        if imagined is None:
            return 0.0
        return cpd.log_prior(imagined, how, float(np.log(self.units.scale[node.name])))

    @cached_property
    def _chosen(self) -> list[NodeFamily]:
        """The nodes of states whose family was chosen: their tables are what it makes of counts."""
        return [node for node in self.nodes.values() if node.by_table and node.child.family is not None]

    def _in_families(self, cells: Array, weights: Array) -> Array:
        """Tables, of which those of chosen families are what they make of these weights of cells."""
        for node in self._chosen:
            own = self.tables.cells[node.name]
            cells[own] = node.family.fit_table(node.child, node.parents, weights[own].reshape(sizes(node.finite))).reshape(-1)
        return cells

    def theta_of(self, weights: Array, others: dict[str, Cpd]) -> Theta:
        """Parameters whose tables have these weights, and are of the families that were chosen."""
        cells = self.tables.normalise(weights)
        return Theta(self.tables, self._in_families(cells.copy(), cells) if self._chosen else cells, others)

    def gradient_statistic(self, statistic: ExpectedStatistic) -> ExpectedStatistic:
        """The statistic of whole ties, with what else the gradient of the objective follows from."""
        return self.for_each_node(statistic)

    def for_each_node(self, s: ExpectedStatistic) -> ExpectedStatistic:
        """What each node is estimated from: a tied one from the counts or moments of its whole tie, whose columns have the same
        units."""
        if not self.ties:
            return s
        cells, moments, old, steps = s.cells.copy(), dict(s.moments), dict(s.theta.others), dict(s.steps)
        for tie in self.ties:
            if self.nodes[tie.nodes[0]].by_table:
                total = sum(s.cells[self.tables.cells[node]] for node in tie.nodes)
                for node in tie.nodes:
                    cells[self.tables.cells[node]] = total
                continue
            # what has no weight keeps its parameters: they must be shared, too
            old |= {node: old[node].like(old[tie.nodes[0]]) for node in tie.nodes[1:]}
            for seen in (moments, steps):
                own = [seen[node] for node in tie.nodes if node in seen]
                seen |= dict.fromkeys(tie.nodes, reduce(add_up, own)) if own else {}
        return s._replace(theta=replace(s.theta, others=old), cells=cells, moments=moments, steps=steps)
