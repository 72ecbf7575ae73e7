"""Advice works when it is obeyed: every hint that messages give names what there is, and the main ones are obeyed here.

Messages are collected from the sources themselves: every text in them but docstrings. Ways out are values (`remedies`), which
have words of Python and of the command line; a message that a command can meet names what only Python has in no other way.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer.main

import suffice as sf
from suffice.basis.registry import every
from suffice.errors import SufficeNote, remedies
from suffice.interfaces.cli import app as cli
from tests.syntax import SOURCES, sources, tree_of

WAYS = {name for name in vars(remedies) if inspect.isroutine(getattr(remedies, name)) or name == "Remedy"}


@cache
def trees() -> dict[Path, ast.Module]:
    return {path.relative_to(SOURCES): tree_of(path) for path in sources()}


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """What can be, or hold, a text, and classes: all of a tree are gone through once."""
    return tuple(n for n in ast.walk(tree) if isinstance(n, ast.Expr | ast.JoinedStr | ast.Constant | ast.Call | ast.ClassDef))


@cache
def messages() -> tuple[str, ...]:
    """The texts of all modules but docstrings, with 'NAME' or NAME where something is filled in, and those within ways out."""
    of_pictures = ("shapes.py", "drawing.py")
    said = (tree for path, tree in trees().items() if path.name not in of_pictures)
    return tuple(text for tree in said for text in (*_texts(tree), *_within(tree)))


@cache
def _texts(tree: ast.Module) -> tuple[str, ...]:
    """What is said, without the ways out in it."""
    skipped = {id(n.value) for n in nodes(tree) if isinstance(n, ast.Expr)}
    for call in _calls(tree):
        skipped |= {id(part) for part in ast.walk(call)}
    said = []
    for node in nodes(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in skipped:
            skipped |= {id(part) for part in ast.walk(node) if part is not node}
            said.append("".join(str(p.value) if isinstance(p, ast.Constant) else _filled(p) for p in node.values))
    plain = (n for n in nodes(tree) if isinstance(n, ast.Constant) and id(n) not in skipped)
    return (*said, *(n.value for n in plain if isinstance(n.value, str) and " " in n.value))


def _within(tree: ast.Module) -> Iterator[str]:
    """Words of ways out."""
    for call in _calls(tree):
        yield from (n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Ways out that are made: by `Remedy`, or by one of its kin."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WAYS:
            yield node


def _filled(part: Any) -> str:
    return "'NAME'" if part.conversion == ord("r") else "NAME"


def options() -> set[str]:
    """All options of all commands."""
    commands: Any = typer.main.get_command(cli.app)
    return {o for word in every("commands") for p in commands.get_command(None, word).params for o in p.opts}


def test_options_that_are_advised_exist() -> None:
    known = options() | {"--help", "--version"}
    advised = {o for text in messages() for o in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text)}
    advised |= {f"--{name.replace('_', '-')}" for name in named()}
    assert {"--missing", "--method", "--order"} <= advised  # that some are found at all
    assert advised <= known, advised - known


def named() -> set[str]:
    """Arguments that ways out name together with their options."""
    calls = [c for tree in trees().values() for c in _calls(tree) if c.func.id in ("argument", "name_of")]  # type: ignore[attr-defined]
    return {c.args[0].value for c in calls if isinstance(c.args[0], ast.Constant)} - {"name"}


def test_commands_that_are_advised_exist() -> None:
    commands = set(every("commands"))
    advised = {c for text in messages() for c in re.findall(r"\bsuffice ([a-z]+)(?= |,|:|;|$)", text)}
    words = {"explorer", "as", "of", "statistics", "cannot", "is", "has", "reads", "and", "itself", "to", "with", "that"}
    assert {"decode", "fit", "predict"} <= advised
    assert advised - words <= commands, advised - words - commands


ARGUMENT = re.compile(r"(?<![\w.'\"{(-])([a-z][a-z_]+)=(?=[\[{'\"A-Z(]|$| |;|,|:)")
CALL = re.compile(r"(?<![\w.'])([A-Z][A-Za-z]+)\((?=[)\d.'\[a-z])")


def test_arguments_that_are_advised_exist() -> None:
    """Words such as `missing=` are arguments of something public; names such as `Bins(5)` are public themselves."""
    said = [text for text in messages() if "<" not in text]  # not of files in XML
    advised = {a for text in said for a in ARGUMENT.findall(text)} | named()
    assert {"missing", "variables", "order"} <= advised
    strange = {a for a in advised if a not in arguments()}
    assert strange <= FORMATS, strange
    called = {c for text in said for c in CALL.findall(text)}
    assert {"Bins", "Missing"} <= called
    assert called <= classes() | FORMULAS, called - classes()


@cache
def arguments() -> set[str]:
    """The arguments of all that is public, and the keywords of long calls."""
    topics = [getattr(sf, topic) for topic in sf._MODULES.split() if topic not in ("estimators", "exponential")]
    public = [getattr(sf, name) for name in sf.__all__] + [x for t in topics for x in vars(t).values() if callable(x)]
    defined = [n for tree in trees().values() for n in nodes(tree) if isinstance(n, ast.ClassDef)]
    typed = [n for n in defined if {b.id for b in n.bases if isinstance(b, ast.Name)} & {"TypedDict", "Limits"}]
    keywords = {a.target.id for n in typed for a in n.body if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name)}
    return {p for thing in public for p in _arguments(thing)} | keywords | {"accelerate", "batches", "m_step"}  # these of 0.1


FORMATS: set[str] = {"n_samples", "space", "total", "rx", "width", "height", "xmlns", "token", "filename", "rounding_size"}
"""What stands before = in texts and is no advice: words of scikit-learn, of XML, SVG, addresses and files of counts."""

FORMULAS = {"P", "Var", "N", "KL", "NAME", "Traceback"}
"""What stands before a bracket in messages and is no name of Suffice."""


@cache
def classes() -> set[str]:
    """The names of all classes: the public ones, and others that reprs name."""
    return {*sf.__all__, *(n.name for tree in trees().values() for n in nodes(tree) if isinstance(n, ast.ClassDef))}


def _arguments(thing: Any) -> Iterator[str]:
    """The arguments of a function, of a class, and of its methods."""
    members = [thing, *(m for n, m in inspect.getmembers(thing) if callable(m) and not n.startswith("_"))]
    for member in members:
        try:
            yield from inspect.signature(member).parameters
        except (TypeError, ValueError):
            continue


PYTHON_ONLY = {
    "estimators", "exponential", "cli", "errors/remedies.py", "kernels",
    *(f"recipes/{n}.py" for n in ("classifiers", "compared_fits", "cross_validation", "learn")),
    *(f"recipes/latent/{n}.py" for n in ("factors", "hmm", "latent_run", "mixture")),
    *(f"learning/{n}.py" for n in ("gradient", "graph_score", "complete/lms", "complete/plates")),
    *(f"models/{n}.py" for n in ("undirected/features",)),
    "graphs/text.py", "structure/order_mcmc.py", "basis/pictures/shapes.py",
}  # fmt: skip
"""Rooms and files whose messages no command can meet, as none calls them so; `cli` speaks of options anyway."""

NOT_MET = (
    "Incremental(batches",  # an argument that no command has, as those of the next lines
    "covariance=Full()", "label_weights are for", "information= is for networks", "first=Given(...) has", "ln Z is a sum",
    "the slack of MaxEntropy", "MaxEntropy takes no method", "IPF() fits", "IPF needs more than", "a base measure is for moments",
    "moments instead of rows", "is for undirected models, such as", "lags= need sequences", "an Ising model is of two",
    "a log-linear model needs a generator", "a window needs at least one place", "mdl bins need", "a maximum of parents is",
    "draws= gives several tables", "say where, engine=Spark", "scan(data, weights=...)",
    "an engine is Spark(session)", "K2 has no number", "EmpiricalBayes takes one prior", "Evidence needs a prior",
    "a GraphPosterior is of", "a score is LogLikelihood()", "a method is an object such as", "cannot have the family",
    "objective='NAME' is prior='NAME'",  # the command says it of its own words, as it does what follows
    "a prior by node names", "the pseudo-counts 'NAME'", "the prior of 'NAME' is None", "statistics are of complete",
    "statistics of every family", "sample needs the number", "a template is", "that is asked of a Chain", "a linear chain reads",
    "these rows are no sequences", "; fit it to sequences(...)", "not a Template", "a Dag has arrows", "bins at points need",
    "column 'NAME' was declared as", "is no variable", "or a Real('level')", "the states of 'NAME' are not known: variables=",
    "this network", "this chain", "has no covariance of its parameters", "how well the model fits", "there is no model with",
    "missing cells of sequences is not attempted: search(", "this is for rows that do not depend",
    "let 'NAME' be a regression",  # of an explanation, which is an answer and no message
    "BDe needs the network",
    "a direction is Forward()", "the rule by which", "a penalty is chosen by EBIC",  # check_has says what it was
    "Dag('NAME'", "Graph('NAME'", "Following(",  # reprs
    "; after EM, em(...)", "em(template, sequences, hidden", "it with query(", "em(dag, data, hidden",  # words of remedies
)  # fmt: skip
"""How messages begin, or what is in them, that no command can meet."""


def test_messages_that_a_command_can_meet_name_python_by_ways_out_alone() -> None:
    """A text with an argument or an object of Python in it, not as a way out, is one that only Python can meet; that of a wrong
    type, which ends with what it was, is one."""
    for path, tree in trees().items():
        if {*path.parts, path.as_posix()} & PYTHON_ONLY:
            continue
        for text in _texts(tree):
            words = {a for a in ARGUMENT.findall(text) if a in arguments()} | {c for c in CALL.findall(text) if c in classes()}
            if words and len(text.split()) > 3 and "<" not in text and not re.search(r"not (as |by )?'NAME'$", text):
                assert any(part in text for part in NOT_MET), f"{path}: {text!r} names {words}: make them a remedy"


def test_what_commands_print_has_no_marks_of_ways_out(run: Any, files: None) -> None:
    """Of what is printed that is no error and no note."""
    for words in (
        "schema rows.csv",
        "learn rows.csv --explain --missing NA",
        "fit 'h -> smoke' rows.csv -o m.json --hidden h=2 --max-iter 2",
    ):
        _, out, err = run(*shlex.split(words))
        assert "ufdd" not in out + err
        assert not {remedies.OPEN, remedies.BETWEEN, remedies.CLOSE} & set(out + err)


ROWS = pd.DataFrame(
    {
        "id": [i // 10 for i in range(100)],
        "t": [i % 10 + (i % 10 > 5) for i in range(100)],
        "x": [0.1 * (i % 13) for i in range(100)],
        "code": [1 + i % 3 for i in range(100)],
        "smoke": ["no", "yes"] * 50,
        "ill": ["no", "no", "yes", "yes"] * 25,
        "bad": ["NA" if i == 7 else f"{i}.5" for i in range(100)],
        "one": ["u"] * 100,
    }
)

OBEYED: dict[str, tuple[str, str, str]] = {
    "missing words": ("learn rows.csv", "--missing NA", "learn rows.csv --missing NA"),
    "codes": ("learn rows.csv", "--integers real", "learn rows.csv --integers real"),
    "codes by name": ("learn rows.csv", "--real id", "learn rows.csv --real id,t,code"),
    "gaps": (
        "fit 'ill[-1] -> ill' rows.csv -o c.json --by id --order t",
        "--gaps missing",
        "fit 'ill[-1] -> ill' rows.csv -o c.json --by id --order t --gaps missing",
    ),
    "numbers above states": ("fit 'x -> ill' rows.csv -o m.json", "--bins x=5", "fit 'x -> ill' rows.csv -o m.json --bins x=5"),
    "a regression": (
        "fit 'x -> ill' rows.csv -o m.json",
        "--family ill=logistic",
        "fit 'x -> ill' rows.csv -o m.json --family ill=logistic",
    ),
    "a hidden variable": (
        "fit 'h -> smoke; h -> ill' rows.csv -o m.json",
        "--hidden h=a,b",
        "fit 'h -> smoke; h -> ill' rows.csv -o m.json --hidden h=a,b --max-iter 5",
    ),
    "the other separator": ("learn semi.csv", "--separator comma", "learn semi.csv --separator comma"),
    "decimal commas": ("learn thousand.csv", "--decimal ,", "learn thousand.csv --decimal ,"),
    "an encoding": ("learn latin.csv", "--encoding latin-1", "learn latin.csv --encoding latin-1"),
    "unknown states": (
        "predict asia.json strange.csv --target lung",
        "--unknown missing",
        "predict asia.json strange.csv --target lung --unknown missing",
    ),
    "intervals without a prior": (
        "query mle.json 'P(ill)' --interval 0.9",
        "--prior bdeu:1",
        "fit mle.json rows.csv -o FITTED.json --prior bdeu:1",
    ),
    "a chain in a format without": (
        "fit 'ill[-1] -> ill' rows.csv -o c.bif --by id",
        "write .json",
        "fit 'ill[-1] -> ill' rows.csv -o c.json --by id",
    ),
    "a chain asked as a network": ("query chain.json 'P(ill)'", "suffice decode", "forecast chain.json rows.csv --by id"),
    "a network asked as a chain": ("decode mle.json rows.csv", "suffice predict", "predict mle.json rows.csv --target ill"),
    "steps": ("sample chain.json -n 2", "--length", "sample chain.json -n 2 --length 3"),
    "a misspelt column": ("predict mle.json rows.csv --target il", "'ill'", "predict mle.json rows.csv --target ill"),
    "the target": ("query mle.json ''", "--all", "query mle.json '' --all"),
    "numbers in a format without": ("fit 'smoke -> x' rows.csv -o m.bif", ".json", "fit 'smoke -> x' rows.csv -o m.json"),
}
"""By what it is about: a command, what it advises, and the command that obeys."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("rows.csv", index=False)
    Path("semi.csv").write_text("a;b\n" + "1;x\n2;y\n3;x\n4;y\n" * 5)
    Path("thousand.csv").write_text("a;b\n" + "1,234;x\n2,345;y\n3,5;x\n".replace("3,5", "3,500") * 5)
    Path("latin.csv").write_bytes("a,b\nq,\xe9\nr,u\nq,\xe9\nr,u\n".encode("latin-1"))
    Path("strange.csv").write_text("smoke\nyes\nperhaps\n")
    sf.write(sf.load("asia"), "asia.json")
    sf.write(sf.fit("smoke -> ill", ROWS), "mle.json")
    sf.write(sf.fit(sf.Template("ill[-1] -> ill"), sf.sequences(ROWS, by="id")), "chain.json")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("what", OBEYED)
def test_advice_of_commands_is_obeyed(run: Any, tmp_path: Path, monkeypatch: Any, what: str) -> None:
    first, advice, then = OBEYED[what]
    _, out, err = run(*shlex.split(first))
    assert advice in out + err
    code, _, err = run(*shlex.split(then))
    assert code == 0, err


def python_cases() -> dict[str, tuple[Any, str, Any]]:
    table = ROWS.drop(columns=["bad", "one"])
    return {
        "bins": (
            lambda: sf.fit("x -> ill", table),
            "variables={'x': Bins(5)}",
            lambda: sf.fit("x -> ill", sf.scan(table, variables={"x": sf.Bins(5)})),
        ),
        "a regression": (
            lambda: sf.fit("x -> ill", table),
            "families={'ill': Logistic()}",
            lambda: sf.fit("x -> ill", table, families={"ill": sf.Logistic()}),
        ),
        "hidden": (
            lambda: sf.fit("h -> ill; h -> smoke", table),
            "em(dag, data, hidden=[Finite('h', [",
            lambda: sf.em("h -> ill; h -> smoke", table, hidden=[sf.Finite("h", ["a", "b"])], max_iter=3),
        ),
        "gaps": (
            lambda: sf.sequences(table, by="id", order="t"),
            "gaps=Missing()",
            lambda: sf.sequences(table, by="id", order="t", gaps=sf.chains.Missing()).n_steps,
        ),
        "unknown": (
            lambda: sf.load("asia").predict({"smoke": ["perhaps"]}, "lung"),
            "unknown=Missing()",
            lambda: sf.load("asia").predict({"smoke": ["perhaps"]}, "lung", unknown=sf.chains.Missing()),
        ),
        "sequences": (
            lambda: sf.fit(sf.Template("ill[-1] -> ill"), table),
            "sequences(data, by=",
            lambda: sf.fit(sf.Template("ill[-1] -> ill"), sf.sequences(table, by="id")),
        ),
        "an array": (
            lambda: sf.scan(table[["x"]].to_numpy()),
            "dict(zip(names, x.T))",
            lambda: sf.scan(dict(zip(["x"], table[["x"]].to_numpy().T, strict=True))).n_rows,
        ),
        "a prior": (
            lambda: sf.fit("x", {"x": [1.0]}),
            "or a prior",
            lambda: sf.fit("x", {"x": [1.0]}, prior=sf.NormalInverseGamma()),
        ),
        "one name": (lambda: sf.scan(table).select("x"), "['x']", lambda: sf.scan(table).select(["x"])),
    }


@pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")
@pytest.mark.parametrize("what", python_cases())
def test_advice_of_python_is_obeyed(what: str) -> None:
    first, advice, then = python_cases()[what]
    with pytest.raises(sf.SufficeError) as caught:
        first()
    assert advice in str(caught.value)
    then()


def test_notes_name_what_settles_them() -> None:
    with pytest.warns(SufficeNote) as told:
        repr(sf.scan({"n": ["1", "2", "NA"] * 30, "k": [1, 2, 3] * 30}).schema)
    assert any("missing=" in str(t.message) or "integers=Finite" in str(t.message) for t in told)
