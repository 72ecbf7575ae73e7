"""How well a graph accounts for data: its score, directed or not, of rows, sequences or statistics; the prior that scores it
best; and the M-projection of a distribution onto it: of all networks q of the graph, the one with the least KL(p‖q).

    KL(p‖q) = −H(p) − E_p[ln q],    E_p[ln q] = Σᵢ E_p[ln q(xᵢ | parents)]

so q(xᵢ | parents) = p(xᵢ | parents): for each family, maximum likelihood of what p expects of a row. Of data it is maximum
likelihood itself, and the log-likelihood of N rows is −N [H(P̂) + KL(P̂‖q)] (Koller & Friedman 2009, p. 274 and 722).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from suffice.basis.blas import one_blas_thread
from suffice.basis.output.display import html_table, text_table
from suffice.basis.variables import Finite, is_whole
from suffice.engines.scan import scan
from suffice.errors import (
    DataError,
    FitError,
    MissingCells,
    ModelError,
    StatisticsError,
    TooLarge,
    listing,
    nearest,
    note,
    quantity,
)
from suffice.errors.remedies import BY_BIC, WITH_BINS
from suffice.families import family_of, regressions_among
from suffice.families.gathering import gather
from suffice.families.named_families import checked_families, families_of, number_columns, with_chosen_families
from suffice.families.priors.empirical_bayes import EmpiricalBayes
from suffice.families.priors.priors import Several, as_prior
from suffice.families.protocol.family import Cpd, Mean
from suffice.families.regressions.regression_suprema import Supremum, supremum_of
from suffice.graphs import Dag
from suffice.learning.chains.chain_task import refuse_shared
from suffice.learning.complete.chain_fit import score_chain
from suffice.learning.complete.irls import fit_regressions
from suffice.learning.complete.plates import Plate
from suffice.learning.incomplete.task import graph_and_ties, is_of_sequences
from suffice.learning.undirected.fit import refuse_directed, score_undirected
from suffice.models.divergence import entropy_of_rows, entropy_of_weights
from suffice.models.estimation import estimate_network, free_nodes
from suffice.models.networks import BayesNet
from suffice.models.parts.sharing import Tie, agreeing, check_families, pool_statistics, tied_prior, variables_of_one_shape
from suffice.models.questions.expected import Expected, NoEntropy, closed_form, entropy_terms
from suffice.models.undirected.features import is_undirected
from suffice.objectives.scores import BIC, Evidence, local_score
from suffice.statistics import Statistics

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, HasGraph, PriorLike, RowsLike, ScoresNodes, SharedLike
    from suffice.engines.sequences.sequences import Sequences
    from suffice.families.protocol.family import Prior
    from suffice.graphs import Graph
    from suffice.graphs.directed import DagLike
    from suffice.graphs.template import TemplateLike
    from suffice.models.chain import Chain


@overload
def score(
    dag: TemplateLike | Chain | Graph | HasGraph,
    data: RowsLike | Sequences | Statistics,
    score: ScoresNodes | None = ...,
    *,
    by_node: Literal[False] = ...,
    families: FamiliesLike | None = ...,
    shared: SharedLike | None = ...,
) -> float: ...
@overload
def score(
    dag: TemplateLike | Chain | Graph | HasGraph,
    data: RowsLike | Sequences | Statistics,
    score: ScoresNodes | None = ...,
    *,
    by_node: Literal[True],
    families: FamiliesLike | None = ...,
    shared: SharedLike | None = ...,
) -> dict[str, float]: ...
@one_blas_thread
def score(
    dag: TemplateLike | Chain | Graph | HasGraph,
    data: RowsLike | Sequences | Statistics,
    score: ScoresNodes | None = None,
    *,
    by_node: bool = False,
    families: FamiliesLike | None = None,
    shared: SharedLike | None = None,
) -> float | dict[str, float]:
    """How well the graph accounts for the data: higher is better. `by_node=True` gives each node's part.

    `shared` ties nodes as in `fit`: their parameters count once, and the part of all of them is that of the first by name.
    `families` are those of nodes that are regressions, as in `fit`; `Evidence` of one is by Laplace, with its ridge as prior.

    >>> from suffice import LogLikelihood
    >>> round(score("x", {"x": ["a", "b"]}, LogLikelihood()), 6)
    -1.386294
    """
    chosen = BIC() if score is None else score
    if isinstance(chosen, type) or not hasattr(chosen, "local"):
        raise FitError(f"a score is LogLikelihood(), AIC(), BIC() or Evidence(prior), not {score!r}")
    if is_undirected(dag):
        refuse_directed(families=families, shared=shared, by_node=by_node or None)
        return score_undirected(dag, data, chosen)
    if is_of_sequences(dag, data):
        refuse_shared(shared)
        return score_chain(dag, data, chosen, by_node=by_node)
    graph, ties = graph_and_ties(dag, shared)  # what is left has to make a Dag, or is refused by it
    own: Mapping[str, Any] = families_of(dag, families) or {}
    if any(f.iterative for f in own.values()):
        parts = _beside_regressions(dag, graph, data, chosen, own, ties)
        return parts if by_node else float(sum(parts.values()))
    statistics = agreed_statistics(dag, graph, gather(_as_chosen(data, own), graph), ties)
    variables = statistics.variables
    if statistics.suppression is not None:
        if ties:
            statistics.require_all_cells("a score of tied nodes")
        note(f"{statistics.suppression.in_words()}: what parents gain is counted where cells are left")
    if isinstance(chosen, Evidence):
        chosen = Evidence(dag.prior_with(chosen.prior)) if isinstance(dag, Plate) else chosen
        chosen = chosen.choose(variables, free_nodes(graph, variables, statistics, ties), statistics)
        chosen = Evidence(tied_prior(chosen.prior, ties)) if ties else chosen
    bound: Any = chosen.bind({n: variables[n] for n in graph.nodes}, statistics)
    together = {tie.nodes[0]: pool_statistics(tie, statistics, variables) for tie in ties}
    again = {node for tie in ties for node in tie.nodes[1:]}
    parts = dict.fromkeys(graph.nodes, 0.0)
    for node in (n for n in graph.nodes if n not in again):
        child, parents = variables[node], [variables[p] for p in graph.parents(node)]
        if node in together:
            parts[node] = float(bound.local(family_of(child, parents), child, parents, together[node], statistics.weight))
        else:
            parts[node] = local_score(bound, child, parents, statistics)
    return parts if by_node else float(sum(parts.values()))


def _as_chosen(data: Any, families: Mapping[str, Any] | None) -> Any:
    """Rows, or statistics, whose columns are of the families that were chosen for them."""
    if not families:
        return data
    return with_chosen_families(data, families) if isinstance(data, Statistics) else with_chosen_families(scan(data), families)


def _beside_regressions(
    dag: Any, graph: Dag, data: Any, chosen: Any, families: Mapping[str, Any], ties: Sequence[Tie]
) -> dict[str, float]:
    """The parts of all nodes. A regression has its log-likelihood at the estimate, where a ridge has moved it, less the price
    of its parameters; or Laplace's approximation of its evidence, up to the constant of its flat intercept. The
    other nodes are scored as if regressions had no parents."""
    if isinstance(data, Statistics):
        raise FitError(f"{next(iter(families))!r} has a family of its own, which is scored from rows: statistics are not enough")
    if isinstance(dag, BayesNet):
        rows = dag.rows(data)
    else:
        rows = with_chosen_families(scan(data).with_numbers(number_columns(families, graph)), families)
    for node in graph.nodes:
        if node not in rows.columns:
            raise DataError(f"the data have no column {node!r}, which the graph names{nearest(node, rows.columns)}")
    rows = rows.select(graph.nodes)
    rows.require_complete(graph.nodes)
    rows = rows.with_variables(variables_of_one_shape(ties, rows.schema))
    variables = rows.schema
    checked_families(families, {n: graph.parents(n) for n in graph.nodes}, variables)
    check_families(ties, families)
    iterative = regressions_among(families)
    if iterative and not hasattr(chosen, "of_regression"):
        raise FitError(f"{next(iter(iterative))!r} is a regression, which {chosen!r} says nothing of: score it with {BY_BIC}")
    nodes = {n: (variables[n], [variables[p] for p in graph.parents(n)]) for n in iterative}
    tied = [tie for tie in ties if tie.nodes[0] in iterative]
    if isinstance(chosen, Evidence):
        if tied:
            raise FitError(f"{tied[0].nodes[0]!r} is a tied regression, whose evidence is not known: score it with {BY_BIC}")
        found = {n: supremum_of(rows, family, *nodes[n]) for n, family in iterative.items()}
    else:
        found = {n: Supremum.of(cpd) for n, cpd in fit_regressions(nodes, iterative, rows, ties).items()}
    own = {n: chosen.of_regression(family, *nodes[n], found[n], rows.weight) for n, family in iterative.items()}
    for tie in tied:  # parameters of all of them are paid for once
        price = sum(found[n].log_likelihood - own[n] for n in tie.nodes[1:])
        own[tie.nodes[0]] += sum(own[n] for n in tie.nodes[1:]) + price
        own |= dict.fromkeys(tie.nodes[1:], 0.0)
    cut = Dag({n: [] if n in own else graph.parents(n) for n in graph.nodes})
    left = [tie.nodes for tie in ties if tie.nodes[0] not in own]
    return {**score(cut, rows, chosen, by_node=True, shared=left), **own}


def agreed_statistics(dag: Any, graph: Dag, statistics: Statistics, ties: tuple[Tie, ...]) -> Statistics:
    """Statistics that speak of all nodes, in the same states of those that are tied or alike."""
    known = statistics.variables
    missing = [n for n in graph.nodes if n not in known]
    if missing:
        raise DataError(f"the statistics do not speak of {listing(missing)}, which the graph names{nearest(missing[0], known)}")
    return agreeing(statistics, (*ties, *getattr(dag, "alike", ())))


@one_blas_thread
def by_evidence(
    dag: DagLike,
    data: RowsLike | Statistics,
    prior: PriorLike,
    *,
    shared: SharedLike | None = None,
    families: FamiliesLike | None = None,
) -> Prior:
    """The prior with the strength, or other free numbers, that give this graph the largest evidence: what `fit` would choose.

    `prior` is a plain prior, such as `BDeu()` or `Dirichlet()`, whose number is chosen, or one that chooses by itself:
    `EmpiricalBayes(BDeu())`, `HierarchicalDirichlet()`, `LogisticNormal(variance=None)`; or several.

    `dag`, `data`, `shared` and `families` are those of `fit`: tied nodes, also those that a plate or a network brings, count
    once, by all that they have seen; regressions, and what a plate with `Partial()` pools, have no part in the choice.

    >>> from suffice import Dirichlet
    >>> rows = {"x": list("aaaaaaaaab"), "y": list("uuuuuuuvvv")}
    >>> round(by_evidence("x -> y", rows, Dirichlet()).alpha, 3)
    1.029
    >>> round(by_evidence("x; y", {"x": list("aab"), "y": list("aaa")}, Dirichlet(), shared=[("x", "y")]).alpha, 3)
    1.394
    """
    given = as_prior(prior)
    if given is None:
        raise FitError("by_evidence needs the prior whose number is to be chosen: by_evidence(dag, data, BDeu())")
    choosing = Several(tuple(part if part.chooses else EmpiricalBayes(part) for part in given.parts))
    graph, ties = graph_and_ties(dag, shared)
    families = families_of(dag, families)
    regressions = list(regressions_among(families or {}))
    graph = Dag({n: () if n in regressions else graph.parents(n) for n in graph.nodes}) if regressions else graph
    if isinstance(dag, BayesNet):
        statistics = dag.summary(data) if isinstance(data, Statistics) else gather(dag.rows(data), graph)
    else:
        statistics = gather(_as_chosen(data, families), graph)
    statistics = agreed_statistics(dag, graph, statistics, ties)
    if not statistics.weight > 0:
        raise DataError("there are no rows to choose by")
    variables = {n: statistics.variables[n] for n in graph.nodes}
    asked: Any = dag.prior_with(choosing) if isinstance(dag, Plate) else choosing
    found = asked.choose(variables, free_nodes(graph, variables, statistics, ties, regressions), statistics)
    own = Several(tuple(found.parts))
    # with ties the defaults of a prior come from what tied nodes have seen together: `fit` fills them in
    own = own if ties else own.bind(variables, statistics)
    chosen: Prior = own if len(own.priors) > 1 else own.priors[0]
    return chosen


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
        return [
            ("KL(p‖model)", "unknown" if self.kl is None else self.kl),
            ("entropy of p", "unknown" if self.entropy is None else self.entropy),
            ("cross-entropy", self.cross_entropy),
        ]

    def _headline(self) -> str:
        bn = self.model
        size = f"{quantity(len(bn), 'node')}, {quantity(len(bn.dag.edges), 'edge')}"
        return f"Projection onto a graph of {size}, {quantity(bn.n_parameters, 'parameter')}"

    def __repr__(self) -> str:
        why = f"\n  {self.reason}" if self.reason else ""
        return f"{self._headline()}\n{text_table(['', 'nats'], self._rows(), indent='  ')}{why}"

    def _repr_html_(self) -> str:
        why = f"; {self.reason}" if self.reason else ""
        return html_table(["", "nats"], self._rows(), caption=f"{self._headline()}{why}")


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
    if isinstance(p, BayesNet):
        return _of_network(p, graph)
    rows = p if isinstance(p, Statistics) else scan(p)
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
        numbers = [q.name for q in parents if not isinstance(q, Finite)]
        if isinstance(child, Finite) and numbers:
            raise FitError(
                f"{name!r} on {listing(numbers)} would be a regression, and its projection has no formula: fit it to rows drawn "
                f"from the network, fit(dag, bn.sample(100_000), families={{{name!r}: Logistic()}})"
            )
        family: Any = family_of(child, parents)
        seen = expected.answer(family.needs(child, parents))
        try:
            cpds[name] = family.estimate(child, parents, seen, None, Mean())
        except FitError:
            raise FitError(
                f"{name!r} on {listing(numbers) or 'no real parents'} has no projection that numbers can hold: its real parents "
                "determine it, or one another, up to rounding; leave one out"
            ) from None
        crossed[name] = -cpds[name].log_likelihood(seen)
    variables = {n: v for n, v in p.variables.items() if n in cpds}
    info = f"projected from a network of {quantity(len(p), 'node')} and {quantity(len(p.dag.edges), 'edge')}"
    return _with_divergence(p, BayesNet.of(graph, variables, cpds, fit_info=info), crossed, expected)


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
