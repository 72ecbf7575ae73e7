"""What `suffice fit` does with networks of rows, complete or not: one call, and what the file keeps of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from suffice.cli import inputs
from suffice.cli.arguments import OF_GAPS, Options, note_unheard, refuse
from suffice.cli.outputs import with_information
from suffice.cli.words import vocabulary as words
from suffice.cli.words.objectives import objective_of, penalty_of, prior_words
from suffice.errors import MissingCells, SufficeError
from suffice.families.named_families import families_of
from suffice.formats import writable
from suffice.learning.fit import fit, fit_network
from suffice.learning.incomplete.task import shared_of
from suffice.objectives import Likelihood
from suffice.output.terminal import say


def fit_rows(given: Options) -> Any:
    """The network that rows, or statistics, give; with --dry-run what EM would cost."""
    asked, dag = _fit_arguments(given), given.dag
    rows = given.rows = _known_rows(given, dag)
    columns = rows.select([n for n in dag.nodes if n in rows.columns]).schema if hasattr(rows, "columns") else rows.variables
    writable(given.out, variables=[v for n, v in columns.items() if n in dag])
    if "objective" in asked:
        return _fit_to_target(given, rows, asked)
    if given.penalty is not None:
        raise SufficeError("--penalty is for undirected models, for labels, and for --objective conditional:NAME or margin:NAME")
    if given.dry_run:
        return _plan(dag, rows, asked | given.climbing)
    if given.statistics:
        rows = _save_statistics(dag, rows, asked, given.statistics)
    if given.group or given.inside or given.pooling:
        dag = words.plate_of(dag, given.group, given.inside, given.pooling)
    model = fit_network(dag, rows, **asked, **given.climbing, watch=partial(setattr, given, "run"))
    if given.climbing:
        _tell_unheard(model, asked, given.climbing)
    return with_information(model, given.out, given.information) if model.incomplete else model


def _fit_arguments(given: Options) -> dict[str, Any]:
    """What the options say of parameters, as `fit` takes it; a model that is refitted brings its families and ties."""
    asked: dict[str, Any] = {"estimate": words.choice(words.ESTIMATES, given.estimate, "--estimate")}
    if given.families:
        asked["families"] = given.families
    read: dict[str, Any] = {"shared": words.ties_of, "hidden": inputs.hidden_of, "missing_depends_on": words.mechanism_of}
    asked |= {name: reader(getattr(given, name)) for name, reader in read.items() if getattr(given, name)}
    if given.known is not None:
        asked["families"] = families_of(given.known, asked.get("families"))
        asked["shared"] = shared_of(given.known, asked.get("shared"))
    prior = given.prior
    if given.objective is not None:
        told, prior = prior_words(given.objective, prior)
        objective = objective_of(told)
        asked |= {} if isinstance(objective, (Likelihood, type(None))) else {"objective": objective}
    return asked if prior == "mle" else asked | {"prior": words.prior_of(prior)}


def _fit_to_target(given: Options, rows: Any, asked: dict[str, Any]) -> Any:
    """The network that is best at one of its variables."""
    why = f"has no part in --objective {given.objective}"
    refuse(given, f"family hidden statistics starts seed max_iter tol time_limit start fixed checkpoint {OF_GAPS}", why)
    asked.pop("families", None)  # tables, also of a model that has regressions: `fit` says what it cannot
    return fit(given.dag, rows, penalty=penalty_of(given.penalty), memory_limit=given.memory_limit, **asked)


def _known_rows(given: Options, dag: Any) -> Any:
    """The rows, with the states of the model that is refitted or begun from, and columns as their families need them."""
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
        if asked.get("families"):
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

    families = asked.get("families") or {}
    if set(families) - set(variables_with_distributions(families)):
        raise SufficeError("--statistics say nothing of regressions, which need the rows: leave it out, or --family")
    try:
        if "hidden" in asked or "missing_depends_on" in asked:
            raise MissingCells
        seen = gather(rows, dag)
    except MissingCells:
        what = "with missing cells or hidden variables there are only expected ones"
        raise SufficeError(f"--statistics are of complete rows: {what}") from None
    seen.save(path)
    return seen


def _tell_unheard(model: Any, asked: dict[str, Any], climbing: dict[str, Any]) -> None:
    """Say which options nothing listened to."""
    families = asked.get("families")
    if not model.incomplete:
        note_unheard(climbing, "complete rows need none" + (", and regressions run to their end" if families else ""))
    elif families and "time_limit" in climbing and not _needs_em(asked | climbing):
        say("note: --time-limit is for EM; regressions whose own columns are complete run to their end")


def _needs_em(asked: dict[str, Any]) -> bool:
    """Whether EM is needed for complete rows, too."""
    return any(name in asked for name in ("hidden", "missing_depends_on", "fixed"))
