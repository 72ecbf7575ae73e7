"""The statistics of every family with up to so many parents: all that a search needs, without rows.

A finite child with finite parents needs their table, so all sets of up to k + 1 finite variables have one. A number with finite
parents u and numbers as parents needs moments within each configuration of u: those of all numbers, for each set of up to k
finite variables, serve every such family, with whatever numbers as parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import Any

from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, TooLarge, bytes_in_words, listing, note, whole
from suffice.errors.remedies import name_of
from suffice.families import family_of
from suffice.limits import bytes_of
from suffice.output.display import OneTable
from suffice.statistics import Request, Statistics
from suffice.variables import Finite, Variable

MOST_BYTES = 2**31
"""What statistics may take, where no other limit is given."""

PER_ENTRY = 1000
"""Bytes that a table or a set of moments takes beside its numbers."""


@dataclass(frozen=True, repr=False)
class GatheredSize(OneTable):
    """What statistics of every family will take, told before rows are read.

    >>> GatheredSize.of({"x": Finite("x", ["a", "b"]), "y": Finite("y", ["a", "b", "c"])}, 1).numbers
    11
    """

    max_parents: int
    n_variables: int
    entries: int
    """Tables and sets of moments."""
    numbers: int
    """Cells of tables, and counts, means and scatters in each configuration that there may be."""

    @staticmethod
    def of(variables: Mapping[str, Variable], max_parents: int) -> GatheredSize:
        sizes = [v.n_states for v in variables.values() if isinstance(v, Finite)]
        n, k = len(sizes), len(variables) - len(sizes)
        cells = _symmetric(sizes, max_parents + 1)
        entries, numbers = sum(comb(n, s) for s in range(1, min(max_parents + 1, n) + 1)), sum(cells[1:])
        if k:
            entries += sum(comb(n, s) for s in range(min(max_parents, n) + 1))
            numbers += sum(cells[: max_parents + 1]) * (3 + 2 * k + k * k)
        return GatheredSize(max_parents, len(variables), entries, numbers)

    @property
    def bytes(self) -> int:
        """About what all of it takes in memory."""
        return 8 * self.numbers + PER_ENTRY * self.entries

    def check(self, limit: float) -> None:
        """Refuse what would take more than so many bytes."""
        if self.bytes > limit:
            raise TooLarge(
                f"statistics of all families of {self.n_variables:,} variables with up to {self.max_parents} parents would be "
                f"{self.entries:,} tables of {self.numbers:,} numbers, {bytes_in_words(float(self.bytes))}, and may take "
                f"{bytes_in_words(limit)}; gather for fewer parents ({name_of('max_parents')}), fewer columns, or allow more "
                f"({name_of('memory_limit')})"
            )

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name, for JSON."""
        return asdict(self) | {"bytes": self.bytes}

    def in_words(self) -> str:
        """In a sentence's part."""
        return f"{self.entries:,} tables of {self.numbers:,} numbers, {bytes_in_words(float(self.bytes))}"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        return ["what", "at most"], [
            ["parents", self.max_parents],
            ["variables", self.n_variables],
            ["tables", f"{self.entries:,}"],
            ["numbers", f"{self.numbers:,}"],
            ["memory", bytes_in_words(float(self.bytes))],
        ]


def gather_every_family(
    data: Any, max_parents: int, *, memory_limit: int | str | None = None, dry_run: bool = False, also: Iterable[Request] = ()
) -> Statistics | GatheredSize:
    """The statistics of all families with up to `max_parents` parents, and what is asked for also, in one pass; `dry_run` gives
    the size of the former only."""
    most = whole(max_parents, "max_parents", 0)
    if isinstance(data, Sequences):
        raise DataError("statistics of every family are of rows, and these are sequences: gather(sequences, template)")
    rows = scan(data)
    left_out = sorted(set(rows.identifiers))
    names = sorted(set(rows.columns) - set(left_out))
    if left_out:
        note(f"left out of the statistics, as an identifier: {listing(left_out)}")
    if not names:
        raise DataError("there are no columns to gather statistics of")
    variables = {name: rows.schema[name] for name in names}
    size = GatheredSize.of(variables, min(most, len(names) - 1))
    if dry_run:
        return size
    size.check(MOST_BYTES if memory_limit is None else bytes_of(memory_limit))
    rows.require_complete(names)
    gathered: Statistics = rows.gather([*requests_of_every_family(variables, size.max_parents), *also])
    return gathered


def requests_of_every_family(variables: Mapping[str, Variable], max_parents: int) -> Iterator[Request]:
    """The tables of all sets of up to k + 1 finite variables, and the moments of all numbers by each set of up to k.

    >>> [r.finite for r in requests_of_every_family({n: Finite(n, ["u", "v"]) for n in "abc"}, 1)]
    [('a',), ('b',), ('c',), ('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    finite = [n for n in sorted(variables) if isinstance(variables[n], Finite)]
    numbers = tuple(n for n in sorted(variables) if n not in finite)
    derived = tuple(d for n in numbers for d in family_of(variables[n], []).needs(variables[n], []).derived)
    for size in range(1, min(max_parents + 1, len(finite)) + 1):
        yield from map(Request, combinations(finite, size))
    if numbers:
        for size in range(min(max_parents, len(finite)) + 1):
            yield from (Request(parents, numbers, derived) for parents in combinations(finite, size))


def _symmetric(sizes: list[int], most: int) -> list[int]:
    """The sums of products of 0, 1, 2, ... of the sizes: the cells of all tables of so many variables.

    >>> _symmetric([2, 3], 2)
    [1, 5, 6]
    """
    sums = [1] + [0] * most
    for r in sizes:
        for k in range(most, 0, -1):
            sums[k] += r * sums[k - 1]
    return sums
