"""What a label depends on: columns around its step (`Window`), texts made of their cells, once for each distinct one, and the
labels beside it (`LinearChain`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

from suffice.errors import ModelError, listing, whole
from suffice.models.linear_chain.transitions import TransitionRule

RUNS = re.compile(r"(.)\1+", re.DOTALL)


def _kind(c: str) -> str:
    return "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c


ASCII = str.maketrans({chr(i): _kind(chr(i)) for i in range(128)})


@lru_cache(2**12)
def _without_runs(kinds: str) -> str:
    return RUNS.sub(r"\1", kinds)


@runtime_checkable
class DerivedColumn(Protocol):
    """What stands for a column in a `Window`."""

    @property
    def source(self) -> str:
        """The column that it is made of."""

    @property
    def name(self) -> str:
        """How its attributes are called."""

    def of(self, cell: str) -> str:
        """What a cell becomes."""

    def each(self, cells: Sequence[str]) -> list[str]:
        """What each of some cells becomes."""


@dataclass(frozen=True)
class OfColumn:
    """What is made of one column."""

    column: str

    @property
    def source(self) -> str:
        return self.column

    @property
    def name(self) -> str:
        return f"{type(self).__name__.lower()}({self.column})"

    def each(self, cells: Sequence[str]) -> list[str]:
        """What each of some cells becomes."""
        raise NotImplementedError

    def of(self, cell: str) -> str:
        """What a cell becomes."""
        return self.each([cell])[0]


@dataclass(frozen=True)
class EndOfColumn(OfColumn):
    """So many characters of a cell, from one of its ends."""

    length: int

    def __post_init__(self) -> None:
        whole(self.length, f"the length of a {type(self).__name__.lower()}", 1)

    @property
    def name(self) -> str:
        return f"{type(self).__name__.lower()}{self.length}({self.column})"


@dataclass(frozen=True)
class Suffix(EndOfColumn):
    """The last characters of a cell; all of it where it is shorter.

    >>> Suffix("word", 3).of("walking"), Suffix("word", 3).name
    ('ing', 'suffix3(word)')
    """

    def each(self, cells: Sequence[str]) -> list[str]:
        return [cell[-self.length :] for cell in cells]


@dataclass(frozen=True)
class Prefix(EndOfColumn):
    """The first characters of a cell; all of it where it is shorter.

    >>> Prefix("word", 2).of("undone")
    'un'
    """

    def each(self, cells: Sequence[str]) -> list[str]:
        return [cell[: self.length] for cell in cells]


@dataclass(frozen=True)
class Shape(OfColumn):
    """The kinds of characters: X for upper case, x for lower case, d for digits, others themselves; runs of one become one.

    >>> Shape("word").of("McDonald's-1999")
    "XxXx'x-d"
    """

    def of(self, cell: str) -> str:
        return _without_runs(cell.translate(ASCII) if cell.isascii() else "".join(map(_kind, cell)))

    def each(self, cells: Sequence[str]) -> list[str]:
        together = "\0".join(cell if cell.isascii() else "" for cell in cells)
        if together.count("\0") >= len(cells):  # a cell has one, too
            return list(map(self.of, cells))
        shapes = map(_without_runs, together.translate(ASCII).split("\0"))
        return [shape if cell.isascii() else self.of(cell) for cell, shape in zip(cells, shapes, strict=True)]


@dataclass(frozen=True)
class Lower(OfColumn):
    """The cell in lower case.

    >>> Lower("word").of("The")
    'the'
    """

    def each(self, cells: Sequence[str]) -> list[str]:
        return [cell.lower() for cell in cells]


@dataclass(frozen=True)
class Derived:
    """A function of one's own: a text of a text. Files and pickles keep its name only, and no function: a model that was read
    needs the column `name` in the rows that it is asked about.

    >>> Derived("length", "word", lambda word: str(len(word))).of("cat")
    '3'
    """

    name: str
    column: str
    function: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        if self.function is not None and not callable(self.function):
            raise ModelError(f"Derived({self.name!r}, {self.column!r}, ...) takes a function of a cell, not {self.function!r}")

    @property
    def source(self) -> str:
        return self.name if self.function is None else self.column

    def of(self, cell: str) -> str:
        if self.function is None:
            return cell
        result = self.function(cell)
        if not isinstance(result, str):
            raise ModelError(f"the function of {self.name!r} gives {result!r} for {cell!r}; it must give a text")
        return result

    def each(self, cells: Sequence[str]) -> list[str]:
        return list(map(self.of, cells))

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "column": self.column, "function": None}


@dataclass(frozen=True)
class Plain(OfColumn):
    """A column as it is."""

    @property
    def name(self) -> str:
        return self.column

    def each(self, cells: Sequence[str]) -> list[str]:
        return list(cells)


@dataclass(frozen=True)
class Window:
    """Columns, or what is derived of them, at steps around a label: 0 is its own, −1 the one before.

    With `pairs=True` their weights are of a label and the one before it together, and not of a label alone.

    >>> Window(["word"], at=(-1, 1))
    Window(['word'], at=(-1, 1))
    """

    columns: tuple[Any, ...]
    at: tuple[int, ...]
    pairs: bool = False

    def __init__(self, columns: Any, at: int | Iterable[int] = (0,), *, pairs: bool = False) -> None:
        some = (columns,) if isinstance(columns, (str, DerivedColumn)) else tuple(columns)
        for column in some:
            if not isinstance(column, (str, DerivedColumn)) or isinstance(column, type):
                raise ModelError(f"a window holds names of columns, or Suffix('word', 3) and the like, not {column!r}")
        if not some:
            raise ModelError("a window needs at least one column")
        places = (at,) if isinstance(at, int) else tuple(at)
        if not places:
            raise ModelError("a window needs at least one place: at=(0,) is the step of the label")
        for place in places:
            if isinstance(place, bool) or not isinstance(place, int):
                raise ModelError(f"the places of a window are whole numbers, -1 for the step before, not {place!r}")
        vars(self).update(columns=some, at=places, pairs=bool(pairs))

    def __repr__(self) -> str:
        more = ", pairs=True" if self.pairs else ""
        return f"Window([{', '.join(map(repr, self.columns))}], at={self.at!r}{more})"


class Place(NamedTuple):
    """A column, or what is derived of it, at one step relative to the label; `pairs` of the label and the one before it."""

    column: Any
    offset: int
    pairs: bool = False

    @property
    def name(self) -> str:
        """How it is called in attributes.

        >>> Place(Plain("word"), -1).name
        'word[-1]'
        """
        return f"{self.column.name}[{self.offset:+d}]" if self.offset else str(self.column.name)


@dataclass(frozen=True)
class LinearChain:
    """Labels in a row, each with weights for its attributes and for the label before it: a conditional random field.

    With `unseen=False` there is a weight for each pair of an attribute and a label, and of two labels in a row, that occurs at
    least `min_count` times in the data; with `unseen=True` for every pair of attributes and labels that each do, and with
    `all_transitions` for every pair of two labels. `bias` gives every step the same attribute. What lies before the start of a
    sequence reads <s>, and </s> after its end.

    With `order=2` three labels in a row have weights, too, by the same counts. `transitions=BIO()`, `BIOES()` or
    `Transitions(forbidden=[...])` says which labels may follow which: what is forbidden has probability 0.

    >>> LinearChain("tag", [Window(["word"]), Window(["word"], at=(-1, 1))]).columns
    ('word',)
    """

    label: str
    features: tuple[Window, ...]
    min_count: float = 1
    unseen: bool = False
    bias: bool = True
    all_transitions: bool = False
    order: int = 1
    transitions: tuple[TransitionRule, ...] = ()

    def __init__(
        self,
        label: str,
        features: Any,
        min_count: float = 1,
        unseen: bool = False,
        *,
        bias: bool = True,
        all_transitions: bool = False,
        order: int = 1,
        transitions: Any = None,
    ) -> None:
        if not isinstance(label, str) or not label:
            raise ModelError(f"the label of a linear chain is the name of a column, not {label!r}")
        windows = (features,) if isinstance(features, Window) else tuple(features)
        for window in windows:
            if not isinstance(window, Window):
                raise ModelError(f"the features of a linear chain are windows, Window([{window!r}]), not {window!r}")
        if isinstance(order, bool) or order not in (1, 2):
            raise ModelError(f"the order of a linear chain is 1 or 2, the labels before that a label depends on, not {order!r}")
        counted: dict[str, Any] = {"label": label, "features": windows, "min_count": whole(min_count, "min_count", 0)}
        flags = {"unseen": bool(unseen), "bias": bool(bias), "all_transitions": bool(all_transitions)}
        rules = () if transitions is None else tuple(transitions) if isinstance(transitions, (list, tuple)) else (transitions,)
        for rule in rules:
            if isinstance(rule, type) or not isinstance(rule, TransitionRule):
                raise ModelError(f"transitions= takes BIO(), BIOES() or Transitions(forbidden=[('O', 'I-x')]), not {rule!r}")
        vars(self).update(**counted, **flags, order=int(order), transitions=rules)
        if not windows and not bias:
            raise ModelError("a linear chain without features and without a bias has nothing to tell labels by")
        self._refuse_leaks()

    def _refuse_leaks(self) -> None:
        for place in self.places:
            if self.label in (place.column.source, place.column.name):
                raise ModelError(
                    f"the label {self.label!r} is also a feature: a model would read the answer off; labels beside it are "
                    "weighed anyway"
                )
        names = [(p.name, p.pairs) for p in self.places]
        if doubled := [n for n, pairs in names if names.count((n, pairs)) > 1]:
            raise ModelError(f"two different columns are called {doubled[0]!r}: give Derived another name")

    @property
    def is_plain(self) -> bool:
        """Whether every step has the same weights of a label and the one before it, and nothing is forbidden."""
        return self.order == 1 and not self.transitions and not any(window.pairs for window in self.features)

    @property
    def places(self) -> tuple[Place, ...]:
        """Every column at every step around a label, once."""
        return tuple(
            dict.fromkeys(
                Place(Plain(c) if isinstance(c, str) else c, o, window.pairs)
                for window in self.features
                for o in window.at
                for c in window.columns
            )
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads beside the label."""
        return tuple(dict.fromkeys(p.column.source for p in self.places))

    def __repr__(self) -> str:
        more = "".join(
            f", {name}={value!r}"
            for name, value, usual in (
                ("min_count", self.min_count, 1),
                ("unseen", self.unseen, False),
                ("bias", self.bias, True),
                ("all_transitions", self.all_transitions, False),
                ("order", self.order, 1),
                ("transitions", self.transitions[0] if len(self.transitions) == 1 else self.transitions, ()),
            )
            if value != usual
        )
        return f"LinearChain({self.label!r}, [{listing(self.features, 20)}]{more})"
