"""What a network is asked about rows: how probable they are, what is missing in them, and rows drawn from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import pa
from suffice.basis.variables import Finite
from suffice.engines.scan import scan
from suffice.engines.sequences.arrangement import REFUSE, Missing, Refuse
from suffice.errors import ModelError, TooLarge, bytes_in_words, whole
from suffice.families.protocol.family import Array
from suffice.models.questions.answering import Answering

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.basis.argument_types import ColumnOfAnswers, RowsLike
    from suffice.models.questions.answering import PredictOptions
    from suffice.numerics.inference.sampling.sampling import LikelihoodWeighting
    from suffice.statistics import Statistics

BLOCK = 65_536
"""Rows that are drawn by one generator."""


class RowAnswering(Answering):
    """A network that answers for rows; each method loads what it asks."""

    def log_prob(self, rows: RowsLike, *, unknown: Refuse | Missing = REFUSE) -> Array:
        """ln p(row) of each row, in the order of the rows; where cells are missing, ln p(the cells that are there).

        A state that the network does not know is refused, or, by `unknown=Missing()`, taken for a missing cell, and noted.

        >>> import suffice as sf
        >>> bn = sf.BayesNet("x", {"x": [0.25, 0.75]}, variables=[sf.Finite("x", ["a", "b"])])
        >>> np.exp(bn.log_prob({"x": ["b", "a"]}))
        array([0.75, 0.25])
        """
        from suffice.models.rows.posteriors import log_prob

        return log_prob(self, rows, unknown)

    def log_likelihood(self, data: RowsLike | Statistics | None = None) -> float:
        """Σ ln p(row) over the data, from its statistics alone; without data, over what the network was fitted from.

        Where cells are missing: Σ ln p(the cells of a row that are there), each row by inference.
        """
        from suffice.models.rows.posteriors import log_likelihood

        return log_likelihood(self, data)

    def bic(self, data: RowsLike | Statistics | None = None) -> float:
        """log-likelihood − ½ k ln N: higher is better."""
        rows: Any = scan(data) if self.hides_columns(data) else self.summary(data) if self.is_summed(data) else self.rows(data)
        return self.log_likelihood(None if data is None else rows) - 0.5 * self.n_parameters * float(np.log(rows.weight))

    def aic(self, data: RowsLike | Statistics | None = None) -> float:
        """log-likelihood − k: higher is better."""
        return self.log_likelihood(data) - self.n_parameters

    def cross_entropy(self, data: RowsLike | Statistics | None = None) -> float:
        """−(1/N) Σ ln p(row): nats per row that the data costs under this network."""
        if self.hides_columns(data):
            rows: Any = scan(data)
        else:
            rows = self.rows(data) if self.regressions and not self.is_summed(data) else self.summary(data)
        return -self.log_likelihood(None if data is None else rows) / float(rows.weight)

    @one_blas_thread
    def sample(self, n: int, seed: int | None = None) -> pa.Table:
        """n rows drawn from the network as an Arrow table, finite columns dictionary-encoded.

        >>> import suffice as sf
        >>> bn = sf.BayesNet("x", {"x": [0.0, 1.0]}, variables=[sf.Finite("x", ["a", "b"])])
        >>> bn.sample(2, seed=0)["x"].to_pylist()
        ['b', 'b']
        """
        from suffice.models.rows.frames import MAX_BYTES, arrow_columns

        whole(n, "the number of rows to draw", 0, ModelError)
        seed = None if seed is None else whole(seed, "a seed", 0, ModelError)
        sizes = {name: v.n_states if isinstance(v, Finite) else 0 for name, v in self.variables.items()}
        kinds = {name: np.dtype(np.int8 if 0 < k <= 127 else np.int32 if k else np.float64) for name, k in sizes.items()}
        if (size := n * sum(kind.itemsize for kind in kinds.values())) > MAX_BYTES:
            raise TooLarge(
                f"{n:,} rows of {len(self)} columns need {bytes_in_words(size)}; draw them in parts with several seeds"
            )
        columns = {name: np.empty(n, dtype=kind) for name, kind in kinds.items()}
        starts = range(0, n, BLOCK)

        def fill(start: int, entropy: np.random.SeedSequence) -> None:
            """Node by node in topological order (Henrion 1988); a block has a generator of its own, whatever the threads."""
            stop = min(start + BLOCK, n)
            rng = np.random.Generator(np.random.SFC64(entropy))
            block = {name: c[start:stop] for name, c in columns.items()}
            for name in self.dag.topological_order:
                block[name][:] = self[name].draw(block, rng, stop - start)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(fill, starts, np.random.SeedSequence(seed).spawn(len(starts))))
        return pa.table(arrow_columns(self.variables, columns))

    @one_blas_thread
    def predict_proba(
        self,
        rows: RowsLike,
        target: str,
        *,
        method: LikelihoodWeighting | None = None,
        interval: float | None = None,
        draws: int = 1000,
        seed: int = 0,
        unknown: Refuse | Missing = REFUSE,
    ) -> Any:
        """p(target | the other cells of a row), for each row; a column per state, of a real target `mean` and `variance`.

        `rows` is anything that `scan` takes: a pandas frame gives one with its index, polars gives polars, a dict of columns a
        dict of arrays, a frame of Spark one with columns beside its own, and the rest an Arrow table. Any cells may be missing.
        A row that is impossible under the network has NaN, with a note. In rows without a formula, numbers that a regression
        lacks are integrated over points, and counts that have children summed, as in `em`, which a note says; what is neither
        normal nor a count is refused. `method=LikelihoodWeighting(n)` draws for such rows, with a standard error of about 1/(2√n)
        at most, and leaves others exact; equal rows have equal answers, which depend on `seed` alone. States that the network
        does not know are refused, too; `unknown=Missing()` takes their cells for missing, with a note.

        `interval=0.95` adds two columns for each probability, or for the mean, `yes_lower` and `yes_upper`: the ends of the
        credible interval that `query` would give it in this row, from `draws` draws of the parameters.

        >>> import suffice as sf
        >>> sf.load("asia").predict_proba({"xray": ["yes", None]}, "lung")["yes"].round(6)
        array([0.488711, 0.055   ])
        """
        from suffice.models.rows.predict import predict_proba

        return predict_proba(self, rows, target, interval=interval, draws=draws, method=method, seed=seed, unknown=unknown)

    @overload
    def predict(self, rows: Mapping[str, object], target: str, **how: Unpack[PredictOptions]) -> ColumnOfAnswers: ...
    @overload
    def predict(self, rows: RowsLike, target: str, **how: Unpack[PredictOptions]) -> Any: ...
    @one_blas_thread
    def predict(
        self,
        rows: RowsLike,
        target: str,
        *,
        method: LikelihoodWeighting | None = None,
        seed: int = 0,
        unknown: Refuse | Missing = REFUSE,
    ) -> Any:
        """The most probable state of the target in each row given its other cells (a real target: its mean), as one column.

        `method`, `seed` and `unknown` are those of `predict_proba`.

        >>> import suffice as sf
        >>> list(sf.load("asia").predict({"dysp": ["yes", None]}, "bronc"))
        ['yes', 'no']
        """
        from suffice.models.rows.predict import predict

        return predict(self, rows, target, method=method, seed=seed, unknown=unknown)

    @one_blas_thread
    def impute(
        self,
        rows: RowsLike,
        *,
        joint: bool = False,
        draws: int | None = None,
        redraw: bool | None = None,
        seed: int = 0,
        unknown: Refuse | Missing = REFUSE,
    ) -> Any:
        """The rows with every missing cell of the network's columns filled, in the same kind of frame, columns and order.

        A cell gets its most probable state given the observed cells of its row (the first of equals); a cell of a real variable
        its posterior mean. `joint=True` fills all the missing cells of a row by the states that are most probable together; then
        there may be no real columns. `draws=5` gives a list of five such frames, in which all the missing cells of a row are
        drawn together from their exact posterior; the same `seed` gives the same draws. What comes out:

        - columns keep their types where they can: a category or an enumeration gains a state that it lacked, a column of whole
          numbers that gets means becomes one of floats, and one without a single value takes the type of what it is given;
        - columns that are no nodes stay as they are, and nodes that are no columns are not added;
        - a column of numbers that the network knows in bins stays as it is, with a note: a bin is not a number;
        - a state that the network does not know is refused; with `unknown=Missing()` its cell is filled like one that is missing;
        - rows that are impossible under the network keep their missing cells, with a note;
        - files, `Data` and DuckDB relations become an Arrow table in memory, a lazy frame a frame.

        >>> import suffice as sf
        >>> sf.load("asia").impute({"dysp": ["yes", "no"], "bronc": [None, "no"]})["bronc"]
        ['yes', 'no']

        Multiple imputation (Rubin 1987, Multiple Imputation for Nonresponse in Surveys, p. 76): an estimate from each of m filled
        frames, their mean, and a variance that adds to the usual one how much they differ. Parameters that were fitted are
        uncertain, too: for each frame they are drawn from their posterior, or after EM by the observed information, so that the
        imputation is proper and intervals by these rules hold. `redraw=False` holds them at their estimates, `redraw=True`
        refuses where they cannot be drawn; a network that was written down is taken to be known.

        >>> [frame["bronc"] for frame in sf.load("asia").impute({"dysp": ["yes"], "bronc": [None]}, draws=3)]
        [['no'], ['yes'], ['yes']]
        """
        from suffice.models.rows.impute import impute

        return impute(self, rows, joint=joint, draws=draws, redraw=redraw, seed=seed, unknown=unknown)
