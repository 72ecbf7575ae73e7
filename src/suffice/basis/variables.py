"""Variables: what a column of the data is.

A variable is `Finite` (named states), `Real` (a number), `Count` (a whole number from 0 up) or `Distributed` (a number of a
family that was chosen for it). `Bins` is a declaration, not a variable: real data cut into intervals, which become the states of
a `Finite` that remembers its cut points, so that new rows are binned alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np

from suffice.errors import SchemaError, listing, nearest
from suffice.errors.earlier import tell_of_argument

LIST = "\x1f"
"""A state that stands for a list of texts begins with this mark, and has it between its items."""


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"a variable needs a name, a text that is not blank; got {name!r}")
    return name


@dataclass(frozen=True)
class Finite:
    """A variable with named states, in their order.

    `inferred` says that the states were read off the data, so that other data may widen them; `cuts` are the cut points of
    a binned real variable: state k holds cuts[k-1] <= x < cuts[k]. `family` is what was chosen for its node, in place of a table
    with a parameter for each cell; it is no part of what the variable is.

    >>> Finite("smoke", ["no", "yes"])
    Finite('smoke', ['no', 'yes'])
    >>> Finite("smoke", ["no", "yes"]).code("yes")
    1
    """

    name: str
    states: tuple[str, ...]
    cuts: tuple[float, ...] | None = None
    inferred: bool = field(default=False, compare=False)
    family: Any = field(default=None, compare=False)

    def __init__(
        self,
        name: str,
        states: Iterable[object],
        *,
        cuts: Iterable[float] | None = None,
        inferred: bool = False,
        family: Any = None,
    ) -> None:
        if isinstance(states, str) or not isinstance(states, Iterable):
            raise SchemaError(f"variable {name!r}: states must be a list of states, not {states!r}")
        object.__setattr__(self, "name", _name(name))
        object.__setattr__(self, "states", tuple(s if type(s) is str else state_text(s) for s in states))
        object.__setattr__(self, "cuts", None if cuts is None else checked_cuts(cuts, name))
        object.__setattr__(self, "inferred", inferred)
        object.__setattr__(self, "family", family)
        codes = {state: code for code, state in enumerate(self.states)}
        if "" in codes:
            raise SchemaError(f"variable {name!r} has a state without a name")
        if len(codes) < len(self.states):
            twice = next(s for i, s in enumerate(self.states) if codes[s] != i)
            raise SchemaError(f"variable {name!r} has the state {twice!r} twice")
        if not codes:
            raise SchemaError(f"variable {name!r} has no states")
        if self.cuts is not None and len(self.cuts) + 1 != len(self.states):
            raise SchemaError(
                f"variable {name!r}: {len(self.cuts)} cuts make {len(self.cuts) + 1} states, not {len(self.states)}"
            )
        object.__setattr__(self, "_codes", codes)

    @property
    def n_states(self) -> int:
        return len(self.states)

    def code(self, state: object) -> int:
        """The position of a state; an unknown one is refused by name."""
        text = state if type(state) is str else state_text(state)
        codes: dict[str, int] = self._codes  # type: ignore[attr-defined]
        if text not in codes:
            raise SchemaError(
                f"variable {self.name!r} has no state {text!r}"
                + (nearest(text, self.states) or f"; its states are {listing(self.states)}")
            )
        return codes[text]

    def __repr__(self) -> str:
        cuts = f", cuts={list(self.cuts)}" if self.cuts is not None else ""
        return f"Finite({self.name!r}, [{listing(self.states, 12)}]{cuts})"


@dataclass(frozen=True)
class NumberVariable:
    """A variable whose cells are numbers."""

    name: str

    def __post_init__(self) -> None:
        _name(self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Real(NumberVariable):
    """A real-valued variable.

    >>> Real("height")
    Real('height')
    """

    family: ClassVar[Any] = None
    word: ClassVar[str] = "real"
    """What it is called where the kinds of columns are listed."""
    law: ClassVar[str] = "Gaussian"
    """Its distribution given states."""


class NotNormal:
    """A number whose node is of a family that is not normal, given its finite parents."""

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are possible."""
        raise NotImplementedError


class Count(NumberVariable, NotNormal):
    """A whole number from 0 up. As a parent it is a number; as a child it needs a family for counts.

    >>> Count("visits")
    Count('visits')
    """

    family: ClassVar[Any] = None
    word: ClassVar[str] = "count"
    """What it is called where the kinds of columns are listed."""
    law: ClassVar[str] = "Poisson"
    """Its distribution given states."""

    @property
    def whole(self) -> bool:
        return True


@dataclass(frozen=True)
class Distributed(NumberVariable, NotNormal):
    """A number whose node is of a chosen family: what `families={"wait": Gamma()}` makes of the column `wait`."""

    family: Any

    @property
    def whole(self) -> bool:
        return bool(self.family.whole)

    def __repr__(self) -> str:
        return f"Distributed({self.name!r}, {self.family!r})"

    @property
    def word(self) -> str:
        """What it is called where the kinds of columns are listed."""
        return str(self.family.kind.word)

    @property
    def law(self) -> str:
        """Its distribution given states."""
        return repr(self.family).removesuffix("()")


Variable: TypeAlias = Finite | Real | Count | Distributed


def is_whole(variable: Variable) -> bool:
    """Whether a variable is a number that can only be whole."""
    return isinstance(variable, NotNormal) and variable.whole


MAX_BINS = 10_000


@dataclass(frozen=True)
class Bins:
    """A declaration: cut this column of numbers into intervals.

    `Bins(5)` cuts at quantiles; `Bins(5, width=True)` into equal widths; `Bins([18, 65])` at the points given;
    `Bins(target="ill")` where the description length of the finite column `ill` says so (MDL; Fayyad & Irani 1993). Intervals
    are closed on the left: `[18, 65)`.

    >>> Bins([18, 65]).finite("age", [18, 65])
    Finite('age', ['<18', '[18,65)', '>=65'], cuts=[18.0, 65.0])
    """

    how: int | tuple[float, ...] | None = None
    target: str | None = None
    width: bool = False

    def __init__(
        self, how: int | Iterable[float] | None = None, method: object = None, target: str | None = None, *, width: bool = False
    ) -> None:
        if isinstance(how, (str, float)):
            raise SchemaError(f"bins are a whole number of them or a list of cut points: Bins(5), Bins([18, 65]); not {how!r}")
        if how is not None and not isinstance(how, (int, np.integer)):
            how = checked_cuts(how, None)
        if method is not None:
            width = bins_by(method, how, target)
        object.__setattr__(self, "how", int(how) if isinstance(how, (int, np.integer)) else how)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "width", width)
        if width and not isinstance(self.how, int):
            raise SchemaError(f"width bins need their number, from 2 to {MAX_BINS:,}: Bins(5, width=True), not {how!r}")
        if isinstance(self.how, int) and not 2 <= self.how <= MAX_BINS:
            kind = "width" if width else "quantile"
            raise SchemaError(f"{kind} bins need their number, from 2 to {MAX_BINS:,}: Bins(5), not {how!r}")
        if (self.how is None) != (target is not None):
            raise SchemaError("mdl bins need the finite column they should tell apart and nothing else: Bins(target='ill')")

    def finite(self, name: str, cuts: Iterable[float]) -> Finite:
        """The variable that these cuts make of a column."""
        points = checked_cuts(cuts, name)
        if not points:
            return Finite(name, ["all"], cuts=())
        words = [_number_text(c) for c in points]
        inner = [f"[{a},{b})" for a, b in pairwise(words)]
        return Finite(name, [f"<{words[0]}", *inner, f">={words[-1]}"], cuts=points)


def bins_by(method: object, how: object, target: str | None) -> bool:
    """Whether bins are of equal widths, by the word that 0.1 took for it; what it took for another is refused."""
    if method not in ("quantile", "width", "mdl", "points"):
        raise SchemaError(f"bins are cut by 'quantile', 'width' or 'mdl', or at points that you give; not {method!r}")
    if method == "points" and not isinstance(how, tuple):
        raise SchemaError("bins at points need the points: Bins([18, 65])")
    if (method == "mdl") != (how is None):
        raise SchemaError("mdl bins need the finite column they should tell apart and nothing else: Bins(target='ill')")
    now = {"width": "Bins(5, width=True)", "mdl": "Bins(target='ill')", "quantile": "Bins(5)", "points": "Bins([18, 65])"}
    tell_of_argument(f"Bins(method={method!r})", now[str(method)])
    return method == "width"


def checked_cuts(cuts: Iterable[float], name: str | None) -> tuple[float, ...]:
    points = tuple(float(c) for c in cuts)
    whose = f"variable {name!r}: " if name else ""
    if not all(np.isfinite(points)):
        raise SchemaError(f"{whose}cut points must be finite numbers, not {list(points)}")
    if any(a >= b for a, b in pairwise(points)):
        raise SchemaError(f"{whose}cut points must increase, not {list(points)}")
    return points


def _number_text(x: float) -> str:
    return str(int(x)) if x.is_integer() and abs(x) < 1e15 else repr(x)


def state_text(value: object) -> str:
    """A state as text: what a cell of the data, a state in a file and a state in a call are compared by."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return _number_text(float(value))
    return str(value)


_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def sorted_states(states: Iterable[str]) -> list[str]:
    """The order of inferred states: by number if all are numbers, otherwise by text."""
    texts = sorted(dict.fromkeys(states))  # those that are sorted already take no time
    if not all(_NUMBER.fullmatch(t) for t in texts):
        return texts
    return sorted(texts, key=lambda t: (Decimal(t), t))


Declaration: TypeAlias = "Variable | Bins | type[Variable] | type[NumbersStay] | Iterable[object]"
"""What `variables=` takes per column: a variable, a class of variable, `Bins`, or a list of states."""


class NumbersStay:
    """A declaration: whatever the column is found to be, but numbers are numbers, however few values they have."""


def declaration(name: str, what: Declaration) -> Variable | Bins | type[Finite] | type[Real] | type[Count] | type[NumbersStay]:
    """What the user declared of one column, checked."""
    if isinstance(what, Variable):
        if what.name != name:
            raise SchemaError(f"column {name!r} was declared as a variable named {what.name!r}; the names must agree")
        return what
    if isinstance(what, Bins) or (isinstance(what, type) and what in (Finite, Real, Count, NumbersStay)):
        return what
    if isinstance(what, (list, tuple, np.ndarray)):
        return Finite(name, what)
    raise SchemaError(f"column {name!r} was declared as {what!r}; give Finite, Real, Count, Bins(...) or a list of states")


def by_name(variables: Mapping[str, Variable] | Iterable[Variable]) -> dict[str, Variable]:
    """Variables under their names; a name that occurs twice is refused."""
    if isinstance(variables, Mapping):
        for name, variable in variables.items():
            if variable.name != name:
                raise SchemaError(f"the variable {variable.name!r} stands under the name {name!r}")
        return dict(variables)
    result: dict[str, Variable] = {}
    for variable in variables if isinstance(variables, Iterable) else [variables]:
        if not isinstance(variable, Variable):
            raise SchemaError(f"{variable!r} is no variable: Finite('x', ['no', 'yes']) and Real('x') are")
        if variable.name in result:
            raise SchemaError(f"the variable {variable.name!r} occurs twice")
        result[variable.name] = variable
    return result


def variable_to_dict(v: Variable) -> dict[str, Any]:
    """A variable as plain values, for a file."""
    if not isinstance(v, Finite):
        return {"name": v.name, "type": "count" if is_whole(v) else "real"}
    extra = {} if v.cuts is None else {"cuts": list(v.cuts)}
    return {"name": v.name, "type": "finite", "states": list(v.states), "inferred": v.inferred, **extra}


def variable_from_dict(d: dict[str, Any]) -> Variable:
    """The variable that `variable_to_dict` wrote."""
    if d["type"] == "finite":
        return Finite(d["name"], d["states"], cuts=d.get("cuts"), inferred=bool(d.get("inferred", False)))
    if d["type"] not in ("real", "count"):
        raise ValueError(f"variable {d['name']!r} has the unknown type {d['type']!r}")
    return Real(d["name"]) if d["type"] == "real" else Count(d["name"])
