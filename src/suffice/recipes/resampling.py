"""Bootstrap: how sure the edges of a learned graph are, by learning it again from resampled rows, or sequences."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack, overload

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import OutOfTime, Packed, Progress
from suffice.basis.limits import Budget, Limits, options_of
from suffice.basis.output.display import OneTable
from suffice.basis.pictures import Focus, Picture, Pictured, PicturedTable
from suffice.engines.checkpoints import checkpoint_of
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, GraphError, SufficeNote, nearest, note, quantity, whole
from suffice.errors.earlier import order_of_arguments
from suffice.errors.remedies import argument
from suffice.families.named_families import for_search
from suffice.families.protocol.family import frame
from suffice.graphs import Cpdag, Dag, Graph, Template
from suffice.graphs.paths import links, reach
from suffice.graphs.text import Edge
from suffice.statistics import Statistics
from suffice.structure.constraints import Constraints
from suffice.structure.methods.orders import Orders
from suffice.structure.problem import is_directed
from suffice.structure.results.found_graph import N_SHOWN, FoundGraph
from suffice.structure.results.plan import PER_CELL, Plan
from suffice.structure.search import problem_of, search, with_most_parents
from suffice.structure.windows import StepWindow

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, LagsLike, RowsLike, ScoresNodes, SearchesGraphs


class Strength(NamedTuple):
    """An edge a - b, a the more frequent parent: how often it is found, and how often, of these times, as a → b."""

    a: str
    b: str
    strength: float
    direction: float


@overload
def bootstrap(
    data: RowsLike | Sequences,
    score: ScoresNodes | None = ...,
    method: SearchesGraphs | None = ...,
    *,
    n: int = ...,
    constraints: Constraints | None = ...,
    lags: LagsLike | None = ...,
    families: FamiliesLike | None = ...,
    seed: int = ...,
    dry_run: Literal[False] = ...,
    **limits: Unpack[Limits],
) -> Bootstrap: ...
@overload
def bootstrap(
    data: RowsLike | Sequences,
    score: ScoresNodes | None = ...,
    method: SearchesGraphs | None = ...,
    *,
    n: int = ...,
    constraints: Constraints | None = ...,
    lags: LagsLike | None = ...,
    families: FamiliesLike | None = ...,
    seed: int = ...,
    dry_run: Literal[True],
    **limits: Unpack[Limits],
) -> Plan: ...
@order_of_arguments("method", "n")
@one_blas_thread
def bootstrap(
    data: RowsLike | Sequences,
    score: ScoresNodes | None = None,
    method: SearchesGraphs | None = None,
    *,
    n: int = 200,
    constraints: Constraints | None = None,
    lags: LagsLike | None = None,
    families: FamiliesLike | None = None,
    seed: int = 0,
    dry_run: bool = False,
    **limits: Unpack[Limits],
) -> Bootstrap | Plan:
    """How often each edge is found when the rows are resampled `n` times (Friedman, Goldszmidt & Wyner 1999).

    Each replicate draws as many rows with replacement and searches as `search` would. What counts is the equivalence class that
    is found: an edge without a direction counts one half each way. Of a method whose edges have none, such as `GraphicalLasso`,
    `sure.graph()` has those that are found often enough. Weights that are whole numbers count equal rows, which are
    drawn one by one; rows with other weights are drawn with them. The sample is held in memory, one byte a cell.

    Where cells are missing, each replicate is a run of `structural_em`, by `HillClimb()` unless a method is given; a note says
    how long the first one took.

    Of `sequences(...)`, whole sequences are drawn, and edges from the past, up to `lags` steps back as in `search`, have lagged
    names: `sure.strength("x[-1]", "y")`. There must be more than one sequence.

    `families` are those of nodes that are regressions, as in `search`.

    The k-th sample depends on the seed, k and the order of the rows, not on columns or threads. When `time_limit`, in seconds for
    all replicates together, is reached, or on Ctrl-C, the replicates done so far are returned: see `n_done`. `dry_run=True` only
    estimates the cost of all replicates, a `Plan` as that of `search`. `limits` are as in `search`; `checkpoint` is a directory
    for the replicates done so far: killed or stopped, the same call goes on from there.

    >>> rows = {"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"], "moon": ["new", "new", "full", "full"] * 10}
    >>> sure = bootstrap(rows, n=20)
    >>> sure.strength("rain", "wet"), sure.averaged()
    (1.0, Dag('moon; rain -> wet'))
    """
    n = whole(n, "the number of replicates", 1)
    if isinstance(data, Statistics):
        raise DataError("a bootstrap resamples rows, and statistics have none; give the data itself")
    _, budget = options_of("bootstrap", limits, Limits)
    given = StepWindow.of(data, lags) if isinstance(data, Sequences) or lags is not None else data
    watch = budget.watch("bootstrap")
    asked: dict[str, Any] = {"score": score, "method": method, "constraints": constraints, "seed": seed}
    rows: Data | Sequences
    some: Any = None if isinstance(given, StepWindow) or not is_directed(method) else scan(data)
    if gappy := some is not None and any(some.missing.values()):
        if dry_run:
            raise FitError(
                f"{argument('dry_run')} is for complete rows: with missing cells a note after the first replicate says its time"
            )
        some, asked["families"] = for_search(some, families)
        names, steps = tuple(sorted(n for n in some.columns if n not in some.identifiers)), None
        rows = some.select(names)
    else:
        problem = problem_of(given, score, constraints, budget, seed=seed, method=method, families=families)
        if dry_run:  # n searches and as many samples of the rows, one of which is held, a byte a cell
            own: Any = Orders() if method is None else method
            chosen, wanted = with_most_parents(own, problem)
            plan = Plan.of(wanted, chosen)
            return plan.times(n, PER_CELL * plan.n_rows * problem.n, plan.n_rows * problem.n)
        names, steps = problem.names, problem.lags
        if isinstance(given, StepWindow) and given.sequences.n_sequences < 2:
            raise DataError(
                "a bootstrap draws whole sequences, and there is but one; cut it into pieces that may count as independent"
            )
        rows = given.sequences if isinstance(given, StepWindow) else problem.data.select(names)  # type: ignore[union-attr]
        asked["families"] = problem.families
    counts, n_done = np.zeros((len(names), len(names))), 0
    what: dict[str, Any] = {"method": method, "n": n, "score": score, "constraints": constraints, "lags": lags}
    what |= {"families": families, "seed": seed, "memory_limit": budget.memory_limit}
    with checkpoint_of(budget.checkpoint, "bootstrap", rows, what) as watch.memory, closing(watch):
        try:
            for k in range(n):
                watch.check(f"replicate {k + 1:,} of {n:,}")
                find = partial(_class_of, rows, k, n, asked, budget, watch, steps, gappy)
                counts += _arrows(watch.memory.answer(["replicate", k], find, _pack_class, _unpack_class), names)
                n_done += 1
            watch.memory.finish()
        except (OutOfTime, KeyboardInterrupt):  # a search that was cut short does not count
            pass
    if not n_done:
        raise FitError("the bootstrap was stopped before its first replicate was done")
    if n_done < n:
        note(f"the bootstrap was stopped after {n_done:,} of {quantity(n, 'replicate')}")
    return Bootstrap(names, counts, n, n_done, watch.seconds, steps, is_directed(method))


def _class_of(
    rows: Any, k: int, n: int, asked: Mapping[str, Any], budget: Budget, watch: Progress[Any], lags: Any, gappy: bool
) -> Cpdag:
    """The class of graphs that is found in the k-th of n samples, of rows with missing cells by structural EM."""
    sample = rows.resample([asked["seed"], k])
    found: Any
    try:
        if gappy:
            from suffice.recipes.structural.structural_em import structural_em

            watch.check(f"replicate {k + 1:,} of {n:,}, structural EM")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SufficeNote)
                found = structural_em(sample.hold(), **asked, **budget.inside(watch).keywords)
        else:
            near = StepWindow.of(sample, lags) if isinstance(sample, Sequences) else sample.hold()
            found = search(near, **asked, **budget.inside(watch).keywords)
    except FitError as error:
        if watch.left <= 0:  # there was no time left to find anything
            raise OutOfTime from None
        lacks = "a resample may lack what is rare in the data"
        raise FitError(f"replicate {k + 1} of the bootstrap: {error.said} ({lacks})") from None
    if gappy and not k and n > 1:
        note(f"there are missing cells, so each of {n:,} replicates is a structural EM; the first took {watch.seconds:.2g} s")
    if not found.finished:
        raise OutOfTime
    if isinstance(found, FoundGraph):
        return Cpdag([], found.graph.edges, nodes=found.names)
    if not gappy and found.score is None:
        return found.cpdag  # type: ignore[no-any-return]
    # with the directions that the constraints, or the kind of model, leave no choice
    problem, number = found.problem, found.problem.number
    ends = [(number[a], number[b]) for a, b in found.dag.edges]
    one_way = [problem.rules.required[b, a] or not problem.rules.allowed[a, b] or problem.is_one_way(a, b) for a, b in ends]
    fixed = [(b, a) for (a, b), fix in zip(found.dag.edges, one_way, strict=True) if fix]
    return found.dag.cpdag(forbidden=fixed)  # type: ignore[no-any-return]


def _pack_class(members: Cpdag) -> Packed:
    """A class of graphs for a checkpoint."""
    return [members.nodes, members.directed, members.undirected], ()


def _unpack_class(packed: Packed) -> Cpdag:
    nodes, directed, undirected = packed[0]
    return Cpdag([tuple(edge) for edge in directed], [tuple(edge) for edge in undirected], nodes=nodes)


def _arrows(members: Cpdag, names: tuple[str, ...]) -> Array:
    """[a, b] is 1 for a → b, and one half both ways for an edge without a direction."""
    number = {name: i for i, name in enumerate(names)}
    counts = np.zeros((len(number), len(number)))
    for a, b in members.directed:
        counts[number[a], number[b]] = 1.0
    for a, b in members.undirected:
        counts[number[a], number[b]] = counts[number[b], number[a]] = 0.5
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(OneTable, PicturedTable):
    """The result of `bootstrap`. It prints as a table of edges.

    >>> from suffice import bootstrap
    >>> sure = bootstrap({"rain": list("nnyy") * 8, "wet": list("nnyn") * 8}, n=10, seed=0)
    >>> sure.n_done, sure.strength("rain", "wet"), sure.averaged().skeleton().edges
    (10, 1.0, (('rain', 'wet'),))
    """

    names: tuple[str, ...]
    """The variables, sorted."""
    counts: Array
    """counts[i, j]: in how many replicates names[i] → names[j] was found, one half for an edge without a direction."""
    n: int
    """The replicates asked for,"""
    n_done: int
    """and those done."""
    seconds: float
    lags: Mapping[str, int] | None = None
    """Of sequences: the variables, and how far back each was looked at; the other names are these in the past."""
    directed: bool = True
    """Whether edges have directions: not those of a method that finds undirected graphs."""

    @cached_property
    def edges(self) -> tuple[Strength, ...]:
        """The edges that were ever found, the strongest first."""
        both = self.counts + self.counts.T
        found = []
        for i, j in zip(*np.nonzero(np.triu(both)), strict=True):
            a, b = (i, j) if self.counts[i, j] >= self.counts[j, i] else (j, i)
            direction = float(self.counts[a, b] / both[a, b])
            found.append(Strength(self.names[a], self.names[b], float(both[a, b] / self.n_done), direction))
        return tuple(sorted(found, key=lambda e: (-e.strength, -e.direction, e.a, e.b)))

    def strength(self, a: str, b: str) -> float:
        """The share of replicates in which a and b are adjacent."""
        return float(sum(self._both(a, b)) / self.n_done)

    def direction(self, a: str, b: str) -> float:
        """Of the replicates in which a and b are adjacent, the share with a → b; NaN if there are none."""
        there, back = self._both(a, b)
        return float(there / (there + back)) if there + back else float("nan")

    @cached_property
    def threshold(self) -> float:
        """The smallest strength of a significant edge (Scutari & Nagarajan 2013, Artif. Intell. Med. 57, §3).

        If the graph were certain, every pair's strength would be 0 or 1. Of all such sets of strengths the one is taken whose
        distribution function is nearest to that of the strengths found, by the area between them (L1); it says how many pairs
        are 1. Two variables of the past are no pair.
        """
        present = np.array([self.lags is None or name in self.lags for name in self.names])
        pairs = np.nonzero(np.triu(present[:, None] | present, 1))
        return _threshold((self.counts + self.counts.T)[pairs] / self.n_done)

    def averaged(self, threshold: float | None = None) -> Dag:
        """The graph of the edges with at least this strength (by default `threshold`), each in its more frequent direction.

        An edge that would close a cycle of stronger ones is left out. Edges with no more frequent direction are directed so that
        they make no new collider, where that can be done.
        """
        if not self.directed:
            raise FitError("these edges have no directions: take sure.graph(), which is undirected")
        least = self._least(threshold)
        arrows: list[Edge] = []
        lines: list[Edge] = []
        for edge in self.edges:
            if edge.strength < least - 1e-12:
                break
            if edge.direction == 0.5:
                lines.append((edge.a, edge.b))
            elif edge.a not in reach([edge.b], links(arrows, self.names)[1]):
                arrows.append((edge.a, edge.b))
        try:
            return Cpdag(arrows, lines, nodes=self.names).to_dag()
        except GraphError:  # the arrows leave the others no way without a new collider
            for a, b in lines:
                arrows.append((b, a) if a in reach([b], links(arrows, self.names)[1]) else (a, b))
            return Dag(arrows, nodes=self.names)

    def graph(self, threshold: float | None = None) -> Graph:
        """The undirected graph of the edges with at least this strength (by default `threshold`), whatever their direction.

        >>> rows = {"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"]}
        >>> bootstrap(rows, n=5).graph()
        Graph('rain -- wet')
        """
        least = self._least(threshold) - 1e-12
        return Graph([(edge.a, edge.b) for edge in self.edges if edge.strength >= least], nodes=self.names)

    def _scene(self) -> Picture:
        graph = self.averaged() if self.directed else self.graph()
        shares = {(a, b): self.strength(a, b) for a, b in graph.edges}
        picture = graph._scene().weigh_edges(shares, "share of replicates", most=1.0)
        return picture.noting(f"edges of at least {self.threshold:.4g}")

    def picture(self, against: Pictured | None = None, *, focus: Focus = None, steps: int = 1) -> Picture:
        """The averaged graph as a picture, edges as wide as the share of replicates that have them; `against` another, or the
        part around a `focus`.

        >>> sure = bootstrap({"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"]}, n=5)
        >>> sure.picture().edges[0].title
        'rain -> wet: share of replicates 1'
        """
        return self._view(against, focus, steps)

    def plot(self, ax: Any = None) -> Any:
        """The strengths of the edges that were ever found, the strongest first, and the threshold, by matplotlib; gives the
        axes."""
        from suffice.basis.pictures.plots import plot_intervals

        rows = [f"{e.a} {'→' if self.directed else '–'} {e.b}" for e in self.edges]
        strengths = [e.strength for e in self.edges]
        line = (self.threshold, f"threshold {self.threshold:.3g}")
        title = f"{quantity(len(rows), 'edge')} in {quantity(self.n_done, 'replicate')}"
        return plot_intervals(ax, rows, [("strength", strengths, None, None)], x="share of replicates", title=title, upright=line)

    def _least(self, threshold: float | None) -> float:
        least = self.threshold if threshold is None else threshold
        if not (isinstance(least, (int, float)) and 0.0 <= least <= 1.0):
            raise FitError(f"a threshold is a strength between 0 and 1, not {threshold!r}")
        return least

    def template(self, threshold: float | None = None) -> Template:
        """Of sequences: `averaged` as a template."""
        if self.lags is None:
            raise FitError("a template is of sequences: bootstrap(sequences(data, by, order), lags=1); this is of rows")
        dag = self.averaged(threshold)
        return Template({x: dag.parents(x) for x in sorted(self.lags)})

    def to_frame(self) -> Any:
        """The edges as a data frame."""
        return frame({field: [getattr(e, field) for e in self.edges] for field in Strength._fields})

    def to_dict(self) -> dict[str, Any]:
        """The facts, for JSON."""
        edges = [e._asdict() for e in self.edges]
        averaged = [list(e) for e in (self.averaged() if self.directed else self.graph()).edges]
        return {"n": self.n, "n_done": self.n_done, "threshold": self.threshold, "edges": edges, "averaged": averaged}

    def _both(self, a: str, b: str) -> tuple[float, float]:
        """In how many replicates a → b was found, and b → a."""
        for name in (a, b):
            if name not in self.names:
                raise GraphError(f"there is no variable {name!r}{nearest(str(name), self.names)}")
        i, j = self.names.index(a), self.names.index(b)
        return self.counts[i, j], self.counts[j, i]

    def _headline(self) -> str:
        stopped = f" of {self.n:,}, then stopped" if self.n_done < self.n else ""
        kept = sum(e.strength >= self.threshold - 1e-12 for e in self.edges)
        are = f"{quantity(len(self.edges), 'edge')} {'is' if kept == 1 else 'are'}"
        significant = f"{kept:,} of {are} significant: strength at least {self.threshold:.3g}"
        if self.n_done == 1:
            significant = "one replicate does not say whether an edge is significant"
        searched = f"a search over {quantity(len(self.lags or self.names), 'variable')}"
        return f"{quantity(self.n_done, 'replicate')}{stopped} of {searched}; {self.seconds:.3g} s\n{significant}"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        n = 4 if self.directed else 3
        each = [(e.a, e.b, f"{e.strength:.3f}", f"{e.direction:.3f}") for e in self.edges[:N_SHOWN]]
        return ["a", "b", "strength", "direction a -> b"][:n], [list(row[:n]) for row in each]

    def _below(self) -> str:
        return f"\n... and {len(self.edges) - N_SHOWN:,} more; see edges" if len(self.edges) > N_SHOWN else ""


def _threshold(strengths: Array) -> float:
    """The smallest strength above F⁻¹(t), t the median of the distribution function F over [0, 1], which minimises ∫ |F − t|."""
    if not len(strengths):
        return 1.0
    knots = np.unique(np.concatenate([[0.0, 1.0], strengths]))
    below = np.searchsorted(np.sort(strengths), knots[:-1], side="right")
    middle = int(np.argmax(np.cumsum(np.diff(knots)) > 0.5 + 1e-12))
    significant = np.sort(strengths)[below[middle] :]
    return float(significant[0]) if len(significant) else 1.0
