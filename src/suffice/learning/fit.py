"""Fit: from a graph and data, or statistics, to a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from suffice.basis.blas import one_blas_thread
from suffice.basis.limits import COPIES, LIMITS, Budget, Limits, check_room, options_of
from suffice.basis.variables import Finite
from suffice.engines.scan import scan
from suffice.errors import ArgumentError, FitError, MissingCells, listing, note
from suffice.errors.remedies import Remedy, argument
from suffice.families import checked_estimate, family_of
from suffice.families.gathering import gather
from suffice.families.named_families import as_families, checked_families, families_of, with_chosen_families
from suffice.families.priors.priors import as_prior
from suffice.families.protocol.family import Estimate
from suffice.graphs import Dag
from suffice.learning.chains.chain_task import refuse_first, refuse_shared
from suffice.learning.complete.chain_fit import fit_chain, model_by_em
from suffice.learning.complete.irls import fit_regressions, from_tables
from suffice.learning.complete.plates import Plate
from suffice.learning.conditional.discriminative import fit_to_target
from suffice.learning.crf.fit import fit_linear_chain
from suffice.learning.graph_score import agreed_statistics
from suffice.learning.incomplete.task import Task, graph_and_ties, is_of_sequences, task_of
from suffice.learning.principles import CHAIN, NETWORK, TEMPLATE, prior_of
from suffice.learning.undirected.fit import fit_undirected, refuse_directed, refuse_undirected
from suffice.models.estimation import estimate_network, replace_cpds
from suffice.models.linear_chain.windows import LinearChain
from suffice.models.networks import BayesNet
from suffice.models.parts.sharing import Tie, agreeing, check_families
from suffice.models.undirected.features import is_undirected
from suffice.objectives.principles import Bayes, Likelihood, as_penalties
from suffice.statistics import Statistics
from suffice.statistics.counts import n_configurations

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, HasGraph, PriorLike, RowsLike, SharedLike
    from suffice.engines.sequences.sequences import Sequences
    from suffice.graphs import Graph
    from suffice.graphs.directed import DagLike
    from suffice.graphs.template import Template, TemplateLike
    from suffice.incomplete.first_slices import First
    from suffice.learning.gradient import LBFGS
    from suffice.learning.undirected.ipf import IPF
    from suffice.learning.undirected.without_tree import RobbinsMonro
    from suffice.models.chain import Chain
    from suffice.models.crf import Crf
    from suffice.models.gaussian_markov_net import GaussianMarkovNet
    from suffice.models.networks import MarkovNet
    from suffice.models.undirected.features import Features
    from suffice.models.undirected.log_linear import LogLinear
    from suffice.objectives.principles import ObjectiveLike, PenaltyLike
    from suffice.statistics import Moments


class FitOptions(Limits, total=False):
    """What `fit` takes besides: the limits of long calls, and what single kinds of models have of their own."""

    first: First | None
    """Of sequences: how they begin."""
    base: MarkovNet | None
    """Of `MaxEntropy()`: the measure."""
    information: bool | None
    """Where cells are missing: when the observed information is found, as in `em`."""
    missing_depends_on: Mapping[str, Iterable[str]] | None
    """Where cells are missing: what it depends on, as in `em`."""
    start: Crf | None
    """Of a `LinearChain`: where to go on."""
    tol: float | None
    """Of a `LinearChain`: when the climb ends."""
    max_iter: int | None
    """Of a `LinearChain`: the most iterations."""


@overload
def fit(
    dag: LinearChain,
    data: Sequences,
    *,
    objective: ObjectiveLike | None = ...,
    penalty: PenaltyLike | None = ...,
    method: LBFGS | None = ...,
    start: Crf | None = ...,
    tol: float | None = ...,
    max_iter: int | None = ...,
    **limits: Unpack[Limits],
) -> Crf: ...
@overload
def fit(
    dag: LogLinear | Features | MarkovNet,
    data: RowsLike | Statistics,
    *,
    prior: PriorLike | None = ...,
    objective: ObjectiveLike | None = ...,
    penalty: PenaltyLike | None = ...,
    method: IPF | LBFGS | RobbinsMonro | None = ...,
    base: MarkovNet | None = ...,
    **limits: Unpack[Limits],
) -> MarkovNet: ...
@overload
def fit(  # text with a method is that of an undirected graph
    dag: str,
    data: RowsLike | Statistics,
    *,
    prior: PriorLike | None = ...,
    objective: ObjectiveLike | None = ...,
    penalty: PenaltyLike | None = ...,
    method: IPF | LBFGS | RobbinsMonro,
    base: MarkovNet | None = ...,
    **limits: Unpack[Limits],
) -> MarkovNet: ...
@overload
def fit(
    dag: Graph | GaussianMarkovNet,
    data: RowsLike | Statistics | Moments,
    *,
    prior: PriorLike | None = ...,
    objective: ObjectiveLike | None = ...,
    penalty: PenaltyLike | None = ...,
    method: IPF | LBFGS | RobbinsMonro | None = ...,
    base: MarkovNet | None = ...,
    **limits: Unpack[Limits],
) -> MarkovNet | GaussianMarkovNet: ...
@overload
def fit(
    dag: Template | Chain,
    data: Sequences | Statistics,
    *,
    prior: PriorLike | None = ...,
    estimate: Estimate | None = ...,
    families: FamiliesLike | None = ...,
    objective: ObjectiveLike | None = ...,
    first: First | None = ...,
    **limits: Unpack[Limits],
) -> Chain: ...
@overload
def fit(  # type: ignore[overload-overlap]  # sequences have columns, too, as rows do: they come first
    dag: DagLike,
    data: Sequences,
    *,
    prior: PriorLike | None = ...,
    estimate: Estimate | None = ...,
    families: FamiliesLike | None = ...,
    objective: ObjectiveLike | None = ...,
    first: First | None = ...,
    **limits: Unpack[Limits],
) -> Chain: ...
@overload
def fit(  # text is taken to have arrows: Graph("a -- b") tells a type checker of lines, Template("x[-1] -> x") of lags
    dag: DagLike,
    data: RowsLike | Statistics,
    *,
    prior: PriorLike | None = ...,
    estimate: Estimate | None = ...,
    families: FamiliesLike | None = ...,
    shared: SharedLike | None = ...,
    objective: ObjectiveLike | None = ...,
    penalty: PenaltyLike | None = ...,
    information: bool | None = ...,
    missing_depends_on: Mapping[str, Iterable[str]] | None = ...,
    **limits: Unpack[Limits],
) -> BayesNet: ...
@one_blas_thread
def fit(
    dag: TemplateLike | Chain | Graph | HasGraph | LinearChain,
    data: RowsLike | Sequences | Statistics | Moments,
    *,
    prior: PriorLike | None = None,
    estimate: Estimate | None = None,
    families: FamiliesLike | None = None,
    shared: SharedLike | None = None,
    objective: ObjectiveLike | None = None,
    penalty: PenaltyLike | None = None,
    method: IPF | LBFGS | RobbinsMonro | None = None,
    **options: Unpack[FitOptions],
) -> BayesNet | Chain | MarkovNet | GaussianMarkovNet | Crf:
    """The network of this graph that the data gives; of sequences and a `Template` the `Chain`, of an undirected model the
    `MarkovNet`, of a `LinearChain` the `Crf`.

    `dag` is a `Dag` or anything that makes one, a `Plate`, or a network, whose graph and states are taken; `data` is anything
    that `scan` takes, or `Statistics`, and then no rows are needed.

    Without a prior the parameters are the maximum likelihood estimates; with one they are posterior means, or modes with
    `estimate=Mode()`, and the posterior is kept for intervals. Several priors may speak for different nodes:
    `prior=(BDeu(1), NormalInverseGamma())`.

    `shared=[("x1", "x2", "x3"), ...]` ties nodes of the same shape: they have one parameter set, their statistics add, and the
    prior imagines its rows once. Their parents correspond in the order of the graph; `{"x": ["a", "b"], "y": ["d", "c"]}` as a
    group gives another. A network that was fitted with ties brings them; `shared=()` unties them.

    `families={"y": Logistic(), "n": PoissonLog()}` makes nodes regressions on their parents; a distribution of
    `suffice.exponential`, `{"wait": Gamma()}`, gives a node its parameters at each configuration of its finite parents (see
    docs/distributions.md). A network brings its own.

    `data=sequences(...)` and a template, `"state[-1] -> state -> y"`, make a chain, whose first slices are `first=Free()`,
    `Stationary()` or `Given(...)`.

    An undirected model is a `Graph` or its text, `"a -- b; b -- c"`, `LogLinear`, `Pairwise`, `Ising` or `Features`. Then
    `objective` says what the estimate is the best of (`Likelihood()`; `MaxEntropy()` from moments, with `base` a `MarkovNet` as
    measure), `penalty=L1(x)`, `L2(x)` or their sum is put on its weights, and `method=IPF()` or `LBFGS()` says how it is found.
    After `time_limit` seconds or Ctrl-C `ContrastiveDivergence()` returns the weights so far; the others have none on the way.
    A type checker, which cannot read text, takes it for a `BayesNet`: write `Graph("a -- b")` where it is to know better.

    A `LinearChain` is fitted to `sequences(...)` under `objective=Conditional(label)`, `Perceptron(label)` or `Margin(label)`
    with its `penalty`; `start` is a `Crf` to go on from; `tol` and `max_iter` are as in `em`. After Ctrl-C the best weights so
    far are returned. `crf.run` has the trace.

    `objective` is the principle: `Likelihood()`, or `Bayes(prior)`, which is the same as `prior=prior`; of a finite network
    also `Conditional("y")`, which maximises Σ log p(y | rest) over the tables that y is in, and `Margin("y")`, with
    `penalty=L2(x)`. Which model takes which is in docs/principles.md.

    Rows with missing cells are learned from by `em`, with its defaults, and a note says so; `bn.fit_info` has the details.
    Intervals of its answers come from the observed information; `information` says when that is found, as in `em`. Gaps are taken
    to be at random; `missing_depends_on={"income": ["income", "age"]}` makes what they depend on part of the model, as in `em`.

    The limits of long calls, `time_limit`, `threads`, `progress` and, where there are missing cells, `checkpoint`, are for fits
    that iterate; what is counted in one scan has no use for them, and leaves them alone. What takes more than `memory_limit` is
    refused.

    >>> from suffice import BDeu
    >>> bn = fit("rain -> wet", {"rain": ["no", "yes", "yes"], "wet": ["no", "yes", "yes"]}, prior=BDeu(1))
    >>> bn["wet"].probs.round(3)
    array([[0.833, 0.167],
           [0.1  , 0.9  ]])
    """
    own, budget = options_of("fit", options, FitOptions)
    first, base, missing_depends_on = own["first"], own["base"], own["missing_depends_on"]
    limits: dict[str, Any] = {name: options[name] for name in LIMITS if options.get(name) is not None}  # type: ignore[literal-required]
    climbing = {name: own[name] for name in ("start", "tol", "max_iter") if own[name] is not None}
    about_gaps: dict[str, Any] = {"information": own["information"], "missing_depends_on": missing_depends_on}
    if isinstance(dag, LinearChain):
        refuse_directed(**about_gaps, estimate=estimate, families=families, shared=shared, first=first, prior=prior, base=base)
        if objective is not None:
            CHAIN.check(objective, dag.label)
        _refuse_limits(limits, "a LinearChain", ("time_limit", "memory_limit", "progress", "threads"))
        return fit_linear_chain(dag, data, objective=objective, penalty=penalty, method=method, **climbing, budget=budget)
    undirected = not isinstance(dag, (Dag, BayesNet)) and is_undirected(dag)
    if climbing:
        what = "an undirected model" if undirected else "this model"
        hint = "is for a LinearChain, whose fit iterates"
        raise FitError(f"{next(iter(climbing))}= {hint}, not for {what}; em and gradient have it, too")
    if undirected:
        refuse_directed(**about_gaps, estimate=estimate, families=families, shared=shared, first=first)
        _refuse_limits(limits, "an undirected model", ("time_limit", "memory_limit", "progress"))
        chosen: dict[str, Any] = {"objective": objective, "penalty": penalty, "method": method, "prior": prior, "base": base}
        return fit_undirected(dag, data, **chosen, budget=budget)
    model: Any = dag  # what is left has to make a Template or a Dag, or is refused by it
    source: Any = data
    in_steps = is_of_sequences(dag, data)
    if objective is not None:
        (TEMPLATE if in_steps else NETWORK).check(objective)
    if method is not None or base is not None:
        refuse_undirected(method=method, base=base)
    prior = prior if objective is None else prior_of(objective, prior)
    asked: dict[str, Any] = {"prior": prior, "estimate": estimate, "families": families}
    if missing_depends_on is not None and (in_steps or not isinstance(objective, (Likelihood, Bayes, type(None)))):
        raise FitError(f"{argument('missing_depends_on')} is for networks of rows that are fitted by likelihood, or with a prior")
    if not isinstance(objective, (Likelihood, Bayes, type(None))):
        refuse_first(first)
        return fit_to_target(fit(model, source, shared=shared, **asked, **limits), data, objective, as_penalties(penalty))
    if penalty is not None:
        raise FitError(
            f"{argument('penalty')} is for weights: of undirected models, of {Remedy('a LinearChain', 'labels')}, or under "
            f"{Remedy('objective=Conditional(y) or Margin(y)', '--objective conditional:NAME or margin:NAME')}"
        )
    if in_steps:
        refuse_shared(shared)
        chain = fit_chain(dag, data, first=first, **asked, **limits)
        if chain.incomplete and any(source.missing.get(n, 0) for n in chain.variables):
            note(f"there are missing cells: {chain.fit_info}")
        return chain
    if first is not None:
        refuse_first(first)
    bn = fit_network(dag, source, shared=shared, **asked, **about_gaps, **limits)
    if bn.incomplete:
        note(f"there are missing cells: {bn.fit_info}")
    return bn


def fit_network(
    dag: Any,
    data: Any,
    *,
    hidden: Any = (),
    prior: Any = None,
    estimate: Estimate | None = None,
    families: Mapping[str, Any] | None = None,
    shared: Any = None,
    missing_depends_on: Mapping[str, Iterable[str]] | None = None,
    watch: Callable[[Any], object] | None = None,
    **climbing: Any,
) -> BayesNet:
    """The network of a graph: at once from complete rows or statistics; by `em`, with what else it takes, where cells are
    missing, variables hidden, or distributions held as they are; then `watch` is called with the run."""
    how = checked_estimate(estimate)
    rows = data if isinstance(data, Statistics) else scan(data)
    prior = dag.prior_with(as_prior(prior)) if isinstance(dag, Plate) else prior
    if families or isinstance(dag, BayesNet):
        families = families_of(dag, families) if isinstance(dag, BayesNet) else as_families(families)
    asked: dict[str, Any] = {"prior": prior, "estimate": how, "shared": shared, **climbing}
    if hidden or missing_depends_on is not None or climbing.get("fixed"):
        asked |= {"hidden": hidden, "families": families, "missing_depends_on": missing_depends_on}
        return model_by_em(BayesNet, dag, rows, watch, **asked)
    if isinstance(dag, Plate):
        dag.check_families(families)
    if "memory_limit" in climbing:
        _check_size(graph_and_ties(dag, shared)[0], rows, climbing["memory_limit"])
    if families:
        return _fit_with_regressions(dag, rows, prior, how, families, shared, **climbing)
    graph, ties = graph_and_ties(dag, shared)
    try:
        seen = dag.summary(rows) if isinstance(dag, BayesNet) else gather(rows, dag)
    except MissingCells:
        return model_by_em(BayesNet, dag, rows, watch, **asked)
    seen = agreeing(seen, dag.alike) if isinstance(dag, Plate) else seen
    return estimate_network(BayesNet, graph, seen, as_prior(prior), how, ties=ties)


def _check_size(graph: Dag, rows: Any, limit: int | str | None) -> None:
    """Refuse tables of all nodes that would take more than the limit."""
    known = rows.variables if isinstance(rows, Statistics) else rows.schema
    families = [[known[n] for n in (*graph.parents(node), node) if n in known] for node in graph.nodes]
    finite = [[v for v in own if isinstance(v, Finite)] for own in families]
    numbers = (n_configurations(some) * (1 + len(own) - len(some)) ** 2 for own, some in zip(families, finite, strict=True))
    check_room(Budget(memory_limit=limit).room, 8.0 * COPIES * float(sum(numbers)), "the network", "take fewer parents")


def _refuse_limits(given: Mapping[str, Any], what: str, known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ArgumentError(f"the fit of {what} takes no {name}=: its limits are {listing(known, style='str')}")


def _fit_with_regressions(
    dag: Any, data: Any, prior: Any, how: Estimate, families: Mapping[str, Any], shared: Any, **climbing: Any
) -> BayesNet:
    """Nodes with families of their own are fitted from the rows, the others from statistics, or by EM with these options."""
    if isinstance(data, Statistics):
        return _tabled_regressions(dag, data, as_prior(prior), how, families, shared)
    task = task_of(dag, data, prior=prior, estimate=how, families=families, shared=shared)
    if any(task.rows.missing.values()):
        return _beside_incomplete(dag, data, task, {"prior": prior, "estimate": how, "shared": shared, **climbing})
    nodes = {n: (v, [task.variables[p] for p in task.dag.parents(n)]) for n, v in task.variables.items()}
    chosen = {n: families.get(n) or family_of(*node) for n, node in nodes.items()}
    statistics = task.rows.gather([family.needs(*nodes[n]) for n, family in chosen.items()])
    iterative = {n: f for n, f in chosen.items() if f.iterative}
    ready = fit_regressions(nodes, iterative, task.rows, task.ties)
    return estimate_network(BayesNet, task.dag, statistics, task.prior, how, ready=ready, ties=task.ties)


def _beside_incomplete(dag: Any, data: Any, task: Task, options: Mapping[str, Any]) -> BayesNet:
    """Rows with missing cells. A regression whose own columns are complete is a factor by itself: it is fitted by itself, and
    the other nodes by EM as if it had no parents. One with gaps takes part in EM."""
    families, tied, missing = task.families, {n: tie.nodes for tie in task.ties for n in tie.nodes}, task.rows.missing
    gaps = {n for n in task.dag.nodes if any(missing[c] for c in (n, *task.dag.parents(n)))}
    whole = {n: f for n, f in families.items() if f.iterative and gaps.isdisjoint(tied.get(n, (n,)))}
    if not whole:
        return model_by_em(BayesNet, dag, data, families=families, **options)
    cut = Dag({n: [] if n in whole else task.dag.parents(n) for n in task.dag.nodes})
    rest = {n: f for n, f in families.items() if n not in whole}
    ties = [tie for tie in task.ties if tie.nodes[0] in whole]
    left = [tie.nodes for tie in task.ties if tie not in ties]
    bn = model_by_em(BayesNet, cut, task.rows, families=rest, **{**options, "shared": left})
    nodes = {n: (task.variables[n], [task.variables[p] for p in task.dag.parents(n)]) for n in whole}
    return replace_cpds(bn, task.dag, fit_regressions(nodes, whole, task.rows, ties), ties)


def _tabled_regressions(
    dag: Any, seen: Statistics, prior: Any, how: Estimate, families: Mapping[str, Any], shared: Any
) -> BayesNet:
    """The same from statistics, which know all about regressions of finite variables on finite variables."""
    graph, ties = graph_and_ties(dag, shared)
    seen = agreed_statistics(dag, graph, with_chosen_families(seen, families), ties)
    variables = seen.variables
    checked_families(families, {n: graph.parents(n) for n in graph.nodes}, variables)
    check_families(ties, families)
    ready: dict[str, Any] = {}
    nodes = {n: (variables[n], [variables[p] for p in graph.parents(n)]) for n in families if families[n].iterative}
    alone = [Tie(((n, *graph.parents(n)),)) for n in nodes if not any(n in tie.nodes for tie in ties)]
    for tie in (*alone, *(tie for tie in ties if tie.nodes[0] in nodes)):
        ready |= from_tables(tie, nodes, families[tie.nodes[0]], seen)
    return estimate_network(BayesNet, graph, seen, prior, how, ready=ready, ties=ties)
