"""Fit a template to complete sequences: counts and moments of steps, as those of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from suffice.basis.limits import Budget, check_room
from suffice.errors import FitError, MissingCells, note
from suffice.errors.remedies import FIRST_DIFFUSE, Remedy
from suffice.families import checked_estimate, family_of, regressions_among
from suffice.families.gathering import gather_steps
from suffice.families.priors.priors import as_prior
from suffice.families.protocol.family import Cpd, Estimate
from suffice.graphs.lagged import variable_and_lag
from suffice.graphs.template import Template
from suffice.incomplete.chains.chain_states import parameter_nodes
from suffice.incomplete.components import bytes_of_parameters
from suffice.incomplete.first_slices import Diffuse, Given, Stationary, checked_first
from suffice.learning.chains.chain_task import chain_task_of, checked_sequences, given_cpds
from suffice.learning.complete.irls import fit_regression
from suffice.models.chain import Chain
from suffice.models.chains.chain_parts import estimate_chain
from suffice.objectives.scores import Evidence
from suffice.statistics import Statistics

M = TypeVar("M")

HIDDEN = "em(template, sequences, hidden=[Real('level')], first=Diffuse())"


def fit_chain(
    template: Any,
    data: Any,
    *,
    prior: Any = None,
    estimate: Estimate | None = None,
    families: Mapping[str, Any] | None = None,
    first: Any = None,
    hidden: Any = (),
    watch: Callable[[Any], object] | None = None,
    **climbing: Any,
) -> Chain:
    """The chain of this template that sequences, or statistics of their steps, give: at once if they are complete, by `em`, with
    what else it takes, where cells are missing, variables hidden, or distributions held as they are; then `watch` is called with
    the run."""
    how, begin = checked_estimate(estimate), checked_first(first)
    graph = template.template if isinstance(template, Chain) else Template(template)
    asked: dict[str, Any] = {"prior": prior, "estimate": how, "families": families, "first": begin, "watch": watch, **climbing}
    if hidden or climbing.get("fixed"):
        return model_by_em(Chain, template, data, hidden=hidden, **asked)
    if isinstance(begin, Diffuse) and not any(getattr(data, "missing", {}).get(n, 0) for n in graph.nodes):
        raise FitError(f"{FIRST_DIFFUSE} is for hidden numbers: {Remedy(HIDDEN, '--hidden level=real')}")
    if isinstance(data, Statistics):
        if families or isinstance(begin, (Stationary, Given)):
            raise FitError("regressions, and first slices that are not free, are fitted to sequences: statistics are not enough")
        return estimate_chain(Chain, graph, data, as_prior(prior), how)
    rows = checked_sequences(data)
    if isinstance(begin, (Stationary, Diffuse)):
        return model_by_em(Chain, template, rows, **asked)
    task = chain_task_of(template, rows, prior=prior, estimate=how, families=families, first=first)
    if any(task.sequences.missing.values()):
        return model_by_em(Chain, template, rows, **asked)
    begin = Given(given_cpds(begin, task)) if isinstance(begin, Given) else begin
    regressions = _regressions(task)
    room, nodes = Budget(memory_limit=climbing.get("memory_limit")).room, parameter_nodes(task.phases).values()
    check_room(room, bytes_of_parameters(nodes), "the chain", "take fewer parents, or fewer states")
    try:
        statistics = gather_steps(task.sequences, graph, without=regressions)
    except MissingCells:
        return model_by_em(Chain, template, rows, **asked)
    return estimate_chain(Chain, graph, statistics, task.prior, how, ready=regressions, first=begin)


def model_by_em(kind: type[M], graph: Any, rows: Any, watch: Callable[[Any], object] | None = None, **asked: Any) -> M:
    """The network or chain that EM finds; how far apart the optima of several starts are is noted."""
    from suffice.learning.em import em, spread

    run = em(graph, rows, **asked)
    if len(run.optima) > 1:
        note(spread(run.optima))
    if watch is not None:
        watch(run)
    assert isinstance(run.model, kind)
    return run.model


def _regressions(task: Any) -> dict[str, Cpd]:
    """The nodes with a family of their own, each fitted to the steps that have it."""
    graph, result = task.template, {}
    for name, family in regressions_among(task.families).items():
        shared = [t for t in range(graph.order) if not graph.own_at(name, t)]
        since = min((t for t in shared if all(s in shared for s in range(t, graph.order))), default=graph.order)
        own = ((graph.parameter_name(name, t), t, t) for t in range(since) if graph.own_at(name, t))
        for key, first, last in ((name, since, None), *own):  # the parameter nodes, and the places of the steps that have each
            t = first if last is not None else graph.order
            parents = graph.parents_at(name, t)
            places = {p: variable_and_lag(p) for p in parents} | {key: (name, 0)}
            rows = task.sequences.lagged(places, first=first, last=last)
            schema = rows.schema
            if key != name and not parents:
                continue  # a table or a normal distribution, from statistics
            result[key] = fit_regression(schema[key], [schema[p] for p in parents], rows, family)
    return result


def score_chain(template: Any, data: Any, chosen: Any, *, by_node: bool) -> float | dict[str, float]:
    """How well a template accounts for sequences: a sum over its nodes and those of its first slices; N counts steps."""
    graph = template.template if isinstance(template, Chain) else Template(template)
    statistics = data if isinstance(data, Statistics) else gather_steps(checked_sequences(data), graph)
    known = statistics.variables
    nodes = [*graph.nodes, *(graph.parameter_name(n, t) for n, t in graph.first_nodes)]
    pairs = {n: (known[n], [known[p] for p in graph.parameter_graph.parents(n)]) for n in nodes}
    seen = {n: statistics.answer(family_of(c, ps).needs(c, ps)) for n, (c, ps) in pairs.items()}
    if isinstance(chosen, Evidence):
        chosen = chosen.choose(known, ((c, ps, seen[n]) for n, (c, ps) in pairs.items()), statistics)
    bound = chosen.bind(known, statistics)
    parts = {n: float(bound.local(family_of(c, ps), c, ps, seen[n], statistics.weight)) for n, (c, ps) in pairs.items()}
    return parts if by_node else float(sum(parts.values()))
