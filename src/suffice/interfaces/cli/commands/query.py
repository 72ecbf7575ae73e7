"""The command that asks, `suffice query`: whole tables for a person, plain values for a program (JSON)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Argument, Option

from suffice.basis.output.display import text_table
from suffice.basis.output.terminal import working
from suffice.basis.registry import command
from suffice.basis.variables import Finite
from suffice.errors import FitError, ModelError, SufficeError, TooLarge, checked_level, listing
from suffice.errors.remedies import BY_SAMPLING
from suffice.interfaces.cli.arguments import AsJson, Do, Model
from suffice.models.networks import BayesNet
from suffice.models.questions.answers import Distribution, Marginals, MostProbable, in_a_line
from suffice.models.questions.question import code_of

if TYPE_CHECKING:
    from suffice.interfaces.cli.question import WrittenQuestion
    from suffice.models.networks import BayesNet


@command("query")
def query(
    model: Model,
    question: Annotated[
        str,
        Argument(
            metavar="QUESTION",
            help="'P(a, b | c=x, d=1.5)'. a=yes before the bar asks for that probability alone; c=[0.2,0.8] gives one likelihood "
            "per state; names and states with blanks or marks stand in quotes. --all and --mpe need only evidence: 'c=x'",
        ),
    ] = "",
    mpe: Annotated[
        bool, Option("--mpe", help="the most probable states together: of the targets, or of all that is not observed")
    ] = False,
    marginals: Annotated[bool, Option("--all", help="the distribution of every node given the evidence")] = False,
    do: Do = None,
    interval: Annotated[
        float | None, Option(metavar="LEVEL", help="0.95: with credible intervals, from the posterior of the parameters")
    ] = None,
    draws: Annotated[int, Option(help="draws of the parameters for --interval, at least 1000", min=1000)] = 1000,
    method: Annotated[str, Option(help="exact, or by draws: lw:10000 (likelihood weighting) or gibbs:10000")] = "exact",
    seed: Annotated[int, Option(help="the same seed gives the same draws", min=0)] = 0,
    time_limit: Annotated[
        float | None,
        Option(metavar="SECONDS", help="of --all with --interval: nodes for which there is no time are told without one"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a network: probabilities given evidence, most probable states, effects of interventions."""
    from suffice.interfaces.cli import models, words
    from suffice.models.parts.closed_forms import NoFormula

    how = words.sampler_of(method)
    if interval is not None:
        checked_level(interval)
    _check_options(mpe=mpe, all=marginals, method=how is not None)
    _check_options(mpe=mpe, interval=interval is not None, method=how is not None)
    if time_limit is not None and not (marginals and interval is not None):
        raise SufficeError("--time-limit is for the intervals of all nodes: give it with --all and --interval")
    asked = _question_of(question, mpe=mpe, marginals=marginals)
    bn = models.network_of(model, "suffice decode, smooth, filter and forecast ask it about sequences")
    set_to = models.settings_of(bn, do or [], "--do")
    if set_to and hasattr(models.model_of(model), "graph"):
        raise SufficeError(f"{model} holds a network without arrows, which says nothing of causes: --do needs arrows")
    if set_to:
        bn = bn.do(set_to)
    given = models.values_of(bn, asked.given)
    check_states(bn, asked.targets, asked.states)
    with working("asking"), _hinting(model, mpe=mpe):
        if marginals:
            answer: Any = bn.marginals(given, interval=interval, draws=draws, seed=seed, time_limit=time_limit)
        elif mpe:
            answer = bn.most_probable(given, targets=asked.targets or None)
        else:
            answer = bn.query(asked.targets, given, method=how, interval=interval, draws=draws, seed=seed)
    if not as_json:
        print(in_text(answer, asked.states))
        return
    told = {"targets": list(asked.targets or answer), **facts(answer, asked.states)}
    told |= {"evidence": given, "do": set_to, "interval": interval}
    told["log_prob_of_evidence"] = None
    with suppress(NoFormula):  # the answer may not depend on what lacks one; draws are asked for where exact answers cost much
        told["log_prob_of_evidence"] = bn.log_prob_of(given) if how is None else None
    print(json.dumps(told, ensure_ascii=False))


@contextmanager
def _hinting(model: str, *, mpe: bool) -> Iterator[None]:
    """Say how to do on the command line what an error says how to do in Python."""
    try:
        yield
    except FitError as error:
        again = f"suffice fit {shlex.quote(model)} DATA -o FITTED.json --prior bdeu:1"
        raise FitError(f"{error.said}; on the command line: {again}, and ask FITTED.json, which keeps the posterior") from None
    except TooLarge as error:
        instead = "--mpe cannot be sampled: give more evidence" if mpe else str(BY_SAMPLING)
        raise TooLarge(error.said.replace(str(BY_SAMPLING), instead)) from None


def _check_options(**given: bool) -> None:
    chosen = [f"--{name}" for name, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise SufficeError(f"{' and '.join(chosen[:2])} exclude each other: give one of them")


def _question_of(text: str, *, mpe: bool, marginals: bool) -> WrittenQuestion:
    from suffice.interfaces.cli.question import read_question

    if not (mpe or marginals):
        asked = read_question(text)
        if not asked.targets:
            raise SufficeError("the question has no target: write one, as in 'P(a | b=yes)', or give --all or --mpe")
        return asked
    asked = read_question(text, evidence_alone=True)
    if marginals and asked.targets:
        raise SufficeError(f"--all asks for every node, not only for {listing(asked.targets)}; leave one of them out")
    if asked.states:
        name, state = next(iter(asked.states.items()))
        raise SufficeError(f"--mpe finds the states of targets: write {name!r} without ={state}, or as evidence after the bar")
    return asked


States = Mapping[str, str]
"""The states that targets are asked for, where the question names some."""


def check_states(bn: BayesNet, targets: tuple[str, ...], states: States) -> None:
    """Refuse states that a target does not have, before anything is computed."""
    if not states:
        return
    for name in targets:
        variable = bn.variables.get(name)
        if isinstance(variable, Finite) and name in states:
            code_of(variable, states[name])
        elif variable is not None and not isinstance(variable, Finite):
            raise ModelError(f"{name!r} is a number and has no states: ask for its distribution, with states only after the bar")


def in_text(answer: Any, states: States) -> str:
    """The answer for a person; where each target has a state, the one probability, with all its digits."""
    title = repr(answer).partition("\n")[0]
    if isinstance(answer, Marginals):
        return f"{title}\n{text_table(['node', 'distribution'], [(n, in_a_line(answer[n])) for n in answer], indent='  ')}"
    if isinstance(answer, MostProbable):
        return f"{title}\n{text_table(['node', 'state'], answer.items(), indent='  ')}"
    if not isinstance(answer, Distribution):
        return repr(answer)
    found = _records(answer, states)
    if set(answer.names) == set(states) and answer.interval is None and answer.error is None:
        return repr(found[0]["probability"])
    rows = [[*record["states"].values(), *(x for k, x in record.items() if k != "states")] for record in found]
    return f"{title}\n{text_table(answer.heading(), rows)}"


def facts(answer: Any, states: States) -> dict[str, Any]:
    """The answer for a program."""
    if isinstance(answer, Marginals):
        return {"marginals": {n: facts(answer[n], {}) for n in answer}}
    if isinstance(answer, MostProbable):
        probability = answer.probability if np.isfinite(answer.probability) else None  # JSON has no infinity
        word = "density" if answer.is_density else "probability"
        return {"most_probable": dict(answer), "log_prob": answer.log_prob, word: probability}
    if isinstance(answer, Distribution):
        size = answer.effective_sample_size
        drawn = {} if size is None else {"effective_sample_size": size}
        return {**_probabilities(answer, states), **drawn, "how": answer.how}
    finite = {} if answer.finite is None else _probabilities(answer.finite, {})
    return {**finite, **answer.to_dict(), "how": answer.how}


def _probabilities(answer: Distribution, states: States) -> dict[str, Any]:
    return {"states": {v.name: list(v.states) for v in answer.variables}, "probabilities": _records(answer, states)}


def _records(answer: Distribution, states: States) -> list[dict[str, Any]]:
    """One record per cell, of those that have the states."""
    numbers = {"probability": answer.probs}
    if answer.interval is not None:
        numbers |= {"lower": answer.interval.lower, "upper": answer.interval.upper}
    if answer.error is not None:
        numbers |= {"standard_error": answer.error}
    wanted = [[states[v.name]] if v.name in states else v.states for v in answer.variables]
    records = []
    for cell in product(*wanted):
        at = tuple(map(code_of, answer.variables, cell))
        values = {name: float(array[at]) for name, array in numbers.items()}
        records.append({"states": dict(zip(answer.names, cell, strict=True)), **values})
    return records
