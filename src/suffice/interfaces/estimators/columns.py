"""What scikit-learn passes, arrays and frames, as columns with names, and its labels as states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, check_consistent_length, column_or_1d, validate_data

from suffice.basis.libraries import nw
from suffice.basis.variables import Bins, Real, state_text
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences, sequences
from suffice.errors import WAY_OUT, DataError, FitError, listing


class Frame(NamedTuple):
    """Columns by name, and which of them hold numbers."""

    columns: dict[str, Any]
    numbers: frozenset[str]


def features(estimator: Any, X: Any, *, reset: bool) -> Frame:
    """The columns of X, checked by scikit-learn's rules: `reset` for the first time, else against what was seen then.

    The columns of an array are `x0`, `x1`, …; a column of a frame that is not of numbers (text, categories, booleans) is kept
    as it is, and will be finite. A missing cell of a number is NaN.
    """
    mixed = nw.from_native(X, eager_only=True, pass_through=True) if hasattr(X, "columns") else None
    if not isinstance(mixed, nw.DataFrame) or all(s.dtype.is_numeric() for s in mixed.iter_columns()):
        X = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=_finite(estimator))
        given = getattr(estimator, "feature_names_in_", None)
        names = [f"x{j}" for j in range(estimator.n_features_in_)] if given is None else [str(n) for n in given]
        return Frame({n: X[:, j] for j, n in enumerate(names)}, frozenset(names))
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if len(mixed) == 0:
        raise DataError("there is not 1 sample: the frame has no rows")
    columns = {str(s.name): s for s in mixed.iter_columns()}
    numbers = frozenset(n for n, s in columns.items() if s.dtype.is_numeric())
    return Frame({n: _cells(estimator, n, s) for n, s in columns.items()}, numbers)


@contextmanager
def unseen_state_hint() -> Iterator[None]:
    """Say what to do about a state that no row of `fit` had, where a row to be predicted has it."""
    try:
        yield
    except DataError as error:
        found = re.search(r"column (.+?): .+ is not a state", str(error))
        if found is None:
            raise
        said = error.said.removesuffix(WAY_OUT).removesuffix(";")  # which the adapters do not have
        name, more = found[1], " If" if said.endswith("?") else "; if"
        raise DataError(
            f"{said}{more} it is one that no row of fit had, declare all states there, variables={{{name}: Finite({name}, "
            "[...])}, or by a pandas category dtype that has all categories"
        ) from None


def classes(y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The labels that occur, sorted, and the number of each row's."""
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    labels, codes = np.unique(y, return_inverse=True)
    return labels, codes


def states(labels: npt.NDArray[Any]) -> list[str]:
    """Labels as states: their texts, or their numbers where two have the same text."""
    texts = [state_text(label) for label in labels.tolist()]
    return texts if all(texts) and len(set(texts)) == len(texts) else [str(i) for i in range(len(texts))]


class Target(NamedTuple):
    """The column of what is to be predicted, and its variable."""

    cells: Any
    variable: Any


def rows(frame: Frame, X: Any, target: Target, sample_weight: Any, variables: Any = None, bins: Any = None) -> Data:
    """The rows as the library reads them. What is not declared by `variables` is `Real`, or in `bins`, if it is a number."""
    name = target.variable.name
    if name in frame.columns:
        raise DataError(f"a feature has the name {name!r} of the node of what is predicted: give that another, target='label'")
    check_consistent_length(X, target.cells)
    cut = bins if bins is None or isinstance(bins, Bins) else Bins(bins)
    declared = dict.fromkeys(frame.numbers, Real if cut is None else cut)
    declared |= _declarations(variables, frame)
    weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
    return scan({**frame.columns, name: target.cells}, {**declared, name: target.variable}, weights=weights)


def steps(frame: Frame, lengths: Any, variables: Any = None, name: str = "state") -> Sequences:
    """The rows as sequences of these lengths, one after the other; without lengths they are one. `name` is the hidden state."""
    if name in frame.columns:
        raise DataError(f"a feature has the name {name!r} of the hidden state: give that another, name='regime'")
    n = len(next(iter(frame.columns.values())))
    declared = {**dict.fromkeys(frame.numbers, Real), **_declarations(variables, frame)}
    if lengths is None:
        return sequences(frame.columns, variables=declared)
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not len(sizes) or sizes.min() < 1:
        raise DataError(f"lengths are the numbers of steps of the sequences, whole numbers from 1 up, not {lengths!r}")
    if sizes.sum() != n:
        raise DataError(f"the lengths of the sequences sum to {sizes.sum():,}, and there are {n:,} rows")
    key = next(k for k in ("sequence", *(f"sequence {i}" for i in range(len(frame.columns)))) if k not in frame.columns)
    return sequences({key: np.repeat(np.arange(len(sizes)), sizes), **frame.columns}, by=key, variables=declared)


def _declarations(variables: Any, frame: Frame) -> dict[str, Any]:
    try:
        said = {} if variables is None else variables if isinstance(variables, dict) else {v.name: v for v in variables}
    except (TypeError, AttributeError):
        raise FitError(f"variables is a dict of names, {{'x0': Count}}, or a list of variables, not {variables!r}") from None
    if unknown := [n for n in said if n not in frame.columns]:
        raise FitError(f"variables declares {listing(unknown)}, and the features are {listing(frame.columns)}")
    return said


def _cells(estimator: Any, name: str, series: Any) -> Any:
    """The cells of a column: numbers as such, states as they are."""
    what, cells, missing = type(estimator).__name__, series.to_native(), series.null_count() > 0
    if series.dtype.is_numeric():
        cells = np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        missing = bool(np.isnan(cells).any())
        if np.isinf(cells).any():
            raise DataError(f"the column {name!r} of X has infinity, of which {what} can make nothing")
    if missing and _finite(estimator) is True:
        raise DataError(
            f"the column {name!r} of X has missing cells (NaN), which {what} does not take: fill them in, or leave their rows out"
        )
    return cells


def _finite(estimator: Any) -> Any:
    return "allow-nan" if estimator.__sklearn_tags__().input_tags.allow_nan else True
