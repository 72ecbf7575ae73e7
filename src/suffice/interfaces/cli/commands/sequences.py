"""The commands that ask a chain about sequences: `suffice decode`, `smooth`, `filter` and `forecast`.

Answers have a row for each row of the data, in its order, beside the columns that say which sequence and step it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from typer import Option

from suffice.basis.libraries import pa, pc
from suffice.basis.output.terminal import working
from suffice.basis.registry import command
from suffice.errors import SufficeError, quantity, say
from suffice.interfaces.cli.arguments import Chained, Interval, Keep, StepOptions, Steps, with_options


@command("decode")
@with_options(StepOptions)
def decode(
    model: Chained,
    data: Steps,
    best: Annotated[int, Option(metavar="K", help="the K most probable paths, NAME_1, NAME_2, ..., with ln p", min=1)] = 1,
    posterior: Annotated[
        bool, Option("--posterior", help="the most probable state of each cell by itself, not of all together")
    ] = False,
    keep: Keep = None,
    **options: Any,
) -> None:
    """Find the most probable states of all hidden and missing cells of each sequence together (the best path)."""

    if posterior and best > 1:
        raise SufficeError("--best and --posterior exclude each other: give one of them")
    read, data, chain, steps = _asked_about(model, data, options)
    with working("finding best paths"):
        if posterior:
            table, told = chain.posterior_decode(steps), "the most probable state of each cell"
        else:
            found = chain.decode(steps, best)
            paths = found if isinstance(found, tuple) else (found,)
            told = f"best paths, ln p {float(paths[0].log_prob.sum()):.10g} in all"
            table = paths[0].states if best == 1 else _paths_table(paths, steps)
    _write_answers(table, read, told, beside=data, keep=keep)


@command("smooth")
@with_options(StepOptions)
def smooth(model: Chained, data: Steps, interval: Interval = None, keep: Keep = None, **options: Any) -> None:
    """Infer each hidden or missing cell from its whole sequence.

    The columns are NAME=state, the probability of each state; of a number NAME, its mean, and NAME_sd.
    """
    _infer("smooth", model, data, interval, keep, options)


@command("filter")
@with_options(StepOptions)
def filter_command(model: Chained, data: Steps, interval: Interval = None, keep: Keep = None, **options: Any) -> None:
    """Infer each hidden or missing cell from its sequence up to its own step; columns as in smooth."""
    _infer("filter", model, data, interval, keep, options)


def _infer(how: str, model: str, data: str, interval: float | None, keep: list[str] | None, options: Any) -> None:
    read, data, chain, steps = _asked_about(model, data, options)
    with working(f"{'smoothing' if how == 'smooth' else 'filtering'} {quantity(steps.n_steps, 'step')}"):
        table = getattr(chain, how)(steps, interval=interval)
    _write_answers(table, read, "hidden and missing cells", beside=data, keep=keep)


@command("forecast")
@with_options(StepOptions)
def forecast(
    model: Chained,
    data: Steps,
    steps: Annotated[int, Option(help="how many steps ahead", min=1)] = 1,
    interval: Interval = None,
    given: Annotated[
        str | None,
        Option(metavar="FILE", help="known columns of these steps, such as inputs: a row for each, or for each of each sequence"),
    ] = None,
    seed: Annotated[int, Option(help="of draws, where there is no closed form: the same seed gives the same", min=0)] = 0,
    **options: Any,
) -> None:
    """Forecast the next steps of each sequence: probabilities of states, means and deviations of numbers."""
    from suffice.interfaces.cli.inputs import text_path

    read, _, chain, seen = _asked_about(model, data, options)
    given = None if given is None else text_path(given, read)
    with working(f"forecasting {quantity(steps, 'step')}"):
        table = chain.forecast(seen, steps, interval=interval, given=given, seed=seed)
    _write_answers(table, read, f"{quantity(steps, 'step')} ahead")


def _paths_table(paths: Sequence[Any], steps: Any) -> pa.Table:
    """Several paths beside each other, each with ln p of its sequence."""
    position = steps.position
    rows = np.repeat(np.arange(steps.n_sequences), steps.lengths)[position >= 0][np.argsort(position[position >= 0])]
    columns: dict[str, Any] = {}
    for rank, path in enumerate(paths, 1):
        columns |= {f"{name}_{rank}": path.states[name] for name in path.states.column_names}
        columns[f"log_prob_{rank}"] = pa.array(path.log_prob[rows])
    return pa.table(columns)


def _asked_about(model: str, data: str, options: dict[str, Any]) -> tuple[StepOptions, str, Any, Any]:
    """The options of steps, the path of the rows, the chain, and the rows as its sequences."""
    from suffice.interfaces.cli import inputs, models
    from suffice.models.chain import Chain

    read = StepOptions(**options)
    path = inputs.text_path(data, read)
    inputs.checked_out(read.out, path)
    if not isinstance(chain := models.model_of(model), Chain):
        raise SufficeError(f"{model} holds a network of rows, not a chain: ask it with suffice predict or suffice query")
    return read, path, chain, inputs.sequences_for(chain, path, read.by, read.order, read.gaps, read)


def _write_answers(
    answers: pa.Table, read: StepOptions, told: str, *, beside: str | None = None, keep: list[str] | None = None
) -> None:
    """Write answers, beside columns of the rows that they are about, and say what was written."""
    from suffice.formats.rows import write_stream
    from suffice.interfaces.cli import inputs

    columns = {} if beside is None else inputs.beside(beside, (read.by, read.order), keep, answers.column_names)
    for name in answers.column_names:
        columns[name] = cells = answers[name]
        if pa.types.is_floating(cells.type):  # a mean of what may be anything is no number: an empty cell
            columns[name] = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
    n_rows = write_stream([pa.table(columns)], read.out)
    if read.out is not None:
        say(f"{told}: {quantity(n_rows, 'row')} written to {read.out}")
