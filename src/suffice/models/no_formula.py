"""Integrals that have no formula: the refusal, whose way out depends on what was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from suffice.errors import ModelError, listed


class NoFormula(ModelError):
    """The refusal of an integral, or of a sum without end: `fact` says which, observing `lacking` would make it known.

    >>> str(NoFormula("this has no formula", ["x"]))
    "this has no formula; observe 'x', or draw the answer with query(..., method=LikelihoodWeighting())"
    """

    def __init__(self, fact: str, lacking: Sequence[str], way_out: str | None = None) -> None:
        self.fact, self.lacking = fact, tuple(lacking)
        self.way_out = way_out or f"observe {listed(lacking)}, or draw the answer with query(..., method=LikelihoodWeighting())"
        super().__init__(f"{fact}; {self.way_out}")

    def __reduce__(self) -> tuple[object, ...]:
        return NoFormula, (self.fact, self.lacking, self.way_out)


def no_formula(cpd: Any, values: Mapping[str, float] | None = None) -> NoFormula:
    """The refusal of an integral over numbers that are not observed."""
    unknown = [p for p in cpd.real_parents if p not in (values or {})]
    about = f"an exact answer depends on {cpd.child.name!r}, a {words(cpd)}"
    if not unknown:
        return NoFormula(f"{about}, which is not observed: there is no formula for its distribution here", [cpd.child.name])
    s, are = ("s", "are") if len(unknown) > 1 else ("", "is")
    fact = f"{about} on the number{s} {listed(unknown)}, which {are} not observed: there is no formula for the integral"
    return NoFormula(fact, unknown)


@contextmanager
def advising(way_out: Callable[[NoFormula], str] | str) -> Iterator[None]:
    """Refusals within get another way out: one that helps with what was asked.

    >>> with advising("leave it"):
    ...     raise NoFormula("this has no formula", ["x"])
    Traceback (most recent call last):
        ...
    suffice.models.no_formula.NoFormula: this has no formula; leave it
    """
    try:
        yield
    except NoFormula as refused:
        said = way_out if isinstance(way_out, str) else way_out(refused)
        raise NoFormula(refused.fact, refused.lacking, said) from None


def words(cpd: Any) -> str:
    """What kind of regression it is.

    >>> from suffice.families.logistic import LogisticCpd
    >>> from suffice.variables import Finite
    >>> words(LogisticCpd(Finite("y", ["no", "yes"]), (), [0.0], [[]]))
    'logistic regression'
    """
    return str(cpd.family.words.partition(",")[0])
