"""The probability of what is observed: ln p(observed cells) of rows of which any cells may be missing.

A cell that is missing is summed or integrated out, and so is a node that is no column at all. Blocks that are complete need no
inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.engines.scan import scan
from suffice.errors import DataError
from suffice.models.rows.posteriors import log_probs, present, row_evidence

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogLikelihood(Step[float]):
    """Σ ln p(observed cells) over the rows, each as often as its weight says."""

    bn: BayesNet

    def of(self, block: Block) -> float:
        logs = self.each(block)
        if block.weight is None:
            return float(logs.sum())
        with np.errstate(invalid="ignore"):  # an impossible row of weight 0 is no row
            return float(np.where(block.weight > 0, block.weight * logs, 0.0).sum())

    def each(self, block: Block) -> Array:
        """ln p(observed cells) of each row."""
        columns = block.columns
        if any(n not in columns or is_missing(columns[n]).any() for n in self.bn):
            return log_probs(self.bn, row_evidence(self.bn, block))
        result = np.zeros(block.n_rows)
        for name in self.bn:
            result += self.bn[name].log_prob(columns)
        return result


def log_prob_in_rows(bn: BayesNet, data: Data) -> Array:
    """ln p(observed cells) of each row of data whose columns are nodes, read as the network's variables."""
    parts = list(data.map(LogLikelihood(bn).each))
    if not parts:
        raise DataError("there are no rows")
    return np.concatenate(parts)


def observed_log_prob(bn: BayesNet, rows: Any) -> Array:
    """ln p(observed cells) of each row, in the order of the rows; a density where real cells are observed.

    Missing cells, and nodes that are no columns, are summed or integrated out. A row of which nothing is observed has 0, one
    whose cells cannot occur together −inf.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Finite
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> np.exp(observed_log_prob(bn, {"x": ["yes", None, None], "y": ["no", "yes", None]})).round(6)
    array([0.05 , 0.275, 1.   ])
    """
    return log_prob_in_rows(bn, _rows(bn, rows))


def observed_log_likelihood(bn: BayesNet, data: Any) -> float:
    """Σ ln p(observed cells) over the rows, each as often as its weight says.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Finite
    >>> bn = BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])])
    >>> round(observed_log_likelihood(bn, scan({"x": ["b", None]}, weights=[2, 5])), 6)  # 2 ln 0.75
    -0.575364
    """
    return float(_rows(bn, data).fold(LogLikelihood(bn), threads=1))  # the kernels have threads of their own


def _rows(bn: BayesNet, data: Any) -> Data:
    """The columns of the data that are nodes, read as the network's variables."""
    opened = scan(data)
    variables = dict(present(bn, opened.columns))
    return opened.with_variables(variables).take(variables)
