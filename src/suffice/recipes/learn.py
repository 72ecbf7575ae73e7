"""Learn: from data to a network, graph and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from suffice.basis.blas import one_blas_thread
from suffice.basis.limits import Limits, options_of
from suffice.basis.variables import Finite, Real
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, note
from suffice.errors.remedies import FAMILY_OPTIONS
from suffice.families.priors.priors import BDeu, Gamma, NormalInverseGamma, suitable
from suffice.families.protocol.family import Estimate, Mean
from suffice.learning.fit import fit
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet, MarkovNet
from suffice.models.undirected.log_linear import LogLinear
from suffice.recipes.stepwise import Stepwise
from suffice.statistics import Statistics
from suffice.structure.constraints import Constraints
from suffice.structure.problem import is_directed
from suffice.structure.results.found import Found
from suffice.structure.results.found_graph import FoundGraph
from suffice.structure.search import search

if TYPE_CHECKING:
    from suffice.basis.argument_types import (
        FamiliesLike,
        HiddenLike,
        LagsLike,
        PriorLike,
        RowsLike,
        ScoresNodes,
        SearchesGraphs,
        VariablesLike,
    )
    from suffice.models.gaussian_markov_net import GaussianMarkovNet
    from suffice.structure.undirected.graph_method import GraphMethod

SomeModel = TypeVar("SomeModel", BayesNet, Chain)

PRIOR = (BDeu(1), NormalInverseGamma(), Gamma())
"""The prior of what is learned: BDeu(1) for tables, NormalInverseGamma() for numbers, Gamma() for the rates of counts."""


class LearnOptions(Limits, total=False):
    """What `learn` takes besides: the limits of long calls, and what columns are."""

    variables: VariablesLike | None
    """What columns are, as in `scan`."""
    integers: type[Real] | type[Finite] | None
    """What columns of whole numbers are, as in `scan`."""
    starts: int | None
    """Of `structural_em`, where variables are hidden."""


@overload
def learn(  # type: ignore[overload-overlap]  # sequences have columns, too, as rows do: they come first
    data: Sequences,
    score: ScoresNodes | None = ...,
    method: SearchesGraphs | None = ...,
    prior: PriorLike | None = ...,
    *,
    constraints: Constraints | None = ...,
    lags: LagsLike | None = ...,
    estimate: Estimate | None = ...,
    seed: int = ...,
    **options: Unpack[LearnOptions],
) -> Chain: ...
@overload
def learn(
    data: RowsLike | Statistics,
    score: ScoresNodes | None = ...,
    *,
    method: GraphMethod,
    constraints: Constraints | None = ...,
    seed: int = ...,
    **options: Unpack[LearnOptions],
) -> MarkovNet | GaussianMarkovNet: ...
@overload
def learn(
    data: RowsLike | Statistics,
    score: ScoresNodes | None = ...,
    method: SearchesGraphs | None = ...,
    prior: PriorLike | None = ...,
    *,
    hidden: HiddenLike = ...,
    constraints: Constraints | None = ...,
    families: FamiliesLike | None = ...,
    estimate: Estimate | None = ...,
    seed: int = ...,
    **options: Unpack[LearnOptions],
) -> BayesNet: ...
@one_blas_thread
def learn(
    data: RowsLike | Sequences | Statistics,
    score: ScoresNodes | None = None,
    method: SearchesGraphs | None = None,
    prior: PriorLike | None = PRIOR,
    *,
    hidden: HiddenLike = (),
    constraints: Constraints | None = None,
    lags: LagsLike | None = None,
    families: FamiliesLike | None = None,
    estimate: Estimate | None = None,
    seed: int = 0,
    **options: Unpack[LearnOptions],
) -> BayesNet | Chain | MarkovNet | GaussianMarkovNet:
    """The network that the data supports best: `search` finds its graph, by default `Orders()` and BIC, and `fit` its parameters.

    By default the parameters are posterior means: of tables under BDeu(1), of numbers under NormalInverseGamma(), of counts under
    Gamma(); `prior=None` gives maximum likelihood. Where cells are missing, or variables `hidden`, graph and parameters are
    learned by `structural_em`, with `HillClimb()` by default, and a note says so. Columns that identify rows are left out,
    with a note. To see how the graph was found, how sure it is and why each edge is there, call `search`, which takes the same
    arguments, and `fit(found.dag, data)`.

    `variables` and `integers` say what columns are, as in `scan`; `starts` is that of `structural_em`.
    `families={"y": Logistic()}` makes nodes regressions, in the search and in the fit; they have no prior but their ridge. Beside
    missing cells see `structural_em`.

    By a method that finds undirected graphs, such as `Decomposable()`, a Markov network of the graph is learned, by maximum
    likelihood and without the prior; of `Stepwise()`, that of its log-linear model.

    Of `sequences(...)` a `Chain` is learned, whose parents may lie up to `lags` steps back, as in `search`.

    Limits are as in `search`: `checkpoint` is a directory in which the search, or structural EM, keeps what it has found: killed
    or stopped, the same call goes on from there.

    >>> rows = {"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"], "moon": ["new", "new", "full", "full"] * 10}
    >>> bn = learn(rows)
    >>> bn.dag, bn["wet"].probs.round(2)
    (Dag('moon; rain -> wet'), array([[0.99, 0.01],
           [0.06, 0.94]]))
    """
    own, budget = options_of("learn", options, LearnOptions)
    variables, integers = own["variables"], own["integers"]
    asked: dict[str, Any] = {"constraints": constraints, "seed": seed, **budget.keywords}
    if isinstance(data, Sequences):
        data = data if variables is None else data.with_variables(variables)
        if integers is not None:
            raise DataError("integers= is said when rows are first scanned: sequences(data, by, order, integers=...)")
        if families:
            raise FitError(f"{FAMILY_OPTIONS} are for rows: regressions in searches of sequences are not attempted")
        if hidden:
            raise FitError(
                "structure with hidden variables or missing cells of sequences is not attempted: give the template, "
                "em(template, sequences, hidden=...)"
            )
        found = search(data, score, method, lags=lags, **asked)
        chain: Chain = fit(found.template, data, prior=suitable(prior, found.problem.variables, PRIOR), estimate=estimate)
        return _tell_how(chain, found)
    if lags is not None:
        raise DataError("lags= need sequences: learn(sequences(data, by, order), lags=...)")
    if isinstance(data, Statistics) and (variables is not None or integers is not None):
        raise DataError("statistics know what their variables are: variables= and integers= are for rows")
    rows = data if isinstance(data, Statistics) else scan(data, variables, integers=integers)
    if hidden and not is_directed(method):
        raise FitError(f"{type(method).__name__} finds undirected graphs, and hidden variables of those are not attempted")
    if not isinstance(rows, Statistics) and is_directed(method) and (hidden or any(rows.missing.values())):
        asked |= {"starts": own["starts"], "families": families}
        return _from_incomplete(rows, hidden, score, method, prior, estimate=estimate, **asked)
    found = search(rows, score, method, families=families, **asked)
    learned: BayesNet | MarkovNet | GaussianMarkovNet = network_of(found, rows, prior, estimate)
    return learned


def network_of(found: Any, rows: Any, prior: Any = PRIOR, estimate: Estimate | None = None) -> Any:
    """The network of a graph that was found in these rows: what `learn` makes of what `search` gives."""
    if not found.finished:
        note("the search was stopped before its end; the network has the best graph so far")
    if isinstance(found, FoundGraph):
        return fit(LogLinear(found.generators) if isinstance(found.method, Stepwise) else found.graph, rows)
    bound = suitable(prior, found.problem.variables, PRIOR)
    seen: Any = found.problem.data
    if found.problem.families and isinstance(seen, Data):  # what was states in the search is, though the parent of a regression
        seen = seen.as_declared()
    return _tell_how(fit(found.dag, seen, prior=bound, estimate=estimate, families=found.problem.families), found)


def _from_incomplete(
    rows: Data, hidden: Any, score: Any, method: Any, prior: Any, *, estimate: Estimate | None, **asked: Any
) -> BayesNet:
    from suffice.recipes.structural.structural_em import refuse_hidden_numbers, structural_em

    refuse_hidden_numbers(hidden)
    unseen = hidden.values() if isinstance(hidden, Mapping) else hidden
    known = [*rows.schema.values(), *(v if isinstance(v, Finite) else Finite("hidden", v) for v in unseen)]
    if estimate not in (None, Mean()):
        raise FitError(
            "with missing cells learn takes posterior means; call structural_em, then em(run.dag, data, estimate=Mode())"
        )
    run = structural_em(rows, score, method, suitable(prior, known, PRIOR), hidden=hidden, **asked)
    gaps = "; gaps are taken to be at random: missingness(data) looks for signs against that"
    told = gaps if any(rows.missing.values()) else ""
    note(f"there are missing cells or hidden variables: {run.model.fit_info}{told}")
    return run.model


def _tell_how(model: SomeModel, found: Found) -> SomeModel:
    """The same model, which also says how its graph was found."""
    score = "" if found.score is None else f", {found.problem.score} {found.score:,.3f}"
    return model.with_fit_info(f"{model.fit_info}; graph by {type(found.method).__name__}{score}")
