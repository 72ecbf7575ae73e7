"""Learning again from some of the rows, to see how sure it is and how well it does.

Bootstrap: how sure the edges of a learned graph are, by learning it again from resampled rows.

Cross-validation: how well what a method learns foretells rows that it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.blas import one_blas_thread
from suffice.display import OneTable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, GraphError, listed, nearest, note, whole
from suffice.families.family import Estimate, frame
from suffice.families.priors import suitable
from suffice.graphs import Cpdag, Dag
from suffice.graphs.paths import links, reached
from suffice.graphs.text import Edge
from suffice.iteration import OutOfTime, Progress
from suffice.learning.fit import fit
from suffice.recipes.learn import PRIOR
from suffice.statistics import Statistics
from suffice.structure.constraints import Constraints
from suffice.structure.found import Found
from suffice.structure.search import problem_of, search

Floats = npt.NDArray[np.float64]

N_SHOWN = 60
"""Edges that a printed result lists."""


class Strength(NamedTuple):
    """An edge a - b, a the more frequent parent: how often it is found, and how often, of these times, as a → b."""

    a: str
    b: str
    strength: float
    direction: float


@one_blas_thread
def bootstrap(
    data: Any,
    method: Any = None,
    n: int = 200,
    *,
    score: Any = None,
    constraints: Constraints | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Bootstrap:
    """How often each edge is found when the rows are resampled `n` times (Friedman, Goldszmidt & Wyner 1999).

    Each replicate draws as many rows with replacement and searches as `search` would. What counts is the equivalence class that
    is found: an edge without a direction counts one half each way. Weights that are whole numbers count equal rows, which are
    drawn one by one; rows with other weights are drawn with them. The sample is held in memory, one byte a cell.

    The k-th sample depends on the seed, k and the order of the rows, not on columns or threads. When `time_limit`, in seconds for
    all replicates together, is reached, or on Ctrl-C, the replicates done so far are returned: see `n_done`.

    >>> rows = {"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"], "moon": ["new", "new", "full", "full"] * 10}
    >>> sure = bootstrap(rows, n=20)
    >>> sure.strength("rain", "wet"), sure.averaged()
    (1.0, Dag('moon; rain -> wet'))
    """
    n = whole(n, "the number of replicates", 1)
    if isinstance(data, Statistics):
        raise DataError("a bootstrap resamples rows, and statistics have none; give the data itself")
    options: dict[str, Any] = {"seed": seed, "memory_limit": memory_limit, "threads": threads, "progress": False}
    problem = problem_of(data, score, constraints, time_limit=time_limit, **options)
    rows = scan(data).take(problem.names)
    watch: Progress[Any] = Progress("bootstrap", time_limit, progress)
    counts, n_done = np.zeros((problem.n, problem.n)), 0
    for found in _replicates(rows, (score, method, constraints), n, options, watch):
        counts += _arrows(found)
        n_done += 1
    if not n_done:
        raise FitError("the bootstrap was stopped before its first replicate was done")
    if n_done < n:
        note(f"the bootstrap was stopped after {n_done:,} of {n:,} replicates")
    return Bootstrap(problem.names, counts, n, n_done, watch.seconds)


def _replicates(rows: Data, asked: tuple[Any, ...], n: int, options: dict[str, Any], watch: Progress[Any]) -> Iterator[Found]:
    """What is found in each sample, until all are done or the run is stopped; a search that was cut short does not count."""
    limited = watch.time_limit is not None
    try:
        for k in range(n):
            watch.check(f"replicate {k + 1:,} of {n:,}")
            sample = rows.resample([options["seed"], k]).hold()
            found = search(sample, *asked, time_limit=max(watch.left, 1e-3) if limited else None, **options)
            if not found.finished:
                return
            yield found
    except (OutOfTime, KeyboardInterrupt):
        return
    except FitError as error:
        if watch.left > 0:  # else the search had no time left to find anything
            raise FitError(
                f"replicate {k + 1} of the bootstrap: {error} (a resample may lack what is rare in the data)"
            ) from None
    finally:
        watch.close()


def _arrows(found: Found) -> Floats:
    """[a, b] is 1 for a → b, and one half both ways for an edge without a direction."""
    number = {name: i for i, name in enumerate(found.names)}
    members = _members(found, number)
    counts = np.zeros((len(number), len(number)))
    for a, b in members.directed:
        counts[number[a], number[b]] = 1.0
    for a, b in members.undirected:
        counts[number[a], number[b]] = counts[number[b], number[a]] = 0.5
    return counts


def _members(found: Found, number: dict[str, int]) -> Cpdag:
    """The class that was found, with the directions that the constraints leave no choice."""
    if found.score is None:
        return found.cpdag
    rules = found.problem.rules
    fixed = [
        (b, a) for a, b in found.dag.edges if rules.required[number[b], number[a]] or not rules.allowed[number[a], number[b]]
    ]
    return found.dag.cpdag(forbidden=fixed)


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(OneTable):
    """The result of `bootstrap`. It prints as a table of edges."""

    names: tuple[str, ...]
    """The variables, sorted."""
    counts: Floats
    """counts[i, j]: in how many replicates names[i] → names[j] was found, one half for an edge without a direction."""
    n: int
    """The replicates asked for,"""
    n_done: int
    """and those done."""
    seconds: float

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
        are 1.
        """
        pairs = np.triu_indices(len(self.names), 1)
        return _threshold((self.counts + self.counts.T)[pairs] / self.n_done)

    def averaged(self, threshold: float | None = None) -> Dag:
        """The graph of the edges with at least this strength (by default `threshold`), each in its more frequent direction.

        An edge that would close a cycle of stronger ones is left out. Edges with no more frequent direction are directed so that
        they make no new collider, where that can be done.
        """
        least = self.threshold if threshold is None else threshold
        if not (isinstance(least, (int, float)) and 0.0 <= least <= 1.0):
            raise FitError(f"a threshold is a strength between 0 and 1, not {threshold!r}")
        arrows: list[Edge] = []
        lines: list[Edge] = []
        for edge in self.edges:
            if edge.strength < least - 1e-12:
                break
            if edge.direction == 0.5:
                lines.append((edge.a, edge.b))
            elif edge.a not in reached([edge.b], links(arrows, self.names)[1]):
                arrows.append((edge.a, edge.b))
        try:
            return Cpdag(arrows, lines, nodes=self.names).to_dag()
        except GraphError:  # the arrows leave the others no way without a new collider
            for a, b in lines:
                arrows.append((b, a) if a in reached([b], links(arrows, self.names)[1]) else (a, b))
            return Dag(arrows, nodes=self.names)

    def to_frame(self) -> Any:
        """The edges as a data frame."""
        return frame({field: [getattr(e, field) for e in self.edges] for field in Strength._fields})

    def to_dict(self) -> dict[str, Any]:
        """The facts, for JSON."""
        edges = [e._asdict() for e in self.edges]
        averaged = [list(e) for e in self.averaged().edges]
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
        return (
            f"{self.n_done:,} replicates{stopped} of a search over {len(self.names):,} variables; {self.seconds:.3g} s\n"
            f"{kept:,} of {len(self.edges):,} edges are significant: strength at least {self.threshold:.3g}"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = [[e.a, e.b, f"{e.strength:.3f}", f"{e.direction:.3f}"] for e in self.edges[:N_SHOWN]]
        return ["a", "b", "strength", "direction a -> b"], rows

    def _below(self) -> str:
        return f"\n... and {len(self.edges) - N_SHOWN:,} more; see edges" if len(self.edges) > N_SHOWN else ""


def _threshold(strengths: Floats) -> float:
    """The smallest strength above F⁻¹(t), t the median of the distribution function F over [0, 1], which minimises ∫ |F − t|.

    >>> _threshold(np.array([0.0, 0.1, 0.9, 1.0])), _threshold(np.array([0.1, 0.4]))
    (0.9, 1.0)
    """
    if not len(strengths):
        return 1.0
    knots = np.unique(np.concatenate([[0.0, 1.0], strengths]))
    below = np.searchsorted(np.sort(strengths), knots[:-1], side="right")
    middle = int(np.argmax(np.cumsum(np.diff(knots)) > 0.5 + 1e-12))
    significant = np.sort(strengths)[below[middle] :]
    return float(significant[0]) if len(significant) else 1.0


class Fold(NamedTuple):
    """What was learned from the rows outside a fold: ln p of the rows inside, their number or weight, the size of the network."""

    log_likelihood: float
    weight: float
    n_edges: int
    n_parameters: int
    dag: Dag

    @property
    def per_row(self) -> float:
        return self.log_likelihood / self.weight


@one_blas_thread
def cross_validate(
    data: Any,
    method: Any = None,
    folds: int = 10,
    *,
    score: Any = None,
    prior: Any = PRIOR,
    estimate: Estimate | None = None,
    constraints: Constraints | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> CrossValidation:
    """The log-likelihood of held-out rows: each of some folds in turn is foretold by what the others teach.

    `method` is a method of search, by default `Orders()`, or a graph, and then only its parameters are learned. The rows are put
    into folds at random, the same for the same seed, so that two methods can be compared fold by fold; weights that are whole
    numbers count equal rows, which are dealt out one by one. The parameters have the prior that `learn` gives them. With
    `prior=None`, maximum likelihood, a held-out row may be impossible, and the log-likelihood is then −inf.

    `time_limit` is in seconds for each search. Ctrl-C returns the folds done so far.

    >>> rows = {"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"], "moon": ["new", "new", "full", "full"] * 10}
    >>> learned, empty = cross_validate(rows, folds=4), cross_validate(rows, "rain; wet; moon", folds=4)
    >>> learned.mean > empty.mean, [f.n_edges for f in learned.folds]
    (True, [1, 1, 1, 1])
    """
    if isinstance(data, Statistics):
        raise DataError("cross-validation parts rows, and statistics have none; give the data itself")
    dag = _graph(method)
    names = _names(data, dag, score, constraints, seed, time_limit)
    rows = scan(data).take(names)
    folds, most = whole(folds, "the number of folds", 2), int(min(rows.weight, 2**62)) if rows.whole_weights else rows.n_rows
    if folds > most:
        raise FitError(f"{folds:,} folds need at least as many rows, and there are {most:,}")
    how = suitable(prior, rows.schema.values(), PRIOR)
    budget: dict[str, Any] = {"seed": seed, "time_limit": time_limit, "memory_limit": memory_limit, "threads": threads}
    watch: Progress[Any] = Progress("cross-validation", None, progress)
    done: list[Fold] = []
    stopped = 0
    try:
        for train, test in rows.split(folds, seed):
            watch.check(f"fold {len(done) + 1} of {folds}")
            graph = dag
            if graph is None:
                train = train.hold()  # a search passes over its rows more than once
                found = search(train, score, method, constraints, progress=False, **budget)
                if not found.finished and (time_limit is None or found.seconds < time_limit):
                    raise KeyboardInterrupt
                stopped += not found.finished
                graph = found.dag
            bn = fit(graph, train, prior=how, estimate=estimate)
            done.append(Fold(bn.log_likelihood(test), test.weight, len(graph.edges), bn.n_parameters, graph))
    except FitError as error:
        raise FitError(f"fold {len(done) + 1} of {folds}: {error} (a part of the rows may lack what is rare in all)") from None
    except KeyboardInterrupt:
        if len(done) < 2:
            raise
        note(f"the cross-validation was stopped after {len(done)} of {folds} folds")
    finally:
        watch.close()
    if stopped:
        note(f"{stopped} of the searches reached the time limit: their graphs are the best so far")
    return CrossValidation(tuple(done), folds, watch.seconds)


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(OneTable):
    """The result of `cross_validate`. It prints as a table of folds."""

    folds: tuple[Fold, ...]
    n_folds: int
    """The folds asked for; fewer were done if the run was stopped."""
    seconds: float

    @cached_property
    def log_likelihood(self) -> float:
        """ln p of all held-out rows together."""
        return float(sum(f.log_likelihood for f in self.folds))

    @cached_property
    def mean(self) -> float:
        """ln p of a held-out row, on average."""
        return self.log_likelihood / sum(f.weight for f in self.folds)

    @cached_property
    def error(self) -> float:
        """The standard error of `mean`, by the spread of the folds; NaN where a fold is −inf."""
        each = np.array([f.per_row for f in self.folds])
        return float(each.std(ddof=1) / np.sqrt(len(each))) if np.isfinite(each).all() else float("nan")

    def to_frame(self) -> Any:
        """The folds as a data frame."""
        header, rows = self._table()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(header)})

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = [
            [i + 1, f"{f.weight:,.10g}", f.log_likelihood, f.per_row, f.n_edges, f.n_parameters] for i, f in enumerate(self.folds)
        ]
        return ["fold", "rows", "log-likelihood", "per row", "edges", "parameters"], rows

    def _headline(self) -> str:
        stopped = f" of {self.n_folds}, then stopped" if len(self.folds) < self.n_folds else ""
        impossible = "; some held-out rows are impossible: use a prior" if np.isneginf(self.mean) else ""
        return (
            f"held-out log-likelihood per row {self.mean:.6g} ± {self.error:.2g} (standard error); "
            f"{len(self.folds)} folds{stopped}; {self.seconds:.3g} s{impossible}"
        )


def _graph(method: Any) -> Dag | None:
    """The graph, if it is one that was given; None for a method of search."""
    if method is None or hasattr(method, "run"):
        return None
    return method.to_dag() if isinstance(method, Cpdag) else Dag(method)


def _names(data: Any, dag: Dag | None, score: Any, constraints: Constraints | None, seed: int, limit: float | None) -> Any:
    """The columns that take part: those of the graph, or those that would be searched."""
    if dag is None:
        return problem_of(data, score, constraints, seed=seed, time_limit=limit).names
    if score is not None or constraints is not None:
        raise FitError("a score and constraints are for a search; the graph is given")
    columns = scan(data).columns
    strange = [name for name in dag.nodes if name not in columns]
    if strange:
        raise DataError(f"the data has no column {listed(strange)}, which the graph names{nearest(strange[0], columns)}")
    scan(data).require_complete(dag.nodes)
    return dag.nodes
