"""Regressions among the nodes of a network: what exact inference can make of them.

A linear regression is a conditional Gaussian, and a regression of states, or of a Poisson count, on states alone is a table.
Any other one is *open*: it has a place in exact inference only once its numbers are known. Given them

    a finite child                     is a table over its finite parents,
    a number that is observed          weighs its finite parents by its density there,
    a Poisson count                    has rates over its finite parents,
    what is neither asked for nor observed, nor above something that is, may be left out.

`reduced` makes these changes for one question. What they leave over, an integral over a number that is not observed, has no
formula: that is refused, and drawn instead where the user asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ModelError
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Array
from suffice.families.logistic_cpd import LogisticCpd
from suffice.families.ordinal_cpd import OrdinalCpd
from suffice.families.poisson import PoissonRates
from suffice.families.regression_cpd import RegressionCpd
from suffice.families.responses import BinomialLogit, Linear, NegativeBinomialLog, PoissonLog
from suffice.graphs import Dag
from suffice.models.no_formula import no_formula
from suffice.statistics.configurations import checked_cells, sizes
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Regressed = LogisticCpd | OrdinalCpd | RegressionCpd
REGRESSIONS = (LogisticCpd, OrdinalCpd, RegressionCpd)


@dataclass(frozen=True, eq=False)
class Density:
    """ln p(child = what is observed | finite parents): the place of a regression in one question.

    >>> from suffice.variables import Real
    >>> Density(Real("y"), (), np.array(-1.5)).logs
    array(-1.5)
    """

    child: Variable
    parent_variables: tuple[Finite, ...]
    logs: Array

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parent_variables)

    @property
    def finite_parents(self) -> tuple[Finite, ...]:
        return self.parent_variables

    @property
    def real_parents(self) -> tuple[str, ...]:
        return ()


Closed = Table | ConditionalGaussian | PoissonRates | Density


def is_open(cpd: Any) -> bool:
    """Whether a distribution is a regression that is neither a table nor Gaussian, whatever is observed."""
    if not isinstance(cpd, REGRESSIONS):
        return False
    if isinstance(cpd.child, Finite) or isinstance(cpd.family, PoissonLog):
        return bool(cpd.real_parents)
    return not isinstance(cpd.family, Linear)


def is_linear(cpd: Any) -> bool:
    """Whether a distribution is a linear regression, which is Gaussian."""
    return isinstance(cpd, RegressionCpd) and isinstance(cpd.family, Linear)


def closed(cpd: Any) -> Closed:
    """A distribution as a table, a conditional Gaussian or Poisson rates; open regressions are refused.

    >>> from suffice.variables import Real
    >>> closed(RegressionCpd(Real("y"), (Finite("z", ["a", "b"]), Real("x")), Linear(), 1.0, [2.0, 0.5])).intercept
    array([1., 3.])
    """
    if not isinstance(cpd, REGRESSIONS):
        found: Closed = cpd
        return found
    if is_open(cpd):
        raise no_formula(cpd)
    if isinstance(cpd.child, Finite):
        return cpd.table()
    assert isinstance(cpd, RegressionCpd)
    levels = _levels(cpd)
    if isinstance(cpd.family, PoissonLog):
        return PoissonRates(cpd.child, cpd.finite_parents, cpd.family.mean(levels))
    slopes = [1.0 if p == cpd.family.offset else float(cpd.coefficients[cpd.terms.index(p)]) for p in cpd.real_parents]
    spread = np.broadcast_to(np.array(slopes), (*levels.shape, len(slopes)))
    return ConditionalGaussian(cpd.child, cpd.parent_variables, levels, spread, np.full(levels.shape, cpd.dispersion))


def _levels(cpd: RegressionCpd) -> Array:
    """η in each configuration of the finite parents, the numbers being 0: an axis per finite parent."""
    from suffice.families.design import columns_of

    finite = cpd.finite_parents
    checked_cells(finite, f"the configurations of the parents of {cpd.child.name!r}")
    eta = np.full(sizes(finite), cpd.intercept)
    for axis, v in enumerate(finite):
        effects = np.concatenate([[0.0], cpd.coefficients[columns_of(cpd.regressors, v.name)]])
        eta += effects.reshape([-1 if i == axis else 1 for i in range(len(finite))])
    return eta


def moments(cpd: RegressionCpd, columns: Mapping[str, Any], n: int) -> tuple[Array, Array]:
    """The mean and the variance of a number in each of n rows.

    >>> from suffice.variables import Count
    >>> cpd = RegressionCpd(Count("n"), (), NegativeBinomialLog(), 0.0, [], dispersion=0.5)
    >>> moments(cpd, {}, 1)
    (array([1.]), array([1.5]))
    """
    mean, d = cpd.mean(columns, n), cpd.dispersion
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(cpd.family, Linear):
            return mean, np.full(n, d)
        if isinstance(cpd.family, PoissonLog):
            return mean, mean
        if isinstance(cpd.family, BinomialLogit):
            trials = np.asarray(columns[str(cpd.family.trials)], dtype=np.float64)
            return trials * mean, trials * mean * cpd.family.mean(-cpd.predictor(columns, n))
        return mean, d * mean**2 + (mean if isinstance(cpd.family, NegativeBinomialLog) else 0.0)


def quantiles(cpd: RegressionCpd, columns: Mapping[str, Any], q: Array) -> Array:
    """The smallest value of a number that its distribution does not exceed with probability q, in each row.

    >>> from suffice.variables import Count
    >>> quantiles(RegressionCpd(Count("n"), (), PoissonLog(), 0.0, []), {}, np.array([0.1, 0.5, 0.99]))
    array([0., 1., 4.])
    """
    found, mean = distributions(cpd, columns, len(q)).ppf(q), cpd.mean(columns, len(q))
    if not np.isfinite(found).all():
        raise ModelError(f"{cpd.child.name!r} has a mean of {mean[~np.isfinite(found)][0]:g} in some row: no number can be drawn")
    return np.asarray(found, dtype=np.float64).reshape(len(q))


def distributions(cpd: RegressionCpd, columns: Mapping[str, Any], n: int) -> Any:
    """The distribution of a number in each of n rows, as scipy has it.

    >>> from suffice.variables import Real
    >>> distributions(RegressionCpd(Real("y"), (), Linear(), 2.0, []), {}, 1).cdf(2.0)
    array([0.5])
    """
    from scipy import stats

    mean, d = cpd.mean(columns, n), cpd.dispersion
    if isinstance(cpd.family, Linear):
        return stats.norm(mean, np.sqrt(d))
    if isinstance(cpd.family, PoissonLog):
        return stats.poisson(mean)
    if isinstance(cpd.family, BinomialLogit):
        return stats.binom(np.asarray(columns[str(cpd.family.trials)], dtype=np.float64), mean)
    if isinstance(cpd.family, NegativeBinomialLog):
        return stats.nbinom(1.0 / d, 1.0 / (1.0 + d * mean))
    return stats.gamma(1.0 / d, scale=d * mean)


def same_regressions(a: Regressed, b: Regressed) -> bool:
    """Whether two regressions of a node are the same numbers, whatever the order of the parents and the ridge they came by.

    >>> from suffice.variables import Real
    >>> x, z = Real("x"), Real("z")
    >>> a, b = (RegressionCpd(Real("y"), p, Linear(), 1.0, c) for p, c in (((x, z), [2.0, 3.0]), ((z, x), [3.0, 2.0])))
    >>> same_regressions(a, b)
    True
    """
    if replace(a.family, ridge=0.0) != replace(b.family, ridge=0.0) or set(a.parents) != set(b.parents):
        return False
    b = b.arranged(a.parents)
    parts = [k for k in ("intercept", "cut_points", "coefficients", "dispersion") if hasattr(a, k)]
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in parts)


def families_of(bn: Any, families: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The families of a network's regressions, if it is a network, and those that are named beside them."""
    own = {n: bn[n].family for n in bn if isinstance(bn[n], REGRESSIONS)} if hasattr(bn, "compiled") else {}
    return {**own, **families} if isinstance(families, Mapping) and own else families or own or None


def reduced(
    bn: BayesNet,
    targets: Iterable[str],
    numbers: Mapping[str, float] | None = None,
    seen: Iterable[str] = (),
    *,
    needed: Iterable[str] | None = None,
) -> BayesNet:
    """The network for one question: no regression in it is open. Nodes and variables stay what they are.

    `numbers` are the values of the observed numbers, `seen` the finite variables of which there is evidence. `needed` are the
    nodes whose distributions matter: targets, what is observed, and all above them, if nothing is said.

    >>> from suffice.families.conditional_gaussian import Gaussian
    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Real
    >>> y, x = Finite("y", ["no", "yes"]), Real("x")
    >>> bn = BayesNet("x -> y", {"x": Gaussian(), "y": LogisticCpd(y, (x,), [0.0], [[1.0]])}, [x, y])
    >>> reduced(bn, ["y"], {"x": 0.0})["y"].probs
    array([0.5, 0.5])
    """
    from suffice.models.bayes_net import BayesNet

    if not bn.compiled.open:
        return bn
    values = dict(numbers or {})
    needed = above(bn.dag, {*targets, *values, *seen}) if needed is None else set(needed)
    for name in bn.compiled.open:
        if name in needed and without_formula(bn, name, values):
            raise no_formula(bn[name], values)
    cpds: dict[str, Any] = {n: bn[n] for n in bn}
    for name in bn.compiled.open:
        cpds[name] = _reduced(bn[name], values) if name in needed else _stand_in(bn[name], values)
    for name in bn.compiled.reals:
        cpds[name] = cpds[name] if name in needed else _stand_in(bn[name], values)
    dag = Dag({n: cpd.parents for n, cpd in cpds.items()}, nodes=list(cpds))
    return BayesNet.of(dag, bn.variables, cpds, intervened=bn.intervened)


def answerable(bn: BayesNet, numbers: Mapping[str, float], seen: Iterable[str]) -> list[str]:
    """The nodes whose posterior needs no integral without a formula."""
    counts = bn.compiled.counts - set(numbers)
    hidden = {n for n in bn.compiled.open if without_formula(bn, n, numbers)}
    hidden |= {n for n in bn if not counts.isdisjoint(bn.dag.parents(n))}
    evidence = {*numbers, *seen}
    return [n for n in bn if hidden.isdisjoint(above(bn.dag, {n, *evidence}))]


def above(dag: Dag, names: Iterable[str]) -> set[str]:
    """Nodes and all their ancestors."""
    found = set(names)
    return found.union(*(dag.ancestors(n) for n in found)) if found else found


def without_formula(bn: BayesNet, name: str, values: Mapping[str, float]) -> bool:
    """Whether an open regression stays open, these numbers being observed."""
    cpd = bn[name]
    if any(p not in values for p in cpd.real_parents):
        return True
    return not isinstance(cpd.child, Finite) and name not in values and not isinstance(cpd.family, PoissonLog)


def _reduced(cpd: Regressed, values: Mapping[str, float]) -> Closed:
    """A regression all of whose numbers are known."""
    own = {p: values[p] for p in cpd.real_parents}
    if isinstance(cpd.child, Finite):
        return cpd.without(own).table()
    if cpd.child.name in values:
        return density(cpd, own | {cpd.child.name: values[cpd.child.name]})
    return closed(cpd.without(own))


def density(cpd: RegressionCpd, values: Mapping[str, float]) -> Density:
    """ln p(the value of the child | finite parents), the numbers of the others being known as well."""
    finite = cpd.finite_parents
    n = checked_cells(finite, f"the configurations of the parents of {cpd.child.name!r}")
    codes = np.unravel_index(np.arange(n), sizes(finite)) if finite else ()
    columns: dict[str, Any] = {v.name: c for v, c in zip(finite, codes, strict=True)}
    columns |= {name: np.full(n, x) for name, x in values.items()}
    return Density(cpd.child, finite, cpd.log_prob(columns).reshape(sizes(finite)))


def _stand_in(cpd: Any, values: Mapping[str, float]) -> Closed:
    """Something in the place of a node that no answer depends on."""
    if isinstance(cpd.child, Finite):
        return Table(cpd.child, (), np.full(cpd.child.n_states, 1.0 / cpd.child.n_states))
    if cpd.child.name in values:
        return Density(cpd.child, (), np.zeros(()))
    return ConditionalGaussian(cpd.child, (), np.zeros(()), np.zeros(0), np.ones(()))
