"""The command that asks: `suffice query`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.arguments import AsJson, Model
from suffice.errors import FitError, SufficeError, TooLarge, listing
from suffice.errors.remedies import BY_SAMPLING
from suffice.output.terminal import working
from suffice.registry import command

if TYPE_CHECKING:
    from suffice.cli.words.question import WrittenQuestion
    from suffice.models.networks import BayesNet


@command("query")
def query(
    model: Model,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION",
            help="'P(a, b | c=x, d=1.5)'. a=yes before the bar asks for that probability alone; c=[0.2,0.8] gives one likelihood "
            "per state; names and states with blanks or marks stand in quotes. --all and --mpe need only evidence: 'c=x'",
        ),
    ] = "",
    mpe: Annotated[
        bool, typer.Option("--mpe", help="the most probable states together: of the targets, or of all that is not observed")
    ] = False,
    marginals: Annotated[bool, typer.Option("--all", help="the distribution of every node given the evidence")] = False,
    do: Annotated[
        list[str] | None, typer.Option("--do", metavar="X=YES", help="first set a variable from outside (may be repeated)")
    ] = None,
    interval: Annotated[
        float | None, typer.Option(metavar="LEVEL", help="0.95: with credible intervals, from the posterior of the parameters")
    ] = None,
    draws: Annotated[int, typer.Option(help="draws of the parameters for --interval, at least 1000", min=1000)] = 1000,
    method: Annotated[str, typer.Option(help="exact, or by draws: lw:10000 (likelihood weighting) or gibbs:10000")] = "exact",
    seed: Annotated[int, typer.Option(help="the same seed gives the same draws", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Ask a network: probabilities given evidence, most probable states, effects of interventions."""
    from suffice.cli import answers, inputs
    from suffice.cli.words import vocabulary as words
    from suffice.families.protocol.family import checked_level

    how = words.sampler_of(method)
    if interval is not None:
        checked_level(interval)
    _check_options(mpe=mpe, all=marginals, method=how is not None)
    _check_options(mpe=mpe, interval=interval is not None, method=how is not None)
    asked = _question_of(question, mpe=mpe, marginals=marginals)
    bn = inputs.network_of(model, "suffice decode, smooth, filter and forecast ask it about sequences")
    set_to = inputs.interventions_of(bn, do or [])
    if set_to and hasattr(inputs.model_of(model), "graph"):
        raise SufficeError(f"{model} holds a network without arrows, which says nothing of causes: --do needs arrows")
    if set_to:
        bn = bn.do(set_to)
    given = inputs.values_of(bn, asked.given)
    answers.check_states(bn, asked.targets, asked.states)
    with working("asking"), _hinting(model, mpe=mpe):
        if marginals:
            answer: Any = bn.marginals(given, interval=interval, draws=draws, seed=seed)
        elif mpe:
            answer = bn.most_probable(given, targets=asked.targets or None)
        else:
            answer = bn.query(asked.targets, given, method=how, interval=interval, draws=draws, seed=seed)
    if not as_json:
        print(answers.in_text(answer, asked.states))
        return
    facts = {"targets": list(asked.targets or answer), **answers.facts(answer, asked.states)}
    facts |= {"evidence": given, "do": set_to, "interval": interval}
    exactly = how is None  # draws are asked for where exact answers cost too much
    print(json.dumps(facts | {"log_prob_of_evidence": _log_prob(bn, given) if exactly else None}, ensure_ascii=False))


def _log_prob(bn: BayesNet, given: dict[str, Any]) -> float | None:
    """ln p(given), nothing where it has no formula: the answer may not depend on what lacks one."""
    from suffice.models.parts.closed_forms import NoFormula

    try:
        return bn.log_prob_of(given)
    except NoFormula:
        return None


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
    """Refuse options that exclude each other."""
    chosen = [f"--{name}" for name, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise SufficeError(f"{' and '.join(chosen[:2])} exclude each other: give one of them")


def _question_of(text: str, *, mpe: bool, marginals: bool) -> WrittenQuestion:
    from suffice.cli.words.question import read_evidence, read_question

    if not (mpe or marginals):
        asked = read_question(text)
        if not asked.targets:
            raise SufficeError("the question has no target: write one, as in 'P(a | b=yes)', or give --all or --mpe")
        return asked
    asked = read_evidence(text)
    if marginals and asked.targets:
        raise SufficeError(f"--all asks for every node, not only for {listing(asked.targets)}; leave one of them out")
    if asked.states:
        name, state = next(iter(asked.states.items()))
        raise SufficeError(f"--mpe finds the states of targets: write {name!r} without ={state}, or as evidence after the bar")
    return asked
