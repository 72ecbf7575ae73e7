"""Questions answered by sampling: likelihood weighting in every network, Gibbs sampling where it can move.

Both look only at the families that the answer depends on. Draws come in blocks, or chains, with generators of their own, so
that answers do not depend on threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite
from suffice.errors import ModelError, TooLarge, bytes_in_words, listing, note, whole
from suffice.errors.remedies import WEIGHTING, Remedy
from suffice.families.protocol.family import Cpd, flat_index
from suffice.models.parts.closed_forms import density
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.answers import Distribution, Marginals
from suffice.models.questions.densities import DrawnParts
from suffice.models.questions.exact import reduce_network
from suffice.models.questions.mixture import Mixture
from suffice.models.questions.question import Observed, Question, evidence_codes, impossible, in_words, is_observed
from suffice.numerics.inference.finite.network import NONE, Array, Network
from suffice.numerics.inference.sampling.gibbs import GibbsState, Rest, SummedOut, Trace, Walker, collapse
from suffice.numerics.inference.sampling.sampling import FEW, Average, Chained, Gibbs, LikelihoodWeighting, Weighted
from suffice.statistics.counts import checked_cells, sizes

BLOCK = 16_384
MAX_BYTES = 2**33
FIRST = 1_000
"""A walk starts from one of so many draws that the evidence is possible for …"""
TRIES = 100
"""… and gives up when so many times as many have not brought one."""


@one_blas_thread
def drawn_answer(
    bn: NetworkParts, targets: Sequence[str], evidence: Observed, method: LikelihoodWeighting | Gibbs, seed: int = 0
) -> Distribution | Mixture:
    """p(targets | evidence) by drawing: a `Distribution` with standard errors, or a `Mixture` of draws where a target is real."""
    if not is_possible(bn, evidence):
        raise impossible(evidence)
    question = Question.of(bn, targets, evidence)
    checked_cells(question.finite, "the answer")
    seeds = np.random.SeedSequence(whole(seed, "a seed", 0, ModelError))
    if isinstance(method, LikelihoodWeighting):
        return _answer(question, *_weigh_draws(question, method, seeds))
    if isinstance(method, Gibbs):
        for name in question.nodes:
            if name in bn.compiled.counts or bn[name].is_regression:
                what = "regression" if bn[name].is_regression else "count"
                raise ModelError(
                    f"the answer depends on the {what} {name!r}, which Gibbs sampling does not know; ask exactly, without a "
                    f"method, or by {WEIGHTING}"
                )
        if bn.compiled.open:  # the answer does not depend on them, and the walk goes through tables
            numbers = {n: x for n, x in question.observed.items() if n in bn.compiled.real_index}
            small = reduce_network(bn, targets, numbers, needed=question.nodes)
            question = Question.of(small, targets, evidence_codes(small, evidence.given))
        return _answer(question, *_walk_chains(question, method, seeds))
    raise ModelError(f"the method is LikelihoodWeighting(...) or Gibbs(...), or None for an exact answer; not {method!r}")


def is_possible(bn: NetworkParts, evidence: Observed) -> bool:
    """Whether no single family shows that the evidence is impossible, also where the answer does not depend on it."""
    compiled, codes = bn.compiled, evidence.codes
    network = compiled.around_regressions.network if compiled.open else compiled.network
    tables = [(network.scope(f), network.table(f)) for f in network.with_zeros]
    tables += [(np.array([v]), likelihood) for v, likelihood in evidence.soft.items()]
    return all(table[tuple(codes[v] if codes[v] >= 0 else slice(None) for v in scope)].any() for scope, table in tables)


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


def draw_in_blocks(
    question: Question,
    n: int,
    seeds: np.random.SeedSequence,
    keep: Callable[[slice, dict[str, Any]], None],
    *,
    alone: bool = True,
) -> Array:
    """The log-likelihood of the evidence beside each of n draws, of which `keep` is given the columns, a block at a time. Blocks
    are drawn side by side, unless other questions are answered beside this one."""
    log_weights, starts = np.empty(n), range(0, n, BLOCK)

    def fill(start: int, own: np.random.SeedSequence) -> None:
        part = slice(start, min(start + BLOCK, n))
        columns, log_weights[part] = drawn_forward(question, np.random.default_rng(own), part.stop - start)
        keep(part, columns)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        each = pool.map if alone and len(starts) > 1 else map
        list(each(fill, starts, seeds.spawn(len(starts))))
    return log_weights


def _weigh_draws(question: Question, method: LikelihoodWeighting, seeds: np.random.SeedSequence) -> tuple[Trace, Weighted, str]:
    n, kept = method.n, _room(question, method.n)

    def keep(part: slice, columns: dict[str, Any]) -> None:
        kept.cells[part] = flat_index(columns, question.finite, part.stop - part.start)
        for column, name in zip(kept.reals.T, question.reals, strict=True):
            column[part] = columns[name]

    log_weights = draw_in_blocks(question, n, seeds, keep)
    if log_weights.max() == -np.inf:
        raise ModelError(
            f"none of {n:,} draws met the evidence {in_words(question.evidence.given)}: it is impossible or very improbable; ask "
            f"exactly, without a method, or with {Remedy('Gibbs()', '--method gibbs:10000')}, or with more draws, "
            f"{Remedy(f'LikelihoodWeighting({10 * n})', f'--method lw:{10 * n}')}"
        )
    return kept, Weighted(log_weights), f"likelihood weighting, {n:,} draws"


def _walk_chains(question: Question, method: Gibbs, seeds: np.random.SeedSequence) -> tuple[Trace, Chained, str, Average | None]:
    collapsed, nodes = _collapse(question)
    compiled = question.bn.compiled
    index, real_index = compiled.index, compiled.real_index
    rest = Rest.of(collapsed, [index[v.name] for v in question.finite])
    walker = Walker(
        collapsed.network,
        free=[index[n] for n in question.free if n in index and index[n] not in collapsed.summed],
        targets=rest.recorded,
        gaussians=compiled.gaussians,
        nodes=nodes,
        free_reals=[real_index[n] for n in question.free if n in real_index],
        real_targets=[real_index[n] for n in question.reals],
    )
    kept = _room(question, method.chains * method.length)
    first, last, *own = seeds.spawn(2 + method.chains)
    starts = _starts(question, method.chains, np.random.default_rng(first))

    def fill(i: int) -> None:
        part = slice(i * method.length, (i + 1) * method.length)
        rng = np.random.default_rng(own[i])
        kept.cells[part], kept.reals[part] = walker.chain(starts[i], method.length, rng, method.burn_in)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(method.chains)))
    how = f"Gibbs sampling, {method.chains} chains of {method.length:,} sweeps after {method.burn_in:,}"
    drawn = Chained(method.chains, method.length)
    shares = None if question.reals else rest.shares(kept.cells, drawn)
    return Trace(rest.draw_targets(kept.cells, np.random.default_rng(last)), kept.reals), drawn, how, shares


def _room(question: Question, n: int) -> Trace:
    _check_memory(n, 8 * (2 + len(question.reals)))
    return Trace(np.empty(n, np.int64), np.empty((n, len(question.reals))))


def _check_memory(n: int, of_one: int) -> None:
    if n * of_one > MAX_BYTES:
        raise TooLarge(f"{n:,} draws need {bytes_in_words(n * of_one)}; the limit is {bytes_in_words(MAX_BYTES)}")


def _collapse(question: Question) -> tuple[SummedOut, list[int]]:
    """The finite families that matter without what zeros tie together, and the Gaussian nodes that matter beside them."""
    bn, compiled = question.bn, question.bn.compiled
    index, real_index, network = compiled.index, compiled.real_index, compiled.network
    factors, nodes = [], []
    for name in question.nodes:
        if name in index:
            factors.append((network.scope(index[name]), index[name], network.table(index[name])))
            continue
        if np.isnan(bn[name].variance).any():
            raise ModelError(f"{name!r} has no parameters at some configurations of its parents; fit with a prior")
        node = compiled.gaussians[real_index[name]]
        table = _weights(bn[name], question.observed)
        if table.all():
            factors.append((np.array(node.finite_parents, np.int64), NONE, table))
        else:
            nodes.append(real_index[name])
    factors += [(np.array([index[n]]), NONE, likelihood) for n, likelihood in question.soft.items()]
    never = {v for g in nodes for v in compiled.gaussians[g].finite_parents}
    last = {index[v.name] for v in question.finite}
    collapsed = collapse(Network.of(network.sizes, factors), question.evidence.codes, last=last, never=never)
    if collapsed.impossible:
        raise impossible(question.evidence)
    if collapsed.hindered:
        raise ModelError(
            f"zeros in the tables of {listing([compiled.finite[v] for v in collapsed.hindered])} may keep Gibbs sampling from "
            "reaching all states, and they are too many, or have real children, to be summed out; ask exactly, without a "
            f"method, or by {WEIGHTING}"
        )
    if collapsed.slow:
        note(
            f"nearly impossible states tie {listing([compiled.finite[v] for v in collapsed.slow])} together, which Gibbs "
            f"sampling seldom crosses: its errors may be too small; compare with {WEIGHTING}, or ask exactly"
        )
    return collapsed, nodes


def _weights(cpd: Cpd, known: Mapping[str, Any]) -> Array:
    """p(y | finite parents) up to a factor, where y and all real parents are known: no plain table if some are not, or some of
    it is zero, which only rounding makes it."""
    numbers = (cpd.child.name, *cpd.real_parents)
    if any(n not in known for n in numbers):
        return np.zeros(())
    logs = density(cpd, {n: known[n] for n in numbers}).logs
    return np.asarray(np.exp(logs - logs.max()))


def _starts(question: Question, n: int, rng: np.random.Generator) -> list[GibbsState]:
    """n possible states: every other one as likely as the evidence makes it, so that some chains begin where the answer is, the
    rest whatever the evidence, so that chains that cannot move begin apart and give themselves away."""
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
    likely, any_possible = rng.choice(FIRST, n, p=Weighted(log_weights).weights), np.flatnonzero(log_weights > -np.inf)
    some = np.where(np.arange(n) % 2, rng.choice(any_possible, n), likely)
    codes, reals = np.zeros((n, len(compiled.finite)), np.int64), np.zeros((n, len(compiled.reals)))
    for name, column in columns.items():
        if name in compiled.index:
            codes[:, compiled.index[name]] = column[some]
        else:
            reals[:, compiled.real_index[name]] = column[some]
    return list(map(GibbsState, codes, reals))


def _answer(
    question: Question, trace: Trace, drawn: Weighted | Chained, how: str, shares: Average | None = None
) -> Distribution | Mixture:
    """`shares` are those of the finite targets if they are known better than from the trace."""
    finite = None
    if question.finite:
        shares = shares or drawn.shares(trace.cells, int(np.prod(sizes(question.finite))))
        note_quality(shares)
        finite = _finite_answer(question.finite, shares, how, question.evidence)
    if not question.reals and finite is not None:
        return finite
    note_quality(*(drawn.mean(column) for column in trace.reals.T))
    cells, asked = (trace.cells, tuple(t.name for t in question.targets)) if finite else (None, ())
    told: dict[str, Any] = {"how": how, "given": question.evidence.given, "asked": asked, "log_prob_of_evidence": float("nan")}
    return Mixture(question.reals, drawn.weights, DrawnParts(trace.reals, drawn), finite, cells, **told)


def _finite_answer(variables: tuple[Finite, ...], shares: Average, how: str, evidence: Observed) -> Distribution:
    probs, error = (part.reshape(sizes(variables)) for part in (shares.mean, shares.error))
    worth = f"{how}, as good as {shares.effective_sample_size:,.0f} independent ones"
    return Distribution(variables, probs, None, error, shares.effective_sample_size, worth, evidence.given)


def note_quality(*found: Average) -> None:
    """Note draws that are worth too few, or chains that have not met."""
    effective = min(f.effective_sample_size for f in found)
    if not all(f.agree for f in found):
        note(
            f"the chains of Gibbs sampling disagree (R-hat {max(f.r_hat for f in found):.3g}): they have not met; walk longer, "
            "with a longer burn_in, or ask exactly"
        )
    elif effective < FEW:
        note(f"these draws are worth only {effective:.3g} independent ones: draw more, try another method, or ask exactly")


@one_blas_thread
def drawn_marginals(bn: NetworkParts, evidence: Observed, method: LikelihoodWeighting, seed: int = 0) -> Marginals:
    """p(x | evidence) of every node, each with its standard error; ln p(evidence) is estimated by the same draws."""
    if not isinstance(method, LikelihoodWeighting):
        one, all_nodes = Remedy("Gibbs(n)", ""), Remedy("LikelihoodWeighting(n)", "")
        raise ModelError(f"all marginals at once are drawn by {all_nodes}; {one} draws those of a query")
    if not is_possible(bn, evidence):
        raise impossible(evidence)
    # all families matter, those of what is observed, too: their product is p(evidence)
    question = Question.of(bn, [n for n in bn if not is_observed(bn, n, evidence)], evidence, bn.dag.topological_order)
    kinds = {name: np.dtype(np.int32 if isinstance(v, Finite) else np.float64) for name, v in bn.variables.items()}
    _check_memory(method.n, sum(kind.itemsize for kind in kinds.values()))
    columns: dict[str, Any] = {name: np.empty(method.n, kind) for name, kind in kinds.items()}

    def keep(part: slice, found: dict[str, Any]) -> None:
        for name, column in found.items():
            columns[name][part] = column

    seeds = np.random.SeedSequence(whole(seed, "a seed", 0, ModelError))
    log_weights = draw_in_blocks(question, method.n, seeds, keep)
    if log_weights.max() == -np.inf:
        raise ModelError(
            f"none of {method.n:,} draws met the evidence {in_words(evidence.given)}: it is impossible or very improbable; "
            f"draw more, LikelihoodWeighting({10 * method.n})"
        )
    drawn = Weighted(log_weights)
    how = f"likelihood weighting, {method.n:,} draws"
    answers: dict[str, Any] = {}
    for name, variable in bn.variables.items():
        if isinstance(variable, Finite):
            shares = drawn.shares(columns[name].astype(np.int64), variable.n_states)
            answers[name] = _finite_answer((variable,), shares, how, evidence)
        else:
            told: dict[str, Any] = {"log_prob_of_evidence": float("nan"), "how": how, "given": evidence.given}
            answers[name] = Mixture((name,), drawn.weights, DrawnParts(columns[name][:, None], drawn), **told)
    note_quality(drawn.mean(np.zeros(method.n)))
    log_prob = float(log_weights.max() + np.log(np.exp(log_weights - log_weights.max()).mean())) if evidence.given else 0.0
    return Marginals({}, np.zeros(0), np.zeros(1, np.int64), log_prob, evidence.given, answers)
