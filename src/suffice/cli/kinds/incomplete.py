"""What `suffice fit` says about rows with missing cells: how they are learned from, and what the file keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suffice.cli.kinds.chains import only_of_em
from suffice.errors import MissingCells, SufficeError
from suffice.terminal import say

FEW = 100
"""Networks of up to so many parameters keep the observed information in their file without being asked: 2 E-steps each."""


@dataclass(frozen=True)
class IncompleteWords:
    """The options about missing cells."""

    information: bool | None
    missing_depends_on: dict[str, list[str]] | None
    dry_run: bool

    def refuse(self, what: str) -> None:
        """Refuse them beside a model that has no part in them."""
        given = {"--information": self.information, "--missing-depends-on": self.missing_depends_on, "--dry-run": self.dry_run}
        for option, value in given.items():
            if value:
                raise SufficeError(f"{option} is for networks of rows, not for {what}: leave it out")

    def fitted(
        self, dag: Any, rows: Any, hidden: Any, asked: dict[str, Any], climbing: dict[str, Any], statistics: str | None, out: str
    ) -> Any:
        """The network, with the observed information if its file is to have it; or the forecast."""
        if self.information and not out.lower().endswith(".json"):
            raise SufficeError(f"--information is kept in .json files only, not in {out}")
        own: dict[str, Any] = {"dry_run": True} if self.dry_run else {}
        own |= {} if self.missing_depends_on is None else {"missing_depends_on": self.missing_depends_on}
        model = _fitted(dag, rows, hidden, asked | own, climbing, statistics)
        if not self.dry_run and model.incomplete and out.lower().endswith(".json"):
            self._keep(model)
        return model

    def _keep(self, model: Any) -> None:
        """Find what the file is to have; where it cannot be found and nobody asked for it, that is noted."""
        if self.information is False or (self.information is None and model.n_parameters > FEW):
            return
        try:
            model.parameter_covariance  # noqa: B018 - it is kept once it was found
        except SufficeError as error:
            if self.information:
                raise
            say(f"note: the file has no intervals of answers: {error.in_options()}")


def _fitted(dag: Any, rows: Any, hidden: Any, asked: dict[str, Any], climbing: dict[str, Any], statistics: str | None) -> Any:
    """The network that complete rows, or statistics, give at once, and incomplete ones by EM."""
    from suffice.families.gathering import gather
    from suffice.learning.em import em, spread
    from suffice.learning.fit import fit as fitted

    if asked["families"] and statistics:
        raise SufficeError("--statistics say nothing of regressions, which need the rows: leave it out, or --family")
    mechanism = asked.get("missing_depends_on") is not None
    complete = not hidden and not mechanism and "fixed" not in climbing  # what is fixed is so for complete rows, too
    if asked["families"] and complete:
        return _with_regressions(dag, rows, asked, climbing)
    if complete:
        try:
            gathered = gather(rows, dag)
        except MissingCells:
            pass
        else:
            only_of_em(climbing, "complete rows need none")
            if statistics:
                gathered.save(statistics)
            if asked.get("dry_run"):
                raise SufficeError("--dry-run is for EM, and no cells are missing: such a fit is one pass over the rows")
            return fitted(dag, gathered, **{k: v for k, v in asked.items() if k != "dry_run"})
    if statistics:
        raise SufficeError(
            "--statistics are of complete rows: with missing cells or hidden variables there are only expected ones"
        )
    run = em(dag, rows, hidden=hidden, **asked, **climbing)
    if asked.get("dry_run"):
        return run
    if len(run.optima) > 1:
        say(f"note: {spread(run.optima)}")
    return run.model


def _with_regressions(dag: Any, rows: Any, asked: dict[str, Any], climbing: dict[str, Any]) -> Any:
    """The same where some nodes are regressions, which are fitted by themselves unless their own columns have gaps."""
    from suffice.families.priors import as_prior
    from suffice.learning.fit import with_regressions

    if asked.get("dry_run"):
        raise SufficeError("--dry-run is for EM of tables and Gaussians: leave --family out of it")
    columns = getattr(rows, "columns", ())
    if not any(rows.select([n for n in dag.nodes if n in columns]).missing.values() if columns else ()):
        only_of_em(climbing, "complete rows need none, and regressions run to their end")
    elif "time_limit" in climbing:
        say("note: --time-limit is for EM; regressions whose own columns are complete run to their end")
    prior, how, families, shared = (asked[key] for key in ("prior", "estimate", "families", "shared"))
    return with_regressions(dag, rows, as_prior(prior), how, families, shared, **climbing)
