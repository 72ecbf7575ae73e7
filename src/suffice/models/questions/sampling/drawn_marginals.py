"""Every node given evidence by one set of draws: for networks whose junction tree is too large."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.errors import ModelError, TooLarge, bytes_in_words, whole
from suffice.errors.remedies import Remedy
from suffice.inference.sampling.sampling import LikelihoodWeighting, Weighted
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.answers.answers import Distribution, Marginals
from suffice.models.questions.answers.densities import DrawnParts
from suffice.models.questions.answers.mixture import Mixture
from suffice.models.questions.question import Observed, Question, impossible, in_words, is_observed
from suffice.models.questions.sampling.approximate import BLOCK, MAX_BYTES, drawn_forward, is_possible, note_quality
from suffice.variables import Finite


@one_blas_thread
def drawn_marginals(bn: NetworkParts, evidence: Observed, method: LikelihoodWeighting, seed: int = 0) -> Marginals:
    """p(x | evidence) of every node, each with its standard error; ln p(evidence) is estimated by the same draws.

    >>> from suffice import BayesNet
    >>> from suffice.models.questions.question import evidence_codes
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, {"x": ["a", "b"], "y": ["a", "b"]})
    >>> found = drawn_marginals(bn, evidence_codes(bn, {"y": "b"}), LikelihoodWeighting(100_000))
    >>> round(found["x"]["b"], 1), round(found.log_prob_of_evidence, 1)  # ln 0.275
    (0.7, -1.3)
    """
    if not isinstance(method, LikelihoodWeighting):
        one, all_nodes = Remedy("Gibbs(n)", ""), Remedy("LikelihoodWeighting(n)", "")
        raise ModelError(f"all marginals at once are drawn by {all_nodes}; {one} draws those of a query")
    if not is_possible(bn, evidence):
        raise impossible(evidence)
    columns, log_weights = _draws(_of_all(bn, evidence), method.n, np.random.SeedSequence(whole(seed, "a seed", 0, ModelError)))
    if log_weights.max() == -np.inf:
        raise ModelError(
            f"none of {method.n:,} draws met the evidence {in_words(evidence.given)}: it is impossible or very improbable; "
            f"draw more, LikelihoodWeighting({10 * method.n})"
        )
    drawn = Weighted(log_weights)
    how = f"likelihood weighting, {method.n:,} draws"
    answers = {name: _answer(bn, name, columns, drawn, evidence, how) for name in bn.variables}
    note_quality(drawn.mean(np.zeros(method.n)))
    log_prob = float(log_weights.max() + np.log(np.exp(log_weights - log_weights.max()).mean())) if evidence.given else 0.0
    return Marginals({}, np.zeros(0), np.zeros(1, np.int64), log_prob, evidence.given, answers)


def _of_all(bn: NetworkParts, evidence: Observed) -> Question:
    """The question that all families matter to, those of what is observed, too: their product is p(evidence)."""
    names = [n for n in bn.variables if not is_observed(bn, n, evidence)]
    asked = Question.of(bn, names, evidence)
    compiled = bn.compiled
    seen: dict[str, Any] = {compiled.finite[i]: int(evidence.codes[i]) for i in np.flatnonzero(evidence.codes >= 0)}
    seen |= {compiled.reals[i]: value for i, value in evidence.reals.items()}
    soft = {compiled.finite[i]: likelihood for i, likelihood in evidence.soft.items()}
    return replace(asked, nodes=bn.dag.topological_order, observed=seen, soft=soft)


def _draws(question: Question, n: int, seeds: np.random.SeedSequence) -> tuple[dict[str, Any], Any]:
    """The columns of all nodes, and the log-likelihood of the evidence beside each draw."""
    variables = question.bn.variables
    kinds = {name: np.int32 if isinstance(v, Finite) else np.float64 for name, v in variables.items()}
    size = sum(n * np.dtype(kind).itemsize for kind in kinds.values())
    if size > MAX_BYTES:
        raise TooLarge(f"{n:,} draws need {bytes_in_words(size)}; the limit is {bytes_in_words(MAX_BYTES)}")
    columns: dict[str, Any] = {name: np.empty(n, kind) for name, kind in kinds.items()}
    log_weights = np.empty(n)
    starts = range(0, n, BLOCK)

    def fill(start: int, own: np.random.SeedSequence) -> None:
        part = slice(start, min(start + BLOCK, n))
        found, log_weights[part] = drawn_forward(question, np.random.default_rng(own), part.stop - start)
        for name, column in found.items():
            columns[name][part] = column

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, starts, seeds.spawn(len(starts))))
    return columns, log_weights


def _answer(bn: NetworkParts, name: str, columns: dict[str, Any], drawn: Weighted, evidence: Observed, how: str) -> Any:
    variable = bn.variables[name]
    if isinstance(variable, Finite):
        shares = drawn.shares(columns[name].astype(np.int64), variable.n_states)
        worth = f"{how}, as good as {shares.effective_sample_size:,.0f} independent ones"
        return Distribution((variable,), shares.mean, None, shares.error, shares.effective_sample_size, worth, evidence.given)
    parts = DrawnParts(columns[name][:, None], drawn)
    return Mixture((name,), drawn.weights, parts, log_prob_of_evidence=float("nan"), how=how, given=evidence.given)
