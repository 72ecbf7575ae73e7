"""The command that learns a graph, and then its parameters: `suffice learn`."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from suffice.cli.arguments import (
    AsJson,
    BinWords,
    By,
    CountWords,
    DataFile,
    Decimal,
    Encoding,
    EngineWord,
    FamilyWords,
    FiniteWords,
    Gaps,
    HiddenWords,
    Integers,
    Missing,
    Order,
    RealWords,
    Separator,
    Starts,
    Weights,
    Without,
)
from suffice.cli.kinds.chains import found_in_words, learn_template, refuse_options
from suffice.cli.kinds.undirected import (
    check_graph_method,
    graph_in_words,
    refuse_directed_options,
    without_arrows,
)
from suffice.cli.words.structure import believed, independence_of
from suffice.errors import SufficeError
from suffice.terminal import say, then_printed


def learn(
    data: DataFile,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="MODEL", help="where to write the fitted network; the suffix says the format"),
    ] = None,
    by: By = None,
    order: Order = None,
    gaps: Gaps = "refuse",
    lags: Annotated[
        int | None, typer.Option(metavar="K", help="of sequences: parents up to so many steps back; 1 if not given", min=0)
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="orders, hill-climb, tabu, ges, exact, chow-liu, tan:CLASS, pc or mmhc; orders if not given, hill-climb where "
            "cells are missing. Graphs without arrows: glasso, neighbourhoods, decomposable, stepwise or chow-liu-graph"
        ),
    ] = None,
    penalty: Annotated[
        str | None, typer.Option(metavar="X", help="of glasso and neighbourhoods: one penalty; a path of them if not given")
    ] = None,
    select: Annotated[
        str | None, typer.Option(help="of glasso and neighbourhoods: which penalty of the path: ebic:0.5, stars:0.05 or cv:5")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="bic (if not given), ebic:1, aic, loglik, k2, bdeu:1, bds:1, bge, or several priors: bdeu:1+bge"),
    ] = None,
    structure_prior: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="beside any score: koller-friedman (every number of parents equally probable), or castelo-siebes:0.1 (how "
            "probable each direction of an edge is that no --belief is about)",
        ),
    ] = None,
    belief: Annotated[
        list[str] | None, typer.Option(metavar="A,B=P", help="how probable the edge A -> B is (may be repeated)")
    ] = None,
    max_parents: Annotated[int | None, typer.Option(help="at most so many parents", min=0)] = None,
    require: Annotated[list[str] | None, typer.Option(metavar="A,B", help="the edge A -> B must be there")] = None,
    forbid: Annotated[list[str] | None, typer.Option(metavar="A,B", help="the edge A -> B must not be there")] = None,
    tiers: Annotated[
        str | None, typer.Option(metavar="FILE", help="a tier of names on each line; no edge leads to an earlier tier")
    ] = None,
    restarts: Annotated[int | None, typer.Option(help="start so many times again (methods that can)", min=0)] = None,
    alpha: Annotated[float | None, typer.Option(help="the level of the independence tests (pc, mmhc)")] = None,
    test: Annotated[
        str | None,
        typer.Option(help="the test of pc and mmhc: g2, chi2, mi, fisher-z or likelihood-ratio (states and numbers together)"),
    ] = None,
    prior: Annotated[str | None, typer.Option(help="for the parameters, as in fit; bdeu:1+nig if not given")] = None,
    family: FamilyWords = None,
    hidden: HiddenWords = None,
    starts: Starts = None,
    bootstrap: Annotated[
        int | None, typer.Option(metavar="N", help="search in N resamples, too: how often each edge is found", min=1)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="say of each edge why it is there")] = False,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="stop the search, take the best so far")] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="what the search may take beside the data: 2GB")
    ] = None,
    seed: Annotated[int, typer.Option(help="the same seed gives the same graph", min=0)] = 0,
    threads: Annotated[int | None, typer.Option(help="how many threads; all that there are if not given", min=1)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only estimate what search or --bootstrap would cost")] = False,
    engine: EngineWord = None,
    weights: Weights = None,
    missing: Missing = None,
    separator: Separator = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    integers: Integers = "auto",
    finite: FiniteWords = None,
    real: RealWords = None,
    bins: BinWords = None,
    count: CountWords = None,
    without: Without = None,
    as_json: AsJson = False,
) -> None:
    """Learn a network's graph, and then its parameters, from data: where cells are missing, or variables hidden, by structural
    EM. Ctrl-C takes the best graph so far.

    With --by, --order or --lags the rows are sequences: a template is learned, and a chain is written, as .json.
    """
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words
    from suffice.families.priors import suitable
    from suffice.formats import holds, writable
    from suffice.formats.registry import holds_chains
    from suffice.learning.fit import fit as fitted
    from suffice.recipes.learn import PRIOR
    from suffice.recipes.resampling import bootstrap as resampled
    from suffice.structure.search import search

    if out is not None:
        writable(out)
    in_sequences = by is not None or order is not None or lags is not None
    if in_sequences:
        holds_chains(out or "chain.json")
        refuse_options(hidden=hidden, starts=starts, family=family)
    elif gaps != "refuse":
        raise SufficeError("--gaps is for sequences: give --order")
    chosen_score = believed(words.score_of(score or "bic"), structure_prior, belief or [])
    families = words.families_of(family or [])
    chosen_prior = None if prior is None else words.prior_of(prior)
    unseen = inputs.hidden_of(hidden or [])
    declared = inputs.declarations(finite, real, bins, count)
    read: dict[str, Any] = {"weights": weights, "missing": missing, "integers": integers, "engine": engine, "without": without}
    rows: Any = inputs.data_of(inputs.text_path(data, separator, decimal, encoding), declared, **read)
    if families and hasattr(rows, "with_variables"):
        rows = rows.with_variables(words.declared_by(families, [n for n in rows.columns if n not in declared]))
    if in_sequences:
        rows = inputs.sequences_of(rows, by, order, gaps)
    incomplete = bool(unseen) or (hasattr(rows, "missing") and any(rows.missing.values()))
    method = method or ("hill-climb" if incomplete else "orders")
    in_method = words.takes(method, "max_parents")
    if max_parents is None and in_method:  # a default of the method gives way to what statistics were gathered for
        max_parents = inputs.most_parents(rows, words.method_of(method))
    chosen: dict[str, Any] = {"max_parents": max_parents if in_method else None, "restarts": restarts, "alpha": alpha}
    chosen["test"] = independence_of(test)
    chosen |= {"penalty": words.strength_of(penalty), "select": words.selection_of(select)}
    how = words.method_of(method, **chosen)
    known = words.constraints_of(require or [], forbid or [], tiers, None if in_method else max_parents)
    if words.is_graph_method(method):
        refuse_directed_options(hidden=hidden, starts=starts, family=family)
        check_graph_method(method, rows, out, score=score, penalty=penalty, select=select)
    asked: dict[str, Any] = {"score": chosen_score, "constraints": known, "seed": seed}
    limits: dict[str, Any] = {"time_limit": time_limit, "memory_limit": memory_limit, "threads": threads}
    if in_sequences:
        wished: dict[str, Any] = {"as_json": as_json, "explain": explain, "bootstrap": bootstrap, "dry_run": dry_run}
        fitting = PRIOR if prior is None else chosen_prior
        return learn_template(rows, 1 if lags is None else lags, how, asked, fitting, out, limits=limits, **wished)
    if incomplete and not words.is_graph_method(method):  # that of undirected graphs refuses missing cells itself
        options: dict[str, Any] = {
            "--dry-run": dry_run,
            "--memory-limit": memory_limit,
            "--bootstrap": bootstrap if unseen else None,
        }
        for option, value in options.items():
            if value:
                raise SufficeError(f"{option} needs complete rows without hidden variables")
        if out is not None:
            holds(out, rows.schema.values())
        asked |= {"hidden": unseen, "starts": starts, "families": families, "time_limit": time_limit, "threads": threads}
        wish = {"explain": explain, "bootstrap": bootstrap, "as_json": as_json}
        return _learned_from_incomplete(rows, how, asked, PRIOR if prior is None else chosen_prior, out, **wish)
    if families:
        asked["families"] = families
    if bootstrap is not None and not hasattr(rows, "resample"):
        raise SufficeError("--bootstrap resamples rows, and saved statistics have none")
    if dry_run:
        wanted: dict[str, Any] = {"dry_run": True, "threads": threads, "memory_limit": memory_limit, **asked}
        plan = search(rows, method=how, **wanted) if bootstrap is None else resampled(rows, how, bootstrap, **wanted)
        return print(json.dumps(plan.to_dict(), ensure_ascii=False) if as_json else plan)
    found = search(rows, method=how, time_limit=time_limit, memory_limit=memory_limit, threads=threads, **asked)
    if not found.finished:
        say("note: the search was stopped before its end; this is the best graph so far")
    if words.is_graph_method(method):
        found = found if hasattr(found, "strengths") else without_arrows(found)
        often = None if bootstrap is None else resampled(rows, how, bootstrap, **asked, **limits)
        with then_printed(graph_in_words(found, explain=explain, strengths=often, as_json=as_json)):
            if out is not None:
                net = found.model if found.has_model and prior is None else fitted(found.graph, rows, prior=chosen_prior)
                inputs.written(net, out, f"searched for {found.seconds:.2f} s")
        return None
    told = [found.explain(e) for e in sorted({*found.cpdag.directed, *found.cpdag.undirected})] if explain else None
    strengths = None if bootstrap is None else resampled(rows, how, bootstrap, **asked, **limits)
    with then_printed(found_in_words(found, asked["score"], told, strengths, as_json=as_json)):
        if out is not None:
            default = suitable(PRIOR, found.problem.variables, PRIOR)
            own = default if prior is None else chosen_prior
            model = fitted(found.dag, found.problem.data, prior=own, families=found.problem.families)
            inputs.written(model, out, f"searched for {found.seconds:.2f} s")
    return None


def _learned_from_incomplete(
    rows: Any, how: Any, asked: dict[str, Any], prior: Any, out: str | None, *, explain: Any, bootstrap: Any, as_json: Any
) -> None:
    """Structural EM; what it found is written, and printed."""
    from suffice.cli import inputs
    from suffice.families.priors import suitable
    from suffice.recipes.learn import PRIOR
    from suffice.recipes.resampling import bootstrap as resampled
    from suffice.recipes.structural_em import structural_em

    start = time.perf_counter()
    variables = [*rows.schema.values(), *asked["hidden"]]
    run = structural_em(rows, method=how, prior=suitable(prior, variables, PRIOR), **asked)
    if not run.finished:
        say("note: structural EM was stopped before its end; this is the best network so far")
    told = [run.explain(e) for e in sorted({*run.cpdag.directed, *run.cpdag.undirected})] if explain else []
    again = {name: value for name, value in asked.items() if name not in ("hidden", "starts")}
    strengths = None if bootstrap is None else resampled(rows, how, bootstrap, **again)
    facts = run.to_dict() | ({"explanations": [t.to_dict() for t in told]} if explain else {})
    facts |= {} if strengths is None else {"bootstrap": strengths.to_dict()}
    texts = [str(run), *(f"\n{t}" for t in told), *([] if strengths is None else [f"\n{strengths!r}"])]
    with then_printed(json.dumps(facts, ensure_ascii=False) if as_json else "\n".join(texts)):
        if out is not None:
            inputs.written(run.model, out, f"searched for {time.perf_counter() - start:.2f} s")
