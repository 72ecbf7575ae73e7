"""What the number of classes or hidden states is chosen by, besides the scores; and how those that were tried compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from suffice.errors import FitError, listing, note
from suffice.families.protocol.family import frame
from suffice.output.display import OneTable
from suffice.scores import BIC
from suffice.structure.undirected.selection import HeldOut


@dataclass(frozen=True)
class ICL:
    """The number of classes by BIC + Σ ln r, that of hidden states by ln p(best path, data) − ½ k ln N: those that are well apart
    are preferred. See `MixtureRun.icl` and `HmmRun.icl`.

    >>> ICL()
    ICL()
    """


class StartResult(NamedTuple):
    """What one start led to: its objective, its iterations, and whether it converged; or why a class or state of it collapsed."""

    objective: float
    n_iterations: int
    converged: bool
    collapsed: str | None


class Choice(NamedTuple):
    """A number of classes, states or factors that was tried: the value it was judged by, higher is better, its facts; or why it
    failed. Factors have no ICL."""

    k: int
    value: float
    log_likelihood: float
    n_parameters: int
    bic: float
    icl: float
    problem: str | None = None


class Choices(OneTable, tuple[Choice, ...]):
    """The numbers of classes or states that were tried. Prints as a table.

    >>> Choices([Choice(2, -10.0, -8.0, 3, -10.0, -11.0)])
    k  value  log-likelihood  parameters  BIC  ICL
    ─  ─────  ──────────────  ──────────  ───  ───
    2  -10    -8              3           -10  -11
    """

    __slots__ = ()

    def _table(self) -> tuple[list[str], list[list[object]]]:
        header = ["k", "value", "log-likelihood", "parameters", "BIC", "ICL"]
        header = header[: 5 if all(np.isnan(c.icl) for c in self) else 6]
        rows: list[list[object]] = [
            [f"{v:.10g}" if isinstance(v, float) else v for v in choice[: len(header)]] for choice in self
        ]
        if any(c.problem for c in self):
            header, rows = [*header, "problem"], [[*row, c.problem or ""] for row, c in zip(rows, self, strict=True)]
        return header, rows

    def plot(self, ax: Any = None) -> Any:
        """What each number was judged by, by matplotlib, the best ringed; gives the axes."""
        from suffice.pictures.plots import plot_curves

        told = [c for c in self if np.isfinite(c.value)]
        drawn = plot_curves(ax, [c.k for c in told], [("", [c.value for c in told])], x="number", y="value, higher is better")
        if told:
            best = max(told, key=lambda c: c.value)
            drawn.plot([best.k], [best.value], "o", mfc="none", mec="black", ms=10)
        return drawn

    def to_frame(self) -> Any:
        """The same as a data frame."""
        return frame({name: [getattr(c, name) for c in self] for name in Choice._fields})


def checked_judge(choose: Any, what: str, *, classes: bool = True) -> Any:
    """What to choose by, BIC where nothing is said; `what` is chosen, in the plural. ICL is for `classes` and states.

    >>> checked_judge(None, "states")
    BIC()
    """
    judge = BIC() if choose is None else choose
    if not (isinstance(judge, (ICL, HeldOut) if classes else HeldOut) or hasattr(judge, "price")):
        overlap = ", ICL()" if classes else ""
        raise FitError(f"the number of {what} is chosen by BIC(), AIC(){overlap} or HeldOut(folds=5), not {choose!r}")
    return judge


def checked_sizes(k: Any, n_rows: int, what: str, rows: str) -> list[int]:
    """The numbers of classes or states to try, each at most the number of rows.

    >>> checked_sizes(range(1, 4), 100, "classes", "rows")
    [1, 2, 3]
    """
    several = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    for size in several:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
            raise FitError(f"the number of {what} is a whole number from 1 up, or several of them, range(1, 6); not {size!r}")
        if size > n_rows:
            raise FitError(f"a number of {size:,} {what} needs at least as many {rows}, and there are {n_rows:,}")
    if not several:
        raise FitError(f"there is no number of {what} to choose among")
    return list(dict.fromkeys(int(s) for s in several))


R = TypeVar("R", bound=Any)


def best_of(
    sizes: Iterable[int], learned: Callable[[int], tuple[R, bool]], value: Callable[[R], float], what: str
) -> tuple[R, Choices]:
    """The best of several numbers of classes or states, and how they compare. `learned` gives the run of a number, and whether it
    was stopped before its end; a number at which all starts collapse is out."""
    found, choices = dict[int, R](), list[Choice]()
    for k in sizes:
        try:
            run, stopped = learned(k)
            if stopped and found:
                note(f"stopped at {k} {what}: the number of {what} is the best of {listing(found)}")
                break
            choices.append(Choice(k, value(run), run.log_likelihood, run.n_parameters, run.bic, run.icl))
            found[k] = run
            if stopped:
                break
        except FitError as error:
            choices.append(Choice(k, -np.inf, np.nan, 0, np.nan, np.nan, str(error)))
    if not found:
        raise FitError(f"no number of {what} could be learned: {choices[0].problem}")
    best = max((c for c in choices if c.k in found), key=lambda c: c.value)
    return found[best.k], Choices(choices)
