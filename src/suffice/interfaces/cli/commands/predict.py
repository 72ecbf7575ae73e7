"""The command that predicts: `suffice predict`, from file to file, however many rows there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Argument, BadParameter, Option

from suffice.basis.libraries import pa
from suffice.basis.output.terminal import working
from suffice.basis.registry import command
from suffice.errors import SufficeError, quantity, say
from suffice.interfaces.cli.arguments import By, Keep, Model, Order, RowsOut, TextOptions, Unknown, with_options

if TYPE_CHECKING:
    from suffice.models.networks import BayesNet
    from suffice.models.rows.predict import Prediction


@command("predict")
@with_options(TextOptions)
def predict_command(
    model: Model,
    data: Annotated[str, Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes; cells may be missing")],
    target: Annotated[
        str | None,
        Option(metavar="NAME", help="the variable to predict; its own column is not read. A machine has its hidden units"),
    ] = None,
    out: RowsOut = None,
    by: By = None,
    order: Order = None,
    keep: Keep = None,
    method: Annotated[
        str, Option(help="exact, or lw:10000: rows without a formula, where a regression lacks a number, are drawn for")
    ] = "exact",
    interval: Annotated[
        float | None,
        Option(metavar="LEVEL", help="0.95: with credible intervals of the probabilities, or of the mean, in each row"),
    ] = None,
    draws: Annotated[int, Option(help="draws of the parameters for --interval, at least 1000", min=1000)] = 1000,
    seed: Annotated[int, Option(help="the same seed gives the same draws", min=0)] = 0,
    unknown: Unknown = "refuse",
    **options: Any,
) -> None:
    """Predict a variable in every row of a file, with its probabilities, in the order of the rows.

    The columns are NAME, the most probable state, and P(NAME=state) for each state; of a real variable NAME, its mean, and
    Var(NAME). With --interval each has the columns "lower" and "upper" beside it. They are empty where the cells of a row are
    impossible under the network. Of a restricted Boltzmann machine, the columns are the probabilities of its hidden units; of a
    conditional random field, the labels of each step of sequences.
    """
    from suffice.engines.scan import rows_of
    from suffice.formats.rows import write_stream
    from suffice.interfaces.cli import inputs, models, words
    from suffice.models.rows.predict import measures, predictions

    read = TextOptions(**options)
    data = inputs.text_path(data, read)
    inputs.checked_out(out, data)
    opened = models.model_of(model)
    strange = inputs.choice(inputs.GAPS, unknown, "--unknown")
    if unknown != "refuse" and opened.file_kind in models.NO_ANSWERS:
        raise SufficeError("--unknown is for networks: leave it out")
    if interval is not None and opened.file_kind in models.NO_ANSWERS:
        raise SufficeError("--interval is for networks: leave it out")
    if opened.file_kind == "crf":
        return _label_sequences(opened, data, target, out, by, order, keep, read)
    if by is not None or order is not None:
        raise SufficeError(f"{model} holds no model of sequences: leave --by and --order out")
    if opened.file_kind == "rbm":
        return _hidden_units(opened, data, target, out, keep, read.missing)
    if target is None:
        raise BadParameter("a network needs the variable to predict", param_hint="--target")
    how = words.sampler_of(method)
    bn = models.network_of(model, "suffice decode, smooth or filter infer what it hides, suffice forecast what comes next")
    measures(bn, target)
    rows = rows_of(data, missing=inputs.missing_words(read.missing))
    kept = inputs.kept_columns(keep, rows.columns, _names(bn, target, interval), "the prediction")
    asked = predictions(bn, rows, target, kept, how, seed, strange, interval, draws)
    tables = (_table(bn, target, found) for found in asked)
    n_rows = write_stream(chain([next(tables, _empty(bn, target, kept, interval))], tables), out)
    if out is not None:
        say(f"{target} predicted in {quantity(n_rows, 'row')}; written to {out}")
    return None


@command("impute")
@with_options(TextOptions)
def impute_command(
    model: Model,
    data: Annotated[str, Argument(metavar="DATA", help="rows with missing cells: .csv .csv.gz .parquet, a glob in quotes")],
    out: RowsOut = None,
    joint: Annotated[
        bool, Option("--joint", help="all missing cells of a row by the states that are most probable together")
    ] = False,
    draws: Annotated[
        int | None,
        Option(metavar="N", help="multiple imputation: N filled tables, one after another, numbered in the column draw", min=1),
    ] = None,
    redraw: Annotated[
        bool | None,
        Option(help="of --draws: the parameters are drawn anew for each table, or held; where they can be if not given"),
    ] = None,
    seed: Annotated[int, Option(help="the same seed gives the same draws", min=0)] = 0,
    unknown: Unknown = "refuse",
    **options: Any,
) -> None:
    """Fill the missing cells of rows: each by its most probable state, or its mean, given the other cells of its row.

    Columns that the network does not know stay as they are. Rows that are impossible under the network keep their gaps.
    """
    from suffice.engines.scan import rows_of
    from suffice.formats.rows import write_stream
    from suffice.interfaces.cli import inputs, models

    read = TextOptions(**options)
    data = inputs.text_path(data, read)
    inputs.checked_out(out, data)
    bn = models.network_of(model, "suffice decode, smooth or filter infer its missing cells")
    strange = inputs.choice(inputs.GAPS, unknown, "--unknown")
    rows = rows_of(data, missing=inputs.missing_words(read.missing))
    if draws is not None and DRAW in rows.columns:
        raise SufficeError(f"the rows have a column {DRAW!r}, and so the draws cannot be numbered in one: leave --draws out")
    with working("filling rows"):
        found = bn.impute(rows, joint=joint, draws=draws, redraw=redraw, seed=seed, unknown=strange)
    tables = [found]
    if draws is not None:
        tables = [t.add_column(0, DRAW, pa.array([i] * t.num_rows, pa.int64())) for i, t in enumerate(found, 1)]
    plain = [{n: inputs.plain_text(t.column(n).combine_chunks()) for n in t.column_names} for t in tables]
    n_rows = write_stream([pa.table(columns) for columns in plain], out)
    if out is not None:
        say(f"{n_rows:,} rows with their missing cells filled; written to {out}")


DRAW = "draw"
"""The column that numbers the tables of multiple imputation."""


def _label_sequences(
    crf: Any, data: str, target: str | None, out: str | None, by: str | None, order: str | None, keep: Any, read: TextOptions
) -> None:
    """The best labels of each sequence and the probability of each label, as columns beside those that are kept."""
    from suffice.formats.rows import write_stream
    from suffice.interfaces.cli import inputs
    from suffice.interfaces.cli.labels import with_sentences

    if target not in (None, crf.label):
        raise SufficeError(f"this model labels {crf.label!r}: leave --target out")
    table, by = with_sentences(data, by, (crf.label, *crf.linear_chain.columns))
    steps = inputs.sequences_of(inputs.data_of(table, read), by, order)
    with working("labelling"):
        labels, shares = crf.predict(steps), crf.predict_proba(steps)
    columns = {crf.label: pa.array(labels), **{f"P({crf.label}={name})": shares[name] for name in crf.labels}}
    write_stream([pa.table({**inputs.beside(table, (by, order), keep, list(columns)), **columns})], out)
    if out is not None:
        say(f"{crf.label} of {steps.n_steps:,} steps predicted; written to {out}")


def _hidden_units(machine: Any, data: str, target: str | None, out: str | None, keep: Any, missing: Any) -> None:
    from suffice.engines.scan import rows_of
    from suffice.formats.rows import write_stream
    from suffice.interfaces.cli import inputs

    if target is not None or keep:
        raise SufficeError("a restricted Boltzmann machine gives its hidden units: leave --target and --keep out")
    rows = machine.transform(rows_of(data, missing=inputs.missing_words(missing)))
    write_stream([rows], out)
    if out is not None:
        say(f"{rows.num_columns:,} hidden units in {quantity(rows.num_rows, 'row')}; written to {out}")


def _names(bn: BayesNet, target: str, interval: float | None = None) -> list[str]:
    from suffice.basis.variables import Finite
    from suffice.models.rows.predict import measures

    finite = isinstance(bn.variables[target], Finite)
    probabilities = [f"P({target}={state})" for state in measures(bn, target)] if finite else []
    ends = [f"{name} {end}" for name in (probabilities or [target]) for end in ("lower", "upper")]
    return [target, *(probabilities or [f"Var({target})"]), *(ends if interval is not None else [])]


def _table(bn: BayesNet, target: str, found: Prediction) -> pa.Table:
    """A prediction as rows of a file, nothing where it is NaN."""
    from suffice.basis.variables import Finite
    from suffice.incomplete.rows import best
    from suffice.interfaces.cli.inputs import plain_text

    numbers = [pa.array(column, from_pandas=True) for column in found.measures.T.copy()]
    variable = bn.variables[target]
    if isinstance(variable, Finite):
        codes = best(found.measures).astype("int32")
        states = pa.array(variable.states, pa.string())
        numbers.insert(0, pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), states))
    if found.ends is not None:
        numbers += [pa.array(column, from_pandas=True) for column in found.ends.T.copy()]
    kept = {n: plain_text(cells) for n, cells in found.kept.items()}
    names = _names(bn, target, None if found.ends is None else 1.0)
    return pa.table({**kept, **dict(zip(names, numbers, strict=True))})


def _empty(bn: BayesNet, target: str, kept: Sequence[str], interval: float | None) -> pa.Table:
    """What is written where there are no rows: the header."""
    from suffice.models.rows.predict import Prediction, measures

    none = {n: pa.array([], pa.string()) for n in kept}
    width = len(_names(bn, target, interval)) - len(_names(bn, target))
    ends = np.empty((0, width)) if width else None
    return _table(bn, target, Prediction(np.empty((0, len(measures(bn, target)))), np.empty(0), kept=none, ends=ends))
