"""Structural EM: the graph and the parameters of a network from rows with missing cells, and with variables that no row shows.

    E    the statistics that the rows are expected to have under the current network: of any family that the search asks for
    S    the graph that scores best on them, found by any method of search that works on scores
    M    the parameters of that graph, by EM on the rows themselves

Friedman 1997 (ICML, pp. 125–133) for penalised likelihoods, and 1998 (UAI, pp. 129–138) for the evidence.
"""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Iteration, Run
from suffice.basis.limits import Limits, check_room, options_of
from suffice.basis.output.display import html_table, text_table
from suffice.basis.pictures import Focus, Picture, Pictured, PicturedTable
from suffice.basis.variables import Finite, NotNormal, Real
from suffice.engines.checkpoints import checkpoint_of
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, SufficeNote, listing, note, quantity
from suffice.errors.earlier import order_of_arguments
from suffice.errors.remedies import BY_SCORES, Remedy
from suffice.families import family_of
from suffice.families.priors.priors import as_prior
from suffice.graphs import Cpdag, Dag
from suffice.graphs.text import Edge
from suffice.incomplete.expectations import IncompleteRows
from suffice.learning.incomplete.task import Task, task_of
from suffice.models.networks import BayesNet
from suffice.recipes.structural.structural_regressions import lost_numbers, note_points, with_families
from suffice.recipes.structural.structural_search import Round, SearchOptions, StructuralSearch
from suffice.statistics import Counts, Statistics
from suffice.statistics.moments import nothing
from suffice.structure.constraints import Constraints, Forbid
from suffice.structure.methods.ges import GES
from suffice.structure.methods.hill_climb import HillClimb
from suffice.structure.methods.pc import MMHC, PC
from suffice.structure.problem import Method, Problem, check_has, check_number
from suffice.structure.results.explanations import Explanation, directions, spell
from suffice.structure.results.found import Found
from suffice.structure.results.found_graph import N_SHOWN
from suffice.structure.search import problem_of as search_problem

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, HiddenLike, PriorLike, RowsLike, ScoresNodes, SearchesGraphs
    from suffice.graphs.directed import DagLike

EDGES = ["edge", "direction"]
HEADER = ["round", "edges", "score", "log-likelihood", "seconds"]

STARTS = 5
"""Starts where there are hidden variables: one with all links from the hidden to the observed ones, others with some of them."""


@dataclass(frozen=True, eq=False, repr=False)
class StructuralRun(Run[BayesNet], PicturedTable):
    """The result of `structural_em`: a `Run` with one record for each round that gained, and the graphs on the way.

    It prints as a table of edges, with why each leads this way as in `search`, and a table of rounds. As `start=` of another run
    it is where that run goes on.

    >>> run = structural_em({"x": ["a", "b", None, "b"] * 9, "y": ["u", "v", "u", "v"] * 9})
    >>> run.dag, run.graphs[-1].dag == run.dag, run.score == run.objective
    (Dag('x -> y'), True, True)
    """

    graphs: tuple[Round, ...] = ()
    """The graphs of the best start, from the first to the last, with their observed scores."""
    score: float = float("nan")
    """The observed score of the network: its log-likelihood less the penalty, or Cheeseman & Stutz's approximation."""
    optima: tuple[float, ...] = ()
    """What each start came to, in their order; the best is kept."""
    finished: bool = True
    """False when a limit or Ctrl-C stopped the run: then this is the best so far."""
    method: Any = None
    directions: Mapping[Edge, str] = field(default_factory=dict)
    """Why each edge (parent, child) leads this way, in the words of `search`: `found.directions`."""
    _search: StructuralSearch | None = None

    @property
    def dag(self) -> Dag:
        """The graph of the network."""
        return self.model.dag

    @cached_property
    def cpdag(self) -> Cpdag:
        """The equivalence class of the graph; edges from states to counts and numbers, and from counts to numbers,
        have no other direction in this kind of model, nor have those of regressions."""
        kinds = {n: [isinstance(v, k) for k in (Finite, NotNormal, Real)].index(True) for n, v in self.model.variables.items()}
        own = {n for n in self.model if self.model[n].is_regression}
        return self.dag.cpdag([(b, a) for a, b in self.dag.edges if kinds[a] < kinds[b] or own & {a, b}])

    @cached_property
    def found(self) -> Found:
        """The graph as `search` finds one, with its losses and ties: on the statistics that the rows are expected to have under
        the network, which know the missing cells only as far as the network does.

        >>> run = structural_em({"x": ["a", "b", None, "b"] * 9, "y": ["u", "v", "u", "v"] * 9})
        >>> list(run.found.losses)
        [('x', 'y')]
        """
        return self._at_hand.explain_graph(self.dag, self.finished)

    @property
    def problem(self) -> Problem:
        """The score and the rules of the search."""
        return self._at_hand.problem

    @property
    def _at_hand(self) -> StructuralSearch:
        if self._search is None:
            raise FitError("this result was unpickled, and its data is not with it; run structural_em again to ask for more")
        return self._search

    def _scene(self) -> Picture:
        return self.dag._scene()

    def picture(self, against: Pictured | None = None, *, focus: Focus = None, steps: int = 1) -> Picture:
        """The graph as a picture; `against` another, or the part around a `focus`."""
        return self._view(against, focus, steps)

    def explain(self, what: str | Sequence[str]) -> Explanation:
        """Why a node has its parents, or why an edge is in the graph or is not, as `found.explain` of a search.

        The scores are those of expected statistics, see `found`.

        >>> run = structural_em({"x": ["a", "b", None, "b"] * 9, "y": ["u", "v", "u", "v"] * 9})
        >>> run.explain("x -> y").loss > 5
        True
        """
        return self.found.explain(what)

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows, which stay where they are."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"_search": None}

    def to_dict(self) -> dict[str, Any]:
        """The facts, for JSON."""
        return {
            "method": repr(self.method),
            "variables": list(self.dag.nodes),
            "edges": [list(e) for e in self.dag.edges],
            "directed": [list(e) for e in self.cpdag.directed],
            "undirected": [list(e) for e in self.cpdag.undirected],
            "directions": [[*e, why] for e, why in self.directions.items()],
            "score": self.score,
            "log_likelihood": self.log_likelihood,
            "converged": self.converged,
            "finished": self.finished,
            "optima": list(self.optima),
            "graphs": [{**r._asdict(), "dag": [list(e) for e in r.dag.edges]} for r in self.graphs],
        }

    def __repr__(self) -> str:
        rows = self._edges()
        more = f"\n... and {len(rows) - N_SHOWN:,} more" if len(rows) > N_SHOWN else ""
        table = f"{text_table(EDGES, rows[:N_SHOWN])}{more}" if rows else "no edges"
        return f"{self._headline()}\n\n{table}\n\n{text_table(HEADER, self._rows())}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._headline())}</p>{html_table(EDGES, self._edges())}{html_table(HEADER, self._rows())}"

    def _headline(self) -> str:
        unfinished = "not converged" if self.finished else "stopped before its end: the best so far"
        end = "converged" if self.converged else unfinished
        starts = f"; the best of {len(self.optima)} starts" if len(self.optima) > 1 else ""
        size = f"{quantity(len(self.dag), 'variable')}, {quantity(len(self.dag.edges), 'edge')}"
        return f"StructuralRun: {size}, score {self.score:,.3f}; {end}{starts}"

    def _edges(self) -> list[list[object]]:
        return [[f"{spell(a)} -> {spell(b)}", why] for (a, b), why in self.directions.items()]

    def _rows(self) -> list[list[object]]:
        return [
            [k, len(r.dag.edges), f"{r.score:,.3f}", f"{r.log_likelihood:,.3f}", f"{r.seconds:.3g}"]
            for k, r in enumerate(self.graphs)
        ]


class RoundOptions(Limits, total=False):
    """What `structural_em` takes besides: the limits of long calls, and when it ends."""

    rounds: int
    """The most rounds of expectations and searches: 20."""
    tol: float
    """In nats: EM within a round ends when an iteration gains no more (1e-6)."""
    max_iter: int
    """The most iterations of EM within a round: 100."""


@order_of_arguments("hidden", "score", "method", "prior")
@one_blas_thread
def structural_em(
    data: RowsLike,
    score: ScoresNodes | None = None,
    method: SearchesGraphs | None = None,
    prior: PriorLike | None = None,
    *,
    hidden: HiddenLike = (),
    constraints: Constraints | None = None,
    families: FamiliesLike | None = None,
    starts: int | None = None,
    start: DagLike | None = None,
    seed: int = 0,
    **options: Unpack[RoundOptions],
) -> StructuralRun:
    """The network, graph and parameters, that rows with missing cells support best: by default BIC and `HillClimb()`.

    In each round the statistics that the rows are expected to have under the current network feed the score, and the method
    searches the graph that scores best on them; then EM finds the parameters of that graph (`tol`, `max_iter`). It ends when the
    graph stays, when the observed score no longer rises, or after `rounds` rounds. `hidden` declares variables that no row shows,
    with their states, as in `em`. Any method that works on scores may be given; those with a shape of their own, `ChowLiu` and
    `TAN`, give graphs of that shape, as in `search`, also where the score would rather have fewer edges.

    `families={"y": Logistic(), "n": PoissonLog()}` makes nodes regressions on whatever parents they get, as in `search`: they are
    scored on the completed rows, each weighed by its probability. Cells of states and numbers may be missing anywhere: points
    stand for missing numbers that regressions may have as parents, as in `em`, and a note says how many rows these make, and how
    long a regression of them takes.

    A family whose variance falls to zero in EM (a number that is constant, or a combination of others, once the missing cells are
    filled in), or a regression whose coefficients grow without end, has no estimate: it is left out, with all that add parents to
    it, and the round is searched again; a note names it.

    With BIC, AIC and LogLikelihood the observed score is ln p(observed | parameters) less the penalty, and no round lowers it:
    one that would (draws stand for a large posterior, or EM came to another optimum) is not taken, and ends the run. With
    `Evidence` expected counts feed the score as if they had been seen, for which there is no guarantee; the best network is kept
    by the approximation of Cheeseman & Stutz, ln p(D | graph) + ln p(observed | parameters) − ln p(D | parameters), where D is
    what is expected.

    The graph to begin with: `start`, a network, a graph, or the result of another run; else the best forest on the rows that show
    both of a pair (of numbers: the search on the moments that EM finds with all variables joined). With hidden variables there
    are `starts` starts (5) with random links from the hidden to the observed variables, and parameters drawn with `seed`; the
    best is kept. Between rounds parameters are of maximum likelihood, with `Evidence(prior)` posterior means; `prior` is that of
    the final network. Limits are those of long calls: when `time_limit`, in seconds, is reached, or on
    Ctrl-C, the best network so far is returned; `checkpoint` is a directory in which the run keeps what it has found: killed or
    stopped, the same call goes on from there, as in `em`.

    >>> rows = {"rain": list("nnyy?nny") * 8, "wet": list("nnyynn?n") * 8, "moon": list("nfnf") * 16}
    >>> run = structural_em(scan(rows, missing=["?"]))
    >>> run.dag, round(run.score, 2), run.converged
    (Dag('moon; rain -> wet'), -108.68, True)
    """
    if isinstance(data, Sequences):
        raise FitError(
            "structure with hidden variables or missing cells of sequences is not attempted: search(sequences, lags=1) is for "
            "complete ones, and em(template, sequences) learns the parameters of a template"
        )
    own, budget = options_of("structural_em", options, RoundOptions, rounds=20, tol=1e-6, max_iter=100)
    rounds, tol, max_iter = own["rounds"], own["tol"], own["max_iter"]
    chosen = _check_method(method)
    for name, value, least in (("rounds", rounds, 1), ("max_iter", max_iter, 1), ("starts", 1 if starts is None else starts, 1)):
        check_number(name, value, least)
    if not isinstance(tol, (int, float)) or not tol >= 0:
        raise FitError(f"tol is a number of at least 0, not {tol!r}")
    start = start.model if isinstance(start, StructuralRun) else start
    known = start if isinstance(start, BayesNet) else None
    data, regressions = with_families(data, families, known)
    task = replace(_task(data, hidden, known, budget.threads), families=regressions, room=budget.room)
    width = sum(4.0 if isinstance(v, Finite) else 8.0 for v in task.variables.values()) + 8.0
    check_room(budget.room, width * task.rows.n_rows, "the rows of structural EM", "take fewer columns or rows")
    rules = constraints
    lost = [n for n, v in task.variables.items() if isinstance(v, NotNormal) and not v.whole and task.rows.missing.get(n)]
    below = [n for n, v in task.variables.items() if isinstance(v, Real) or n in task.families]
    if lost and below:
        note(f"numbers of which cells are missing, and that are neither normal nor counts, have no children: {listing(lost)}")
        own_rules = Forbid(*((number, child) for number in lost for child in below if child != number))
        rules = own_rules if constraints is None else constraints + own_rules
    # statistics that speak of the variables, and say nothing: what is expected takes their place in each round
    needs = {v: family_of(v, []).needs(v, []) for v in task.variables.values()}
    blank = [
        Counts((v,), np.zeros(v.n_states)) if isinstance(v, Finite) else nothing([v.name]).deriving(request.derived)
        for v, request in needs.items()
    ]
    said = Statistics(blank, task.rows.weight, task.variables.values())
    problem = search_problem(said, score, rules, budget, seed=seed, what="structural EM", regressions=regressions)
    integrated = lost_numbers(problem, task.rows.missing)
    if isinstance(chosen, GES):  # else it would be said after the first graph, which is none of its own
        chosen.refuse_regressions(problem)
    by_name = dict(sorted(task.variables.items()))
    rows = IncompleteRows(task.rows, by_name, problem.seed, whole=bool(regressions), integrated=integrated)
    starts = starts or (STARTS if task.hidden and start is None else 1)
    how = SearchOptions(chosen, rounds, tol, max_iter, as_prior(prior), start, starts)
    search = StructuralSearch(task, rows, problem, how)
    asked: dict[str, Any] = {"hidden": hidden, "score": problem.score, "constraints": constraints, "families": families}
    asked |= {**how._asdict(), "seed": seed, "start": start if known is None else {n: known[n] for n in known}}
    with said_once(), checkpoint_of(budget.checkpoint, "structural_em", task.rows, asked) as problem.progress.memory:
        note_points(rows, integrated, any_regressions=bool(regressions))
        run = _result(search, search.run())
        if run.finished:
            problem.progress.memory.finish()
        return run


def _result(search: StructuralSearch, finished: bool) -> StructuralRun:
    """What the search came to; a hidden variable without links is noted."""
    assert search.best is not None
    graphs = tuple(search.graphs[search.of_best])
    problem, method = search.problem, search.options.method
    ways = directions(problem, method, problem.parents(search.best.model.dag))
    rising = [r for k, r in enumerate(graphs) if r.score >= max(g.score for g in graphs[: k + 1])]
    for name in search.task.hidden:
        if not any(name in edge for edge in search.best.model.dag.edges):
            note(f"the hidden variable {name!r} has no links in the best graph: the data does not call for it")
    model, finished = search.with_prior(search.best.model, finished)
    trace = tuple(Iteration(r.score, r.log_likelihood, r.seconds) for r in rising)
    optima = tuple(max(r.score for r in g) for g in search.graphs if g)
    facts = (graphs, search.best.score, optima, finished, method, ways, search)
    return StructuralRun(model, trace, search.converged and finished, *facts)


@contextmanager
def said_once() -> Iterator[None]:
    """Notes that differ in numbers or examples only are given once in here: rounds and starts would repeat them."""
    said: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def once(message: Any, category: Any, *where: Any) -> None:
            what = re.sub(r"[\d,.]+", "", str(message).split(":")[0])
            if not issubclass(category, SufficeNote) or what not in said:
                said.add(what)
                show(message, category, *where)

        warnings.showwarning = once  # type: ignore[assignment]
        yield


def _check_method(method: Any) -> Method:
    known = "a method is an object such as HillClimb(), Tabu(), Orders() or Exact()"
    chosen: Method = check_has(HillClimb() if method is None else method, "run", known)
    if isinstance(method, (PC, MMHC)):
        raise FitError(
            f"{type(method).__name__} tests independence in rows, and expected statistics would pass for more rows "
            f"than were seen; structural EM takes methods that work on scores: {BY_SCORES}"
        )
    return chosen


def refuse_hidden_numbers(hidden: Any) -> None:
    """Refuse hidden numbers: which columns they explain is not searched for."""
    unseen = [hidden] if isinstance(hidden, Real) else hidden.values() if isinstance(hidden, Mapping) else hidden
    numbers = [v.name for v in unseen if isinstance(v, Real)] if isinstance(unseen, Iterable) else []
    if numbers:
        name = numbers[0]
        python = f"em(dag, data, hidden=[Real({name!r})]), or factors(data, k) for all columns"
        raise FitError(
            f"which columns the hidden number {name!r} explains is not searched for: give the graph, "
            f"{Remedy(python, f'suffice fit DAG DATA --hidden {name}:real')}"
        )


def _task(data: Any, hidden: Any, start: BayesNet | None, threads: int | None) -> Task:
    """The rows and variables, checked, with the states of the network to start with; what identifies rows is left out."""
    if isinstance(data, Statistics):
        raise DataError(
            f"statistics are of complete rows: {Remedy('search(statistics)', 'suffice learn without --hidden')} finds their "
            f"graph; structural EM needs the rows"
        )
    rows = scan(data)
    if start is not None:
        hidden = hidden or [v for n, v in start.variables.items() if n not in rows.columns]
        rows = rows.with_variables({n: v for n, v in start.variables.items() if n in rows.columns})
    refuse_hidden_numbers(hidden)
    if not rows.n_rows or not rows.weight > 0:
        raise DataError("there are no rows to learn a graph from")
    unseen = [hidden] if isinstance(hidden, Finite) else hidden if isinstance(hidden, Iterable) else ()
    names: list[Any] = [v if isinstance(hidden, Mapping) else getattr(v, "name", None) for v in unseen]
    left_out = set(rows.identifiers) - set(names)
    if left_out:
        note(f"left out of the search, with nearly as many states as rows: {listing(sorted(left_out))}")
    nodes = dict.fromkeys([*(c for c in rows.columns if c not in left_out), *(n for n in names if n)])
    return task_of(Dag({n: [] for n in nodes}), rows, hidden=hidden, threads=threads)
