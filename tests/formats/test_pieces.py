"""Pieces of formats, each by itself."""

from __future__ import annotations

import pathlib
import tempfile

import pyarrow

from suffice import load
from suffice.basis.variables import Finite
from suffice.formats.grammar.finite_network import many_parents
from suffice.formats.grammar.tokens import IDENTIFIER, Spelling, quote, show
from suffice.formats.registry import is_model_file, json_of, model_in
from suffice.formats.rows import write_stream
from suffice.formats.xml import identifiers


def test_model_in() -> None:
    assert repr(model_in("BAYES 1 2 1 1 0 2 0.5 0.5", ".uai")[0]["x0"].probs) == "array([0.5, 0.5])"


def test_json_of() -> None:
    assert json_of(load("asia"))[:40] == '{"suffice": "bayes_net", "version": 1, "'


def test_is_model_file() -> None:
    assert is_model_file("alarm.bif.gz") is True
    assert is_model_file("rows.csv") is False


def test_many_parents() -> None:
    told = many_parents([Finite(f"x{i}", ["a", "b"]) for i in range(40)])
    assert told == ("variable 'x0' has 39 parents, and so 1,099,511,627,776 numbers (8.0 TiB); at most 31 parents can be read")


def test_quote() -> None:
    assert quote('6" pipe') == r'"6\" pipe"'


def test_spelling() -> None:
    assert [*map(Spelling(IDENTIFIER, {"node"}), ["x", "x y", "node"])] == ["x", '"x y"', '"node"']


def test_show() -> None:
    assert show("asia") == "'asia'"


def test_identifiers() -> None:
    assert identifiers(["yes", "< 5", "0", "> 5"]) == ["yes", "s__5", "s0", "s__5_2"]


def test_write_stream() -> None:
    path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    assert write_stream((pyarrow.table({"x": [i]}) for i in range(2)), str(path)) == 2
    assert path.read_text() == "x\n0\n1\n"
