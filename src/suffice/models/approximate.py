"""Questions answered by sampling: likelihood weighting in every network, Gibbs sampling where it can move.

Both look only at the families that the answer depends on. Draws come in blocks, or chains, with generators of their own, so
that answers do not depend on threads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ModelError, TooLarge, bytes_in_words, listed, note
from suffice.families.categorical import Table
from suffice.inference.gibbs import State, Trace, Walker
from suffice.inference.network import NONE, Array, Network
from suffice.inference.sampling import FEW, Chained, Gibbs, LikelihoodWeighting, Weighted, checked_seed
from suffice.models.answers import Distribution
from suffice.models.evidence import Observed, in_words
from suffice.models.requisite import Question
from suffice.models.samples import Samples
from suffice.statistics.configurations import checked_cells, sizes
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

BLOCK = 16_384
MAX_BYTES = 2**33
FIRST = 1_000
"""A walk starts from one of so many draws that the evidence is possible for …"""
TRIES = 100
"""… and gives up when so many times as many have not brought one."""


def query(
    bn: BayesNet, targets: Sequence[str], evidence: Observed, method: LikelihoodWeighting | Gibbs, seed: int = 0
) -> Distribution | Samples:
    """p(targets | evidence) by drawing: a `Distribution` with standard errors, or `Samples` where a target is real.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.models.evidence import observed
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, {"x": ["a", "b"], "y": ["a", "b"]})
    >>> answer = query(bn, ["x"], observed(bn, {"y": "b"}), LikelihoodWeighting(100_000))
    >>> round(answer["b"], 1), round(float(answer.error[1]), 3)
    (0.7, 0.001)
    """
    question = Question.of(bn, targets, evidence)
    checked_cells(question.finite, "the answer")
    seeds = np.random.SeedSequence(checked_seed(seed))
    drawn: Weighted | Chained
    if isinstance(method, LikelihoodWeighting):
        trace, drawn, how = _weighted(question, method, seeds)
    elif isinstance(method, Gibbs):
        trace, drawn, how = _walked(question, method, seeds)
    else:
        raise ModelError(f"the method is LikelihoodWeighting(...) or Gibbs(...), or None for an exact answer; not {method!r}")
    return _answer(question, trace, drawn, how)


def drawn_forward(question: Question, rng: np.random.Generator, n: int) -> tuple[dict[str, Any], Array]:
    """n draws of what is free, each node given its parents, and the log-likelihood of the evidence beside each."""
    bn, observed = question.bn, question.observed
    kinds = {name: np.int64 if isinstance(bn.variables[name], Finite) else np.float64 for name in observed}
    columns: dict[str, Any] = {name: np.full(n, value, kinds[name]) for name, value in observed.items()}
    log_weights = np.zeros(n)
    for name in question.nodes:
        if name in observed:
            log_weights += bn[name].log_prob(columns)
        else:
            columns[name] = bn[name].draw(columns, rng, n)
        if name in question.soft:
            with np.errstate(divide="ignore"):
                log_weights += np.log(question.soft[name])[columns[name]]
    return columns, log_weights


def _recorded(question: Question, columns: Mapping[str, Any], n: int) -> Trace:
    """What an answer keeps of draws."""
    cells = np.zeros(n, np.int64)
    for v in question.finite:
        cells = cells * v.n_states + columns[v.name]
    return Trace(cells, np.column_stack([columns[r] for r in question.reals]) if question.reals else np.zeros((n, 0)))


def _weighted(question: Question, method: LikelihoodWeighting, seeds: np.random.SeedSequence) -> tuple[Trace, Weighted, str]:
    n, kept = method.n, _room(question, method.n)
    log_weights = np.empty(n)
    starts = range(0, n, BLOCK)

    def fill(start: int, own: np.random.SeedSequence) -> None:
        part = slice(start, min(start + BLOCK, n))
        columns, log_weights[part] = drawn_forward(question, np.random.default_rng(own), part.stop - start)
        kept.cells[part], kept.reals[part] = _recorded(question, columns, part.stop - start)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, starts, seeds.spawn(len(starts))))
    if log_weights.max() == -np.inf:
        raise ModelError(
            f"none of {n:,} draws met the evidence {in_words(question.evidence.given)}: it is impossible or very improbable; ask "
            f"exactly, without a method, or with Gibbs(), or with more draws, LikelihoodWeighting({10 * n})"
        )
    drawn = Weighted(log_weights)
    return kept, drawn, f"likelihood weighting, {n:,} draws"


def _walked(question: Question, method: Gibbs, seeds: np.random.SeedSequence) -> tuple[Trace, Chained, str]:
    kept = _room(question, method.chains * method.length)
    walker = _walker(question)
    first, *own = seeds.spawn(1 + method.chains)
    starts = _starts(question, method.chains, np.random.default_rng(first))

    def fill(i: int) -> None:
        part = slice(i * method.length, (i + 1) * method.length)
        rng = np.random.default_rng(own[i])
        kept.cells[part], kept.reals[part] = walker.chain(starts[i], method.length, rng, method.burn_in)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(method.chains)))
    how = f"Gibbs sampling, {method.chains} chains of {method.length:,} sweeps after {method.burn_in:,}"
    return kept, Chained(method.chains, method.length), how


def _room(question: Question, n: int) -> Trace:
    size = 8 * n * (2 + len(question.reals))
    if size > MAX_BYTES:
        raise TooLarge(f"{n:,} draws need {bytes_in_words(size)}; the limit is {bytes_in_words(MAX_BYTES)}")
    return Trace(np.empty(n, np.int64), np.empty((n, len(question.reals))))


def _walker(question: Question) -> Walker:
    """The families that matter, by the numbers of the whole network."""
    bn, compiled = question.bn, question.bn.compiled
    index, real_index = compiled.index, compiled.real_index
    network, factors = compiled.network, []
    for name in question.nodes:
        if name in index:
            factors.append((network.scope(index[name]), index[name], network.table(index[name])))
        elif np.isnan(bn[name].variance).any():
            raise ModelError(f"{name!r} has no parameters at some configurations of its parents; fit with a prior")
    factors += [(np.array([index[n]]), NONE, likelihood) for n, likelihood in question.soft.items()]
    _note_zeros(question)
    return Walker(
        Network.of(network.sizes, factors),
        free=[index[n] for n in question.free if n in index],
        targets=[index[v.name] for v in question.finite],
        gaussians=compiled.gaussians,
        nodes=[real_index[n] for n in question.nodes if n in real_index],
        free_reals=[real_index[n] for n in question.free if n in real_index],
        real_targets=[real_index[n] for n in question.reals],
    )


def _note_zeros(question: Question) -> None:
    """A zero that ties two free variables together can keep one-at-a-time moves from ever crossing."""
    deterministic = []
    for name in question.nodes:
        cpd = question.bn[name]
        if isinstance(cpd, Table):
            table = cpd.probs[tuple(question.observed.get(v, slice(None)) for v in (*cpd.parents, name))]
            if table.ndim > 1 and not table.all():
                deterministic.append(name)
    if deterministic:
        note(
            f"the tables of {listed(deterministic)} hold zeros: Gibbs sampling may not reach every possible state, and the "
            "standard errors would not show it; compare with LikelihoodWeighting(), or ask exactly"
        )


def _starts(question: Question, n: int, rng: np.random.Generator) -> list[State]:
    """n possible states, drawn with the weights of likelihood weighting."""
    compiled = question.bn.compiled
    for _ in range(TRIES):
        columns, log_weights = drawn_forward(question, rng, FIRST)
        if log_weights.max() > -np.inf:
            break
    else:
        raise ModelError(
            f"Gibbs sampling found no state to start from: none of {TRIES * FIRST:,} draws met the evidence "
            f"{in_words(question.evidence.given)}; it is impossible or very improbable; ask exactly, without a method"
        )
    states = []
    for i in rng.choice(FIRST, n, p=Weighted(log_weights).weights):
        codes, reals = np.zeros(len(compiled.finite), np.int64), np.zeros(len(compiled.reals))
        for name, column in columns.items():
            if name in compiled.index:
                codes[compiled.index[name]] = column[i]
            else:
                reals[compiled.real_index[name]] = column[i]
        states.append(State(codes, reals))
    return states


def _answer(question: Question, trace: Trace, drawn: Weighted | Chained, how: str) -> Distribution | Samples:
    given = question.evidence.given
    finite = _distribution(question, trace, drawn, how) if question.finite else None
    if not question.reals and finite is not None:
        return finite
    averages = [drawn.mean(column) for column in trace.reals.T]
    _note_quality(min(a.effective_sample_size for a in averages), all(a.agree for a in averages))
    return Samples(question.reals, trace.reals, drawn, finite, trace.cells if finite else None, how=how, given=given)


def _distribution(question: Question, trace: Trace, drawn: Weighted | Chained, how: str) -> Distribution:
    shape = sizes(question.finite)
    share = drawn.shares(trace.cells, int(np.prod(shape)))
    effective = share.effective_sample_size
    _note_quality(effective, share.agree)
    return Distribution(
        question.finite,
        share.probs.reshape(shape),
        error=share.error.reshape(shape),
        effective_sample_size=effective,
        how=f"{how}, worth {effective:,.0f}",
        given=question.evidence.given,
    )


def _note_quality(effective: float, agree: bool) -> None:
    if not agree:
        note("the chains of Gibbs sampling disagree: they have not met; walk longer, with a longer burn_in, or ask exactly")
    elif effective < FEW:
        note(f"these draws are worth only {effective:.3g} independent ones: draw more, try another method, or ask exactly")
