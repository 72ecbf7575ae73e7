"""What a chain says about sequences whose unknown variables are numbers: Kalman's filter and smoother, ln p, draws,
and the filter one row at a time.

Each block is computed in units of its own: numbers are centred and scaled as its columns are, so that a level of 1e9 costs no
digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Count, Finite
from suffice.engines.engine import Block, is_missing
from suffice.errors import ModelError, listing
from suffice.incomplete.chains.chain_rows import ChainRows
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.chains.linear_rows import LinearLayout, LinearRows, stationary_moments
from suffice.incomplete.chains.linear_states import LinearSpace, LinearTerm, names_in_state
from suffice.incomplete.chains.reduced_steps import ShownPart
from suffice.incomplete.components import Line, Theta
from suffice.incomplete.numbers.units import Units, columns_below, with_hidden
from suffice.models.chains.chain_parts import ChainParts, chain_phases
from suffice.models.chains.chain_reading import BlockAnswers, Cells, ChainReading, StepNumbers, shown_cell
from suffice.models.questions.mixture import Mixture, NormalParts
from suffice.numerics.inference.chains.linear.gaussian import draw_states, filter_states, smooth_states
from suffice.numerics.inference.finite.network import Array, Ints


def number_posterior(
    reading: ChainReading, smooth: bool, level: float | None, names: tuple[str, ...], block: Block
) -> BlockAnswers:
    """The sequences of a block filtered or smoothed, where the unknown variables that bear on others are numbers."""
    rows, theta = linear_rows(reading, block)
    steps = rows.steps(theta)
    found = smooth_states(steps) if smooth else filter_states(steps)
    logs = found.log_likelihoods + _log_units(rows, steps.y)
    lost = np.where(found.impossible < 0, -1, found.impossible + rows.starts[:-1])
    cells, rest = Cells(), rest_of(reading)
    parts: list[ShownPart] = []
    if rest is not None:
        answer = ChainRows.of(rest, block).posterior(reading.theta, (), smooth=smooth)
        parts, logs = answer.parts, logs + answer.log_likelihood
        lost = np.where(lost < 0, answer.stuck, lost)
    for name in names:
        if name in rows.space.unknown:
            i, units = rows.space.place[name, 0], rows.layout.units
            mean = units.outward(name, found.means[:, i])
            sd = units.scale[name] * np.sqrt(np.maximum(found.covariances[:, i, i], 0.0))
            if name in block.columns:
                seen = ~is_missing(block.columns[name])
                mean, sd = np.where(seen, block.columns[name], mean), np.where(seen, 0.0, sd)
            cells[name] = _normal_numbers(mean, sd, level)
            continue
        if parts:
            cells[name] = shown_cell(reading, parts, block, name, level)
        if name in rows.space.outputs:
            cells[name] = _normal_numbers(*_output(rows, block, name, cells.get(name), theta, found), level)
    return BlockAnswers(block.number, cells, logs, lost)


def _output(rows: LinearRows, block: Block, name: str, before: Any, theta: Theta, found: Any) -> tuple[Array, Array]:
    """Mean and deviation of a missing number that depends on unknown ones: as its line says."""
    own = block.columns[name]
    lost = is_missing(own)
    mean, sd = np.where(lost, np.nan, own), np.where(lost, np.nan, 0.0)
    if before is not None:
        mean, sd = before.mean.copy(), before.sd.copy()
    for term, some, centre in missing_outputs(rows, name, theta, found.means):
        h, v = _loading(rows.space, term, theta.lines[term.key], rows.configuration[name][some])
        variance = v + _quadratic(h, found.covariances[some])
        mean[some], sd[some] = rows.layout.units.outward(name, centre), rows.layout.units.scale[name] * np.sqrt(variance)
    return mean, sd


def _normal_numbers(mean: Array, sd: Array, level: float | None) -> StepNumbers:
    mean = np.where(np.isinf(sd), np.nan, mean)  # anything: there is no mean
    if level is None:
        return StepNumbers(mean, sd, None, None)
    half = float(sc.ndtri(0.5 + level / 2.0)) * sd
    return StepNumbers(mean, sd, mean - half, mean + half)


def draw_numbers(reading: ChainReading, block: Block, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """One draw of the unknown numbers and of the numbers that depend on them, given all that the sequences of a block show; seen
    cells are as they are. A cell that depends on no unknown number, and is missing, is left missing."""
    rows, theta = linear_rows(reading, block)
    steps, units = rows.steps(theta), rows.layout.units
    z = draw_states(steps, rng.standard_normal((1, rows.n_steps, steps.m + steps.y.shape[1])))[0]
    result: dict[str, npt.NDArray[Any]] = {}
    for name in (n for n in reading.open if n in rows.space.unknown or n in rows.space.outputs):
        own = block.columns.get(name)
        if name in rows.space.unknown:
            drawn = units.outward(name, z[:, rows.space.place[name, 0]])
            result[name] = drawn if own is None else np.where(is_missing(own), drawn, own)
            continue
        values = np.array(own, np.float64)
        for term, some, centre in missing_outputs(rows, name, theta, z):
            noise = np.sqrt(theta.lines[term.key].variance[rows.configuration[name][some]])
            values[some] = units.outward(name, centre + noise * rng.standard_normal(len(some)))
        result[name] = values
    return result


class SettledNumbers(NamedTuple):
    """The normal distribution that numbers settle to, of the variables at the present step and, as `x[-1]`, before it."""

    names: tuple[str, ...]
    mean: Array
    covariance: Array


def settled_numbers(chain: ChainParts) -> SettledNumbers:
    """What the transition of numbers settles to."""
    phases = chain_phases(chain)
    numbers = names_in_state(phases)
    if finite := [n for n in numbers if isinstance(chain.variables[n], Finite)]:
        raise ModelError(f"{listing(finite)} and numbers bear on later steps together: what they settle to has no closed form")
    space = LinearSpace.of(phases, numbers, settles=True)
    mean, covariance = stationary_moments(space, {n: Line.of(chain[n]) for n in space.unknown})
    return SettledNumbers(tuple(space.names), mean, covariance)


def linear_rows(reading: ChainReading, block: Block, units: Units | None = None) -> tuple[LinearRows, Theta]:
    """The sequences of a block in units of their own, unless others are given, and the chain's parameters in these."""
    space = reading.space
    assert space is not None
    units = _units(reading, block) if units is None else units
    every = {p.keys[n] for p in reading.layout.phases for n in p.nodes}
    plain = reading.layout
    layout = LinearLayout(
        plain.space, plain.tables, units, plain.shown, frozenset(every - _touching(reading)), plain.stationary, numbers=space
    )
    cpds: Any = reading.theta.others
    others = {key: units.inward_cpd(cpds[key]) for key in space.keys - space.diffuse}
    return LinearRows.of(layout, block), Theta(plain.tables, reading.theta.cells, others)


def rest_of(reading: ChainReading) -> ChainLayout | None:
    """The chain's nodes that speak of no unknown number, if there are any."""
    rest = replace(reading.layout, counted=frozenset(_touching(reading)), stationary=False)
    return rest if any(rest.emitting_nodes(p, by_table=by_table) for p in rest.phases for by_table in (True, False)) else None


def missing_outputs(
    rows: LinearRows, name: str, theta: Theta, z: Array
) -> Iterator[tuple[LinearTerm, npt.NDArray[np.intp], Array]]:
    """The steps at which a number is missing that depends on unknown ones, and there the mean of it given these."""
    for number, terms in enumerate(rows.space.terms):
        for term in (t for t in terms if t.name == name and not t.moving):
            some = np.flatnonzero((rows.phase == number) & np.isnan(rows.reals[name]))
            if not len(some):
                continue
            line, own = theta.lines[term.key], rows.configuration[name][some]
            h, _ = _loading(rows.space, term, line, own)
            yield term, some, line.intercept[own] + (h * z[some]).sum(axis=1) + rows.observed_sum(term, line, some)


def _quadratic(h: Array, C: Array) -> Array:
    """hᵀ C h of each of many; infinite where h speaks of something that has an infinite variance."""
    endless = np.isinf(np.einsum("tii->ti", C)) & (h != 0.0)
    finite = np.einsum("ti,tij,tj->t", h, np.where(np.isfinite(C), C, 0.0), h)
    return np.where(endless.any(axis=1), np.inf, finite)


def _loading(space: LinearSpace, term: LinearTerm, line: Line, own: Ints) -> tuple[Array, Array]:
    """How a number depends on z, and its variance given z, for each of some configurations."""
    h = np.zeros((len(own), space.size))
    for j, place in term.inside:
        h[:, place] = line.coefficients[own, j]
    return h, line.variance[own]


def _touching(reading: ChainReading) -> set[str]:
    space = reading.space
    assert space is not None
    return {p.keys[n] for p in reading.layout.phases for n, node in p.nodes.items() if space.touches(node)}


def _units(reading: ChainReading, block: Block) -> Units:
    """The units of the numbers of a block, under all of their names."""
    chain, centre, scale = reading.chain, dict[str, float](), dict[str, float]()
    for name, column in block.columns.items():
        if column.dtype.kind == "f" and not isinstance(chain.variables[name], (Finite, Count)):
            seen = column[~np.isnan(column)]
            spread = float(seen.std()) if len(seen) else 0.0
            centre[name] = float(seen.mean()) if len(seen) else 0.0
            scale[name] = float(2.0 ** np.round(np.log2(spread))) if 0.0 < spread < np.inf else 1.0
    known = {n for n in centre if not np.isnan(block.columns[n]).all()}
    reals = [n for n, v in chain.variables.items() if not isinstance(v, (Finite, Count))]
    zero, one = dict.fromkeys(centre, 0.0), dict.fromkeys(centre, 1.0)
    own = with_hidden(
        Units(centre, scale, zero, one, zero, {}), columns_below(chain.template, [n for n in reals if n not in known], known)
    )
    return _under_all_names(reading, own)


def _under_all_names(reading: ChainReading, units: Units) -> Units:
    """The units of variables for their lags and for nodes of first slices, too; counts are as they are."""
    template, bases = reading.chain.template, {n: n for n in reading.chain.variables}
    bases |= {f"{n}[-{k}]": n for n, lags in template.lags.items() for k in lags}
    bases |= {template.parameter_name(n, t): n for n, t in template.first_nodes}
    numbers = {n: b for n, b in bases.items() if not isinstance(reading.chain.variables[b], Finite)}
    centre, scale = ({n: part.get(b, d) for n, b in numbers.items()} for part, d in ((units.centre, 0.0), (units.scale, 1.0)))
    zero, one = dict.fromkeys(numbers, 0.0), dict.fromkeys(numbers, 1.0)
    return Units(centre, scale, zero, one, zero, {})


def _log_units(rows: LinearRows, y: Array) -> Array:
    """What ln p of each sequence has besides that of scaled numbers."""
    names = [*rows.space.outputs, *rows.exact]
    seen = ~np.isnan(y) @ np.log([rows.layout.units.scale[n] for n in names]) if names else np.zeros(len(y))
    return np.asarray(np.add.reduceat(np.append(rows.log_units - seen, 0.0), rows.starts[:-1]))


def filter_on(reading: ChainReading, block: Block, before: Any) -> tuple[float, Any, dict[str, Any]]:
    """ln p of the last row of a block, the filter after it, and what that says of each unknown number."""
    rows, theta = linear_rows(reading, block, _under_all_names(reading, Units({}, {}, {}, {}, {}, {})))  # as they are
    steps = rows.steps(theta)
    last = {name: getattr(steps, name)[-1:] for name in ("codes", "y", "f_steps", "output_codes")}
    found = filter_states(replace(steps, starts=np.array([0, 1]), **last), before)
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
