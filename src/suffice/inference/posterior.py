"""The posterior of a few variables given what is observed of the others, and the probability of what is observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.inference.logs import Logs
from suffice.inference.network import Array, Ints, Network, Soft
from suffice.inference.orders import greedy_order
from suffice.inference.questions import DONE, IMPOSSIBLE, in_rows
from suffice.inference.run import SPARE, Plan, marked, with_likelihoods
from suffice.inference.tree import Part, arranged, part_of

MAX_JOINT = 2**27
"""No answer has more cells than this: 1 GiB of numbers."""
MAX_BYTES = 2.0**33
MAX_CELLS = 2.0**34


class Posterior(NamedTuple):
    """p(targets | evidence), one axis per target in the order asked for, and ln p(evidence).

    Where the evidence is impossible, `log_prob` is −inf and the probabilities are NaN.
    """

    probs: Array
    log_prob: float


def posterior(network: Network, targets: Sequence[int], codes: Ints, soft: Soft | None = None) -> Posterior:
    """Exactly, by elimination within the part of the network that the question depends on.

    `codes` has the code of each observed variable, −1 for the others. No target may be observed.

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> posterior(net, [0], np.array([-1, 0])).probs.round(4)
    array([0.6667, 0.3333])
    """
    shape = _checked_shape(network, targets)
    tables, codes = with_likelihoods(network, soft), marked(codes, soft)
    log_prob = _answer(network, (), codes, tables)[1]
    if log_prob == -np.inf or not len(targets):
        return Posterior(np.full(shape, 1.0 if log_prob > -np.inf else np.nan), log_prob)
    return Posterior(_answer(network, targets, codes, tables)[0].reshape(shape), log_prob)


def _checked_shape(network: Network, targets: Sequence[int]) -> Ints:
    shape = network.sizes[np.asarray(targets, np.int64)]
    cells = math.prod(shape.tolist())
    if cells > MAX_JOINT:
        raise TooLarge(
            f"the joint of {len(shape)} variables has {cells:,} cells ({bytes_in_words(8.0 * cells)}); the limit is {MAX_JOINT:,}"
        )
    return shape


def log_prob_of(network: Network, codes: Ints, soft: Soft | None = None) -> float:
    """ln p(evidence)."""
    return _answer(network, (), marked(codes, soft), with_likelihoods(network, soft))[1]


def _answer(network: Network, targets: Sequence[int], codes: Ints, tables: Array) -> tuple[Array, float]:
    out, log_prob, status = in_rows(network, targets, np.ascontiguousarray(codes[None], np.int32), tables[None])
    if status[0] in (DONE, IMPOSSIBLE):
        return out[0], float(log_prob[0])
    return carefully(network, targets, codes, tables)


def carefully(network: Network, targets: Sequence[int], codes: Ints, tables: Array) -> tuple[Array, float]:
    """One question with more time for a good order, memory checked, and logs where floats do not reach."""
    part = relevant_part(network, targets, codes)
    found = greedy_order(network, part)
    plan = Plan(network, arranged(network, part, found.order))
    numbers = plan.n_numbers(codes, down=False)
    if numbers < 0 or 8.0 * numbers > MAX_BYTES or found.cells > MAX_CELLS:
        size = "more than 2^62 numbers" if numbers < 0 else bytes_in_words(8.0 * numbers)
        raise TooLarge(
            f"the answer needs products of {found.cells:.3g} cells (of {plan.widest} variables at once) and {size}: too much; "
            "ask by sampling instead: bn.query(..., method=LikelihoodWeighting())"
        )
    values, log_prob, uncertain = collected(plan, codes, tables, numbers)
    if not uncertain:
        return values, log_prob
    logs = Logs(plan, codes, tables)
    if not len(targets):
        return values, logs.log_prob
    table = logs.up[plan.tree.root]
    high = table.max()
    if high == -np.inf:
        return np.full(table.size, np.nan), -np.inf
    shares = np.exp(table - high).reshape(-1)
    return shares / shares.sum(), float(high + np.log(shares.sum()))


def collected(plan: Plan, codes: Ints, tables: Array, numbers: int) -> tuple[Array, float, bool]:
    """The normalised table at the root (or a single 1), ln of what it was divided by, and whether digits may be lost."""
    from suffice.kernels.products import UP, fetch_leaves, lay_out, pass_messages

    tree, net = plan.tree, plan.network
    n = tree.n_tables
    size = net.sizes[tree.variables]
    up, least, spare, nothing = np.empty(n, np.int64), np.empty(2 * n), np.zeros(SPARE, np.int64), np.zeros(n, np.uint8)
    dims = (tree.dim_start, tree.dim_place, tree.dim_flag)
    lay_out(tree.n_leaves, n, *dims, size, plan.begin, nothing, up, up)
    buffer = np.empty(numbers)
    buffer[0] = 1.0
    scopes = (net.scope_start, net.scopes, net.strides, net.table_start)
    leaves = (tree.n_leaves, tree.dim_start, tree.dim_place, tree.dim_stride, size, tree.factor)
    log_prob = fetch_leaves(*leaves, *scopes, codes, tables, up, buffer, least, spare[1:])
    log_prob += pass_messages(
        UP, tree.n_leaves, n, *dims, size, tree.left, tree.right, nothing, up, up, buffer, least, spare[1:], spare
    )
    uncertain = bool(spare[0])
    if tree.root < 0:
        with np.errstate(divide="ignore"):
            return np.ones(1), float(log_prob + np.log(buffer[up[plan.roots]]).sum()), uncertain
    if log_prob == -np.inf:
        return np.full(plan.root_cells, np.nan), -np.inf, uncertain
    table = buffer[up[tree.root] : up[tree.root] + plan.root_cells].copy()
    total = float(table.sum())
    return table / total, log_prob + float(np.log(total)), uncertain


def relevant_part(network: Network, targets: Sequence[int], codes: Ints) -> Part:
    """What p(targets | observed) depends on; without targets, what p(observed) depends on."""
    from suffice.kernels.rows import relevant

    n, asked = network.n_variables, np.asarray(targets, np.int64)
    spare = np.empty((3, n + 1), np.int64)
    factors = np.empty(network.n_factors + 1, np.int64)
    seen = codes.astype(np.int64)
    scopes = (network.scope_start, network.scopes, network.child, network.own, network.backwards, *network.touching)
    relevant(len(asked), asked, seen, *scopes, spare[0], spare[1], spare[2], factors)
    return part_of(network, factors[1 : factors[0] + 1], seen, asked)
