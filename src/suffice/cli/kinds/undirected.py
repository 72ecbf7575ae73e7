"""What `suffice fit` and `suffice learn` do with undirected models: Markov networks and restricted Boltzmann machines."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import SufficeError
from suffice.terminal import say

if TYPE_CHECKING:
    from suffice.structure.found_graph import FoundGraph

ARROWS = ("->", "<-", "→", "←")
EVERY = "all"
"""The graph that joins all columns."""


@dataclass(frozen=True)
class UndirectedWords:
    """What the options say about undirected models."""

    undirected: bool = False
    objective: str | None = None
    interactions: int | None = None
    penalty: str | None = None
    rbm: int | None = None
    epochs: int | None = None

    @property
    def given(self) -> list[str]:
        """The options that were given and are of undirected models only."""
        return [f"--{f.name}" for f in fields(self) if f.name not in ("objective", "penalty") and getattr(self, f.name)]


def is_undirected(graph: str, asked: UndirectedWords) -> bool:
    """Whether a graph has no arrows: by the options, by its text, or because a file holds such a model.

    >>> is_undirected("a -- b", UndirectedWords()), is_undirected("a -> b", UndirectedWords())
    (True, False)
    """
    if asked.undirected or asked.rbm is not None:
        return True
    found = _has_lines(graph)
    if asked.given and not found:
        raise SufficeError(f"{asked.given[0]} is for undirected models: give --undirected, or a graph such as 'a -- b; b -- c'")
    return found


def _has_lines(graph: str) -> bool:
    """Whether a text, or the file that it names, is a graph or a model without arrows."""
    from suffice.cli import inputs

    if _is_model(graph) and not _has_arrows(graph):
        return hasattr(inputs.model_of(graph), "graph")
    return "--" in _text(graph) and not _has_arrows(_text(graph))


def _has_arrows(text: str) -> bool:
    return any(arrow in text for arrow in ARROWS)


def _text(graph: str) -> str:
    """The text of a graph, its own or that of the text file which it names; of the file of a model none."""
    if "--" in graph or _has_arrows(graph):
        return graph
    if _is_model(graph) or not Path(graph).is_file():
        return ""
    try:
        return Path(graph).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SufficeError(f"{graph}: the graph cannot be read ({error})") from None


def _is_model(text: str) -> bool:
    from suffice.formats import NAMES, SUFFIXES

    return Path(text.lower().removesuffix(".gz")).suffix in SUFFIXES or text in NAMES


def fit_undirected(
    graph: str,
    data: str,
    asked: UndirectedWords,
    *,
    declared: dict[str, Any],
    read: dict[str, Any],
    prior: Any,
    seed: int | None,
    time_limit: float | None,
) -> Any:
    """The Markov network of a graph, or of its interactions up to some order, that rows or statistics give."""
    from suffice.cli import inputs
    from suffice.cli.words.objectives import objective_of, penalty_of
    from suffice.learning.fit import fit
    from suffice.learning.undirected.contrastive import RobbinsMonro
    from suffice.objectives import ContrastiveDivergence

    if asked.epochs is not None:
        raise SufficeError("--epochs is for --rbm: leave it out")
    rows = inputs.data_of(data, declared, **read)
    model, known = _model(graph, asked.interactions, rows)
    if known is not None:
        rows = inputs.as_known(rows, known, declared)
    objective = objective_of(asked.objective)
    method = None
    if isinstance(objective, ContrastiveDivergence):
        method = RobbinsMonro(seed=seed or 0)
    elif seed is not None:
        say("note: --seed is for objectives that draw, cd and pcd")
    more: dict[str, Any] = {"method": method, "prior": prior, "time_limit": time_limit}
    return fit(model, rows, objective=objective, penalty=penalty_of(asked.penalty), **more)


def _model(graph: str, interactions: int | None, rows: Any) -> tuple[Any, Any]:
    """The model by its interactions; and the network of the file, if it is one's."""
    from suffice.cli import inputs
    from suffice.graphs import Graph
    from suffice.models.log_linear import LogLinear

    if _is_model(graph):
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
    from suffice.models.log_linear import LogLinear

    return LogLinear([some for clique in graph.cliques() for some in combinations(clique, min(order, len(clique)))])


def fit_machine(
    data: str,
    asked: UndirectedWords,
    *,
    declared: dict[str, Any],
    read: dict[str, Any],
    seed: int | None,
    time_limit: float | None,
) -> Any:
    """The restricted Boltzmann machine of all columns."""
    from suffice.cli import inputs
    from suffice.cli.words.objectives import objective_of, penalty_of
    from suffice.learning.undirected.rbm import rbm

    if asked.interactions is not None:
        raise SufficeError("--interactions is for Markov networks, not for --rbm: leave it out")
    objective = objective_of(asked.objective)
    penalty, rows = penalty_of(asked.penalty), inputs.data_of(data, declared, **read)
    more: dict[str, Any] = {} if asked.epochs is None else {"epochs": asked.epochs}
    run = rbm(rows, asked.rbm or 0, objective=objective, penalty=penalty, seed=seed or 0, time_limit=time_limit, **more)
    if not run.converged:
        say("note: learning was stopped before its end; this is the machine so far")
    return run.model


def refuse_directed_options(**given: Any) -> None:
    """Refuse options that say nothing about undirected models."""
    for option, value in given.items():
        if value:
            raise SufficeError(f"--{option.replace('_', '-')} is not for undirected models: leave it out")


def check_graph_method(
    method: str, rows: Any, out: str | None, *, score: str | None, penalty: str | None, select: str | None
) -> None:
    """Refuse what a search for an undirected graph would not listen to, and a file that has no room for its model."""
    from suffice.cli.words import vocabulary as words
    from suffice.formats.registry import holds_kind
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
        holds_kind(out, "gaussian_markov_net" if numbers else "markov_net")


def without_arrows(found: Any) -> FoundGraph:
    """What a search for a tree found, as a graph: the arrows of a tree say nothing more."""
    from suffice.structure.found_graph import GraphOutcome

    losses = {(min(edge), max(edge)): loss for edge, loss in found.losses.items()}
    outcome = GraphOutcome(found.graph, found.score, {e: losses[e] for e in found.graph.edges}, "loss without it")
    return outcome.found(found.problem, found.method, found.finished)


def graph_in_words(found: FoundGraph, *, explain: bool, strengths: Any, as_json: bool) -> str:
    """What a search for an undirected graph found, for a person or a program."""
    told = [found.explain(a, b) for a, b in found.graph.edges] if explain else []
    if not as_json:
        return "\n".join(map(str, [found, *(f"\n{t}" for t in told), *([] if strengths is None else [f"\n{strengths!r}"])]))
    facts = {**found.to_dict(), **({"explanations": [t.to_dict() for t in told]} if explain else {})}
    return json.dumps(facts | ({} if strengths is None else {"bootstrap": strengths.to_dict()}), ensure_ascii=False)


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
