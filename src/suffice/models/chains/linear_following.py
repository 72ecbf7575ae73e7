"""Hidden numbers that begin as they settle, drawn; and Kalman's filter, one row at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from suffice.engines.engine import Block
from suffice.incomplete.chains.chain_rows import ChainRows
from suffice.inference.chains.linear.gaussian import filter_states
from suffice.inference.finite.network import Array
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import ChainReading
from suffice.models.chains.linear_answers import linear_rows, plain_numbers, rest_of, settled_numbers
from suffice.models.questions.mixture import Mixture, NormalParts


def first_numbers(chain: ChainParts, n: int, rng: np.random.Generator) -> dict[str, Array]:
    """The numbers that carry a stationary chain on, at the first step of n sequences."""
    settled = settled_numbers(chain)
    drawn = rng.multivariate_normal(settled.mean, settled.covariance, n, method="eigh")
    return {name: drawn[:, i] for i, name in enumerate(settled.names) if name in chain.variables}


def filter_on(reading: ChainReading, block: Block, before: Any) -> tuple[float, Any, dict[str, Any]]:
    """ln p of the last row of a block, the filter after it, and what that says of each unknown number."""
    rows, theta = linear_rows(reading, block, plain_numbers(reading))
    steps = rows.steps(theta)
    last = slice(-1, None)
    inputs = steps.f_steps[last] if len(steps.f_steps) else steps.f_steps
    one = replace(
        steps,
        starts=np.array([0, 1]),
        codes=steps.codes[last],
        y=steps.y[last],
        f_steps=inputs,
        output_codes=steps.output_codes[last],
    )
    found = filter_states(one, before)
    answer = {}
    for name in reading.numbers:
        i = rows.space.place[name, 0]
        variance = np.maximum(found.covariances[:1, i, i], 0.0)
        answer[name] = Mixture((name,), np.ones(1), NormalParts(found.means[:1, [i]], variance[:, None, None]))
    return float(found.log_likelihoods[0]) + _log_rest(reading, block), found.last, answer


def _log_rest(reading: ChainReading, block: Block) -> float:
    """ln p of the cells of the last row that no unknown number touches."""
    rest = rest_of(reading)
    if rest is None:
        return 0.0
    steps, _ = ChainRows.of(rest, block).steps(reading.theta)
    total = 0.0
    if steps.symbols is not None and steps.table is not None:
        total += float(np.log(steps.table[steps.symbols[-1], 0]))
    if steps.log_likelihood is not None:
        total += float(steps.log_likelihood[0, -1])
    return total
