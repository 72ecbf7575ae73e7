"""Questions as text: what is understood, and what is said of the rest."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import ModelError
from suffice.interfaces.cli.question import WrittenQuestion, read_question, read_settings


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("P(a, b | c=x, d=y)", WrittenQuestion(("a", "b"), {}, {"c": "x", "d": "y"})),
        ("p ( a,b|c = x,d= y )", WrittenQuestion(("a", "b"), {}, {"c": "x", "d": "y"})),
        ("a, b | c=x,\n d=y", WrittenQuestion(("a", "b"), {}, {"c": "x", "d": "y"})),
        ("P(a)", WrittenQuestion(("a",), {}, {})),
        ("P | p=p", WrittenQuestion(("P",), {}, {"p": "p"})),
        ("P(a=yes, b | c=1.5)", WrittenQuestion(("a", "b"), {"a": "yes"}, {"c": "1.5"})),
        ("P(a | c=[0.2, .8], d=[1])", WrittenQuestion(("a",), {}, {"c": (0.2, 0.8), "d": (1.0,)})),
        ("P(a | age=>=65, b=<18, c=-1e-3)", WrittenQuestion(("a",), {}, {"age": ">=65", "b": "<18", "c": "-1e-3"})),
        ("""P("a, b"|'c|d'="x = (y)")""", WrittenQuestion(("a, b",), {}, {"c|d": "x = (y)"})),
        (r"""P("say \"a\"", 'it\'s', b's | c="\\\n")""", WrittenQuestion(('say "a"', "it's", "b's"), {}, {"c": "\\\n"})),
        ("P(x-ray, größe, 年 | v.1:a=a/b)", WrittenQuestion(("x-ray", "größe", "年"), {}, {"v.1:a": "a/b"})),
        ("P(| c=x)", WrittenQuestion((), {}, {"c": "x"})),
        ("", WrittenQuestion((), {}, {})),
    ],
)
def test_what_is_understood(text, question) -> None:
    assert read_question(text) == question


@pytest.mark.parametrize("text", ["c=x, d=y", "| c=x, d=y", "P(c=x, d=y)", "P(| c=x, d=y)"])
def test_evidence_alone(text) -> None:
    assert read_question(text, evidence_alone=True) == WrittenQuestion((), {}, {"c": "x", "d": "y"})


def test_targets_before_evidence_stay_targets() -> None:
    for text in ("P(a, b | c=x)", "a", "", "a=x | b=y", "P(a)"):
        assert read_question(text, evidence_alone=True) == read_question(text)
    assert read_question("c=[1, 2]", evidence_alone=True).given == {"c": (1.0, 2.0)}


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("P(a | c)", 7, "'c' has no value"),
        ("P(a | c=)", 9, "expected for 'c'"),
        ("P(a | c==x)", 9, "expected for 'c'"),
        ("P(a b | c=x)", 5, "quotes"),
        ("P(a | c=very bad)", 14, "quotes"),
        ("P(a | c=x", 10, "closing )"),
        ("P(a))", 5, "ended"),
        ("P(a) | c=x", 6, "ended"),
        ("a)", 2, "a comma or a bar"),
        ("a,, b", 3, "a name is expected"),
        ("a, | c=x", 4, "a name is expected"),
        ("(a | c=x)", 1, "a name is expected"),
        ("P(a | c=x | d=y)", 11, "a comma is expected"),
        ("P(a | do(c=x))", 9, "what is done stands beside the question: --do NAME=VALUE"),
        ("a | c=x, do (d=y)", 13, "what is done stands beside the question: --do NAME=VALUE"),
        ("P(a | undo(c=x))", 11, "a comma is expected"),
        ("P(a | c='x)", 9, "not closed"),
        ('P("a)', 3, "not closed"),
        ("P(a | age=[18,65))", 17, "in quotes"),
        ("P(a | age=[low, high])", 12, "one number for each state"),
        ("P(a | c=[])", 10, "one number for each state"),
        ("P(a, a)", 6, "'a' stands there twice"),
        ("P(a | c=x, c=y)", 12, "'c' stands there twice"),
        ("P(a=[1, 2])", 3, "after the bar"),
        ("P(' ')", 3, "blank"),
        ("=", 1, "a name is expected"),
    ],
)
def test_what_is_not_understood_is_shown_by_its_column(text, column, said) -> None:
    with pytest.raises(ModelError, match=rf"^the question is not understood at column {column}\b") as refusal:
        read_question(text)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_settings() -> None:
    assert read_settings("x=yes, 'y z' = 1.5, u=[1, 2]", "--do") == {"x": "yes", "y z": "1.5", "u": (1.0, 2.0)}
    for text in ("", "x", "x=", "x=1 | y=2", "x=1, x=2", "P(x=1)"):
        with pytest.raises(ModelError, match=r"^--do is not understood at column"):
            read_settings(text, "--do")


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace("\\", "\\\\").replace(mark, "\\" + mark).replace("\n", "\\n") + mark


_texts = st.text(min_size=1, max_size=8)
_names = st.lists(_texts.filter(lambda t: bool(t.strip())), min_size=2, max_size=5, unique=True)


@given(_names, _texts, st.sampled_from("\"'"), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_any_name_and_any_state_can_be_quoted(names, state, mark, likelihoods) -> None:
    first, last, *others = names
    more = "".join(f", {_quoted(n, mark)} = {likelihoods}" for n in others)
    question = read_question(f"P({_quoted(first, mark)} | {_quoted(last, mark)}={_quoted(state, mark)}{more})")
    assert question == WrittenQuestion((first,), {}, {last: state} | dict.fromkeys(others, tuple(likelihoods)))


def _check(refusal: str) -> None:
    assert "is not understood at column" in refusal
    assert "\n" not in refusal


@given(st.text(alphabet="Pa1 ,|=()[]\"'\\\n", max_size=30))
def test_any_text_is_understood_or_refused(text) -> None:
    for reader in (read_question, partial(read_question, evidence_alone=True), lambda t: read_settings(t, "--do")):
        try:
            reader(text)
        except ModelError as error:
            _check(str(error))
