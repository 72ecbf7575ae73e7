"""Hidden Markov models for scikit-learn: rows are steps, and `lengths` says where one sequence ends and the next begins."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from suffice.basis.variables import Finite
from suffice.errors import DataError, FitError
from suffice.families.priors.priors import Dirichlet, Gamma, NormalInverseGamma, suitable
from suffice.interfaces.estimators.columns import features, steps, unseen_state_hint
from suffice.models.chains.chain_answers import answers, best_states
from suffice.models.chains.chain_reading import ChainReading
from suffice.recipes.latent.hmm import hmm

WEAK = (Dirichlet(1), NormalInverseGamma(), Gamma())


@dataclass(eq=False, repr=False)
class HMM(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """A hidden Markov model of the columns of X; see `suffice.hmm`. The chain is kept as `chain_`, how it was found as `run_`.

    Columns of numbers are normal given the state, with a `covariance` `Full()` (the default), `Tied()`, `Diagonal()` or
    `Spherical()`; text, categories and booleans of a frame have tables; `variables` declares others, {"x0": Count} (the columns
    of an array are x0, x1, …). Missing cells (NaN) are summed out. The rows of X are the steps of one sequence, or of several
    of these `lengths` (as in hmmlearn), which are always given by name. Parameters are posterior means under Dirichlet(1),
    NormalInverseGamma() and Gamma() unless another `prior` is given; `prior=None` is maximum likelihood.

    >>> import numpy as np
    >>> X = np.array([0.1, -0.2, 0.0, 5.1, 4.9, 5.2, 0.1, 0.2, -0.1, 0.0, 5.0, 4.8])[:, None]
    >>> model = HMM(2).fit(X, lengths=[6, 6])
    >>> model.predict(X, lengths=[6, 6])
    array([0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1])
    """

    n_states: int = 2
    _: KW_ONLY
    covariance: Any = None
    families: Any = None
    sticky: float = 0.0
    prior: Any = WEAK
    estimate: Any = None
    first: Any = None
    starts: int = 10
    seed: int = 0
    tol: float = 1e-6
    max_iter: int = 500
    variables: Any = None
    name: str = "state"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Self:
        """Learn the model from steps X (an array or a frame); y is not used."""
        rows = steps(features(self, X, reset=True), lengths, self.variables, self.name)
        if y is not None and np.ndim(y) == 1 and len(y) != rows.n_rows:
            raise DataError("the second argument of fit, y, is not used; the lengths of sequences are given by name: lengths=...")
        if isinstance(self.n_states, (int, np.integer)) and self.n_states > rows.n_rows:
            raise FitError(f"{self.n_states} states need at least as many steps, and n_samples={rows.n_rows}")
        asked = ("covariance", "families", "sticky", "estimate", "first", "starts", "seed", "tol", "max_iter", "name")
        how = {option: getattr(self, option) for option in asked}
        needed = [*rows.schema.values(), Finite(self.name, ["0"])]  # the states need the prior of tables
        self.run_ = hmm(rows, self.n_states, prior=suitable(self.prior, needed, WEAK), progress=False, **how)
        self.chain_, self.n_iter_ = self.run_.model, self.run_.n_iterations
        return self

    def decode(self, X: Any, lengths: Any = None) -> tuple[float, npt.NDArray[np.int64]]:
        """ln p(most probable path, X) of all sequences together, and the state of each row on it; −1 where X is impossible."""
        reading = self._reading(X, lengths)
        paths, logs = best_states(reading)
        return float(logs.sum()), np.asarray(reading.sequences.in_order(paths[self.name][0]), dtype=np.int64)

    def predict(self, X: Any, lengths: Any = None) -> npt.NDArray[np.int64]:
        """The state of each row on the most probable path of its sequence."""
        return self.decode(X, lengths)[1]

    def predict_proba(self, X: Any, lengths: Any = None) -> npt.NDArray[np.float64]:
        """p(state | all of its sequence) of each row: row × state."""
        reading = self._reading(X, lengths)
        probs: Any = answers(reading, names=reading.states, smooth=True).cells[self.name]
        return np.asarray(reading.sequences.in_order(probs).T)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """ln p(X), of all sequences together."""
        return float(answers(self._reading(X, lengths), names=(), smooth=False).log_prob.sum())

    def _reading(self, X: Any, lengths: Any) -> ChainReading:
        check_is_fitted(self)
        frame = features(self, X, reset=False)
        with unseen_state_hint():
            known = {n: v for n, v in self.chain_.variables.items() if n != self.name}
            return ChainReading.of(self.chain_, steps(frame, lengths, known, self.name))
