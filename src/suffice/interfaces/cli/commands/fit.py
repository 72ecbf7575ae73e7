"""The command that fits a model to data: `suffice fit`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from suffice.basis.registry import command
from suffice.errors import MissingCells, SufficeError, say
from suffice.interfaces.cli import arguments
from suffice.interfaces.cli.arguments import ARROWS, OF_GAPS, Options, note_unheard, refuse

LAGGED = re.compile(r"\[\s*[-\u2212]\s*0*[1-9][0-9]*\s*\]\s*$")
"""The end of a name that means a variable some steps before."""
OF_LABELS = "transitions labels_back label_weights"
FOR_LABELS = "is for a chain of labels: give --chain LABEL with it", ""


@command("fit")
@arguments.with_options(arguments.RowOptions)
def fit(
    graph: Annotated[
        str,
        Argument(
            metavar="GRAPH_OR_MODEL",
            help="'a -> b; b -> c', a text file with that, or a network's file; of sequences a template: 'x[-1] -> x'; without "
            "arrows 'a -- b; b -- c', or all: every column with every other. With --rbm it is left out",
        ),
    ],
    data: Annotated[
        str | None, Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet .conll, a glob in quotes; or .stats")
    ] = None,
    *,
    out: Annotated[str, Option("-o", "--out", metavar="MODEL", help="where to write the network; the suffix says the format")],
    by: arguments.By = None,
    order: arguments.Order = None,
    gaps: arguments.Gaps = "refuse",
    first: arguments.First = None,
    prior: Annotated[
        str,
        Option(
            help="mle or <priors>, most with a number, bdeu:10, or several: bdeu:1+nig; bdeu:auto, dirichlet:auto, "
            "logistic-normal:auto, nig:auto or gamma:auto take the number with the largest evidence; options after slashes: "
            "nig:1/df=5, logistic-normal/correlated; of a node: lung=bdeu:10, or "
            "pseudo-counts 'lung=9,1;1,1', one line for each configuration of its parents"
        ),
    ] = "mle",
    estimate: Annotated[str, Option(help="with a prior: mean or mode of the posterior")] = "mean",
    undirected: Annotated[
        bool, Option("--undirected", help="the graph has no arrows: fit a Markov network, written as .uai or .json")
    ] = False,
    interactions: Annotated[
        int | None, Option(metavar="K", help="of undirected models: no interactions of more than K variables", min=1)
    ] = None,
    objective: Annotated[
        str | None,
        Option(
            help="the principle: likelihood (if not given) or bayes:PRIOR; of a network conditional:NAME or margin:NAME; of "
            "undirected models conditional:NAME, max-entropy, pseudo, cd:1 or pcd:1; of labels conditional (if not given), "
            "perceptron or margin; the words are <objectives>"
        ),
    ] = None,
    penalty: Annotated[
        str | None,
        Option(
            help="on the weights w of undirected models, labels, conditional:NAME and margin:NAME: l1:X for XΣ|w|, l2:X for "
            "XΣw², or l1:X+l2:X"
        ),
    ] = None,
    rbm: Annotated[
        int | None, Option(metavar="N", help="fit a restricted Boltzmann machine with N hidden units, without a graph", min=1)
    ] = None,
    epochs: Annotated[int | None, Option(help="of --rbm: passes over the rows; 10 if not given", min=1)] = None,
    chain: Annotated[
        str | None, Option(metavar="LABEL", help="fit a conditional random field of this column, without a graph")
    ] = None,
    features: Annotated[
        str | None, Option(help="of --chain: columns around a label and what is derived of them: 'word@-1,0,1; suffix3; shape'")
    ] = None,
    min_count: Annotated[int, Option(help="of --chain: weights of pairs that occur so often", min=1)] = 1,
    transitions: Annotated[
        str | None,
        Option(help="of --chain: which labels may follow which: bio, bioes, 'forbid: O -> I-x; <s> -> I-x' or 'only: …'"),
    ] = None,
    labels_back: Annotated[
        int | None, Option(help="of --chain: 2 for weights of three labels in a row; 1 if not given", min=1, max=2)
    ] = None,
    label_weights: Annotated[
        str | None, Option(help="of --chain: how much worse it is to miss some labels: B-PER=5,I-PER=2")
    ] = None,
    family: arguments.FamilyWords = None,
    shared: arguments.SharedWords = None,
    group: arguments.GroupWord = None,
    inside: arguments.InsideWords = None,
    pooling: arguments.PoolingWord = None,
    hidden: arguments.HiddenWords = None,
    starts: arguments.Starts = None,
    start: arguments.StartModel = None,
    fixed: arguments.FixedWords = None,
    seed: Annotated[
        int | None, Option(help="of EM and of draws: the same seed gives the same result; 0 if not given", min=0)
    ] = None,
    max_iter: Annotated[int | None, Option(help="of EM: at most so many iterations a start; 500 if not given", min=1)] = None,
    tol: Annotated[
        float | None, Option(help="of EM: the gain of an iteration, in nats, that ends a climb; 1e-6 if not given")
    ] = None,
    time_limit: Annotated[
        float | None, Option(metavar="SECONDS", help="of EM, --rbm, cd and pcd: stop, take the best so far")
    ] = None,
    memory_limit: arguments.MemoryLimit = None,
    checkpoint: arguments.CheckpointDir = None,
    information: Annotated[
        bool | None, Option(help="after EM: the file holds what intervals need; up to 100 parameters if not given")
    ] = None,
    missing_depends_on: Annotated[
        list[str] | None,
        Option(metavar="A=A,B", help="gaps of A depend on A and B, which becomes part of the model (may be repeated)"),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="only estimate what EM would cost; nothing is written")] = False,
    report: arguments.ReportFile = None,
    statistics: Annotated[str | None, Option(metavar="STATS", help="also write the statistics, to be merged or refitted")] = None,
    **options: Any,
) -> None:
    """Fit a graph's parameters to data: where cells are missing, or variables hidden, by EM, of which Ctrl-C takes the best so
    far. A network's file brings its regressions and shared parameters, where none are given.

    With --by or --order, or a lagged name in the graph, the rows are sequences, and the model is a chain, written as .json.
    With --undirected, or a graph without arrows, it is a Markov network, with --rbm a restricted Boltzmann machine.
    """
    given = Options(**locals(), read=arguments.RowOptions(**options))
    from suffice.formats import writable, write
    from suffice.interfaces.cli import models

    begun = time.perf_counter()
    given.format = writable(out)
    if report is not None:
        models.check_report(given)
    if statistics and (Path(statistics).resolve() == Path(out).resolve() or not Path(statistics).parent.is_dir()):
        raise SufficeError(
            f"the statistics cannot be written to {statistics}: give a file of their own in a directory that exists"
        )
    if information and not out.lower().endswith(".json"):
        raise SufficeError(f"--information is kept in .json files only, not in {out}")
    model = _choose_fit(given)(given)
    if dry_run:
        return print(model)
    write(model, out)
    say(f"{model._headline()}; {time.perf_counter() - begun:.2f} s; written to {out}")
    if report is not None:
        models.write_report(report, vars(given).get("run", model), vars(given).get("rows"))
    return None


def _choose_fit(given: Options) -> Callable[[Options], Any]:
    """What fits the kind of model that is asked for, by the options, by the graph, or because a file holds such a model."""
    if given.rbm is not None or given.chain is not None:  # whose data come first, for they have no graph
        if given.data is not None:
            raise SufficeError(f"{'--chain' if given.rbm is None else '--rbm'} takes no graph: leave {given.graph!r} out")
        given.graph, given.data = "", given.graph
        if given.chain is not None:
            from suffice.interfaces.cli.labels import fit_labels

            return fit_labels
        from suffice.interfaces.cli.fitting import fit_machine

        refuse(given, OF_LABELS, *FOR_LABELS)
        return fit_machine
    if given.data is None:
        raise SufficeError("give a graph and data: suffice fit GRAPH DATA -o MODEL")
    if given.transitions or given.labels_back or given.label_weights:
        refuse(given, OF_LABELS, *FOR_LABELS)
    given.has_arrows = any(arrow in given.graph for arrow in ARROWS)
    if given.undirected or not given.has_arrows:
        from suffice.interfaces.cli.models import has_lines

        if given.undirected or has_lines(given.graph):
            from suffice.interfaces.cli.fitting import fit_undirected

            return fit_undirected
    if given.interactions or given.epochs:
        why = "is for undirected models: give --undirected, or a graph such as 'a -- b; b -- c'"
        refuse(given, "interactions epochs", why, "")
    return _choose_directed_fit(given)


def _choose_directed_fit(given: Options) -> Callable[[Options], Any]:
    """What fits a graph of rows, or the template of a step; where EM begins, and how it climbs, is read from the options."""
    from suffice.basis.limits import Budget
    from suffice.graphs import Dag
    from suffice.interfaces.cli import inputs, models
    from suffice.statistics import Statistics

    given.dag, given.known = (Dag(given.graph), None) if given.has_arrows else models.graph_of(given.graph)
    if given.group is not None and (given.family or given.hidden):
        raise SufficeError("--group has no part beside --family or --hidden: leave one of them out")
    given.families = inputs.read_families(given.family or [])
    climbing = ("starts", "seed", "max_iter", "tol", "time_limit", "memory_limit", "checkpoint")
    given.climbing = {name: vars(given)[name] for name in climbing if vars(given)[name] is not None}
    Budget(time_limit=given.time_limit, memory_limit=given.memory_limit)  # checked, whether or not the rows need EM
    if given.start or given.fixed:
        given.climbing |= _start_and_fixed(given)
    lagged = {name for name in given.dag.nodes if LAGGED.search(name)}
    in_steps = not isinstance(given.dag, Dag) or given.by is not None or given.order is not None
    if lagged and not in_steps:  # lagged names are of sequences, if they are no columns of their own
        of_rows = not given.data.lower().endswith(".stats")
        known = inputs.columns_of(given.data, given.read) if of_rows else Statistics.load(given.data).variables
        in_steps = not lagged <= set(known) if of_rows else any(name.endswith("[0]") for name in known)
    if in_steps:
        from suffice.interfaces.cli.fitting import fit_template

        return fit_template
    if (given.first or given.gaps != "refuse") and not lagged:
        why = "is for sequences: give --by or --order, or a template such as 'x[-1] -> x'"
        refuse(given, "first" + " gaps" * (given.gaps != "refuse"), why, "")
    return _fit_rows


def _start_and_fixed(given: Options) -> dict[str, Any]:
    """Where EM begins, and what it leaves as it is: that of the start or else of the model whose graph is fitted."""
    from suffice.interfaces.cli import models, words

    fixed = words.fixed_of(given.fixed)
    model = models.model_of(given.start) if given.start is not None else given.known if fixed else None
    if fixed and model is None:
        raise SufficeError("--fixed keeps distributions as they are in a model: give it, --start MODEL, or as GRAPH_OR_MODEL")
    return {option: value for option, value in {"start": model, "fixed": fixed}.items() if value}


def _fit_rows(given: Options) -> Any:
    """The network that rows, or statistics, give; with --dry-run what EM would cost."""
    from suffice.formats import holds
    from suffice.interfaces.cli import inputs, models, words
    from suffice.learning.fit import fit_network

    asked, dag = _fit_arguments(given), given.dag
    known = given.climbing.get("start") if given.known is None else given.known
    if "fixed" in given.climbing and given.data.lower().endswith(".stats"):
        raise SufficeError(f"--fixed is of EM, which needs the rows: {given.data} has statistics")
    rows = inputs.data_of(given.data, given.read)
    if known is not None:
        rows = inputs.as_known(rows, known, inputs.declarations(given.read))
    given.rows = rows
    if given.format.finite:
        holds(given.out, _variables(dag, rows, asked))
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
        families = asked.get("families")
        if not model.incomplete:
            note_unheard(given.climbing, f"complete rows need none{', and regressions run to their end' if families else ''}")
        elif families and "time_limit" in given.climbing and not _needs_em(asked | given.climbing):
            say("note: --time-limit is for EM; regressions whose own columns are complete run to their end")
    return models.with_information(model, given.out, given.information) if model.incomplete else model


def _fit_arguments(given: Options) -> dict[str, Any]:
    """What the options say of parameters, as `fit` takes it; a model that is refitted brings its families and ties."""
    from suffice.families.named_families import families_of
    from suffice.interfaces.cli import inputs, words
    from suffice.objectives.principles import Likelihood

    read: dict[str, Any] = {"families": dict, "shared": words.ties_of, "hidden": inputs.hidden_of}
    read["missing_depends_on"] = words.mechanism_of
    asked: dict[str, Any] = {name: reader(vars(given)[name]) for name, reader in read.items() if vars(given)[name]}
    if given.estimate != "mean":
        asked["estimate"] = inputs.choice(words.ESTIMATES, given.estimate, "--estimate")
    if given.known is not None:
        asked["families"] = families_of(given.known, asked.get("families"))
        asked["shared"] = asked["shared"] if "shared" in asked else getattr(given.known, "shared", ())
    prior = given.prior
    if given.objective is not None:
        told, prior = words.prior_words(given.objective, prior)
        objective = words.objective_of(told)
        asked |= {} if isinstance(objective, (Likelihood, type(None))) else {"objective": objective}
    return asked if prior == "mle" else asked | {"prior": words.prior_of(prior)}


def _fit_to_target(given: Options, rows: Any, asked: dict[str, Any]) -> Any:
    """The network that is best at one of its variables."""
    from suffice.interfaces.cli import words
    from suffice.learning.fit import fit as fit_to_objective

    why = f"has no part in --objective {given.objective}"
    refuse(given, f"family hidden statistics starts seed max_iter tol time_limit start fixed checkpoint {OF_GAPS}", why)
    asked.pop("families", None)  # tables, also of a model that has regressions: `fit` says what it cannot
    return fit_to_objective(given.dag, rows, penalty=words.penalty_of(given.penalty), memory_limit=given.memory_limit, **asked)


def _variables(dag: Any, rows: Any, asked: dict[str, Any]) -> list[Any]:
    """The variables of the graph, as the file would have to hold them."""
    if hasattr(rows, "columns"):
        rows = _with_families(rows.select([n for n in dag.nodes if n in rows.columns]), asked)
    columns = rows.schema if hasattr(rows, "columns") else rows.variables
    return [v for n, v in columns.items() if n in dag]


def _with_families(rows: Any, asked: dict[str, Any]) -> Any:
    """The rows, with columns as their families need them."""
    from suffice.families.named_families import as_families, with_family_types

    return with_family_types(rows, as_families(asked["families"])) if asked.get("families") else rows


def _plan(dag: Any, rows: Any, asked: dict[str, Any]) -> Any:
    """What EM would cost."""
    from suffice.learning.em import em

    if not _needs_em(asked):
        if asked.get("families"):
            raise SufficeError("--dry-run is for EM of tables and Gaussians: leave --family out of it")
        columns = getattr(rows, "columns", ())
        if not columns or not any(rows.select([n for n in dag.nodes if n in columns]).missing.values()):
            raise SufficeError("--dry-run is for EM, and no cells are missing: such a fit is one pass over the rows")
    return em(dag, rows, **asked, dry_run=True)


def _save_statistics(dag: Any, rows: Any, asked: dict[str, Any], path: str) -> Any:
    """The statistics of complete rows, which are kept in a file, too."""
    from suffice.families.gathering import gather
    from suffice.families.named_families import variables_with_distributions

    families = asked.get("families") or {}
    if set(families) - set(variables_with_distributions(families)):
        raise SufficeError("--statistics say nothing of regressions, which need the rows: leave it out, or --family")
    try:
        if "hidden" in asked or "missing_depends_on" in asked:
            raise MissingCells
        seen = gather(_with_families(rows, asked), dag)
    except MissingCells:
        what = "with missing cells or hidden variables there are only expected ones"
        raise SufficeError(f"--statistics are of complete rows: {what}") from None
    seen.save(path)
    return seen


def _needs_em(asked: dict[str, Any]) -> bool:
    """Whether EM is needed for complete rows, too."""
    return any(name in asked for name in ("hidden", "missing_depends_on", "fixed"))
