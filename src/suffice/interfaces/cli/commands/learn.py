"""The command that learns a graph, and then its parameters: `suffice learn`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from suffice.basis.output.terminal import then_printed
from suffice.basis.registry import command, look_up
from suffice.basis.variables import Real
from suffice.errors import SufficeError, say
from suffice.graphs.text import Edge
from suffice.interfaces.cli import arguments
from suffice.interfaces.cli.arguments import Options, refuse
from suffice.objectives.scores import CasteloSiebes, GraphPosterior, KollerFriedman
from suffice.structure.independence import TableTest


@command("learn")
@arguments.with_options(arguments.ColumnOptions)
def learn(
    data: arguments.DataFile,
    out: Annotated[
        str | None, Option("-o", "--out", metavar="MODEL", help="where to write the fitted network; the suffix says the format")
    ] = None,
    by: arguments.By = None,
    order: arguments.Order = None,
    gaps: arguments.Gaps = "refuse",
    lags: Annotated[
        int | None, Option(metavar="K", help="of sequences: parents up to so many steps back; 1 if not given", min=0)
    ] = None,
    method: Annotated[
        str | None,
        Option(
            help="<methods>; orders if not given, hill-climb where cells are missing; tan:TARGET names the class; glasso, "
            "neighbourhoods, decomposable, stepwise and chow-liu-graph find graphs without arrows"
        ),
    ] = None,
    penalty: Annotated[
        str | None, Option(metavar="X", help="of glasso and neighbourhoods: one penalty; a path of them if not given")
    ] = None,
    select: Annotated[
        str | None, Option(help="of glasso and neighbourhoods: which penalty of the path: ebic:0.5, stars:0.05 or cv:5")
    ] = None,
    score: Annotated[
        str | None,
        Option(help="<scores>; bic if not given; ebic:1; or the evidence by a prior, bdeu:1, or by several: bdeu:1+bge"),
    ] = None,
    structure_prior: Annotated[
        str | None,
        Option(
            metavar="WORD",
            help="beside any score: koller-friedman (every number of parents equally probable), or castelo-siebes:0.1 (how "
            "probable each direction of an edge is that no --belief is about)",
        ),
    ] = None,
    belief: Annotated[list[str] | None, Option(metavar="A,B=P", help="how probable the edge A -> B is (may be repeated)")] = None,
    max_parents: Annotated[int | None, Option(help="at most so many parents", min=0)] = None,
    require: Annotated[list[str] | None, Option(metavar="A,B", help="the edge A -> B must be there")] = None,
    forbid: Annotated[list[str] | None, Option(metavar="A,B", help="the edge A -> B must not be there")] = None,
    tiers: Annotated[
        str | None, Option(metavar="FILE", help="a tier of names on each line; no edge leads to an earlier tier")
    ] = None,
    restarts: Annotated[int | None, Option(help="start so many times again (methods that can)", min=0)] = None,
    alpha: Annotated[float | None, Option(help="the level of the independence tests (pc, mmhc)")] = None,
    test: Annotated[
        str | None, Option(help="the test of pc and mmhc: <tests>; likelihood-ratio is for states and numbers together")
    ] = None,
    prior: Annotated[str | None, Option(help="for the parameters, as in fit; bdeu:1+nig if not given")] = None,
    family: arguments.FamilyWords = None,
    hidden: arguments.HiddenWords = None,
    starts: arguments.Starts = None,
    bootstrap: Annotated[
        int | None, Option(metavar="N", help="search in N resamples, too: how often each edge is found", min=1)
    ] = None,
    explain: Annotated[bool, Option("--explain", help="say of each edge why it is there")] = False,
    time_limit: Annotated[float | None, Option(metavar="SECONDS", help="stop the search, take the best so far")] = None,
    memory_limit: arguments.MemoryLimit = None,
    checkpoint: arguments.CheckpointDir = None,
    seed: Annotated[int, Option(help="the same seed gives the same graph", min=0)] = 0,
    threads: Annotated[int | None, Option(help="how many threads; all that there are if not given", min=1)] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="only estimate what search or --bootstrap would cost")] = False,
    report: arguments.ReportFile = None,
    as_json: arguments.AsJson = False,
    **options: Any,
) -> None:
    """Learn a network's graph, and then its parameters, from data: where cells are missing, or variables hidden, by structural
    EM. Ctrl-C takes the best graph so far.

    With --by, --order or --lags the rows are sequences: a template is learned, and a chain is written, as .json.
    """
    given = Options(**locals(), read=arguments.ColumnOptions(**options))
    from suffice.formats import writable
    from suffice.interfaces.cli import models

    if out is not None:
        writable(out)
    models.check_report(given)
    given.in_sequences = by is not None or order is not None or lags is not None
    if given.in_sequences:
        writable(out or "chain.json", "chain")
        refuse(given, "hidden starts family", "is for rows, not for sequences")
    elif gaps != "refuse":
        raise SufficeError("--gaps is for sequences: give --order")
    _choose_learner(given)(given)


def _choose_learner(given: Options) -> Callable[[Options], None]:
    """What learns the kind of model that is asked for; what is read and chosen by the options."""
    from suffice.interfaces.cli import words
    from suffice.recipes.learn import PRIOR

    given.chosen_prior = None if given.prior is None else words.prior_of(given.prior)
    given.fitting = PRIOR if given.prior is None else given.chosen_prior
    given.asked = {"score": with_structure_prior(words.score_of(given.score or "bic"), given.structure_prior, given.belief or [])}
    _read(given)
    _choose_method(given)
    given.asked["seed"] = given.seed
    given.limits = {"time_limit": given.time_limit, "memory_limit": given.memory_limit, "threads": given.threads}
    given.place = given.checkpoint
    if given.checkpoint is not None and given.bootstrap is not None:  # each has a directory of its own there
        given.place = str(Path(given.checkpoint) / "search")
    if given.in_sequences:
        given.asked["lags"] = 1 if given.lags is None else given.lags
        return _tell_plan if given.dry_run else _learn_from_complete
    if given.incomplete and not given.undirected:  # a search for undirected graphs refuses missing cells itself
        return _learn_from_incomplete
    if given.families:
        given.asked["families"] = given.families
    if given.bootstrap is not None and not hasattr(given.rows, "resample"):
        raise SufficeError("--bootstrap resamples rows, and saved statistics have none")
    return _tell_plan if given.dry_run else _learn_from_complete


def _read(given: Options) -> None:
    """The rows, with columns as families need them, or sequences; and whether something in them is unknown."""
    from suffice.interfaces.cli import inputs

    given.families = inputs.read_families(given.family or [])
    given.unseen = inputs.hidden_of(given.hidden or [])
    rows: Any = inputs.data_of(given.data, given.read)
    if given.families and hasattr(rows, "with_variables"):
        declared = inputs.declarations(given.read)
        rows = rows.with_variables(inputs.declared_by(given.families, [n for n in rows.columns if n not in declared]))
    given.rows = inputs.sequences_of(rows, given.by, given.order, given.gaps) if given.in_sequences else rows
    given.incomplete = bool(given.unseen) or (hasattr(given.rows, "missing") and any(given.rows.missing.values()))


def _choose_method(given: Options) -> None:
    from suffice.interfaces.cli import words

    method, most = given.method or ("hill-climb" if given.incomplete else "orders"), given.max_parents
    in_method = words.takes(method, "max_parents")
    if most is None and in_method:  # a default of the method gives way to what statistics were gathered for
        own, gathered = words.method_of(method).max_parents, getattr(given.rows, "max_parents", None)
        most = gathered if gathered and (own is None or gathered < own) else None
    chosen: dict[str, Any] = {"max_parents": most if in_method else None, "restarts": given.restarts, "alpha": given.alpha}
    chosen |= {"test": independence_of(given.test), "penalty": words.strength_of(given.penalty)}
    given.how = words.method_of(method, **chosen, select=words.selection_of(given.select))
    free = None if in_method else most
    given.asked["constraints"] = words.constraints_of(given.require or [], given.forbid or [], given.tiers, free)
    given.undirected = words.is_graph_method(method)
    if given.undirected:
        _check_undirected(given, method)


def _check_undirected(given: Options, method: str) -> None:
    """Refuse what a search for an undirected graph would not listen to, and a file that has no room for its model."""
    from suffice.formats import writable
    from suffice.interfaces.cli import words

    refuse(given, "hidden starts family checkpoint", "is not for undirected models")
    if given.score is not None and words.takes(method, "select"):
        raise SufficeError(f"the method {method} has no option --score: its penalty is chosen by --select")
    if given.penalty is not None and given.select is not None:
        raise SufficeError("--select chooses among penalties, and --penalty is one: leave --penalty or --select out")
    if given.out is not None:
        variables = given.rows.schema if hasattr(given.rows, "schema") else given.rows.variables
        n_real = sum(isinstance(v, Real) for v in variables.values())
        if method != "glasso" and 0 < n_real < len(variables):
            raise SufficeError(
                "there are finite and real columns, and no Markov network of both: leave -o out to see the graph, cut numbers by "
                "--bins NAME=5, or leave columns out with --without"
            )
        numbers = method == "glasso" or n_real == len(variables)
        writable(given.out, "gaussian_markov_net" if numbers else "markov_net")


def _tell_plan(given: Options) -> None:
    """What the search, or all those in resamples, would cost."""
    from suffice.recipes.resampling import bootstrap
    from suffice.structure.search import search

    wanted: dict[str, Any] = {"dry_run": True, **given.limits, **given.asked, "method": given.how}
    del wanted["time_limit"]
    n = None if given.in_sequences else given.bootstrap
    plan = search(given.rows, **wanted) if n is None else bootstrap(given.rows, n=n, **wanted)
    print(json.dumps(plan.to_dict(), ensure_ascii=False) if given.as_json else plan)


def _search(given: Options) -> tuple[Any, Any]:
    """What is found, and how often in resamples if that is asked for."""
    from suffice.structure.search import search

    found = search(given.rows, method=given.how, checkpoint=given.place, **given.limits, **given.asked)
    if not found.finished:
        what = "template" if given.in_sequences else "graph"
        say(f"note: the search was stopped before its end; this is the best {what} so far")
    return found, _resample(given, given.asked)


def _resample(given: Options, asked: dict[str, Any]) -> Any:
    """How often each edge is found in resamples, if that is asked for; with it all searches are over."""
    if given.bootstrap is None:
        return None
    from suffice.recipes.resampling import bootstrap

    place = None if given.checkpoint is None else str(Path(given.checkpoint) / "bootstrap")
    asked = asked | given.limits
    strengths = bootstrap(given.rows, method=given.how, n=given.bootstrap, checkpoint=place, **asked)
    if given.checkpoint is not None:
        with suppress(OSError):  # one of them was stopped: its checkpoint stays
            Path(given.checkpoint).rmdir()
    return strengths


def _learn_from_complete(given: Options) -> None:
    """A template, a graph without arrows, or one with arrows; and the chain or the network of it."""
    from suffice.families.priors.priors import suitable
    from suffice.interfaces.cli import models
    from suffice.learning.fit import fit
    from suffice.recipes.learn import PRIOR
    from suffice.structure.results.found_graph import GraphOutcome

    begun = time.perf_counter()
    found, strengths = _search(given)
    undirected = given.undirected and not given.in_sequences
    if undirected and not hasattr(found, "strengths"):  # of a tree, whose arrows say nothing more than its lines
        losses = {(min(edge), max(edge)): loss for edge, loss in found.losses.items()}
        outcome = GraphOutcome(found.graph, found.score, {e: losses[e] for e in found.graph.edges}, "loss without it")
        found = outcome.to_found(found.problem, found.method, found.finished)
    told, score = None, None if undirected else given.asked["score"]
    if given.explain and undirected:
        told = [found.explain(a, b) for a, b in found.graph.edges]
    elif given.explain:
        edges = found.template.edges if given.in_sequences else sorted({*found.cpdag.directed, *found.cpdag.undirected})
        told = [found.explain(e) for e in edges]
    with then_printed(found_in_words(found, score, told, strengths, as_json=given.as_json)):
        if given.out is None and given.report is None:
            return
        if given.in_sequences:
            variables = [v for n, v in given.rows.schema.items() if n in found.template]
            model = fit(found.template, given.rows, prior=suitable(given.fitting, variables, PRIOR))
        elif undirected:
            ready = found.has_model and given.prior is None
            model = found.model if ready else fit(found.graph, given.rows, prior=given.chosen_prior)
        else:
            own = suitable(PRIOR, found.problem.variables, PRIOR) if given.prior is None else given.chosen_prior
            model = fit(found.dag, found.problem.data, prior=own, families=found.problem.families)
        seconds = time.perf_counter() - begun if given.in_sequences else found.seconds
        models.write_model(model, given.out, f"searched for {seconds:.2f} s")
        models.write_report(given.report, model, found=None if given.in_sequences else found)


def _learn_from_incomplete(given: Options) -> None:
    """Structural EM; what it found is written, and printed."""
    from suffice.families.priors.priors import suitable
    from suffice.formats import writable
    from suffice.interfaces.cli import models
    from suffice.recipes.learn import PRIOR
    from suffice.recipes.structural.structural_em import structural_em

    refuse(given, "dry_run" + " bootstrap" * bool(given.unseen), "needs complete rows without hidden variables", "")
    if given.out is not None:
        writable(given.out, variables=given.rows.schema.values())
    start = time.perf_counter()
    again = given.asked | {"families": given.families, **given.limits}
    prior = suitable(given.fitting, [*given.rows.schema.values(), *given.unseen], PRIOR)
    own = again | {"hidden": given.unseen, "starts": given.starts, "checkpoint": given.place}
    run = structural_em(given.rows, method=given.how, prior=prior, **own)
    if any(given.rows.missing.values()):
        say("note: gaps are taken to be at random, given what their row shows; `suffice missing` looks for signs against that")
    if not run.finished:
        say("note: structural EM was stopped before its end; this is the best network so far")
    told = [run.explain(e) for e in sorted({*run.cpdag.directed, *run.cpdag.undirected})] if given.explain else None
    strengths = _resample(given, again)
    with then_printed(found_in_words(run, None, told, strengths, as_json=given.as_json)):
        if given.out is not None:
            model = models.with_information(run.model, given.out)
            models.write_model(model, given.out, f"searched for {time.perf_counter() - start:.2f} s")
        models.write_report(given.report, run)


def found_in_words(found: Any, score: Any, told: Sequence[Any] | None, strengths: Any, *, as_json: bool) -> str:
    """What a search found, with what explains its edges and how often they are found, for a person or a program."""
    if not as_json:
        return "\n".join(map(str, [found, *(f"\n{t}" for t in told or ()), *([] if strengths is None else [f"\n{strengths!r}"])]))
    facts = {
        **found.to_dict(),
        **({} if score is None else {"score_name": repr(score)}),
        **({"explanations": [t.to_dict() for t in told]} if told is not None else {}),
    }
    return json.dumps(facts | ({} if strengths is None else {"bootstrap": strengths.to_dict()}), ensure_ascii=False)


def independence_of(word: str | None) -> Any:
    """A test of independence; that of tables counts what is not empty, as PC does by itself."""
    if word is None:
        return None
    test = look_up("tests", word.strip().lower(), f"the --test {word!r}")
    return test(adjusted=True) if issubclass(test, TableTest) else test()


def number_of(text: str, what: str) -> float:
    """A number that stands in a word."""
    try:
        return float(text)
    except ValueError:
        raise SufficeError(f"{what} has no number {text!r}") from None


def with_structure_prior(score: Any, said: str | None, beliefs: Sequence[str]) -> Any:
    """The score with a structure prior: `koller-friedman`, or `castelo-siebes:0.1` with beliefs `A,B=0.9` in edges."""
    from suffice.interfaces.cli import words

    if said is None and not beliefs:
        return score
    word, colon, number = (said or "castelo-siebes").strip().lower().partition(":")
    if word not in ("koller-friedman", "castelo-siebes"):
        raise SufficeError(f"--structure-prior is koller-friedman or castelo-siebes:0.1, not {said!r}")
    if word == "koller-friedman":
        if colon or beliefs:
            raise SufficeError("--structure-prior koller-friedman takes no number and no --belief; castelo-siebes does")
        return GraphPosterior(score, KollerFriedman())
    given: dict[Edge, float] = {}
    for text in beliefs:
        edge, equals, p = text.rpartition("=")
        for pair in words.edges_of([edge], "--belief") if equals else ():
            given[pair] = number_of(p, f"--belief {text}")
    if len(given) < len(beliefs):
        raise SufficeError("--belief takes an edge and its probability, as in 'A,B=0.9' or 'A -> B=0.9'")
    others = {"others": number_of(number, f"--structure-prior {said}")} if colon else {}
    return GraphPosterior(score, CasteloSiebes(given, **others))
