"""Search: from data to the graph that scores best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import OutOfTime
from suffice.basis.libraries import sc
from suffice.basis.limits import NO_LIMITS, Budget, Limits, bytes_of, options_of
from suffice.basis.variables import Finite, Variable
from suffice.engines.checkpoints import checkpoint_of
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, listing, note, quantity, whole
from suffice.errors.remedies import FAMILIES, FAMILY_OPTIONS, Remedy, argument, declaration
from suffice.families.named_families import for_search
from suffice.numerics.kernels.compiler.compiling import compiling_seconds
from suffice.objectives.scores import BIC, GraphPosterior
from suffice.statistics import Moments, Statistics
from suffice.structure.constraints import Constraints, Require
from suffice.structure.methods.orders import USUAL
from suffice.structure.problem import Method, Outcome, Problem, check_has, is_directed
from suffice.structure.results.explanations import model_limit
from suffice.structure.results.found import Found
from suffice.structure.results.found_graph import FoundGraph
from suffice.structure.results.plan import Plan, check, in_words
from suffice.structure.rules import Rules
from suffice.structure.undirected.graph_method import GraphMethod
from suffice.structure.windows import StepWindow, with_first_steps

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, LagsLike, RowsLike, ScoresNodes, SearchesGraphs
    from suffice.structure.methods.exact import Branching


@overload
def search(
    data: RowsLike | Sequences | StepWindow | Statistics | Moments,
    score: ScoresNodes | None = ...,
    *,
    method: GraphMethod,
    constraints: Constraints | None = ...,
    seed: int = ...,
    dry_run: Literal[False] = ...,
    **limits: Unpack[Limits],
) -> FoundGraph: ...
@overload
def search(
    data: RowsLike | Sequences | StepWindow | Statistics | Moments,
    score: ScoresNodes | None = ...,
    method: SearchesGraphs | None = ...,
    constraints: Constraints | None = ...,
    *,
    lags: LagsLike | None = ...,
    families: FamiliesLike | None = ...,
    seed: int = ...,
    dry_run: Literal[False] = ...,
    **limits: Unpack[Limits],
) -> Found: ...
@overload
def search(
    data: RowsLike | Sequences | StepWindow | Statistics | Moments,
    score: ScoresNodes | None = ...,
    method: SearchesGraphs | None = ...,
    constraints: Constraints | None = ...,
    *,
    lags: LagsLike | None = ...,
    families: FamiliesLike | None = ...,
    seed: int = ...,
    dry_run: Literal[True],
    **limits: Unpack[Limits],
) -> Plan: ...
@one_blas_thread
def search(
    data: RowsLike | Sequences | StepWindow | Statistics | Moments,
    score: ScoresNodes | None = None,
    method: SearchesGraphs | None = None,
    constraints: Constraints | None = None,
    *,
    lags: LagsLike | None = None,
    families: FamiliesLike | None = None,
    seed: int = 0,
    dry_run: bool = False,
    **limits: Unpack[Limits],
) -> Found | FoundGraph | Plan:
    """The graph that scores best on the data: by default BIC, and `Orders()`, which allows up to three parents.

    `data` is anything that `scan` takes, or `Statistics` that hold what the search asks for. Columns that only tell rows
    apart (names, dates, running numbers) are left out, with a note; a finite variable gets no real parent unless it is a
    regression. The result does not depend on the order of columns, rows or states, nor on `threads`; a run that a limit stopped
    is the exception, and says so.

    `families={"y": Logistic(), "n": PoissonLog()}` makes nodes regressions on whatever parents they get, numbers among them, as
    in `fit`. Each set of parents is a fit of its own, which takes time: see `dry_run`. Where numbers separate the states of such
    a node, its score is the supremum of its likelihood. `Evidence` of a regression is Laplace's approximation, with its ridge as
    the prior of its effects. An offset, and trials, are always parents.

    Of `sequences(...)` the columns of earlier steps may be parents, too: up to `lags` steps back (by default 1), or each column
    as far as {column: steps} says. Only the present step is scored, on all steps that have these lags; see `found.template`. The
    first steps are searched apart, by the same method, if there are at least 10 sequences: `found.first`. Constraints may name
    lagged columns, such as `Forbid(("a[-1]", "b"))`; `a` itself is only that of the present step.

    A method whose edges have no direction (`GraphicalLasso`, `Neighbourhoods`, ...) gives a `FoundGraph`; there, an edge that
    constraints forbid or require is one in either direction. `Moments` of real columns are data enough for the first two.

    `limits` are those of all long calls (`suffice.limits`). When `time_limit`, in seconds, is reached, or on Ctrl-C, the best
    graph so far is returned. `memory_limit` bounds what the search takes beside the data, `threads` are as many as there are
    processors. `progress` shows the best score so far on standard error: by default on a terminal, after a second. With
    `checkpoint`, a directory, a search that was killed or stopped goes on when it is called again, and ends in the same bits
    (docs/scaling.md). `dry_run=True` only estimates the cost.

    >>> rows = {"rain": list("nnyy") * 8, "wet": list("nnyn") * 8, "moon": list("nf") * 4 + list("fn") * 12}
    >>> found = search(rows)
    >>> found.dag, round(found.score, 2), found.proved
    (Dag('moon; rain -> wet'), -62.38, True)
    >>> from suffice import sequences
    >>> search(sequences({"x": list("uuuuuuvvvvvv") * 9})).template.edges
    (('x[-1]', 'x'),)
    """
    chosen: Method = check_has(USUAL if method is None else method, "run", METHODS)
    _, budget = options_of("search", limits, Limits)
    rows: Any = StepWindow.of(data, lags) if isinstance(data, Sequences) or lags is not None else data
    name = type(chosen).__name__
    if isinstance(data, Sequences) and not is_directed(chosen):
        raise DataError(f"{name} finds graphs without directions, and steps of sequences have one: time's")
    problem = problem_of(rows, score, constraints, budget, seed=seed, method=chosen, what=name, families=families)
    chosen, problem = with_most_parents(chosen, problem, asked=method is not None)
    tell_of_few_rows(chosen, problem)
    if dry_run:
        return Plan.of(problem, chosen)
    if budget.checkpoint is not None and not is_directed(chosen):
        raise FitError(f"{name} keeps no checkpoint: searches for directed graphs do, and bootstrap")
    of_states = all(isinstance(v, Finite) for v in problem.variables)
    if not of_states and is_directed(chosen) and (limit := model_limit(problem.variables, problem.families)):
        note(limit)

    def search_window(place: StepWindow) -> Found:
        there = problem_of(place, score, constraints, budget.remaining(problem.progress), seed=seed)
        there.progress.memory = problem.progress.memory
        there_chosen: Any = chosen
        if getattr(chosen, "start", None) is not None:  # of fewer columns: where to start was said for all of them
            there_chosen = replace(there_chosen, start=None)
        found: Found = run_method(*with_most_parents(there_chosen, there))
        return found

    if budget.checkpoint is not None:
        asked = {"score": problem.score, "method": chosen, "constraints": constraints, "lags": lags, "families": families}
        asked |= {"seed": seed, "memory_limit": budget.memory_limit}
        problem.progress.memory = checkpoint_of(budget.checkpoint, "search", problem.data, asked)
    compiled_before = compiling_seconds()
    with problem.progress.memory:
        found: Found | FoundGraph = run_method(chosen, problem)
        if isinstance(found, Found):
            for remark in found.remarks_with_remedies if problem.families else ():
                note(remark)
            found = with_first_steps(found, rows, search_window) if isinstance(data, Sequences) else found
        if found.finished and budget.checkpoint is not None:
            problem.progress.memory.finish()
    if not found.finished and (compiling := compiling_seconds() - compiled_before) > 0.0:
        note(f"compiling kernels took {compiling:.1f} s of this search, once; `suffice warm` compiles all ahead")
    return found


def with_most_parents(method: Method, problem: Problem, *, asked: bool = True) -> tuple[Method, Problem]:
    """The method and the problem with the maximum of parents that holds.

    One that is only the method's default gives way to that of the constraints, of the variables they name, and to what statistics
    were gathered for; one that was `asked` for and was not gathered is refused.
    """
    chosen: Any = method
    if problem.constraints is not None and getattr(method, "max_parents", None) == getattr(type(method), "max_parents", None):
        usual = chosen.most_parents(problem.n) if hasattr(method, "most_parents") else getattr(method, "max_parents", None)
        named = [problem.constraints.most_parents(name) for name in problem.names]
        if isinstance(usual, int) and any(most is not None for most in named):
            limits = [usual if most is None else most for most in named]
            rules = replace(problem.rules, max_parents=np.minimum(problem.rules.max_parents, limits))
            chosen, problem = replace(chosen, max_parents=max(limits)), replace(problem, rules=rules)
    gathered = problem.data.max_parents if isinstance(problem.data, Statistics) else None
    most = int(problem.rules_of(chosen).max_parents.max(initial=0))
    if not gathered or most <= gathered or "max_parents" not in getattr(method, "__dataclass_fields__", ()):
        return chosen, problem
    if asked and most < problem.n - 1:
        raise FitError(
            f"the statistics were gathered for up to {gathered} parents, and {in_words(chosen)} asks for up to {most}: "
            f"search with {argument('max_parents', gathered)}, or gather them again, "
            f"{Remedy(f'gather(data, max_parents={most})', f'suffice gather --max-parents {most}')}"
        )
    note(f"at most {quantity(gathered, 'parent')}: the statistics were gathered for no more")
    return replace(chosen, max_parents=gathered), problem


def tell_of_few_rows(method: Method, problem: Problem) -> None:
    """Say so where the rows are so few that BIC would join each variable with about one other, all being independent.

    By chance, two columns gain more than ½ d ln N with the probability that a chi-square of d degrees exceeds d ln N.
    """
    bounded = "max_parents" in getattr(method, "__dataclass_fields__", ())
    if not bounded or isinstance(problem.score, GraphPosterior) or problem.n < 2:
        return
    states = np.median([v.n_states if isinstance(v, Finite) else 2 for v in problem.variables])
    df, weight = max(states - 1.0, 1.0) ** 2, max(problem.data.weight, 1.0)
    pairs = 0.5 * problem.n * (problem.n - 1)
    by_chance = pairs * float(sc.chdtrc(df, df * np.log(weight)))
    if by_chance >= problem.n:
        note(
            f"{weight:,.10g} rows are few for {problem.n:,} variables: of columns that are all independent, BIC would join about "
            f"{by_chance:,.0f} of {pairs:,.0f} pairs; {argument('score', 'EBIC(1)', 'ebic:1')} asks more of an edge the more "
            f"variables there are"
        )


def run_method(method: Method, problem: Problem) -> Any:
    """What a method finds; the best so far where a limit or Ctrl-C stops it."""
    if problem.memory_limit is not None:
        check(Plan.of(problem, method), problem.memory_limit)
    finished = True
    try:
        outcome = method_to_run(method, problem).run(problem)
    except (OutOfTime, KeyboardInterrupt) as stop:
        if problem.progress.best is None:
            raise problem.progress.too_early(stop, "any graph was found") from None
        best = problem.progress.best  # a method keeps its best parents on the clock, or a whole outcome
        outcome = best if isinstance(best, Outcome) or hasattr(best, "to_found") else Outcome(best)
        finished = False
    finally:
        problem.progress.close()
    problem.progress.settle()
    finished = finished and outcome.finished
    if isinstance(outcome, Outcome):
        return Found.of(problem, method, outcome, finished)
    return outcome.to_found(problem, method, finished)


def problem_of(
    data: Any,
    score: Any,
    constraints: Constraints | None,
    budget: Budget = NO_LIMITS,
    *,
    seed: int = 0,
    what: str = "searching",
    method: Any = None,
    families: Mapping[str, Any] | None = None,
    regressions: Mapping[str, Any] | None = None,
) -> Problem:
    """The problem in numbers; what is wrong with it is said here. Of sequences, `data` is a window over their steps.

    A `method` whose edges have no direction says itself what the constraints mean. `families` are as the user gives them,
    `regressions` as `for_search` gives them, where the data is not yet the rows that they are of.
    """
    if constraints is not None and not isinstance(constraints, Constraints):
        raise FitError(f"constraints are Forbid(...) + Require(...) + Tiers(...), not {constraints!r}")
    seed = whole(seed, "a seed", 0)
    lags: Mapping[str, int] | None = None
    if isinstance(data, Sequences):
        raise DataError(
            "this is for rows that do not depend on each other; search(sequences), bootstrap and learn are for sequences"
        )
    rows: Data | Statistics
    regressions = dict(regressions or {})
    if families:
        if isinstance(data, StepWindow):
            raise DataError(f"{FAMILY_OPTIONS} are for searches of rows: regressions in searches of sequences are not attempted")
        if isinstance(data, (Statistics, Moments)):
            raise DataError(f"{FAMILY_OPTIONS} need the rows: statistics say nothing of regressions")
        if not is_directed(method):
            name = type(method).__name__
            raise FitError(f"{name} finds graphs without directions, and {FAMILIES} are of nodes given their parents")
        data, regressions = for_search(scan(data), families)
    roles = [(role, child) for child, family in regressions.items() for role in family.roles]
    constraints = (constraints or Constraints()) + Require(*roles) if roles else constraints
    if isinstance(data, StepWindow):
        rows, lags, constraints = data.data, data.lags, data.constraints(constraints)
        variables = tuple(v for _, v in sorted(rows.schema.items()))
    else:
        data = Statistics([data], data.total) if isinstance(data, Moments) else data
        rows = data if isinstance(data, Statistics) else scan(data)
        variables = _variables(rows, getattr(method, "missing_cells", COMPLETED))
        named = dict.fromkeys(() if constraints is None else constraints.names, "the constraints name")
        if named or regressions:
            refuse_left_out(named | dict.fromkeys(regressions, "families name"), rows)
    if isinstance(rows, Statistics) and rows.suppression is not None:
        if method is not None and not is_directed(method):
            rows.require_all_cells(f"{type(method).__name__}, which finds graphs without directions,")
        note(f"{rows.suppression.in_words()}: what parents gain is counted where cells are left")
    if is_directed(method):
        kinds = variables, regressions
        rules = Rules.of_kinds(*kinds) if constraints is None else constraints.rules(*kinds)
    else:
        rules = method.rules(constraints or Constraints(), variables)
    asked = check_has(BIC() if score is None else score, "of_regression" if regressions else "local", SCORES)
    rules = replace(rules, names=tuple(v.name for v in variables))
    limits = budget.threads, None if budget.memory_limit is None else float(bytes_of(budget.memory_limit)), budget.watch(what)
    return Problem(rows, variables, asked, rules, seed, *limits, constraints, lags, regressions)


def method_to_run(method: Method, problem: Problem) -> Method | Branching:
    """What is run: the method, or one that keeps constraints that are about more than single edges by running it many times."""
    known = problem.constraints
    if known is None or not (known.adjacent or known.not_ancestor) or not is_directed(method):
        return method
    from suffice.structure.methods.exact import Branching

    pairs = ([(problem.number[a], problem.number[b]) for a, b in k] for k in (known.adjacent, known.not_ancestor))
    return Branching(method, *pairs)


def _variables(data: Data | Statistics, instead: str) -> tuple[Variable, ...]:
    """The variables to search over, by name; what cannot be searched is refused, what identifies rows is left out."""
    if isinstance(data, Statistics):
        known: Mapping[str, Variable] = data.variables
        left_out: set[str] = set()
    else:
        if gaps := [f"{name!r} {n:,}" for name, n in data.missing.items() if n]:
            raise DataError(
                f"there are missing cells ({listing(gaps, style='str')}, of {quantity(data.n_rows, 'row')}), and a search needs "
                f"complete rows; no row is ever dropped: {instead}"
            )
        known, left_out = data.schema, set(data.identifiers)
    if data.weight <= 0:
        raise DataError("there are no rows to learn a graph from")
    if left_out:
        note(f"left out of the search, as an identifier: {listing(sorted(left_out))}")
    variables = tuple(v for n, v in sorted(known.items()) if n not in left_out)
    if not variables:
        raise DataError("there are no columns to learn a graph from")
    return variables


def refuse_left_out(named: Mapping[str, str], data: Data | Statistics) -> None:
    """To name a column that is left out is a mistake that should be explained."""
    if isinstance(data, Statistics):
        return
    for name in data.identifiers:
        if name in named:
            raise FitError(
                f"{named[name]} {name!r}, which is left out of the search, as an identifier; "
                f"declare it to keep it: {declaration(name, type(data.schema[name]).__name__)}"
            )


METHODS = "a method is an object such as Orders(), HillClimb(), Exact() or PC()"
SCORES = "a score is LogLikelihood(), AIC(), BIC(), EBIC(1) or Evidence(prior)"

COMPLETED = f"{Remedy('structural_em(data) and learn(data)', 'methods that work on scores')} search with missing cells"
"""What to do about missing cells."""
