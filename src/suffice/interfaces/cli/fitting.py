"""What `suffice fit` does beside networks of rows: chains of slices, Markov networks and restricted Boltzmann machines."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

from suffice.errors import SufficeError, say
from suffice.families.gathering import gather
from suffice.formats import writable
from suffice.graphs import Graph, Template
from suffice.interfaces.cli import inputs, models, words
from suffice.interfaces.cli.arguments import OF_GAPS, Options, note_unheard, refuse
from suffice.learning.complete.chain_fit import fit_chain
from suffice.learning.fit import fit
from suffice.learning.principles import TEMPLATE
from suffice.learning.undirected.rbm import rbm
from suffice.learning.undirected.without_tree import RobbinsMonro
from suffice.models.chain import Chain
from suffice.models.undirected.log_linear import LogLinear
from suffice.objectives.principles import ContrastiveDivergence

EVERY = "all"
"""The graph that joins all columns."""


def fit_template(given: Options) -> Chain:
    """The chain of a template, or of a known chain's, that sequences give, or saved statistics of their steps. A chain that is
    known brings its regressions, hidden variables and first slices, where nothing else is said."""
    told, prior = words.prior_words(given.objective, given.prior)
    if (objective := words.objective_of(told)) is not None:
        TEMPLATE.check(objective)
    if words.penalty_of(given.penalty) is not None:
        raise SufficeError("--penalty is for weights, and a chain of slices has none: leave it out")
    refuse(given, OF_GAPS, "is for networks of rows, not for a model of sequences")
    writable(given.out, "chain")
    refuse(given, "shared group inside pooling", "is for rows, not for sequences")
    template, known, climbing = Template(given.dag), given.known, given.climbing
    first = None if given.first is None else inputs.choice(words.FIRST, given.first, "--first")
    how = inputs.choice(words.ESTIMATES, given.estimate, "--estimate")
    asked: dict[str, Any] = {"prior": words.prior_of(prior), "estimate": how, "first": first, "families": given.families}
    if given.data.lower().endswith(".stats"):
        if "fixed" in climbing:
            raise SufficeError(f"--fixed is of EM, which needs the rows: {given.data} has statistics")
        return fit_chain(template, inputs.data_of(given.data, given.read), **asked)
    unseen = inputs.hidden_of(given.hidden or [], in_steps=True)
    columns = inputs.columns_of(given.data, given.read)
    model = climbing.get("start") if known is None else known
    ours = {} if model is None else {n: v for n, v in model.variables.items() if n in columns}
    declared = inputs.declared_by(given.families, [n for n in template.nodes if n not in ours])
    declared |= ours | inputs.declarations(given.read) | {v.name: v for v in unseen if v.name in columns}
    rows = inputs.only_columns(inputs.data_of(given.data, given.read, declared), template.nodes, given.by, given.order)
    steps = inputs.sequences_of(rows, given.by, given.order, given.gaps)
    if known is not None:
        asked["first"] = first or known.first_slices
        asked["families"] = given.families or {n: known[n].family for n in template.nodes if known[n].is_regression}
        unseen = unseen or [known.variables[n] for n in known.hidden]
    if given.statistics:
        if unseen or "fixed" in climbing or any(steps.missing.get(n, 1) for n in template.nodes):
            why = "with missing cells or hidden variables they are only expected"
            raise SufficeError(f"--statistics are of complete steps: {why}")
        gather(steps, template).save(given.statistics)
    more = asked | climbing | {"watch": partial(setattr, given, "run")}
    chain = fit_chain(template if known is None else known, steps, hidden=tuple(unseen), **more)
    if not chain.incomplete:
        note_unheard(climbing, "complete sequences need none")
    return chain


def fit_undirected(given: Options) -> Any:
    """The Markov network of a graph, or of its interactions up to some order, that rows or statistics give."""
    _refuse_unheard(given, "markov_net")
    told, prior = words.prior_words(given.objective, given.prior)
    more: dict[str, Any] = {"prior": words.prior_of(prior), "time_limit": given.time_limit}
    more["memory_limit"] = given.memory_limit
    if given.epochs is not None:
        raise SufficeError("--epochs is for --rbm: leave it out")
    rows = inputs.data_of(given.data, given.read)
    model, known = _model(given.graph, given.interactions, rows)
    if known is not None:
        rows = inputs.as_known(rows, known, inputs.declarations(given.read))
    given.rows = rows
    objective = words.objective_of(told)
    if isinstance(objective, ContrastiveDivergence):
        more["method"] = RobbinsMonro(seed=given.seed or 0)
    elif given.seed is not None:
        say("note: --seed is for objectives that draw, cd and pcd")
    return fit(model, rows, objective=objective, penalty=words.penalty_of(given.penalty), **more)


def _model(graph: str, interactions: int | None, rows: Any) -> tuple[Any, Any]:
    """The model by its interactions; and the network of the file, if it is one's."""
    if models.is_model(graph):
        known = models.model_of(graph)
        if not hasattr(known, "graph"):
            raise SufficeError(f"{graph} holds a model that has arrows: an undirected graph is written as 'a -- b; b -- c'")
        return (known.model if interactions is None else _interactions(known.graph, interactions)), known
    if graph == EVERY:
        names = rows.columns if hasattr(rows, "columns") else tuple(rows.variables)
        return (Graph.complete(names) if interactions is None else LogLinear.all(interactions, names)), None
    text = models.lines_in(graph)
    if not text:
        raise SufficeError(
            f"there is no file {graph!r}, and it is not an undirected graph either; write one like 'a -- b; b -- c', or {EVERY!r}"
        )
    own = Graph(text)
    return (own if interactions is None else _interactions(own, interactions)), None


def _interactions(graph: Any, order: int) -> Any:
    """The model of a graph that has no interactions of more variables than so many."""
    return LogLinear([some for clique in graph.cliques() for some in combinations(clique, min(order, len(clique)))])


def fit_machine(given: Options) -> Any:
    """The restricted Boltzmann machine of all columns."""
    _refuse_unheard(given, "rbm")
    if given.interactions is not None:
        raise SufficeError("--interactions is for Markov networks, not for --rbm: leave it out")
    more: dict[str, Any] = {"objective": words.objective_of(given.objective), "penalty": words.penalty_of(given.penalty)}
    more |= {} if given.epochs is None else {"epochs": given.epochs}
    rows = inputs.data_of(given.data, given.read)
    limits = {"time_limit": given.time_limit, "memory_limit": given.memory_limit}
    run = rbm(rows, given.rbm, seed=given.seed or 0, **limits, **more)
    if not run.converged:
        say("note: learning was stopped before its end; this is the machine so far")
    return run.model


def _refuse_unheard(given: Options, kind: str) -> None:
    """Refuse what says nothing about undirected models, and a file that has no room for this kind."""
    unheard = "by order first family shared hidden starts statistics max_iter tol start fixed checkpoint"
    refuse(given, unheard, "is not for undirected models")
    refuse(given, OF_GAPS, "is for networks of rows, not for an undirected model")
    writable(given.out, kind)
