"""What a report is of: `subject_of` looks through what learners return for the model, how it was found, and the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

from suffice.basis.iteration import Run
from suffice.engines.data import Data
from suffice.errors import ModelError
from suffice.families.priors.priors import suitable
from suffice.learning.fit import fit
from suffice.models.chain import Chain
from suffice.models.crf import Crf
from suffice.models.gaussian_markov_net import GaussianMarkovNet
from suffice.models.networks import BayesNet, MarkovNet
from suffice.models.rbm import RBM
from suffice.recipes.learn import PRIOR
from suffice.recipes.structural.structural_em import StructuralRun
from suffice.structure.results.found import Found
from suffice.structure.results.found_graph import FoundGraph

KINDS = {
    "bayes_net": "Bayesian network",
    "markov_net": "Markov network",
    "gaussian_markov_net": "Gaussian Markov network",
    "chain": "Chain of sequences",
}
"""What the models of files are called in a report."""


@dataclass(frozen=True)
class ReportTrace:
    """What went up, of each start, the best first: what the steps are, and the objective after each."""

    title: str
    steps: str
    objective: str
    lines: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True)
class Subject:
    """The model, how its graph was found, the traces of what found it, and the rows that came with these."""

    model: Any
    found: Any = None
    """A `Found` or `FoundGraph`: losses or strengths of edges, and explanations."""
    summary: tuple[str, ...] = ()
    """How it came about, in sentences, beside what the model says of itself."""
    traces: tuple[ReportTrace, ...] = field(default=())
    data: Any = None

    @property
    def kind(self) -> str:
        return KINDS.get(getattr(self.model, "file_kind", ""), type(self.model).__name__)

    @property
    def names(self) -> list[str]:
        """The variables, in the order of the model."""
        return list(self.model.variables)

    @property
    def is_directed(self) -> bool:
        """Whether it is a network of rows with arrows."""
        return hasattr(self.model, "dag")

    @property
    def has_rows(self) -> bool:
        """Whether single rows can be judged by it: a chain is asked about sequences."""
        return hasattr(self.model, "predict_proba")


@singledispatch
def subject_of(x: object) -> Subject:
    """What is reported of a value."""
    raise ModelError(
        f"a report is of a network, a chain, or what search, em or structural_em returned, not of a {type(x).__name__}"
        + (": fit its graph, and report the network" if hasattr(x, "picture") else "")
    )


subject_of.register(Subject, lambda subject: subject)
for kind in (BayesNet, GaussianMarkovNet, Chain):
    subject_of.register(kind, Subject)


@subject_of.register(MarkovNet)
def _of_markov_net(x: MarkovNet) -> Subject:
    objectives = [float(step.objective) for step in x.trace if hasattr(step, "objective")]
    return Subject(x, traces=_traces("The fit", "round", "objective", [("objective", objectives)]))


@subject_of.register(Crf)
@subject_of.register(RBM)
def _refusal(x: object) -> Subject:
    raise ModelError(
        f"a report shows the tables of nodes, which a {type(x).__name__} does not have: print it, or evaluate it on rows that it "
        "has not seen"
    )


@subject_of.register(Run)
def _of_run(x: Run[Any]) -> Subject:
    inner = subject_of(x.model)
    starts = [[step.objective for step in trace] for trace in x.traces or (x.trace,)]
    lines = [("best start" if k == 0 else f"start {k + 1}", values) for k, values in enumerate(starts)]
    return replace(inner, summary=(x.headline(),), traces=_traces("Iterations", "iteration", "objective", lines))


@subject_of.register(StructuralRun)
def _of_structural_run(x: StructuralRun) -> Subject:
    rounds = [("observed score", [step.score for step in x.graphs])]
    own = Subject(x.model, x.found, (x._headline(),), _traces("Structural EM", "round", "observed score", rounds))
    return replace(own, data=x._at_hand.task.rows)


@subject_of.register(Found)
def _of_found(x: Found) -> Subject:
    if x.lags is not None:
        raise ModelError(
            "a report of a search in sequences is that of its chain: report(fit(found.template, sequences), None, path)"
        )
    problem = x.problem
    bn = fit(x.dag, problem.data, prior=suitable(PRIOR, problem.variables, PRIOR), families=problem.families)
    return of_search(x, bn)


@subject_of.register(FoundGraph)
def _of_found_graph(x: FoundGraph) -> Subject:
    return of_search(x, x.model if x.has_model else fit(x.graph, x.problem.data))


def of_search(found: Any, model: Any) -> Subject:
    """What is reported of a model whose graph a search found."""
    scores = [(step.score, step.what) for step in found.trace if hasattr(step, "score")]
    steps = [("score", [score for score, _ in scores])]
    data = found.problem.data if isinstance(found.problem.data, Data) else None
    summary = tuple(found.summary().splitlines())
    return Subject(model, found, summary, _traces("The search", "improvement", "score", steps), data)


def _traces(title: str, steps: str, objective: str, lines: Sequence[tuple[str, Sequence[float]]]) -> tuple[ReportTrace, ...]:
    """The trace of lines that have more than a point."""
    kept = tuple((label, tuple(map(float, values))) for label, values in lines if len(values) > 1)
    return (ReportTrace(title, steps, objective, kept),) if kept else ()
