"""What public calls take: few arguments, the same word and default for the same idea everywhere, values instead of words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypedDict

import pytest

import suffice as sf
from suffice.basis.limits import LIMITS, Budget, Limits
from suffice.errors import ArgumentError
from suffice.learning.em import EmOptions
from suffice.learning.fit import FitOptions
from suffice.learning.gradient import AscentOptions
from suffice.recipes.cross_validation import FoldOptions
from suffice.recipes.latent.hmm import HmmOptions
from suffice.recipes.latent.latent_run import LatentOptions
from suffice.recipes.learn import LearnOptions
from suffice.recipes.structural.structural_em import RoundOptions
from suffice.structure.order_mcmc import OrderOptions

MOST = 10
LONG = {
    "em": "the ten of the design, and dry_run, which decides what it returns",
    "estimators.HMM.__init__": "scikit-learn wants every parameter by name in __init__",
    "statistics.Moments.__init__": "a statistic, which functions make, not users",
}
"""Calls with more arguments, each with the reason. Classes of `results` are made by the library alone."""

TEXTS = {
    "scan.decimal": "a character of the file",
    "scan.encoding": "the name of an encoding of Python",
    "Data.map.what": "what the line of progress says",
    "report.title": "the heading of the page",
    "report.command": "a remark",
    "reports.report_html.title": "the heading of the page",
    "reports.report_html.command": "a remark",
    "Crf.__init__.fit_info": "a remark",
    "undirected.RBM.__init__.fit_info": "a remark",
    "GraphicalLasso.__init__.on": "0.1 took a word; it goes with 0.3",
}
"""Arguments that are texts by default, or may be, and are no switches. Names of columns and nodes are not listed."""

NAMES = ("name", "target")

SAME = {
    "score": "None",
    "method": "None",
    "constraints": "None",
    "families": "None",
    "estimate": "None",
    "objective": "None",
    "penalty": "None",
    "lags": "None",
    "hidden": "()",
    "start": "None",
    "seed": "0",
    "tol": "1e-06",
    "max_iter": "500",
    "dry_run": "False",
    "by_node": "False",
    "choose": "None",
    "covariance": "None",
    "shared": "None",
    "test": "None",
}
"""The default of an argument wherever a public function has it."""

ORDER = ("data", "score", "method", "prior")
LONG_CALLS: dict[str, tuple[Callable[..., Any], type, set[str]]] = {
    "search": (sf.search, Limits, set()),
    "learn": (sf.learn, LearnOptions, set()),
    "bootstrap": (sf.bootstrap, Limits, set()),
    "cross_validate": (sf.cross_validate, FoldOptions, set()),
    "order_mcmc": (sf.methods.order_mcmc, OrderOptions, set()),
    "structural_em": (sf.structural_em, RoundOptions, set()),
    "em": (sf.em, EmOptions, set()),
    "fit": (sf.fit, FitOptions, set()),
    "mixture": (sf.mixture, LatentOptions, set()),
    "gradient": (sf.gradient, AscentOptions, {"checkpoint"}),
    "hmm": (sf.hmm, HmmOptions, {"checkpoint"}),
    "factors": (sf.factors, LatentOptions, {"checkpoint"}),
    "rbm": (sf.undirected.rbm, Limits, {"threads", "checkpoint"}),
}
"""Long calls, what their keywords are, and which limits they have no use for."""


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("em", "fit", "gradient"), ("x -> y", {})),
    **dict.fromkeys(("mixture", "factors", "hmm"), ({}, 1)),
}
"""What has to be given, besides rows alone; the keywords are looked at before it."""


def public() -> Iterator[tuple[str, Any]]:
    """All that is public, by its name."""
    yield from ((name, getattr(sf, name)) for name in sf.__all__)
    for topic in sf._MODULES.split():
        module = getattr(sf, topic)
        own = [n for n, x in vars(module).items() if not n.startswith("_") and getattr(x, "__module__", "") == module.__name__]
        yield from ((f"{topic}.{name}", getattr(module, name)) for name in getattr(module, "__all__", own))


def calls() -> dict[str, Any]:
    """Public functions, and what public classes are made by and asked; each once, by its first name."""
    found: dict[Any, str] = {}
    for name, value in public():
        if inspect.isclass(value):
            for key, part in vars(value).items():
                function = inspect.unwrap(getattr(part, "__func__", part)) if callable(getattr(part, "__func__", part)) else None
                if inspect.isfunction(function) and (key == "__init__" or not key.startswith("_")):
                    found.setdefault(function, f"{name}.{key}")
        elif callable(value) and inspect.isfunction(inspect.unwrap(value)):
            found.setdefault(inspect.unwrap(value), name)
    return {name: function for function, name in found.items()}


def arguments(function: Any) -> list[inspect.Parameter]:
    named = inspect.signature(function).parameters.values()
    return [p for p in named if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name != "self"]


def made_by_the_library(name: str) -> bool:
    return name.startswith("results.") or name == "graphs.Comparison.__init__"


def test_no_call_has_many_arguments() -> None:
    long = {name for name, f in calls().items() if len(arguments(f)) > MOST and not made_by_the_library(name)}
    assert long == set(LONG)


def test_options_are_values() -> None:
    """No argument is a word out of several: none is a text by default, or by its type one of some texts."""
    words = {
        f"{name}.{p.name}"
        for name, f in calls().items()
        for p in arguments(f)
        if (isinstance(p.default, str) or "Literal[" in str(p.annotation) or "InitVar[str" in str(p.annotation))
        and p.name not in NAMES
        and not made_by_the_library(name)
    }
    assert words == set(TEXTS)


def test_the_same_idea_has_the_same_default() -> None:
    functions = {name: f for name, f in calls().items() if "." not in f.__qualname__}
    other = {
        f"{name}({p.name}={p.default!r})"
        for name, f in functions.items()
        for p in arguments(f)
        if p.name in SAME and p.default is not p.empty and repr(p.default) != SAME[p.name]
    }
    assert not other


def test_arguments_of_searches_come_in_one_order() -> None:
    for name in ("search", "learn", "bootstrap", "cross_validate", "structural_em"):
        first = [p.name for p in arguments(inspect.unwrap(LONG_CALLS[name][0]))][:4]
        assert first[:3] == list(ORDER[:3]), name
        assert "prior" not in first or first == list(ORDER), name


@pytest.mark.parametrize("name", LONG_CALLS)
def test_limits_are_the_same_in_all_long_calls(name: str) -> None:
    call, kind, without = LONG_CALLS[name]
    given = [p for p in inspect.signature(inspect.unwrap(call)).parameters.values() if p.kind is p.VAR_KEYWORD]
    assert [str(p.annotation) for p in given] == [f"Unpack[{kind.__name__}]"]
    assert set(Limits.__annotations__) == set(LIMITS) <= set(kind.__annotations__)
    for limit in without:
        with pytest.raises(ArgumentError, match=f"{name} takes no {limit}=: its limits are"):
            call(*ARGUMENTS.get(name, ({},)), **{limit: 1})
    with pytest.raises(TypeError, match=f"{name} takes no time_limt=; did you mean 'time_limit'"):
        call(*ARGUMENTS.get(name, ({},)), time_limt=1)
    source = inspect.getsource(inspect.unwrap(call))
    for option in set(kind.__annotations__) - set(LIMITS):
        assert f"`{option}" in source, f"{name}: its docstring says nothing of {option}"


@pytest.mark.parametrize("name", LONG_CALLS)
def test_a_misspelt_argument_is_answered_with_the_nearest_one(name: str) -> None:
    call = LONG_CALLS[name][0]
    for argument in (p.name for p in arguments(inspect.unwrap(call)) if len(p.name) > 3):
        with pytest.raises(ArgumentError, match=f"{name} takes no {argument}_=; did you mean '{argument}'[?]"):
            call(*ARGUMENTS.get(name, ({},)), **{f"{argument}_": 1})


def test_a_keyword_of_other_calls_has_no_nearest_one() -> None:
    with pytest.raises(ArgumentError, match=r"search takes no prior=$"):
        sf.search({}, prior=1)  # type: ignore[call-arg]


def test_every_function_that_has_limits_is_listed() -> None:
    passed_on = ("Unpack[QueryOptions]", "Unpack[PredictOptions]", "Unpack[ProbabilityOptions]", "Unpack[ImputeOptions]")
    signatures = {n: str(inspect.signature(f)) for n, f in calls().items()}
    having = {n.split(".")[-1] for n, s in signatures.items() if "Unpack[" in s and not any(kind in s for kind in passed_on)}
    named = {n for n, f in calls().items() if "time_limit" in inspect.signature(f).parameters and "__init__" not in n}
    assert having == set(LONG_CALLS)
    assert not named


def test_limits_are_one_value() -> None:
    assert tuple(f.name for f in fields(Budget) if f.init) == LIMITS
    assert isinstance(Limits, type(TypedDict("Other", {})))
    with pytest.raises(sf.SufficeError, match="time_limit is a number of seconds above 0"):
        Budget(time_limit=-1.0)
    with pytest.raises(sf.SufficeError, match="threads is a whole number"):
        Budget(threads=0)
    with pytest.raises(sf.SufficeError, match="progress is True, False or a function that is called with each step, not 'x'"):
        sf.em("a -> b", {"a": ["x", "y"], "b": ["u", None]}, progress="x")  # type: ignore[call-overload]
    with pytest.raises(sf.SufficeError, match="checkpoint is the path of a directory, not 3"):
        Budget(checkpoint=3)  # type: ignore[arg-type]


def test_limits_are_obeyed_wherever_they_are_taken(tmp_path: Path) -> None:
    rows = {"a": list("xyxy") * 8, "b": list("uvuu") * 8}
    gaps = {"a": ["x", "y", None, "y"] * 8, "b": list("uvuu") * 8}
    limits: Limits = {"time_limit": 60.0, "threads": 1, "progress": False}
    assert sf.search(rows, **limits).finished
    assert sf.bootstrap(rows, n=2, **limits).n_done == 2
    assert sf.em("a -> b", gaps, **limits, checkpoint=tmp_path / "em").converged
    assert sf.fit("a -> b", gaps, **limits, checkpoint=tmp_path / "fit").incomplete
    assert sf.learn(gaps, **limits).incomplete
