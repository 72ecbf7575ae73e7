"""The command that scores: `suffice score`."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from suffice.basis.output.terminal import print_facts, working
from suffice.basis.registry import command
from suffice.errors import MissingCells, SufficeError
from suffice.interfaces.cli import arguments


@command("score")
@arguments.with_options(arguments.WeightOptions)
def score(
    model: arguments.Model,
    data: arguments.DataFile,
    by: arguments.By = None,
    order: arguments.Order = None,
    gaps: arguments.Gaps = "refuse",
    as_json: arguments.AsJson = False,
    **options: Any,
) -> None:
    """How well a network and its graph, or a chain, account for data: natural logs, higher is better."""
    from suffice.interfaces.cli import inputs, models
    from suffice.models.chain import Chain

    read, scored = arguments.WeightOptions(**options), models.model_of(model)
    if isinstance(scored, Chain):
        steps = inputs.sequences_for(scored, data, by, order, gaps, read)
        return print_facts(_chain_scores(scored, steps), as_json)
    if by is not None or order is not None:
        raise SufficeError(f"{model} holds a network of rows: --by and --order are for chains")
    models.refuse_answers(model, scored)
    rows = inputs.data_of(data, read)
    return print_facts(_scores(scored, rows) if hasattr(scored, "dag") else _markov_scores(scored, rows), as_json)


def _chain_scores(chain: Any, steps: Any) -> dict[str, Any]:
    """The scores of a chain; hidden and missing cells are summed out."""
    with working("passing along the sequences"):
        log_likelihood = chain.log_likelihood(steps)
    k, shown = chain.n_parameters, [n for n in chain.variables if n in steps.columns]
    facts = {"sequences": steps.n_sequences, "steps": steps.weight, "parameters": k}
    facts["missing cells"] = sum(steps.missing[n] for n in shown)
    return facts | _likelihood_scores(log_likelihood, k, steps.weight, "step")


def _likelihood_scores(log_likelihood: float, k: int, weight: float, each: str, of: str = "") -> dict[str, float]:
    """What a log-likelihood comes to, with so many parameters and so much weight."""
    return {
        f"{of}log-likelihood": log_likelihood,
        f"{of}nats per {each}": -log_likelihood / weight,
        f"{of}AIC": log_likelihood - k,
        f"{of}BIC": log_likelihood - 0.5 * k * math.log(weight),
    }


def _markov_scores(net: Any, rows: Any) -> dict[str, Any]:
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


def _scores(bn: Any, rows: Any) -> dict[str, Any]:
    """The scores of a network and of its graph; where some of its nodes are regressions, from the rows."""
    from suffice.families.named_families import families_of
    from suffice.interfaces.cli import inputs
    from suffice.statistics import Statistics

    has_rows = hasattr(rows, "columns")
    hidden = has_rows and bool(bn.hidden - set(rows.columns))
    families = families_of(bn, None) if has_rows and not hidden else None
    known: Any = bn.rows(rows) if families else None
    if families and any(known.missing.values()):
        return _observed_scores(bn, known)
    if not families and not hidden:
        with suppress(MissingCells):
            known = bn.summary(rows)
    if known is None:
        return _observed_scores(bn, inputs.as_known(rows, bn, {}).select([n for n in bn if n in rows.columns]))
    facts = {"rows": known.weight, "parameters": bn.n_parameters}
    if isinstance(known, Statistics) and known.suppression is not None:
        lost = f"{known.suppression.in_words()}; evidence, and the log-likelihood of the network, need all cells"
        return {**facts, **_graph_scores(bn, known, None, evidence=False), "small cells": lost}
    return {
        **facts,
        "network: log-likelihood": bn.log_likelihood(known),
        "network: nats per row": bn.cross_entropy(known),
        **_graph_scores(bn, known, families, evidence=not families),
    }


def _observed_scores(bn: Any, rows: Any) -> dict[str, Any]:
    """How well a network accounts for what is observed of incomplete rows."""
    with working("summing over missing cells"):
        log_likelihood = bn.log_likelihood(rows)
    known = {"rows": rows.weight, "parameters": bn.n_parameters, "missing cells": sum(rows.missing.values())}
    scores = _likelihood_scores(log_likelihood, bn.n_parameters, rows.weight, "row", "network: ")
    said = "its scores need complete rows; the log-likelihood is that of the cells that are there"
    return {**known, **scores, "graph": said}


def _graph_scores(bn: Any, known: Any, families: Any, *, evidence: bool) -> dict[str, float]:
    """The scores of the graph alone, parameters fitted or, if there is evidence, integrated out."""
    from suffice.basis.variables import Finite
    from suffice.families.priors.priors import K2, BDeu, BGe
    from suffice.learning.graph_score import score as scored
    from suffice.objectives.scores import AIC, BIC, Evidence, LogLikelihood

    evidences = {
        (True,): {"K2": Evidence(K2()), "BDeu, ess 1": Evidence(BDeu(1))},
        (False,): {"BGe": Evidence(BGe())},
        (False, True): {"BDeu, ess 1, with BGe": Evidence((BDeu(1), BGe()))},
    }
    kinds = tuple(sorted({isinstance(v, Finite) for v in bn.variables.values()}))
    scores = {"log-likelihood": LogLikelihood(), "AIC": AIC(), "BIC": BIC(), **(evidences[kinds] if evidence else {})}
    return {f"graph: {name}": scored(bn.dag, known, s, families=families, shared=bn.shared) for name, s in scores.items()}
