"""Prediction: p(target | the other cells) of many rows, whatever is missing in each.

Columns of the network that the rows lack are not observed, nor are missing cells; other columns are not looked at, and
neither is the target's own. A row of which nothing is observed has the target's marginal distribution. A row whose cells
cannot occur together under the network has none: NaN, and one note says how many such rows there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import rows_of
from suffice.errors import ModelError, listed, nearest
from suffice.inference.fill import best
from suffice.inference.sampling import FEW
from suffice.models.no_formula import NoFormula
from suffice.models.rows.draws import Posterior
from suffice.models.rows.evidence import present, row_evidence
from suffice.models.rows.frames import checked_size, column, table
from suffice.models.rows.posteriors import MOMENTS, Places, tell_impossible
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.inference.sampling import LikelihoodWeighting
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
    data = rows_of(rows)
    checked_size(data.engine.n_rows, len(names))
    parts = [p.measures for p in predictions(bn, data, target, method=method, seed=seed)]
    return table(rows, names, np.concatenate([*parts, np.empty((0, len(names)))]))


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
    data = rows_of(rows)
    checked_size(data.engine.n_rows, 1)
    found = predictions(bn, data, target, method=method, seed=seed)
    if not isinstance(variable, Finite):
        return column(rows, target, np.concatenate([*(p.measures[:, 0] for p in found), np.empty(0)]))
    codes = [best(p.measures) for p in found]
    return column(rows, target, np.concatenate([*codes, np.empty(0, np.int64)]), variable.states)


class Prediction(NamedTuple):
    """A block of rows: what is known of the target (`measures`), a line per row, and columns of the rows as they came."""

    measures: Array
    kept: Mapping[str, Any]
    number: int = 0
    rows: Mapping[str, Ints] = MappingProxyType({})
    """The rows of which something must be told, by what that is."""
    refused: NoFormula | None = None


@dataclass(frozen=True, eq=False)
class Predict:
    """The step that predicts a target in a block of rows, with columns to keep."""

    posterior: Posterior
    keep: tuple[str, ...]

    def __call__(self, block: Block) -> Prediction:
        answer, worth, refused = self.posterior(row_evidence(self.posterior.bn, block))
        told = {
            "without formula": np.isnan(worth),
            "impossible": np.isnan(answer[:, 0]) & (worth > 0),
            "lost": worth == 0,
            "poor": (worth > 0) & (worth < FEW),
        }
        rows = {kind: np.flatnonzero(which) for kind, which in told.items()}
        return Prediction(answer, {n: block.kept[n] for n in self.keep}, block.number, rows, refused)


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
    data: Data,
    target: str,
    keep: Sequence[str] = (),
    method: LikelihoodWeighting | None = None,
    seed: int = 0,
) -> Iterator[Prediction]:
    """The rows, block by block, in their order; no more of them than a few blocks are held at any time."""
    variables = {n: v for n, v in present(bn, data.columns).items() if n != target}
    data = data.with_variables(variables).take(variables)
    posterior = Posterior.of(bn, target, method, seed)
    rows: defaultdict[str, Places] = defaultdict(Places)
    # Rows of which no cell matters must still be counted.
    counted = () if variables else data.engine.names[:1]
    for found in data.map(Predict(posterior, tuple(keep)), keep=tuple(keep) or counted, what="predicting rows"):
        for kind, which in found.rows.items():
            rows[kind].add(found.number, which)
        if found.refused is not None:
            raise NoFormula(found.refused.fact, found.refused.lacking, _drawing(data, rows["without formula"], found.refused))
        yield found
    tell_impossible(data, rows["impossible"], "there is no prediction (NaN, or a missing cell)")
    posterior.tell(data, rows["lost"], rows["poor"])


def _drawing(data: Data, rows: Places, refused: NoFormula) -> str:
    return (
        f"so it is in {rows.where(data)}: fill in {listed(refused.lacking)}, or give method=LikelihoodWeighting() to predict or "
        "predict_proba, which then draw for such rows alone"
    )
