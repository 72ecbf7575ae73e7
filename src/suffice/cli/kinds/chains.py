"""What `suffice fit` and `suffice learn` do with sequences: the parameters of a template, or a template that is searched for."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.errors import SufficeError, listed
from suffice.terminal import say, then_printed

if TYPE_CHECKING:
    from suffice.engines.sequences import Sequences
    from suffice.graphs.template import Template
    from suffice.models.chain import Chain


@dataclass(frozen=True)
class SequenceWords:
    """What the options say about sequences."""

    by: str | None
    order: str | None
    gaps: str
    first: str | None = None

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        each = {"--by": self.by, "--order": self.order, "--first": self.first}
        return [option for option, value in each.items() if value is not None] + ["--gaps"] * (self.gaps != "refuse")


def is_template(graph: Any, data: str, asked: SequenceWords) -> bool:
    """Whether a graph is that of a step: by the options, or by a lagged name that is no column of its own."""
    from suffice.cli.inputs import columns_of, lagged_names
    from suffice.graphs.template import Template
    from suffice.statistics import Statistics

    if isinstance(graph, Template) or asked.by is not None or asked.order is not None:
        return True
    lagged = lagged_names(graph)
    if not lagged:
        if asked.given:
            raise SufficeError(f"{asked.given[0]} is for sequences: give --by or --order, or a template such as 'x[-1] -> x'")
        return False
    if data.lower().endswith(".stats"):
        return any(name.endswith("[0]") for name in Statistics.load(data).variables)
    return not set(lagged) <= set(columns_of(data))


def refuse_options(**given: Any) -> None:
    """Refuse options that say nothing about sequences."""
    for option, value in given.items():
        if value:
            raise SufficeError(f"--{option.replace('_', '-')} is for rows, not for sequences: leave it out")


def only_of_em(climbing: dict[str, Any], why: str) -> None:
    """Say which options nothing listens to."""
    if climbing:
        names = listed([f"--{option.replace('_', '-')}" for option in climbing], style="str")
        say(f"note: {names} {'is' if len(climbing) == 1 else 'are'} for EM: {why}")


def refuse_statistics(data: str, climbing: dict[str, Any]) -> None:
    """Refuse what statistics, of which everything is learned at once, would not listen to."""
    if "fixed" in climbing:
        raise SufficeError(f"--fixed is of EM, which needs the rows: {data} has statistics")


def fit_template(
    graph: Any,
    known: Chain | None,
    data: str,
    about: SequenceWords,
    *,
    hidden: list[str],
    declared: dict[str, Any],
    read: dict[str, Any],
    prior: str,
    estimate: str,
    families: dict[str, Any],
    climbing: dict[str, Any],
    statistics: str | None,
) -> Any:
    """The chain of a template, or of a known chain's, that sequences give, or saved statistics of their steps."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words
    from suffice.graphs.template import Template
    from suffice.learning.fit import fit

    template, how = Template(graph), words.chosen(words.ESTIMATES, estimate, "--estimate")
    first = None if about.first is None else words.chosen(words.FIRST, about.first, "--first")
    asked: dict[str, Any] = {"prior": words.prior_of(prior), "estimate": how, "families": families, "first": first}
    if data.lower().endswith(".stats"):
        refuse_statistics(data, climbing)
        return fit(template, inputs.data_of(data, declared, **read), **asked)
    unseen, columns = inputs.hidden_in_steps(hidden), inputs.columns_of(data)
    model = climbing.get("start") if known is None else known
    ours = {} if model is None else {n: v for n, v in model.variables.items() if n in columns}
    by_family = words.declared_by(families, [n for n in template.nodes if n not in ours])
    labels = {v.name: v for v in unseen if v.name in columns}
    rows = inputs.data_of(data, by_family | ours | declared | labels, **read)
    rows = inputs.only_columns(rows, template.nodes, about.by, about.order)
    steps = inputs.sequences_of(rows, about.by, about.order, about.gaps)
    return _fitted(template, known, steps, unseen, asked, climbing, statistics)


def _fitted(
    template: Template,
    known: Chain | None,
    steps: Sequences,
    hidden: list[Any],
    asked: dict[str, Any],
    climbing: dict[str, Any],
    statistics: str | None,
) -> Any:
    """The chain that complete sequences give at once, and incomplete ones by EM. A chain that is known brings its variables,
    regressions, hidden variables and first slices, where nothing else is said."""
    from suffice.families.gathering import gather
    from suffice.learning.em import em, spread
    from suffice.learning.fit import fit

    graph: Any = template
    if known is not None:
        graph, asked = known, asked | {"first": asked["first"] or known.first_slices}
        asked["families"] = asked["families"] or {n: known[n].family for n in template.nodes if known[n].is_regression}
        hidden = hidden or [known.variables[n] for n in known.hidden]
    complete = not hidden and not any(steps.missing.get(n, 1) for n in template.nodes) and "fixed" not in climbing
    if statistics and not complete:
        raise SufficeError("--statistics are of complete steps: with missing cells or hidden variables they are only expected")
    if complete:
        if statistics:
            gather(steps, template).save(statistics)
        only_of_em(climbing, "complete sequences need none")
        return fit(graph, steps, **asked)
    run = em(graph, steps, hidden=tuple(hidden), **asked, **climbing)
    if len(run.optima) > 1:
        say(f"note: {spread(run.optima)}")
    return run.model


def learn_template(
    steps: Sequences,
    lags: int,
    how: Any,
    asked: dict[str, Any],
    prior: Any,
    out: str | None,
    *,
    as_json: bool,
    explain: bool,
    bootstrap: int | None,
    dry_run: bool,
    limits: dict[str, Any],
) -> None:
    """Search for a template, write the chain of it if there is a place for it, and then print what was found."""
    from suffice.cli.inputs import written
    from suffice.families.priors import suitable
    from suffice.learning.fit import fit
    from suffice.recipes.learn import PRIOR
    from suffice.structure.search import search

    if dry_run:
        plan = search(steps, method=how, lags=lags, dry_run=True, **asked, **{**limits, "time_limit": None})
        return print(json.dumps(plan.to_dict(), ensure_ascii=False) if as_json else plan)
    begun = time.perf_counter()
    found = search(steps, method=how, lags=lags, **asked, **limits)
    if not found.finished:
        say("note: the search was stopped before its end; this is the best template so far")
    told = [found.explain(e) for e in found.template.edges] if explain else None
    strengths = None if bootstrap is None else _strengths(steps, lags, how, bootstrap, asked | limits)
    with then_printed(found_in_words(found, asked["score"], told, strengths, as_json=as_json)):
        if out is not None:
            variables = [v for n, v in steps.schema.items() if n in found.template]
            chain = fit(found.template, steps, prior=suitable(prior, variables, PRIOR))
            written(chain, out, f"searched for {time.perf_counter() - begun:.2f} s")
    return None


def found_in_words(found: Any, score: Any, told: Sequence[Any] | None, strengths: Any, *, as_json: bool) -> str:
    """What a search for arrows found, with what explains its edges and how often they are found, for a person or a program."""
    if not as_json:
        return "\n".join(map(str, [found, *(f"\n{t}" for t in told or ()), *([] if strengths is None else [f"\n{strengths!r}"])]))
    facts = {
        **found.to_dict(),
        "score_name": repr(score),
        **({"explanations": [t.to_dict() for t in told]} if told is not None else {}),
    }
    return json.dumps(facts | ({} if strengths is None else {"bootstrap": strengths.to_dict()}), ensure_ascii=False)


def _strengths(steps: Sequences, lags: int, how: Any, n: int, asked: dict[str, Any]) -> Any:
    """How often each edge is found in resamples of the sequences."""
    from suffice.recipes.resampling import bootstrap

    return bootstrap(steps, how, n, lags=lags, **asked)
