"""What `suffice fit` and `suffice learn` do with undirected models: Markov networks and restricted Boltzmann machines."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.cli.arguments import ARROWS, OF_GAPS, Options, refuse
from suffice.cli.words.objectives import objective_of, penalty_of, prior_words
from suffice.errors import SufficeError
from suffice.output.terminal import say

if TYPE_CHECKING:
    from suffice.structure.results.found_graph import FoundGraph

DIRECTED_ONLY = "is not for undirected models"
EVERY = "all"
"""The graph that joins all columns."""


def has_lines(graph: str) -> bool:
    """Whether a text, or the file that it names, is a graph or a model without arrows.

    >>> has_lines("a -- b"), has_lines("asia")
    (True, False)
    """
    from suffice.cli import inputs

    if inputs.is_model(graph) and not _has_arrows(graph):
        return hasattr(inputs.model_of(graph), "graph")
    return "--" in _text(graph) and not _has_arrows(_text(graph))


def _has_arrows(text: str) -> bool:
    return any(arrow in text for arrow in ARROWS)


def _text(graph: str) -> str:
    """The text of a graph, its own or that of the text file which it names; of the file of a model none."""
    from suffice.cli.inputs import is_model

    if "--" in graph or _has_arrows(graph):
        return graph
    if is_model(graph) or not Path(graph).is_file():
        return ""
    try:
        return Path(graph).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SufficeError(f"{graph}: the graph cannot be read ({error})") from None


def fit_undirected(given: Options) -> Any:
    """The Markov network of a graph, or of its interactions up to some order, that rows or statistics give."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words
    from suffice.learning.fit import fit
    from suffice.learning.undirected.without_tree import RobbinsMonro
    from suffice.objectives import ContrastiveDivergence

    _check_options(given, "markov_net")
    told, prior = prior_words(given.objective, given.prior)
    more: dict[str, Any] = {"prior": words.prior_of(prior), "time_limit": given.time_limit}
    more["memory_limit"] = given.memory_limit
    if given.epochs is not None:
        raise SufficeError("--epochs is for --rbm: leave it out")
    rows = inputs.data_of(given.data, given.read)
    model, known = _model(given.graph, given.interactions, rows)
    if known is not None:
        rows = inputs.as_known(rows, known, inputs.declarations(given.read))
    given.rows = rows
    objective = objective_of(told)
    if isinstance(objective, ContrastiveDivergence):
        more["method"] = RobbinsMonro(seed=given.seed or 0)
    elif given.seed is not None:
        say("note: --seed is for objectives that draw, cd and pcd")
    return fit(model, rows, objective=objective, penalty=penalty_of(given.penalty), **more)


def _check_options(given: Options, kind: str) -> None:
    """Refuse what says nothing about undirected models, and a file that has no room for this kind."""
    from suffice.formats import writable

    refuse(given, "by order first family shared hidden starts statistics max_iter tol start fixed checkpoint", DIRECTED_ONLY)
    refuse(given, OF_GAPS, "is for networks of rows, not for an undirected model")
    writable(given.out, kind)


def _model(graph: str, interactions: int | None, rows: Any) -> tuple[Any, Any]:
    """The model by its interactions; and the network of the file, if it is one's."""
    from suffice.cli import inputs
    from suffice.graphs import Graph
    from suffice.models.undirected.log_linear import LogLinear

    if inputs.is_model(graph):
        known = inputs.model_of(graph)
        if not hasattr(known, "graph"):
            raise SufficeError(f"{graph} holds a model that has arrows: an undirected graph is written as 'a -- b; b -- c'")
        return (known.model if interactions is None else _interactions(known.graph, interactions)), known
    if graph == EVERY:
        names = rows.columns if hasattr(rows, "columns") else tuple(rows.variables)
        return (
            Graph(list(combinations(names, 2)), nodes=names) if interactions is None else LogLinear.all(interactions, names)
        ), None
    text = _text(graph)
    if not text:
        raise SufficeError(
            f"there is no file {graph!r}, and it is not an undirected graph either; write one like 'a -- b; b -- c', or {EVERY!r}"
        )
    own = Graph(text)
    return (own if interactions is None else _interactions(own, interactions)), None


def _interactions(graph: Any, order: int) -> Any:
    """The model of a graph that has no interactions of more variables than so many."""
    from suffice.models.undirected.log_linear import LogLinear

    return LogLinear([some for clique in graph.cliques() for some in combinations(clique, min(order, len(clique)))])


def fit_machine(given: Options) -> Any:
    """The restricted Boltzmann machine of all columns."""
    from suffice.cli import inputs
    from suffice.learning.undirected.rbm import rbm

    _check_options(given, "rbm")
    if given.interactions is not None:
        raise SufficeError("--interactions is for Markov networks, not for --rbm: leave it out")
    more: dict[str, Any] = {"objective": objective_of(given.objective), "penalty": penalty_of(given.penalty)}
    more |= {} if given.epochs is None else {"epochs": given.epochs}
    rows = inputs.data_of(given.data, given.read)
    limits = {"time_limit": given.time_limit, "memory_limit": given.memory_limit}
    run = rbm(rows, given.rbm, seed=given.seed or 0, **limits, **more)
    if not run.converged:
        say("note: learning was stopped before its end; this is the machine so far")
    return run.model


def check_graph_method(
    method: str, rows: Any, out: str | None, *, score: str | None, penalty: str | None, select: str | None
) -> None:
    """Refuse what a search for an undirected graph would not listen to, and a file that has no room for its model."""
    from suffice.cli.words import vocabulary as words
    from suffice.formats import writable
    from suffice.variables import Real

    if score is not None and words.takes(method, "select"):
        raise SufficeError(f"the method {method} has no option --score: its penalty is chosen by --select")
    if penalty is not None and select is not None:
        raise SufficeError("--select chooses among penalties, and --penalty is one: leave --penalty or --select out")
    if out is not None:
        variables = rows.schema if hasattr(rows, "schema") else rows.variables
        n_real = sum(isinstance(v, Real) for v in variables.values())
        if method != "glasso" and 0 < n_real < len(variables):
            raise SufficeError(
                "there are finite and real columns, and no Markov network of both: leave -o out to see the graph, cut numbers by "
                "--bins NAME=5, or leave columns out with --without"
            )
        numbers = method == "glasso" or n_real == len(variables)
        writable(out, "gaussian_markov_net" if numbers else "markov_net")


def without_arrows(found: Any) -> FoundGraph:
    """What a search for a tree found, as a graph: the arrows of a tree say nothing more."""
    from suffice.structure.results.found_graph import GraphOutcome

    losses = {(min(edge), max(edge)): loss for edge, loss in found.losses.items()}
    outcome = GraphOutcome(found.graph, found.score, {e: losses[e] for e in found.graph.edges}, "loss without it")
    return outcome.to_found(found.problem, found.method, found.finished)


def scores_of(net: Any, rows: Any) -> dict[str, Any]:
    """How well a Markov network accounts for data, and, of what it was fitted to, how far it is from the table itself."""
    seen = net.summary(rows)
    log_likelihood = net.log_likelihood(seen)
    return {
        "rows": seen.weight,
        "parameters": net.n_parameters,
        "log-likelihood": log_likelihood,
        "nats per row": -log_likelihood / seen.weight,
        "AIC": net.aic(seen),
        "BIC": net.bic(seen),
    }
