"""Which labels may follow which, begin a sequence and end it: `BIO`, `BIOES`, or pairs of one's own (`Transitions`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from suffice.basis.arrays import Bools
from suffice.errors import ModelError, listing
from suffice.errors.remedies import Remedy

Pairs = tuple[tuple[str, str], ...]

BEGIN, END = "<s>", "</s>"
"""What stands for the start and the end of a sequence, in pairs of labels and in attributes."""

_TAG = re.compile(r"([BIES])(?:-(.*))?")


class Allowed(NamedTuple):
    """Labels by number: which may begin a sequence, follow each other (row, then column), and end one."""

    begin: Bools
    pairs: Bools
    end: Bools

    def __and__(self, other: Allowed) -> Allowed:
        return Allowed(*(a & b for a, b in zip(self, other, strict=True)))

    @property
    def n_forbidden(self) -> int:
        """How many transitions are not allowed, those of the start and the end included."""
        return int(sum(np.count_nonzero(~part) for part in self))


@runtime_checkable
class TransitionRule(Protocol):
    """What `LinearChain(…, transitions=…)` takes."""

    @property
    def named(self) -> tuple[str, ...]:
        """The labels that it speaks of by name."""

    def allowed(self, labels: Sequence[str]) -> Allowed:
        """What it allows of these labels."""


@dataclass(frozen=True)
class BIO:
    """Labels B-x, I-x and O: I-x follows B-x or I-x only, and begins no sequence. B and I alone are of one kind without a name.

    >>> BIO().allowed(["B-x", "I-x", "O"]).pairs.astype(int)
    array([[1, 1, 1],
           [1, 1, 1],
           [1, 0, 1]])
    """

    named: ClassVar[tuple[str, ...]] = ()

    def allowed(self, labels: Sequence[str]) -> Allowed:
        tags = _tags(labels, "BI", f"{Remedy('BIO()', '--transitions bio')} knows the labels O, B-… and I-…")
        inside = np.array([tag == "I" for tag, _ in tags])
        same = np.array([[kind == other and tag != "O" for _, other in tags] for tag, kind in tags])
        return Allowed(~inside, ~inside | same, np.ones(len(labels), bool))


@dataclass(frozen=True)
class BIOES:
    """Labels B-x, I-x, E-x, S-x and O: an entity of several steps begins with B, goes on with I and ends with E; S is one step.

    >>> BIOES().allowed(["B-x", "E-x", "O", "S-x"]).end
    array([False,  True,  True,  True])
    """

    named: ClassVar[tuple[str, ...]] = ()

    def allowed(self, labels: Sequence[str]) -> Allowed:
        tags = _tags(labels, "BIES", f"{Remedy('BIOES()', '--transitions bioes')} knows the labels O, B-…, I-…, E-… and S-…")
        inside, open_ = (np.array([tag in some for tag, _ in tags]) for some in ("IE", "BI"))
        same = np.array([[kind == other for _, other in tags] for _, kind in tags])
        return Allowed(~inside, np.where(open_[:, None], inside & same, ~inside), ~open_)


def _tags(labels: Sequence[str], letters: str, known: str) -> list[tuple[str, str]]:
    """The letter and the kind of each label."""
    matches = [_TAG.fullmatch(label) for label in labels]
    found = [("O" if x == "O" else "", "") if m is None else (m[1], m[2] or "") for x, m in zip(labels, matches, strict=True)]
    if wrong := [label for label, (tag, _) in zip(labels, found, strict=True) if tag not in (*letters, "O")]:
        others = Remedy("Transitions(forbidden=[...])", "--transitions 'forbid: A -> B'")
        raise ModelError(f"{known}, and the labels here have {listing(wrong)}: use {others} for others")
    return found


@dataclass(frozen=True)
class Transitions:
    """Pairs of labels, the second after the first, that are `forbidden`; or `only` those that are allowed. "<s>" is the start of
    a sequence and "</s>" its end. With `only`, any label may begin unless a pair with <s> is there, and end unless one with </s>.

    >>> Transitions(forbidden=[("N", "D"), ("<s>", "V")]).allowed(["D", "N", "V"]).begin
    array([ True,  True, False])
    >>> Transitions(only=[("D", "N"), ("N", "V")]).allowed(["D", "N", "V"]).pairs.sum()
    np.int64(2)
    """

    forbidden: Pairs = ()
    only: Pairs | None = None

    def __init__(self, forbidden: Iterable[Any] = (), only: Iterable[Any] | None = None) -> None:
        object.__setattr__(self, "forbidden", _pairs(forbidden, "forbidden"))
        object.__setattr__(self, "only", None if only is None else _pairs(only, "only"))

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The labels that it speaks of."""
        return tuple(dict.fromkeys(x for pair in (*self.forbidden, *(self.only or ())) for x in pair if x not in (BEGIN, END)))

    def allowed(self, labels: Sequence[str]) -> Allowed:
        codes = {BEGIN: len(labels), END: len(labels), **{x: i for i, x in enumerate(labels)}}
        flags = np.ones((len(labels) + 1, len(labels) + 1), bool)
        if self.only is not None:
            flags[:-1, :-1] = False
            flags[-1, :-1] = not any(a == BEGIN for a, _ in self.only)
            flags[:-1, -1] = not any(b == END for _, b in self.only)
        for pairs, flag in ((self.only or (), True), (self.forbidden, False)):
            for a, b in pairs:
                if a in codes and b in codes:
                    flags[codes[a], codes[b]] = flag
        return Allowed(flags[-1, :-1], flags[:-1, :-1], flags[:-1, -1])

    def __repr__(self) -> str:
        parts = [f"forbidden={list(self.forbidden)}"] if self.forbidden else []
        return f"Transitions({', '.join(parts + ([] if self.only is None else [f'only={list(self.only)}']))})"


def _pairs(given: Iterable[Any], what: str) -> Pairs:
    pairs = [tuple(pair) if isinstance(pair, (tuple, list)) else pair for pair in given]
    for pair in pairs:
        texts = isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(x, str) and x for x in pair)
        if not texts or pair[0] == END or pair[1] == BEGIN or pair == (BEGIN, END):
            raise ModelError(
                f'{what}= has pairs of labels in a row, ("O", "I-x"), ("<s>", "I-x") or ("B-x", "</s>"), not {pair!r}'
            )
    return tuple(pairs)


def all_allowed(rules: Sequence[TransitionRule], labels: Sequence[str]) -> Allowed:
    """What all of some rules allow."""
    n = len(labels)
    total = Allowed(np.ones(n, bool), np.ones((n, n), bool), np.ones(n, bool))
    for rule in rules:
        total &= rule.allowed(labels)
    return total
