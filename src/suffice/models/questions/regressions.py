"""Regressions among the nodes of a network: what exact inference can make of them.

A linear regression is a conditional Gaussian, and a regression of states, or of a Poisson count, on states alone is a table.
Any other one is *open*: it has a place in exact inference only once its numbers are known. Given them

    a finite child                     is a table over its finite parents,
    a number that is observed          weighs its finite parents by its density there,
    a Poisson count                    has rates over its finite parents,
    what is neither asked for nor observed, nor above something that is, may be left out.

`reduced` makes these changes for one question. What they leave over, an integral over a number that is not observed, has no
formula: that is refused, with a way out that depends on what was asked, and drawn instead where the user asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ModelError, listed
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.design import configurations
from suffice.families.named_families import as_families
from suffice.families.protocol.family import Array, Cpd
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.graphs import Dag
from suffice.inference.finite.network import DensityNode
from suffice.remedies import BY_DRAWS
from suffice.statistics.configurations import checked_cells, sizes
from suffice.variables import Distributed, Finite, Variable

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet


class NoFormula(ModelError):
    """The refusal of an integral, or of a sum without end: `fact` says which, observing `lacking` would make it known.

    >>> str(NoFormula("this has no formula", ["x"]))
    "this has no formula; observe 'x', or draw the answer with query(..., method=LikelihoodWeighting())"
    """

    def __init__(self, fact: str, lacking: Sequence[str], way_out: str | None = None) -> None:
        self.fact, self.lacking = fact, tuple(lacking)
        self.way_out = way_out or f"observe {listed(lacking)}, or draw the answer with {BY_DRAWS}"
        super().__init__(f"{fact}; {self.way_out}")

    def __reduce__(self) -> tuple[object, ...]:
        return NoFormula, (self.fact, self.lacking, self.way_out)


def no_formula(cpd: Any, values: Mapping[str, float] | None = None) -> NoFormula:
    """The refusal of an integral over numbers that are not observed."""
    unknown = [p for p in cpd.real_parents if p not in (values or {})]
    about = f"an exact answer depends on {cpd.child.name!r}, a {words(cpd)}"
    if not unknown:
        return NoFormula(f"{about}, which is not observed: there is no formula for its distribution here", [cpd.child.name])
    s, are = ("s", "are") if len(unknown) > 1 else ("", "is")
    fact = f"{about} on the number{s} {listed(unknown)}, which {are} not observed: there is no formula for the integral"
    return NoFormula(fact, unknown)


@contextmanager
def advising(way_out: Callable[[NoFormula], str] | str) -> Iterator[None]:
    """Refusals within get another way out: one that helps with what was asked.

    >>> with advising("leave it"):
    ...     raise NoFormula("this has no formula", ["x"])
    Traceback (most recent call last):
        ...
    suffice.models.questions.regressions.NoFormula: this has no formula; leave it
    """
    try:
        yield
    except NoFormula as refused:
        said = way_out if isinstance(way_out, str) else way_out(refused)
        raise NoFormula(refused.fact, refused.lacking, said) from None


def words(cpd: Any) -> str:
    """What kind of regression it is.

    >>> from suffice import Logistic
    >>> from suffice.results import RegressionCpd
    >>> from suffice import Finite
    >>> words(RegressionCpd(Finite("y", ["no", "yes"]), (), Logistic(), [0.0], [[]]))
    'logistic regression'
    """
    return str(cpd.family.words.partition(",")[0])


@dataclass(frozen=True, eq=False, repr=False)
class Density(Cpd):
    """ln p(child = what is observed | finite parents): the place of a regression in one question.

    >>> from suffice import Real
    >>> Density(Real("y"), (), np.array(-1.5)).logs
    array(-1.5)
    """

    child: Variable
    parent_variables: tuple[Finite, ...]
    logs: Array

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> DensityNode:
        return DensityNode.of(tuple(number[p] for p in self.parents), self.logs)


def closed(cpd: Any) -> Any:
    """A distribution as a table, a conditional Gaussian or Poisson rates; open regressions are refused.

    >>> from suffice import Real
    >>> from suffice.results import RegressionCpd
    >>> from suffice.regressions import Linear
    >>> closed(RegressionCpd(Real("y"), (Finite("z", ["a", "b"]), Real("x")), Linear(), 1.0, [2.0, 0.5])).intercept
    array([1., 3.])
    """
    if cpd.is_open:
        raise no_formula(cpd)
    return cpd.closed()


def families_of(bn: Any, families: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The families of a network's regressions, if it is a network, and those that are named beside them."""
    families = as_families(families)
    own = {n: bn[n].family for n in bn if _has_own(bn[n])} if hasattr(bn, "compiled") else {}
    return {**own, **families} if isinstance(families, Mapping) and own else families or own or None


def _has_own(cpd: Any) -> bool:
    """Whether its family was chosen, and does not follow from its variables."""
    return bool(cpd.is_regression) or isinstance(cpd.child, Distributed)


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

    >>> from suffice import Gaussian
    >>> from suffice import Logistic
    >>> from suffice.results import RegressionCpd
    >>> from suffice import BayesNet
    >>> from suffice import Real
    >>> y, x = Finite("y", ["no", "yes"]), Real("x")
    >>> bn = BayesNet("x -> y", {"x": Gaussian(), "y": RegressionCpd(y, (x,), Logistic(), [0.0], [[1.0]])}, [x, y])
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
        cpds[name] = _reduced(cpds[name], values) if name in needed else stand_in(bn[name], known=name in values)
    for name in bn.compiled.reals:
        cpds[name] = cpds[name] if name in needed else stand_in(bn[name], known=name in values)
    dag = Dag({n: cpd.parents for n, cpd in cpds.items()}, nodes=list(cpds))
    return BayesNet.of(dag, bn.variables, cpds, interventions=bn.interventions)


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
    return any(p not in values for p in cpd.real_parents) or (name not in values and not cpd.family.closes)


def _reduced(cpd: RegressionCpd, values: Mapping[str, float]) -> Any:
    """A regression all of whose numbers are known."""
    own = {p: values[p] for p in cpd.real_parents}
    if cpd.child.name in values:
        return density(cpd, own | {cpd.child.name: values[cpd.child.name]})
    return closed(cpd.without(own))


def density(cpd: Cpd, values: Mapping[str, float]) -> Density:
    """ln p(the value of the child | finite parents), the numbers of the others being known as well."""
    finite = cpd.finite_parents
    checked_cells(finite, f"the configurations of the parents of {cpd.child.name!r}")
    return Density(cpd.child, finite, cpd.log_prob(configurations(finite, values)[0]).reshape(sizes(finite)))


def stand_in(cpd: Any, *, known: bool = True) -> Cpd:
    """Something in the place of a node that no answer depends on: a finite one is uniform, a number that is known has density 1.

    >>> stand_in(Table(Finite("x", ["a", "b"]), (), [0.25, 0.75])).probs
    array([0.5, 0.5])
    """
    if isinstance(cpd.child, Finite):
        return Table(cpd.child, (), np.full(cpd.child.n_states, 1.0 / cpd.child.n_states))
    if known:
        return Density(cpd.child, (), np.zeros(()))
    return ConditionalGaussian(cpd.child, (), np.zeros(()), np.zeros(0), np.ones(()))
