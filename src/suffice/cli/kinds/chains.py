"""What `suffice fit` and `suffice learn` do with sequences: the parameters of a template, or a template that is searched for."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from suffice.cli.arguments import OF_GAPS, Options, note_unheard, refuse
from suffice.cli.outputs import write_model, write_report
from suffice.cli.words.objectives import check_template, objective_of, penalty_of, prior_words
from suffice.errors import SufficeError
from suffice.output.terminal import say, then_printed

ROWS_ONLY = "is for rows, not for sequences"

if TYPE_CHECKING:
    from suffice.engines.sequences.sequences import Sequences
    from suffice.graphs.template import Template
    from suffice.models.chain import Chain


def fit_template(given: Options) -> Chain:
    """The chain of a template, or of a known chain's, that sequences give, or saved statistics of their steps. A chain that is
    known brings its regressions, hidden variables and first slices, where nothing else is said."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words
    from suffice.formats import writable
    from suffice.graphs.template import Template
    from suffice.learning.complete.chain_fit import fit_chain

    told, prior = prior_words(given.objective, given.prior)
    check_template(objective=objective_of(told), penalty=penalty_of(given.penalty))
    refuse(given, OF_GAPS, "is for networks of rows, not for a model of sequences")
    writable(given.out, "chain")
    refuse(given, "shared group inside pooling", ROWS_ONLY)
    template, known, climbing = Template(given.dag), given.known, given.climbing
    first = None if given.first is None else words.choice(words.FIRST, given.first, "--first")
    asked: dict[str, Any] = {
        "prior": words.prior_of(prior),
        "estimate": words.choice(words.ESTIMATES, given.estimate, "--estimate"),
        "first": first,
    }
    asked["families"] = given.families
    if given.data.lower().endswith(".stats"):
        if "fixed" in climbing:
            raise SufficeError(f"--fixed is of EM, which needs the rows: {given.data} has statistics")
        return fit_chain(template, inputs.data_of(given.data, given.read), **asked)
    unseen = inputs.hidden_in_steps(given.hidden or [])
    steps = _steps(given, template, unseen)
    if known is not None:
        asked["first"] = first or known.first_slices
        asked["families"] = given.families or {n: known[n].family for n in template.nodes if known[n].is_regression}
        unseen = unseen or [known.variables[n] for n in known.hidden]
    if given.statistics:
        _save_steps(template, steps, unseen, climbing, given.statistics)
    more = asked | climbing | {"watch": partial(setattr, given, "run")}
    chain = fit_chain(template if known is None else known, steps, hidden=tuple(unseen), **more)
    if not chain.incomplete:
        note_unheard(climbing, "complete sequences need none")
    return chain


def _steps(given: Options, template: Template, hidden: list[Any]) -> Sequences:
    """The sequences of the columns of a template, which are what the model, the families and the options say."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words

    columns = inputs.columns_of(given.data, given.read)
    model = given.climbing.get("start") if given.known is None else given.known
    ours = {} if model is None else {n: v for n, v in model.variables.items() if n in columns}
    by_family = words.declared_by(given.families, [n for n in template.nodes if n not in ours])
    labels = {v.name: v for v in hidden if v.name in columns}
    rows = inputs.data_of(given.data, given.read, by_family | ours | inputs.declarations(given.read) | labels)
    rows = inputs.only_columns(rows, template.nodes, given.by, given.order)
    return inputs.sequences_of(rows, given.by, given.order, given.gaps)


def _save_steps(template: Template, steps: Sequences, hidden: list[Any], climbing: dict[str, Any], path: str) -> None:
    from suffice.families.gathering.gathering import gather

    if hidden or "fixed" in climbing or any(steps.missing.get(n, 1) for n in template.nodes):
        raise SufficeError("--statistics are of complete steps: with missing cells or hidden variables they are only expected")
    gather(steps, template).save(path)


class CheckpointDirs(NamedTuple):
    """Where a search and a bootstrap after it have their checkpoints: in a directory, or each in one of its own there."""

    directory: str | None
    search: str | None
    bootstrap: str | None

    @staticmethod
    def of(directory: str | None, two: bool) -> CheckpointDirs:
        """Those in a directory, if one is given; `two`: a bootstrap follows the search."""
        if directory is None or not two:
            return CheckpointDirs(directory, directory, None)
        return CheckpointDirs(directory, str(Path(directory) / "search"), str(Path(directory) / "bootstrap"))

    def tidy(self) -> None:
        """Remove the directory of both once they have come to their end."""
        if self.directory is not None and self.bootstrap is not None:
            with suppress(OSError):  # one of them was stopped: its checkpoint stays
                Path(self.directory).rmdir()


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
    places: CheckpointDirs,
    report: str | None,
) -> None:
    """Search for a template, write the chain of it if there is a place for it, and then print what was found."""
    from suffice.families.priors.priors import suitable
    from suffice.learning.fit import fit
    from suffice.recipes.learn import PRIOR
    from suffice.structure.search import search

    if dry_run:
        plan = search(steps, method=how, lags=lags, dry_run=True, **asked, **{**limits, "time_limit": None})
        return print(json.dumps(plan.to_dict(), ensure_ascii=False) if as_json else plan)
    begun = time.perf_counter()
    found = search(steps, method=how, lags=lags, checkpoint=places.search, **asked, **limits)
    if not found.finished:
        say("note: the search was stopped before its end; this is the best template so far")
    told = [found.explain(e) for e in found.template.edges] if explain else None
    strengths = None if bootstrap is None else _strengths(steps, lags, how, bootstrap, asked | limits, places.bootstrap)
    places.tidy()
    with then_printed(found_in_words(found, asked["score"], told, strengths, as_json=as_json)):
        if out is not None or report is not None:
            variables = [v for n, v in steps.schema.items() if n in found.template]
            chain = fit(found.template, steps, prior=suitable(prior, variables, PRIOR))
            write_model(chain, out, f"searched for {time.perf_counter() - begun:.2f} s")
            write_report(report, chain)
    return None


def found_in_words(found: Any, score: Any, told: Sequence[Any] | None, strengths: Any, *, as_json: bool) -> str:
    """What a search for arrows found, with what explains its edges and how often they are found, for a person or a program."""
    if not as_json:
        return "\n".join(map(str, [found, *(f"\n{t}" for t in told or ()), *([] if strengths is None else [f"\n{strengths!r}"])]))
    facts = {
        **found.to_dict(),
        **({} if score is None else {"score_name": repr(score)}),
        **({"explanations": [t.to_dict() for t in told]} if told is not None else {}),
    }
    return json.dumps(facts | ({} if strengths is None else {"bootstrap": strengths.to_dict()}), ensure_ascii=False)


def _strengths(steps: Sequences, lags: int, how: Any, n: int, asked: dict[str, Any], place: str | None) -> Any:
    """How often each edge is found in resamples of the sequences."""
    from suffice.recipes.resampling import bootstrap

    return bootstrap(steps, method=how, n=n, lags=lags, checkpoint=place, **asked)
