"""Regressions among the nodes of a network: what exact inference can make of them.

A linear regression is a conditional Gaussian, and a regression of states, or of a Poisson count, on states alone is a table.
Any other one is *open*: it has a place in exact inference only once its numbers are known. Given them

    a finite child                     is a table over its finite parents,
    a number that is observed          weighs its finite parents by its density there,
    a Poisson count                    has rates over its finite parents,
    what is neither asked for nor observed, nor above something that is, may be left out.

`reduce_network` makes these changes for one question. What they leave over, an integral over a number that is not observed, has
no formula: that is refused, with a way out that depends on what was asked, and drawn instead where the user asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.graphs import Dag
from suffice.models.parts.closed_forms import as_closed_form, density, no_formula, stand_in
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork


def reduce_network(
    bn: SomeNetwork,
    targets: Iterable[str],
    numbers: Mapping[str, float] | None = None,
    seen: Iterable[str] = (),
    *,
    needed: Iterable[str] | None = None,
) -> SomeNetwork:
    """The network for one question: no regression in it is open. Nodes and variables stay what they are.

    `numbers` are the values of the observed numbers, `seen` the finite variables of which there is evidence. `needed` are the
    nodes whose distributions matter: targets, what is observed, and all above them, if nothing is said.

    >>> from suffice import BayesNet, Finite, Gaussian, Logistic, Real
    >>> from suffice.results import RegressionCpd
    >>> y, x = Finite("y", ["no", "yes"]), Real("x")
    >>> bn = BayesNet("x -> y", {"x": Gaussian(), "y": RegressionCpd(y, (x,), Logistic(), [0.0], [[1.0]])}, [x, y])
    >>> reduce_network(bn, ["y"], {"x": 0.0})["y"].probs
    array([0.5, 0.5])
    """
    if not bn.compiled.open:
        return bn
    values = dict(numbers or {})
    needed = above(bn.dag, {*targets, *values, *seen}) if needed is None else set(needed)
    for name in bn.compiled.open:
        if name in needed and without_formula(bn, name, values):
            raise no_formula(bn[name], values)
    cpds: dict[str, Any] = {n: bn[n] for n in bn}
    for name in bn.compiled.open:
        cpds[name] = _reduce_regression(cpds[name], values) if name in needed else stand_in(bn[name], known=name in values)
    for name in bn.compiled.reals:
        cpds[name] = cpds[name] if name in needed else stand_in(bn[name], known=name in values)
    dag = Dag({n: cpd.parents for n, cpd in cpds.items()}, nodes=list(cpds))
    return bn.with_cpds(cpds, dag)


def answerable(bn: NetworkParts, numbers: Mapping[str, float], seen: Iterable[str]) -> list[str]:
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


def without_formula(bn: NetworkParts, name: str, values: Mapping[str, float]) -> bool:
    """Whether an open regression stays open, these numbers being observed."""
    cpd = bn[name]
    return any(p not in values for p in cpd.real_parents) or (name not in values and not cpd.family.closes)


def _reduce_regression(cpd: RegressionCpd, values: Mapping[str, float]) -> Any:
    """A regression all of whose numbers are known."""
    own = {p: values[p] for p in cpd.real_parents}
    if cpd.child.name in values:
        return density(cpd, own | {cpd.child.name: values[cpd.child.name]})
    return as_closed_form(cpd.without(own))
