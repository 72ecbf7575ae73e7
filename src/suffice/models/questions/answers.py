"""Answers of a network to questions: distributions of finite variables, all marginals, most probable states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.basis.output.display import Rows, Tabular, and_more, number
from suffice.basis.pictures import Bar, PictureNode
from suffice.basis.variables import Finite
from suffice.errors import ModelError, listing, quantity
from suffice.families.protocol.family import Interval, frame
from suffice.models.questions.question import code_of, in_words, unknown_name
from suffice.numerics.inference.finite.network import Array, Ints
from suffice.statistics.counts import sizes

Key = Any
"""How a cell is named: a state of the one target, a tuple of states, or a mapping from targets to states."""


class Answer(Tabular):
    """p(targets | given), a frozen dataclass; `how` says in words how it was found."""

    how: str
    given: Mapping[str, object]

    if TYPE_CHECKING:
        # What only answers about states have, or about numbers: who asks knows which, and a type checker does not.
        @property
        def probs(self) -> Array: ...
        @property
        def mode(self) -> Any: ...
        def entropy(self) -> float: ...
        @property
        def mean(self) -> Any: ...
        @property
        def variance(self) -> Any: ...
        @property
        def sd(self) -> Any: ...
        def log_prob(self, x: Any) -> Any: ...
        def density(self, x: Any) -> Any: ...
        def cdf(self, x: Any) -> Any: ...
        def quantile(self, q: Any) -> Any: ...

    def __reduce__(self) -> tuple[object, ...]:
        # arrays come out of a pickle writeable; made anew they are not
        return type(self), tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]

    def _question(self, targets: Iterable[str]) -> str:
        words = in_words(self.given)
        given = f" | {words}" if words else ""
        return f"p({', '.join(targets)}{given}), {self.how}"

    def _node(self, name: str, before: Any = None) -> PictureNode:
        """How a picture shows it at a node: bars, or lines of text; `before` is the answer without evidence."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Answer):
    """p(targets | given) over finite targets: `probs` has one axis per target, in the order asked for.

    `interval` has the ends of a credible interval of each probability, `error` its Monte-Carlo standard error, where the
    question asked for them; `how` says in words how the answer was found.

    >>> answer = Distribution((Finite("x", ["a", "b"]),), np.array([0.25, 0.75]), given={"y": "yes"})
    >>> answer["b"], answer.mode, dict(answer)
    (0.75, 'b', {'a': 0.25, 'b': 0.75})
    >>> answer
    p(x | y=yes), exact
    x  probability
    ─  ───────────
    a  0.25
    b  0.75
    """

    variables: tuple[Finite, ...]
    probs: Array
    interval: Interval | None = None
    error: Array | None = None
    effective_sample_size: float | None = None
    how: str = "exact"
    given: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        variables, given = tuple(self.variables), (self.probs, self.error, *(self.interval or ()))
        views: list[Any] = [None if a is None else np.asarray(a, np.float64).view() for a in given]
        for view in (v for v in views if v is not None):
            if view.shape != sizes(variables):
                names = listing(v.name for v in variables)
                raise ModelError(f"an answer over {names} has the shape {sizes(variables)}, not {view.shape}")
            view.flags.writeable = False
        probs, error, *ends = views
        vars(self).update(variables=variables, probs=probs, error=error, interval=Interval(*ends) if ends else None)

    @classmethod
    def from_probs(cls, variable: Finite, probs: Array, given: Mapping[str, object]) -> Distribution:
        """An exact answer over one variable whose probabilities need no check: networks have thousands of variables."""
        answer = object.__new__(cls)
        probs.flags.writeable = False
        answer.__dict__.update(variables=(variable,), probs=probs, given=given)
        return answer

    @property
    def has_interval(self) -> bool:
        """Whether it was asked for with an interval, and has one."""
        return self.interval is not None

    def certain(self) -> Distribution:
        """The same with intervals that have no width: what is observed needs no parameters."""
        return replace(self, interval=Interval(self.probs, self.probs))

    @property
    def names(self) -> tuple[str, ...]:
        """The targets."""
        return tuple(v.name for v in self.variables)

    @property
    def mode(self) -> Any:
        """The most probable state; of several targets the most probable tuple of states. The first of equals."""
        return self._key(int(np.argmax(self.probs)))

    def __getitem__(self, key: Key) -> float:
        return float(self.probs[self.codes(key)])

    def __iter__(self) -> Iterator[Any]:
        """The states in their order; of several targets the tuples of states, the last target fastest."""
        return map(self._key, range(self.probs.size))

    def __len__(self) -> int:
        return self.probs.size

    def keys(self) -> list[Any]:
        return list(self)

    def items(self) -> list[tuple[Any, float]]:
        """Each state, or tuple of states, with its probability."""
        return list(zip(self, self.probs.reshape(-1).tolist(), strict=True))

    def entropy(self) -> float:
        """−Σ p ln p, in nats.

        >>> round(Distribution((Finite("x", ["a", "b"]),), np.array([0.5, 0.5])).entropy(), 6)
        0.693147
        """
        p = self.probs[self.probs > 0]
        return max(0.0, -math.fsum((p * np.log(p)).tolist()))

    def _node(self, name: str, before: Distribution | None = None) -> PictureNode:
        none: list[Any] = [None] * self.probs.size
        low, high = (none, none) if self.interval is None else (end.ravel().tolist() for end in self.interval)
        old = none if before is None else before.probs.tolist()
        return PictureNode(name, bars=tuple(map(Bar, self._cells(), self.probs.ravel().tolist(), low, high, old)))

    def plot(self, ax: Any = None) -> Any:
        """The probabilities as bars, with their intervals where there are some, by matplotlib; gives the axes."""
        from suffice.basis.pictures.plots import plot_bars

        ends = self.interval
        if ends is None and self.error is not None:  # two standard errors around what was drawn
            ends = Interval(self.probs - 2 * self.error, self.probs + 2 * self.error)
        low, high = (None, None) if ends is None else (end.ravel() for end in ends)
        title = self._question(self.names).partition("), ")[0] + ")"
        return plot_bars(ax, self._cells(), self.probs.ravel(), low, high, x="probability", y=", ".join(self.names), title=title)

    def _cells(self) -> list[str]:
        return [key if isinstance(key, str) else ", ".join(key) for key in self]

    def _plot_parts(self, ax: Any, parts: Sequence[Distribution], weights: Sequence[float]) -> Any:
        """The same of each class beside what they make together."""
        from suffice.basis.pictures.plots import MARKS

        for k, (part, weight) in enumerate(zip(parts, weights, strict=True)):
            ax.plot(part.probs.ravel(), range(part.probs.size), MARKS[k % len(MARKS)], ms=6, label=f"class {k}: {weight:.3g}")
        ax.legend(frameon=False)
        return ax

    def to_frame(self) -> Any:
        """One row per cell: a state of each target, the probability, and the ends of its interval or its error."""
        digits = np.unravel_index(np.arange(self.probs.size), self.probs.shape)
        columns: dict[str, Any] = {v.name: [v.states[i] for i in d] for v, d in zip(self.variables, digits, strict=True)}
        numbers = self._numbers()
        return frame(columns | {n: a.reshape(-1) for n, a in zip(apart(columns, numbers), numbers.values(), strict=True)})

    def heading(self) -> list[str]:
        """The columns of the table that shows the answer."""
        return [*self.names, *apart(self.names, ("±" if n == "error" else n for n in self._numbers()))]

    def codes(self, key: Key) -> tuple[int, ...]:
        """The codes of the states that a key names, one for each target."""
        if isinstance(key, Mapping):
            if set(key) != set(self.names):
                raise ModelError(
                    f"the answer is over {listing(self.names)}: name a state of each, not of {listing(key) or 'none'}"
                )
            key = tuple(key[n] for n in self.names)
        states = key if isinstance(key, tuple) else (key,)
        if len(states) != len(self.variables):
            raise ModelError(f"the answer is over {listing(self.names)}: give {quantity(len(self.names), 'state')}, not {key!r}")
        return tuple(map(code_of, self.variables, states))

    def _key(self, i: int) -> Any:
        digits = np.unravel_index(i, self.probs.shape)
        states = tuple(v.states[int(d)] for v, d in zip(self.variables, digits, strict=True))
        return states[0] if len(states) == 1 else states

    def _numbers(self) -> dict[str, Array]:
        numbers = {"probability": self.probs}
        if self.interval is not None:
            numbers |= {"lower": self.interval.lower, "upper": self.interval.upper}
        return numbers if self.error is None else {**numbers, "error": self.error}

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        numbers = [a.reshape(-1) for a in self._numbers().values()]
        states = islice(product(*(v.states for v in self.variables)), limit)
        rows = [[*own, *(float(a[i]) for a in numbers)] for i, own in enumerate(states)]
        return [(self.heading(), rows)], and_more(self.probs.size - limit, "row")

    def _headline(self) -> str:
        return self._question(self.names)


def apart(taken: Iterable[str], names: Iterable[str]) -> list[str]:
    """Names for columns of numbers beside columns that a user named."""
    used, result = set(taken), []
    for name in names:
        while name in used:
            name += "_"
        used.add(name)
        result.append(name)
    return result


class ByNode(Tabular, Mapping[str, Any]):
    """What is told of each of some nodes, in their order; another name is refused."""

    _nodes: Mapping[str, Any]
    _lines, _indent = 40, "  "

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self._nodes else default


class Marginals(ByNode):
    """p(x | given) of every node x: a `Distribution` of a finite one, made when it is asked for, a `Mixture` of a real one.

    >>> x = Finite("x", ["a", "b"])
    >>> Marginals({"x": x}, np.array([0.25, 0.75]), np.array([0, 2]), 0.0)["x"]["b"]
    0.75
    """

    def __init__(
        self,
        variables: Mapping[str, Finite],
        probs: Array,
        start: Ints,
        log_prob: float,
        given: Mapping[str, object] | None = None,
        reals: Mapping[str, Any] | None = None,
        index: Mapping[str, int] | None = None,
    ) -> None:
        """`probs[start[i]:start[i + 1]]` are those of the i-th of `variables`; `index` is their numbering, if it is at hand."""
        self._variables, self._probs, self._start = variables, probs, start
        self._given, self._reals = {} if given is None else given, reals or {}
        self._index = index if index is not None else {n: i for i, n in enumerate(variables)}
        self._nodes = dict.fromkeys((*self._variables, *self._reals))
        self.log_prob_of_evidence = log_prob

    def of_nodes(self, names: Iterable[str], more: Mapping[str, Any] | None = None) -> Marginals:
        """Those of these nodes, in this order, with more distributions, or others in the place of those that it has."""
        kept = dict.fromkeys(names)
        variables = {n: v for n, v in self._variables.items() if n in kept}
        reals = {n: r for n, r in {**self._reals, **(more or {})}.items() if n in kept}
        result = Marginals(variables, self._probs, self._start, self.log_prob_of_evidence, self._given, reals, self._index)
        result._nodes = kept
        return result

    def of_some(self, names: Iterable[str] | None) -> Marginals:
        """Those of some nodes, in this order, that are here; or all."""
        return self if names is None else self.of_nodes(n for n in names if n in self)

    def __getitem__(self, name: str) -> Any:
        if name in self._reals:
            return self._reals[name]
        if name not in self._variables:
            raise unknown_name(name, self)
        i = self._index[name]
        return Distribution.from_probs(self._variables[name], self._probs[self._start[i] : self._start[i + 1]], self._given)

    def to_frame(self) -> Any:
        """One row per node and state with its probability; a real node has one row, with its mean and sd. The ends of intervals,
        if there are any, are those of the probability or the mean.

        >>> Marginals({"x": Finite("x", ["a"])}, np.ones(1), np.array([0, 1]), 0.0).to_frame().values.tolist()
        [['x', 'a', 1.0]]
        """
        nan = float("nan")
        rows: list[dict[str, Any]] = []
        for name, answer in self.items():
            if isinstance(answer, Distribution):
                ends = answer.interval or Interval(*np.full((2, len(answer)), nan))
                each = zip(answer.items(), *ends, strict=True)
                rows += [{"node": name, "state": s, "probability": p, "lower": a, "upper": b} for (s, p), a, b in each]
            else:
                lower, upper = answer.mean_interval or (nan, nan)
                rows.append({"node": name, "mean": answer.mean, "sd": answer.sd, "lower": lower, "upper": upper})
        header = ["node", "state", "probability"]
        header += ["mean", "sd"] if any("mean" in row for row in rows) else []
        header += ["lower", "upper"] if any(not np.isnan(row["lower"]) for row in rows) else []
        return frame({h: [row.get(h, None if h == "state" else nan) for row in rows] for h in header})

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        rows = [(n, in_a_line(self[n], 6)) for n in islice(self, limit)]
        return [(["node", "distribution"], rows)], and_more(len(self) - limit, "node")

    def _headline(self) -> str:
        nodes = f"Marginals of {quantity(len(self), 'node')}"
        words = in_words(self._given)
        evidence = f"; ln p(evidence) = {number(float(self.log_prob_of_evidence))}" if self._given else ""
        return f"{nodes}{f' given {words}' if words else ''}{evidence}"


def in_a_line(answer: Any, limit: int | None = None) -> str:
    """A marginal in short; of states beyond the limit only the most probable, in the order of their probability."""
    if not isinstance(answer, Distribution):
        ends = _in_brackets(*answer.mean_interval) if answer.mean_interval else ""
        return f"mean {number(answer.mean)}{ends}, sd {number(answer.sd)}"
    probs, states = answer.probs, answer.variables[0].states
    few = limit is None or len(states) <= limit
    best = range(len(states)) if few else np.argsort(-probs, kind="stable")[:limit].tolist()
    widths = ["" if answer.interval is None else _in_brackets(*(end[i] for end in answer.interval)) for i in range(len(states))]
    said = [f"{states[i]} {number(float(probs[i]))}{widths[i]}" for i in best]
    return ", ".join(said if few else [*said, f"… and {len(states) - len(said):,} more"])


def _in_brackets(lower: Any, upper: Any) -> str:
    return f" ({number(float(lower))}–{number(float(upper))})"


class MostProbable(ByNode):
    """The most probable states together (numbers of real variables), with ln p(them, evidence) and p(them | evidence).

    With real variables among them both are densities; with real variables in the evidence alone only the first is one.

    >>> MostProbable({"x": "a"}, log_prob=-2.0, log_prob_of_evidence=-2.0).probability
    1.0
    """

    def __init__(
        self, states: Mapping[str, Any], log_prob: float, log_prob_of_evidence: float, given: Mapping[str, object] | None = None
    ) -> None:
        self._nodes, self._given = dict(states), {} if given is None else given
        self.log_prob, self.log_prob_of_evidence = log_prob, log_prob_of_evidence

    @property
    def probability(self) -> float:
        """p(states | evidence), a density where `is_density`; infinite if that is beyond all numbers."""
        try:
            return math.exp(self.log_prob - self.log_prob_of_evidence)
        except OverflowError:
            return float("inf")

    @property
    def is_density(self) -> bool:
        """Whether real variables are among them."""
        return not all(isinstance(value, str) for value in self._nodes.values())

    def __getitem__(self, name: str) -> Any:
        if name not in self._nodes:
            raise unknown_name(name, self._nodes)
        return self._nodes[name]

    def to_frame(self) -> Any:
        """One row per node with its state; where there are real ones, their numbers have a column `value` of their own.

        >>> MostProbable({"x": "a", "y": 1.5}, -2.0, -2.0).to_frame()["value"].tolist()
        [nan, 1.5]
        """
        found = list(self._nodes.values())
        states = {"node": list(self._nodes), "state": [v if isinstance(v, str) else None for v in found]}
        values = {"value": [float("nan") if isinstance(v, str) else v for v in found]} if self.is_density else {}
        return frame(states | values)

    def _headline(self) -> str:
        words = in_words(self._given)
        given = f" given {words}" if words else ""
        word, p = "density" if self.is_density else "probability", self.probability
        log = f"ln {word} {number(float(self.log_prob - self.log_prob_of_evidence))}"
        how_probable = f"{word} {number(p)}" if 0.0 < p < float("inf") else log
        return f"Most probable states of {quantity(len(self), 'node')}{given}; {how_probable}"

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        return [(["node", "state"], list(self._nodes.items())[:limit])], and_more(len(self) - limit, "node")
