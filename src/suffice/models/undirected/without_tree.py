"""Questions to a Markov network that is too large for a tree: where what is given cuts off all but a small part of it, and rows
drawn by Gibbs sampling.

Given hard evidence, what is far is independent of the targets: factors are taken at the states observed, and of what is left only
the parts that are connected with a target matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.basis.libraries import pa
from suffice.engines.scan import scan
from suffice.errors import ModelError, listing, nearest, note, whole
from suffice.models.questions.answers import Distribution, Marginals
from suffice.models.rows.frames import arrow_columns
from suffice.models.undirected.factor import Factor, network_of
from suffice.models.undirected.markov_parts import MarkovParts, SomeMarkov
from suffice.numerics.inference.finite.network import Network
from suffice.numerics.inference.sampling.gibbs import GibbsState, Walker
from suffice.numerics.inference.sampling.sampling import Chained, Gibbs

if TYPE_CHECKING:
    import pyarrow as pa

BURN_IN, SPACING = 1000, 10
"""Sweeps over all variables before the first row, and from one row to the next."""


def near_net(net: SomeMarkov, targets: Iterable[str], given: Mapping[str, Any]) -> tuple[SomeMarkov, dict[str, Any]]:
    """The network of all that hangs together with targets, given the states of others; and what else is given of it."""
    seen = {n: net.variables[n].code(s) for n, s in given.items() if n in net.variables and _is_state(s)}
    touching: dict[str, list[int]] = {n: [] for n in net.variables}
    for k, f in enumerate(net.factors):
        for name in f.names:
            touching[name].append(k)
    inside: set[str] = set()
    used: set[int] = set()
    waiting = [t for t in targets if t not in seen]
    while waiting:
        name = waiting.pop()
        if name in inside:
            continue
        inside.add(name)
        for k in set(touching[name]) - used:
            used.add(k)
            waiting += [n for n in net.factors[k].names if n not in seen]
    factors = []
    for f in (net.factors[k] for k in sorted(used)):
        at = tuple(seen.get(n, slice(None)) for n in f.names)
        factors.append(Factor(tuple(v for v in f.variables if v.name not in seen), f.log[at]))
    rest = {n: s for n, s in given.items() if n not in seen and n in inside}
    return net.of({n: v for n, v in net.variables.items() if n in inside}, factors), rest


def _is_state(value: Any) -> bool:
    """Whether a value names a state; likelihoods are numbers for all states."""
    return isinstance(value, (str, bool, int, float, np.generic))


def blanket_net(net: SomeMarkov, target: str, rows: Any) -> SomeMarkov | None:
    """The network of a target and its neighbours by the factors that it is in: enough for rows that show all neighbours."""
    own = [f for f in net.factors if target in f.names]
    names = dict.fromkeys([target, *(n for f in own for n in f.names)])
    data = scan(rows)
    around = [n for n in names if n != target]
    if not set(around) <= set(data.columns) or any(data.select(around).missing.values()):
        return None
    return net.of({n: net.variables[n] for n in names}, own)


def gibbs_marginals(net: MarkovParts, given: Mapping[str, object], method: Gibbs, seed: int = 0) -> Marginals:
    """p(x | given) of every variable by Gibbs sampling, each with its standard error; ln p(given) is not known so."""
    for name, value in given.items():
        if name not in net.variables:
            raise ModelError(f"the network has no node {name!r}{nearest(name, net.variables)}")
        if not _is_state(value):
            raise ModelError(f"the evidence of {name!r} are likelihoods, which Gibbs sampling does not take here; give a state")
    near, _ = near_net(net, [n for n in net.variables if n not in given], given)
    network, walker = _walker(near)
    rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(whole(seed, "a seed", 0, ModelError)).spawn(method.chains)]
    starts = [GibbsState(rng.integers(0, network.sizes), np.zeros(0)) for rng in rngs]
    walks = [walker.rows(at, method.length, rng, burn_in=method.burn_in, spacing=1) for at, rng in zip(starts, rngs, strict=True)]
    codes, drawn = np.concatenate(walks), Chained(method.chains, method.length)
    how = f"Gibbs sampling, {method.chains} chains of {method.length:,} sweeps after {method.burn_in:,}"
    answers: dict[str, Distribution] = {}
    for name, v in net.variables.items():
        if name in given:
            answers[name] = Distribution((v,), np.eye(v.n_states)[v.code(given[name])], given=given)
        else:
            found = drawn.shares(codes[:, list(near.variables).index(name)], v.n_states)
            answers[name] = Distribution((v,), found.mean, None, found.error, found.effective_sample_size, how, given)
    return Marginals({}, np.zeros(0), np.zeros(1, np.int64), float("nan"), given, answers)


def _walker(net: MarkovParts) -> tuple[Network, Walker]:
    """The factors by number, and who walks over all of their states: there may be no zeros in the way."""
    if zeros := [f.names for f in net.factors if not np.isfinite(f.log).all()]:
        raise ModelError(
            "rows cannot be drawn: the tree is too large, and a chain of single moves may not get around what the factor of "
            f"{listing(zeros[0])} rules out"
        )
    network = network_of(net.factors, net.variables)
    return network, Walker(network, free=range(network.n_variables), targets=())


def gibbs_rows(net: MarkovParts, n: int, seed: int | None) -> pa.Table:
    """Rows that one chain comes by: nearly independent where it moves fast, and a note says that they need not be."""
    whole(n, "the number of rows to draw", 0, ModelError)
    rng = np.random.default_rng(None if seed is None else whole(seed, "a seed", 0, ModelError))
    network, walker = _walker(net)
    note(
        f"the tree is too large for independent rows: they are drawn by Gibbs sampling, one chain, {BURN_IN:,} sweeps before the "
        f"first row and {SPACING} between rows"
    )
    start = GibbsState(rng.integers(0, network.sizes), np.zeros(0))
    codes = walker.rows(start, n, rng, burn_in=BURN_IN if n else 0, spacing=SPACING)
    return pa.table(arrow_columns(net.variables, {name: codes[:, i] for i, name in enumerate(net.variables)}))
