"""The M-projection of a distribution onto a graph: of all networks q of the graph, the one with the least KL(p‖q).

    KL(p‖q) = −H(p) − E_p[ln q],    E_p[ln q] = Σᵢ E_p[ln q(xᵢ | parents)]

so q(xᵢ | parents) = p(xᵢ | parents): for each family, maximum likelihood of what p expects of a row. Of data it is maximum
likelihood itself, and the log-likelihood of N rows is −N [H(P̂) + KL(P̂‖q)] (Koller & Friedman 2009, p. 274 and 722).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.basis.blas import one_blas_thread
from suffice.engines.scan import scan
from suffice.errors import FitError, MissingCells, ModelError, StatisticsError, TooLarge, listing, nearest
from suffice.errors.remedies import WITH_BINS
from suffice.families import family_of
from suffice.families.gathering import gather
from suffice.families.protocol.family import Cpd, Mean
from suffice.graphs import Dag
from suffice.models.divergence import entropy_of_rows, entropy_of_weights
from suffice.models.estimates.estimated import estimate_network
from suffice.models.networks import BayesNet
from suffice.models.questions.expected import Expected, NoEntropy, closed_form, entropy_terms
from suffice.output.display import html_table, text_table
from suffice.statistics import Statistics
from suffice.variables import Finite, Variable, is_whole

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike
    from suffice.graphs.directed import DagLike


@dataclass(frozen=True, eq=False)
class Projection:
    """The network of a graph that is nearest to p, and how near it is, in nats: cross_entropy = entropy + kl.

    `entropy` is H(p), `kl` is KL(p‖model), `cross_entropy` is −E_p[ln model]. Where H(p) is not known, it and `kl` are None, and
    `reason` says why.

    >>> round(project({"x": ["a", "a", "b", "b"], "y": ["u", "u", "v", "v"]}, "x; y").kl, 6)
    0.693147
    """

    model: BayesNet
    cross_entropy: float
    entropy: float | None = None
    kl: float | None = None
    reason: str | None = None

    def _rows(self) -> list[tuple[str, object]]:
        unknown = "unknown"
        return [
            ("KL(p‖model)", unknown if self.kl is None else self.kl),
            ("entropy of p", unknown if self.entropy is None else self.entropy),
            ("cross-entropy", self.cross_entropy),
        ]

    def _headline(self) -> str:
        bn = self.model
        return f"Projection onto a graph of {len(bn):,} nodes, {len(bn.dag.edges):,} edges, {bn.n_parameters:,} parameters"

    def __repr__(self) -> str:
        why = f"\n  {self.reason}" if self.reason else ""
        return f"{self._headline()}\n{text_table(['', 'nats'], self._rows(), indent='  ')}{why}"

    def _repr_html_(self) -> str:
        return html_table(
            ["", "nats"], self._rows(), caption=f"{self._headline()}{'; ' if self.reason else ''}{self.reason or ''}"
        )


@one_blas_thread
def project(p: BayesNet | RowsLike | Statistics, dag: DagLike) -> Projection:
    """The network of the graph `dag` with the least KL(p‖network), and that divergence.

    `p` is a network, or data: anything that `scan` takes, or `Statistics`. Nodes of p that are not in the graph are summed
    out. A family of the graph that p has as well is taken over; every other is exact, too: p(x | parents), and for real nodes
    the regression that has p's means and covariances. Configurations of parents that p rules out are flagged `unsupported`.

    >>> x, y, z = (Finite(n, ["no", "yes"]) for n in "xyz")
    >>> tables = {"x": [0.5, 0.5], "y": [[0.9, 0.1], [0.2, 0.8]], "z": [[0.9, 0.1], [0.2, 0.8]]}
    >>> p = BayesNet("x -> y -> z", tables, [x, y, z])
    >>> project(p, "x -> y; x -> z")
    Projection onto a graph of 3 nodes, 2 edges, 5 parameters
                     nats
      ─────────────  ──────
      KL(p‖model)    0.1445
      entropy of p   1.51
      cross-entropy  1.654
    >>> project(p, "z -> y -> x").kl < 1e-15
    True
    >>> project({"x": ["a", "a", "b"], "y": ["u", "v", "v"]}, "x; y").model["x"].probs.round(3)
    array([0.667, 0.333])
    """
    graph = dag.dag if isinstance(dag, BayesNet) else Dag(dag)
    if not graph.nodes:
        raise ModelError("the graph to project onto has no nodes")
    return _of_network(p, graph) if isinstance(p, BayesNet) else _of_data(p, graph)


def _of_network(p: BayesNet, graph: Dag) -> Projection:
    for name in graph.nodes:
        if name not in p:
            raise ModelError(f"the network has no node {name!r}, which the graph names{nearest(name, p)}")
    cpds: dict[str, Cpd] = {}
    crossed: dict[str, float] = {}
    expected = Expected(p)
    for name in graph.nodes:
        child, parents = p.variables[name], [p.variables[q] for q in graph.parents(name)]
        if set(graph.parents(name)) == set(p.dag.parents(name)):
            cpds[name] = closed_form(p[name]).reorder(graph.parents(name))
            continue
        family = _family_of(child, parents)
        seen = expected.answer(family.needs(child, parents))
        cpds[name] = _estimate(family, child, parents, seen)
        crossed[name] = -cpds[name].log_likelihood(seen)
    variables = {n: v for n, v in p.variables.items() if n in cpds}
    info = f"projected from a network of {len(p):,} nodes and {len(p.dag.edges):,} edges"
    return _with_divergence(p, BayesNet.of(graph, variables, cpds, fit_info=info), crossed, expected)


def _family_of(child: Variable, parents: list[Variable]) -> Any:
    """The family of a node in the graph; a regression, which would have to be searched for, is refused."""
    numbers = [q.name for q in parents if not isinstance(q, Finite)]
    if isinstance(child, Finite) and numbers:
        raise FitError(
            f"{child.name!r} on {listing(numbers)} would be a regression, and its projection has no formula: fit it to rows "
            f"drawn from the network, fit(dag, bn.sample(100_000), families={{{child.name!r}: Logistic()}})"
        )
    return family_of(child, parents)


def _with_divergence(p: BayesNet, model: BayesNet, crossed: dict[str, float], expected: Expected) -> Projection:
    """The projection with its divergence: the sum over nodes of what their new parents tell less than their old ones."""
    try:
        terms = entropy_terms(p, model)
    except (NoEntropy, TooLarge) as error:
        for name in model:
            if name not in crossed:
                cpd = model[name]
                crossed[name] = -cpd.log_likelihood(expected.answer(cpd.family.needs(cpd.child, cpd.parent_variables)))
        return Projection(model, float(sum(crossed.values())), reason=str(error))
    entropy = float(sum(t.entropy for t in terms.values()))
    same = {n for n, t in terms.items() if t.boundary == set(model.dag.parents(n))}
    kl = max(float(sum(cross - terms[n].entropy for n, cross in crossed.items() if n not in same)), 0.0)
    return Projection(model, entropy + kl, entropy, kl)


def _estimate(family: Any, child: Variable, parents: list[Variable], seen: Any) -> Cpd:
    try:
        cpd: Cpd = family.estimate(child, parents, seen, None, Mean())
    except FitError:
        names = listing([q.name for q in parents if not isinstance(q, Finite)])
        raise FitError(
            f"{child.name!r} on {names or 'no real parents'} has no projection that numbers can hold: its real parents determine "
            "it, or one another, up to rounding; leave one out"
        ) from None
    return cpd


def _of_data(data: Any, graph: Dag) -> Projection:
    rows = data if isinstance(data, Statistics) else scan(data)
    try:
        statistics = gather(rows, graph)
    except MissingCells as error:
        raise MissingCells(
            f"rows with missing cells are no distribution to project ({str(error).partition(';')[0]}); "
            "em(dag, data).model is the network that makes the cells that are there most probable"
        ) from None
    model = estimate_network(BayesNet, graph, statistics, None, Mean())
    cross_entropy = -model.log_likelihood(statistics) / statistics.weight
    try:
        entropy = _entropy_of_data(rows, model)
    except (NoEntropy, TooLarge) as error:
        return Projection(model, cross_entropy, reason=str(error))
    kl = max(cross_entropy - entropy, 0.0)
    return Projection(model, entropy + kl, entropy, kl)


def _entropy_of_data(rows: Any, model: BayesNet) -> float:
    real = [n for n, v in model.variables.items() if not isinstance(v, Finite) and not is_whole(v)]
    if real:
        raise NoEntropy(
            f"{listing(real)} is real, and rows of real numbers have no density to compare with: the divergence from them is "
            f"infinite for every network; compare cross-entropies, or cut the column {WITH_BINS}"
        )
    if not isinstance(rows, Statistics):
        return entropy_of_rows(rows.select(model.dag.nodes))
    try:
        return entropy_of_weights(rows.counts(model.dag.nodes).listed()[1])
    except StatisticsError:
        raise NoEntropy("statistics of families do not say how often each whole row occurs, which H(p) needs") from None
