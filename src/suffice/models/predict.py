"""Prediction: p(target | the other cells) of many rows, whatever is missing in each.

Columns of the network that the rows lack are not observed, nor are missing cells; other columns are not looked at, and
neither is the target's own. A row of which nothing is observed has the target's marginal distribution. A row whose cells
cannot occur together under the network has none: NaN, and one note says how many such rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.passing import Passing, passing
from suffice.errors import ModelError, listed, nearest
from suffice.models.impute import impute
from suffice.models.no_formula import NoFormula, advising
from suffice.models.row_draws import RowDraws, rows_without_formula
from suffice.models.row_evidence import RowEvidence, present, row_evidence
from suffice.models.row_frames import checked_size, like
from suffice.models.row_posteriors import MOMENTS, Impossible, best, row_posterior
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.inference.sampling import LikelihoodWeighting
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]

__all__ = ["Prediction", "impute", "measures", "predict", "predict_proba", "predictions"]


def predict_proba(bn: BayesNet, rows: Any, target: str, *, method: LikelihoodWeighting | None = None, seed: int = 0) -> Any:
    """p(target | the other cells) of each row, a column per state, in the order of the rows and in the kind of frame they are.

    `rows` is anything that `scan` takes: a pandas frame gives one with its index, polars gives polars, a dict of columns a
    dict of arrays, and Arrow, files, `Data` and the rest an Arrow table. The columns of a real target are `mean` and
    `variance`. Rows that are impossible under the network have NaN.

    A regression on numbers has no formula in a row that lacks one of them. `method=LikelihoodWeighting(n)` draws for such rows,
    n times, and leaves the others exact: a probability then has a standard error of about 1/(2√n) at most. Equal rows have equal
    answers, which depend on `seed` alone.

    >>> from suffice.models.bayes_net import BayesNet
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> predict_proba(bn, {"x": ["yes", None]}, "y")["yes"].round(6)
    array([0.8  , 0.275])
    """
    names = measures(bn, target)
    coming = passing(rows)
    checked_size(coming.n_rows, len(names))
    parts = [p.measures for p in predictions(bn, coming, target, method=method, seed=seed)]
    return like(rows).table(names, np.concatenate([*parts, np.empty((0, len(names)))]))


def predict(bn: BayesNet, rows: Any, target: str, *, method: LikelihoodWeighting | None = None, seed: int = 0) -> Any:
    """The most probable state of the target in each row given its other cells; of a real target, the mean.

    The answer is one column, in the order of the rows: a pandas Series with the index of the rows, a polars Series, an array
    for a dict of columns, and an Arrow array otherwise. Of states that are equally probable it is the first; rows that are
    impossible under the network have none: their cells are missing. `method` and `seed` are those of `predict_proba`.

    >>> from suffice.models.bayes_net import BayesNet
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> predict(bn, {"x": ["yes", None]}, "y")
    array(['yes', 'no'], dtype=object)
    """
    measures(bn, target)
    variable = bn.variables[target]
    coming = passing(rows)
    checked_size(coming.n_rows, 1)
    found = predictions(bn, coming, target, method=method, seed=seed)
    if not isinstance(variable, Finite):
        return like(rows).numbers(target, np.concatenate([*(p.measures[:, 0] for p in found), np.empty(0)]))
    codes = [best(p.measures) for p in found]
    return like(rows).states(target, variable.states, np.concatenate([*codes, np.empty(0, np.int64)]))


class Prediction(NamedTuple):
    """Some rows: what is known of the target (`measures`), a line per row, and columns of the rows as they came."""

    measures: Array
    kept: dict[str, Any]


def measures(bn: BayesNet, target: Any) -> tuple[str, ...]:
    """What a target's posterior is told by: its states, or its mean and variance.

    >>> from suffice.models.bayes_net import BayesNet
    >>> measures(BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])]), "x")
    ('a', 'b')
    """
    if not isinstance(target, str):
        raise ModelError(f"one target is predicted at a time, given by its name; not {target!r}")
    if target not in bn:
        raise ModelError(f"the network has no node {target!r}{nearest(target, bn)}")
    variable = bn.variables[target]
    return variable.states if isinstance(variable, Finite) else MOMENTS


def predictions(
    bn: BayesNet,
    rows: Passing,
    target: str,
    keep: Sequence[str] = (),
    method: LikelihoodWeighting | None = None,
    seed: int = 0,
) -> Iterator[Prediction]:
    """The rows, block by block, in their order; no more of them than a few blocks are held at any time."""
    variables = {n: v for n, v in present(bn, rows.names).items() if n != target}
    impossible, drawn = Impossible(), None if method is None else RowDraws(bn, target, method, seed)
    for block in rows.blocks(variables, keep, "predicting rows"):
        seen, lost = row_evidence(bn, block), np.zeros(block.n_rows, bool)
        if drawn is None:
            answer = _exact(bn, target, seen, rows, block.start)
        else:
            answer, lost = drawn.posterior(seen, block.start)
        impossible.add(block.start + np.flatnonzero(np.isnan(answer[:, 0]) & ~lost))
        yield Prediction(answer, dict(block.kept))
    impossible.tell(rows, "there is no prediction (NaN, or a missing cell)")
    if drawn is not None:
        drawn.tell(rows)


def _exact(bn: BayesNet, target: str, seen: RowEvidence, rows: Passing, start: int) -> Array:
    """The answers of a block of rows; the refusal of one names it."""
    try:
        return row_posterior(bn, target, seen)
    except NoFormula:
        refused = np.flatnonzero(rows_without_formula(bn, target, seen))
    with advising(lambda error: _drawing(error, _where(rows, start + refused))):
        return row_posterior(bn, target, seen.take(refused[:1]))


def _drawing(refused: NoFormula, where: str) -> str:
    return (
        f"so it is in {where}: fill in {listed(refused.lacking)}, or give method=LikelihoodWeighting() to predict or "
        "predict_proba, which then draw for such rows alone"
    )


def _where(rows: Passing, refused: npt.NDArray[np.int64]) -> str:
    first = rows.place(int(refused[0]))
    return first if len(refused) == 1 else f"{len(refused):,} rows, first {first}"
