"""What `suffice fit` does with networks of rows, complete or not: one call, and what the file keeps of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from suffice.cli.arguments import Options, note_unheard, refuse
from suffice.cli.words.objectives import objective_of, penalty_of, prior_words
from suffice.errors import MissingCells, SufficeError
from suffice.output.terminal import say

FEW = 100
"""Networks of up to so many parameters keep the observed information in their file without being asked: 2 E-steps each."""
OF_GAPS = "information missing_depends_on dry_run"
"""Options about missing cells, which other models have no part in."""


def fit_rows(given: Options) -> Any:
    """The network that rows, or statistics, give; with --dry-run what EM would cost."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words
    from suffice.formats import holds
    from suffice.learning.fit import fit, fit_network
    from suffice.models.parts.sharing import shared_of
    from suffice.models.questions.regressions import families_of
    from suffice.objectives import Likelihood

    told, prior = prior_words(given.objective, given.prior)
    objective, climbing, dag = objective_of(told), given.climbing, given.dag
    plate = words.plate_of(dag, given.group, given.inside, given.pooling)
    rows = given.rows = _known_rows(given, dag)
    columns = rows.select([n for n in dag.nodes if n in rows.columns]).schema if hasattr(rows, "columns") else rows.variables
    holds(given.out, [v for n, v in columns.items() if n in dag])
    asked: dict[str, Any] = {"prior": words.prior_of(prior), "estimate": words.estimate_of(given.estimate)}
    asked["shared"] = shared_of(given.known, words.ties_of(given.shared))
    if not isinstance(objective, (Likelihood, type(None))):
        why = f"has no part in --objective {told}"
        refuse(given, f"family hidden statistics starts seed max_iter tol time_limit start fixed checkpoint {OF_GAPS}", why)
        limit = given.memory_limit
        return fit(dag, rows, objective=objective, penalty=penalty_of(given.penalty), memory_limit=limit, **asked)
    if given.penalty is not None:
        raise SufficeError("--penalty is for undirected models, for labels, and for --objective conditional:NAME or margin:NAME")
    asked |= {"families": families_of(given.known, given.families), "hidden": inputs.hidden_of(given.hidden or [])}
    asked["missing_depends_on"] = words.mechanism_of(given.missing_depends_on)
    if given.dry_run:
        return _plan(dag, rows, asked | climbing)
    if given.statistics:
        rows = _save_statistics(dag, rows, asked, given.statistics)
    model = fit_network(plate, rows, **asked, **climbing, watch=partial(setattr, given, "run"))
    _tell_unheard(model, asked, climbing)
    return with_information(model, given.out, given.information)


def _known_rows(given: Options, dag: Any) -> Any:
    """The rows, with the states of the model that is refitted or begun from, and columns as their families need them."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words

    by_family: dict[str, Any] = {}
    if not given.data.lower().endswith(".stats"):
        by_family = words.declared_by(given.families, [n for n in dag.nodes if given.known is None or n not in given.known])
    elif "fixed" in given.climbing:
        raise SufficeError(f"--fixed is of EM, which needs the rows: {given.data} has statistics")
    declared = by_family | given.declared
    rows = inputs.data_of(given.data, declared, **given.read.reading)
    model = given.climbing.get("start") if given.known is None else given.known
    return rows if model is None else inputs.as_known(rows, model, declared)


def _plan(dag: Any, rows: Any, asked: dict[str, Any]) -> Any:
    """What EM would cost."""
    from suffice.learning.em import em

    if not _needs_em(asked):
        if asked["families"]:
            raise SufficeError("--dry-run is for EM of tables and Gaussians: leave --family out of it")
        if not _lacks_cells(dag, rows):
            raise SufficeError("--dry-run is for EM, and no cells are missing: such a fit is one pass over the rows")
    return em(dag, rows, **asked, dry_run=True)


def _lacks_cells(dag: Any, rows: Any) -> bool:
    columns = getattr(rows, "columns", ())
    return bool(columns) and any(rows.select([n for n in dag.nodes if n in columns]).missing.values())


def _save_statistics(dag: Any, rows: Any, asked: dict[str, Any], path: str) -> Any:
    """The statistics of complete rows, which are kept in a file, too."""
    from suffice.families.gathering.gathering import gather
    from suffice.families.named_families import variables_with_distributions

    if set(asked["families"] or ()) - set(variables_with_distributions(asked["families"])):
        raise SufficeError("--statistics say nothing of regressions, which need the rows: leave it out, or --family")
    try:
        if asked["hidden"] or asked["missing_depends_on"]:
            raise MissingCells
        seen = gather(rows, dag)
    except MissingCells:
        what = "with missing cells or hidden variables there are only expected ones"
        raise SufficeError(f"--statistics are of complete rows: {what}") from None
    seen.save(path)
    return seen


def _tell_unheard(model: Any, asked: dict[str, Any], climbing: dict[str, Any]) -> None:
    """Say which options nothing listened to."""
    families = asked["families"]
    if not model.incomplete:
        note_unheard(climbing, "complete rows need none" + (", and regressions run to their end" if families else ""))
    elif families and "time_limit" in climbing and not _needs_em(asked | climbing):
        say("note: --time-limit is for EM; regressions whose own columns are complete run to their end")


def _needs_em(asked: dict[str, Any]) -> bool:
    """Whether EM is needed for complete rows, too."""
    return bool(asked["hidden"] or asked["missing_depends_on"] or "fixed" in asked)


def with_information(model: Any, out: str, asked: bool | None = None) -> Any:
    """The model with what its file is to have; where it cannot be found and nobody asked for it, that is noted."""
    kept = model.incomplete and Path(out).suffix.lower() == ".json"
    if kept and (asked or (asked is None and model.n_parameters <= FEW)):
        try:
            model.parameter_covariance  # noqa: B018 - it is kept once it was found
        except SufficeError as error:
            if asked:
                raise
            say(f"note: the file has no intervals of answers: {error.in_options()}")
    return model
