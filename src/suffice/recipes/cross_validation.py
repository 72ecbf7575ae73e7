"""Cross-validation: how well what a method learns predicts rows, or whole sequences, that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Packed
from suffice.basis.limits import Limits, options_of
from suffice.basis.output.display import OneTable
from suffice.engines.checkpoints import checkpoint_of
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, SufficeNote, listing, nearest, note, quantity, whole
from suffice.errors.earlier import order_of_arguments
from suffice.errors.remedies import FAMILY_OPTIONS
from suffice.families.named_families import for_search
from suffice.families.priors.priors import suitable
from suffice.families.protocol.family import Estimate, frame
from suffice.graphs import Cpdag, Dag, Template
from suffice.learning.fit import fit
from suffice.recipes.compared_fits import ComparedFits, as_fits, check_folds, compare_fits, standard_error
from suffice.recipes.learn import PRIOR
from suffice.statistics import Statistics
from suffice.structure.constraints import Constraints
from suffice.structure.problem import is_directed
from suffice.structure.search import problem_of, search
from suffice.structure.windows import StepWindow

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, LagsLike, PriorLike, RowsLike, ScoresNodes, SearchesGraphs
    from suffice.graphs.template import TemplateLike
    from suffice.models.linear_chain.windows import LinearChain
    from suffice.objectives.principles import ObjectiveLike, PenaltyLike


class Fold(NamedTuple):
    """What was learned from the rows outside a fold: ln p of the rows inside, their number or weight, the size of the network."""

    log_likelihood: float
    weight: float
    n_edges: int
    n_parameters: int
    dag: Dag | Template

    @property
    def per_row(self) -> float:
        return self.log_likelihood / self.weight


class FoldOptions(Limits, total=False):
    """What `cross_validate` takes besides: the limits of long calls, and what is compared."""

    penalty: PenaltyLike | None
    """The penalty of objectives that are about the target."""
    target: str | None
    """The column that is predicted where principles are compared."""
    lags: LagsLike | None
    """Of sequences: how far back a search looks, as in `search`."""


@overload
def cross_validate(
    data: RowsLike | Sequences,
    *,
    method: TemplateLike | LinearChain,
    objective: ObjectiveLike | Sequence[ObjectiveLike] | Mapping[str, ObjectiveLike],
    folds: int = ...,
    seed: int = ...,
    **options: Unpack[FoldOptions],
) -> ComparedFits: ...
@overload
def cross_validate(
    data: RowsLike | Sequences,
    *,
    method: Mapping[str, Callable[..., object]],
    folds: int = ...,
    seed: int = ...,
    **options: Unpack[FoldOptions],
) -> ComparedFits: ...
@overload
def cross_validate(
    data: RowsLike | Sequences,
    score: ScoresNodes | None = ...,
    method: SearchesGraphs | TemplateLike | None = ...,
    prior: PriorLike | None = ...,
    *,
    folds: int = ...,
    constraints: Constraints | None = ...,
    families: FamiliesLike | None = ...,
    estimate: Estimate | None = ...,
    seed: int = ...,
    **options: Unpack[FoldOptions],
) -> CrossValidation: ...
@order_of_arguments("method", "folds")
@one_blas_thread
def cross_validate(
    data: RowsLike | Sequences,
    score: ScoresNodes | None = None,
    method: SearchesGraphs | TemplateLike | LinearChain | Mapping[str, Callable[..., object]] | None = None,
    prior: PriorLike | None = PRIOR,
    *,
    folds: int = 10,
    constraints: Constraints | None = None,
    families: FamiliesLike | None = None,
    estimate: Estimate | None = None,
    objective: ObjectiveLike | Sequence[ObjectiveLike] | Mapping[str, ObjectiveLike] | None = None,
    seed: int = 0,
    **options: Unpack[FoldOptions],
) -> CrossValidation | ComparedFits:
    """The log-likelihood of held-out rows: each of some folds in turn is predicted by what the others teach.

    `method` is a method of search, by default `Orders()`, or a graph, and then only its parameters are learned. The rows are put
    into folds at random, the same for the same seed, so that two methods can be compared fold by fold; weights that are whole
    numbers count equal rows, which are dealt out one by one. The parameters have the prior that `learn` gives them. With
    `prior=None`, maximum likelihood, a held-out row may be impossible, and the log-likelihood is then −inf.

    Of `sequences(...)`, whole sequences are held out, `method` may be a template, `lags` are as in `search`, and rows are steps.

    Principles are compared by what they predict of one column, `target`, in the same folds: `objective` is one objective,
    several, or several by name, for one graph, with a `penalty` for those that are about the target; or `method` has functions
    by name, each from rows to a model: `{"plain": lambda rows: fit(graph, rows), "tagger": lambda rows: fit(chain, rows)}`.
    The result, `ComparedFits`, has the log-likelihood of rows, that of the target given the others, accuracy, Brier's score,
    the error of calibration, and seconds, of each. Of `sequences(...)`, templates and linear chains can be compared.

    `families` are those of nodes that are regressions, in the search and in the fit.

    Where cells are missing, graphs are found by `structural_em` and parameters by EM; a held-out row counts as far as it was
    observed.

    Limits are as in `search`, but `time_limit` is in seconds for each search. Ctrl-C returns the folds done so far. `checkpoint`
    is a directory for the folds done so far: killed or stopped, the same call goes on from there.

    >>> rows = {"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"], "moon": ["new", "new", "full", "full"] * 10}
    >>> learned, empty = cross_validate(rows, folds=4), cross_validate(rows, method="rain; wet; moon", folds=4)
    >>> learned.mean > empty.mean, [f.n_edges for f in learned.folds]
    (True, [1, 1, 1, 1])
    >>> from suffice import Conditional, Likelihood
    >>> graph, goals = "wet -> rain; wet -> moon", [Likelihood(), Conditional("wet")]
    >>> both = cross_validate(rows, method=graph, objective=goals, folds=4)
    >>> both["Conditional('wet')"].accuracy
    0.975
    """
    if isinstance(data, Statistics):
        raise DataError("cross-validation parts rows, and statistics have none; give the data itself")
    folds = whole(folds, "the number of folds", 2)
    own, budget = options_of("cross_validate", options, FoldOptions)
    penalty, target, lags = own["penalty"], own["target"], own["lags"]
    fits = as_fits(method, objective, penalty, None if prior is PRIOR else prior)
    if fits is not None:
        if budget.checkpoint is not None:
            raise FitError("fits that are compared have no checkpoint: what a function does cannot be told from its name")
        of_search = {"score": score, "estimate": estimate, "constraints": constraints, "lags": lags, "families": families}
        for option, value in {**of_search, **budget.keywords, "progress": None}.items():
            if value is not None:
                raise FitError(f"{option}= is not for fits that are compared: give it to the functions, lambda rows: fit(...)")
        return compare_fits(data, fits, folds, target, seed, budget.progress)
    if families and isinstance(data, Sequences):
        raise FitError(f"{FAMILY_OPTIONS} are for rows: regressions in searches of sequences are not attempted")
    if families:
        data, families = for_search(scan(data), families)
    if penalty is not None or target is not None:
        raise FitError("penalty= and target= are for principles that are compared: objective=[Likelihood(), Conditional('y')]")
    if not is_directed(method):
        raise FitError(
            f"cross_validate compares Bayesian networks, and {type(method).__name__} finds undirected graphs: their penalty is "
            "chosen by held-out rows with select=HeldOut(5)"
        )
    rows, dag = (
        _steps(data, method, lags, score, constraints)
        if isinstance(data, Sequences)
        else _rows(data, method, folds, lags, score, constraints, families=families, seed=seed)
    )
    gappy = isinstance(rows, Data) and any(rows.missing.values())
    find: Any = search
    if gappy:
        from suffice.recipes.structural.structural_em import structural_em

        find = structural_em
        note(
            "there are missing cells: in each fold parameters are learned by EM, and graphs by structural EM; what is held out "
            "counts as far as it was observed"
        )
    how = suitable(prior, rows.schema.values(), PRIOR)
    watch = replace(budget, time_limit=None).watch("cross-validation")
    inside, limit = replace(budget, progress=False, checkpoint=None), budget.time_limit
    done: list[Fold] = []
    stopped = 0

    def fold(train: Any, test: Any) -> tuple[Fold, bool]:
        graph, finished = dag, True
        with warnings.catch_warnings():
            if gappy:  # without the notes that EM gives in every fold
                warnings.simplefilter("ignore", SufficeNote)
            if graph is None:
                train = train.hold()  # a search passes over its rows more than once
                asked: Any = {"constraints": constraints, "families": families, "seed": seed, **inside.keywords}
                found: Any = find(train, score, method, **(asked if gappy else {**asked, "lags": lags}))
                if not found.finished and (limit is None or (not gappy and found.seconds < limit)):
                    raise KeyboardInterrupt
                graph, finished = found.dag if gappy or found.lags is None else found.template, found.finished
            given: Any = (graph, train)
            bn = fit(*given, prior=how, estimate=estimate, families=families)
        return Fold(bn.log_likelihood(test), test.weight, len(graph.edges), bn.n_parameters, graph), finished

    what = {"method": method, "folds": folds, "score": score, "prior": how, "estimate": estimate, "constraints": constraints}
    what |= {"lags": lags, "families": families, "time_limit": limit, "seed": seed, "memory_limit": budget.memory_limit}
    with checkpoint_of(budget.checkpoint, "cross_validate", rows, what) as watch.memory, closing(watch):
        try:
            for train, test in rows.split(folds, seed):
                watch.check(f"fold {len(done) + 1} of {folds}")
                one, finished = watch.memory.answer(["fold", len(done)], partial(fold, train, test), _pack_fold, _unpack_fold)
                done.append(one)
                stopped += not finished
            watch.memory.finish()
        except FitError as error:
            raise FitError(
                f"fold {len(done) + 1} of {folds}: {error.said} (a part of the rows may lack what is rare in all)"
            ) from None
        except KeyboardInterrupt as stop:
            if not done:
                raise watch.too_early(stop, "any fold was done") from None
            note(f"the cross-validation was stopped after {len(done)} of {folds} folds")
    if stopped:
        note(f"{stopped} of the searches reached the time limit: their graphs are the best so far")
    return CrossValidation(tuple(done), folds, watch.seconds)


def _pack_fold(value: tuple[Fold, bool]) -> Packed:
    """A fold, and whether its search came to its end, for a checkpoint."""
    (*numbers, graph), finished = value
    parents, steps = {x: graph.parents(x) for x in graph.nodes}, None
    if isinstance(graph, Template):
        steps = [{x: graph.parents_at(x, t) for x in graph.nodes} for t in range(graph.order)]
    return [numbers, parents, steps, finished], ()


def _unpack_fold(packed: Packed) -> tuple[Fold, bool]:
    (log_likelihood, weight, n_edges, n_parameters), parents, steps, finished = packed[0]
    graph = Dag(parents) if steps is None else Template(parents, steps or None)
    return Fold(log_likelihood, weight, n_edges, n_parameters, graph), finished


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(OneTable):
    """The result of `cross_validate`. It prints as a table of folds.

    >>> from suffice import BDeu, cross_validate
    >>> judged = cross_validate({"rain": list("nnyy") * 8, "wet": list("nnyn") * 8}, method="rain -> wet", prior=BDeu(1), folds=4)
    >>> len(judged.folds), round(judged.mean, 3)
    (4, -1.13)
    """

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
        """The standard error of `mean`, by the spread of the folds; NaN where a fold is −inf, or there is but one."""
        return standard_error([f.per_row for f in self.folds])

    def plot(self, ax: Any = None) -> Any:
        """ln p of a held-out row in each fold, and their mean, by matplotlib; gives the axes."""
        from suffice.basis.pictures.plots import plot_intervals

        rows = [f"fold {i + 1}" for i in range(len(self.folds))]
        error = f" ± {self.error:.2g}" if len(self.folds) > 1 else ""
        line = (self.mean, f"mean {self.mean:.6g}{error}")
        each = [f.per_row for f in self.folds]
        return plot_intervals(ax, rows, [("fold", each, None, None)], x="held-out log-likelihood per row", upright=line)

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
        error = f" ± {self.error:.2g} (standard error)" if len(self.folds) > 1 else ", of which there is no standard error"
        return (
            f"held-out log-likelihood per row {self.mean:.6g}{error}; "
            f"{quantity(len(self.folds), 'fold')}{stopped}; {self.seconds:.3g} s{impossible}"
        )


def _rows(
    data: Any, method: Any, folds: int, lags: Any, score: Any, constraints: Constraints | None, **asked: Any
) -> tuple[Data, Dag | None]:
    """The rows that are parted, and the graph, if one was given."""
    if lags is not None:
        raise DataError("lags= need sequences: cross_validate(sequences(data, by, order), lags=...)")
    dag = None if _is_method(method) else method.to_dag() if isinstance(method, Cpdag) else Dag(method)
    every = scan(data)
    names: Sequence[str]
    if dag is not None:
        if score is not None or constraints is not None:
            raise FitError("a score and constraints are for a search; the graph is given")
        if strange := [name for name in dag.nodes if name not in every.columns]:
            near = nearest(strange[0], every.columns)
            raise DataError(f"the data have no column {listing(strange)}, which the graph names{near}")
        names = dag.nodes
    elif any(every.missing.values()):
        names = sorted(n for n in every.columns if n not in every.identifiers)
    else:  # those that would be searched
        names = problem_of(data, score, constraints, **asked).names
    rows = every.select(names)
    check_folds(rows, folds)
    return rows, dag


def _steps(
    sequences: Sequences, method: Any, lags: Any, score: Any, constraints: Constraints | None
) -> tuple[Sequences, Template | None]:
    """The sequences that are parted, and the template, if one was given."""
    if _is_method(method):
        return StepWindow.of(sequences, lags).sequences, None
    if score is not None or constraints is not None or lags is not None:
        raise FitError("a score, constraints and lags are for a search; the template is given")
    template = Template(method)
    sequences.data.require_complete(template.nodes)
    return sequences.select(template.nodes), template


def _is_method(method: Any) -> bool:
    return method is None or hasattr(method, "run")
