"""Rows as a network sees them: which of its columns are there, and what each row observes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines import is_missing
from suffice.engines.engine import Block
from suffice.errors import DataError, listed, nearest, note
from suffice.inference.network import NONE
from suffice.inference.rows import RowEvidence
from suffice.variables import Variable

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Flags = npt.NDArray[np.bool_]

__all__ = ["RowEvidence", "column", "is_seen", "present", "row_evidence"]


def row_evidence(bn: BayesNet, block: Block) -> RowEvidence:
    """Encoded rows by the numbers that a network's variables have; columns that are not there are not observed."""
    compiled = bn.compiled
    codes = np.full((block.n_rows, len(compiled.finite)), NONE, np.int32)
    reals = np.full((block.n_rows, len(compiled.reals)), np.nan)
    for name, cells in block.columns.items():
        if name in compiled.index:
            line = cells.astype(np.int32)
            line[is_missing(cells)] = NONE
            codes[:, compiled.index[name]] = line
        else:
            reals[:, compiled.real_index[name]] = cells
    return RowEvidence(codes, reals)


def is_seen(bn: BayesNet, name: str, rows: RowEvidence) -> Flags:
    """The rows in which a node is observed."""
    compiled = bn.compiled
    if name in compiled.index:
        return np.asarray(rows.codes[:, compiled.index[name]] != NONE)
    return ~np.isnan(rows.reals[:, compiled.real_index[name]])


def column(bn: BayesNet, name: str, rows: RowEvidence) -> npt.NDArray[Any]:
    """The cells of a node."""
    compiled = bn.compiled
    if name in compiled.index:
        return rows.codes[:, compiled.index[name]].astype(np.int64)
    return np.ascontiguousarray(rows.reals[:, compiled.real_index[name]])


def present(bn: BayesNet, columns: Sequence[str]) -> Mapping[str, Variable]:
    """The variables of a network that are columns of some rows. There must be one.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Finite
    >>> bn = BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])])
    >>> present(bn, ["X"])
    Traceback (most recent call last):
        ...
    suffice.errors.DataError: the data have no column of the network: 'X' are the columns, 'x' the nodes; did you mean 'x'?
    """
    there = frozenset(columns)
    found = {n: v for n, v in bn.variables.items() if n in there}
    alike = _alike(bn, columns)
    if not found:
        hint = f"; did you mean {next(iter(alike.values()))!r}?" if alike else ""
        hint = hint or next((h for c in columns if (h := nearest(c, bn))), "")
        raise DataError(
            f"the data have no column of the network: {listed(columns, 4)} are the columns, {listed(bn, 4)} the nodes{hint}"
        )
    if alike:
        said = [f"{column!r} (the node is {node!r})" for column, node in alike.items()]
        note(f"columns whose names are only nearly those of nodes are not looked at: {listed(said, 4, 'str')}")
    return found


def _alike(bn: BayesNet, columns: Sequence[str]) -> dict[str, str]:
    """Columns that are no nodes, but would be if only letters and digits counted; and the nodes, which are no columns."""
    absent = {_bare(n): n for n in bn if n not in frozenset(columns)}
    return {c: absent[_bare(c)] for c in columns if c not in bn and _bare(c) in absent}


def _bare(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum()) or name
