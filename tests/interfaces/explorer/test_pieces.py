"""Pieces of the explorer, each by itself."""

from __future__ import annotations

from suffice.interfaces.explorer.answers.held import checked_name
from suffice.interfaces.explorer.app import in_json
from suffice.interfaces.explorer.code import call, in_csv, method_of, options, python_of, score_of, settings, word
from suffice.interfaces.explorer.security import loopback_socket


def test_call() -> None:
    assert call("bn.query", repr("x"), given={"y": "a"}, interval=None) == "bn.query('x', given={'y': 'a'})"


def test_word() -> None:
    assert (word("smoke"), word('a "b"')) == ("smoke", r'"a \"b\""')


def test_settings() -> None:
    assert settings({"x": "yes", "y": 1.5, "z": [0.25, 0.75]}) == "x=yes, y=1.5, z=[0.25, 0.75]"


def test_options() -> None:
    assert options(do=["x=yes"], interval=0.95, seed=None) == " --do x=yes --interval 0.95"


def test_score_of() -> None:
    assert repr((score_of("bic"), score_of("bdeu:5"), score_of(None))) == "(BIC(), Evidence(prior=BDeu(ess=5.0)), None)"


def test_method_of() -> None:
    assert python_of(method_of("hill-climb", 2)) == "sf.methods.HillClimb(max_parents=2)"


def test_python_of() -> None:
    assert python_of(score_of("bdeu:5")) == "sf.scores.Evidence(prior=sf.priors.BDeu(ess=5.0))"
    assert python_of(method_of("tabu", None)).partition("(")[0] == "sf.methods.Tabu"


def test_in_csv() -> None:
    assert in_csv(["a", "b,c"]) == 'a,"b,c"'


def test_in_json() -> None:
    assert in_json({"a": float("-inf"), "b": [1.5, float("nan")]}) == '{"a": null, "b": [1.5, null]}'


def test_loopback_socket() -> None:
    with loopback_socket() as own:
        assert own.getsockname()[0] == "127.0.0.1"


def test_checked_name() -> None:
    assert checked_name("rows 2024.csv.gz") == "rows 2024.csv.gz"
