"""What is printed is in plain words: singulars, no names of Python objects on the command line, no quaint words."""

from __future__ import annotations

import ast
import io
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.basis.iteration import Progress
from suffice.basis.output.display import and_more, html_table, number
from suffice.basis.output.terminal import StatusLine, in_notebook, patience, then_printed
from suffice.interfaces.cli.inputs import missing_words
from tests.syntax import nodes_of, sources

QUAINT = ("foretold", "foretell", "its ends ±", "hangs a little", ", worth {", "written down;", "the data has ")
"""Words that are not printed; "the data have no column" is said in one way."""


def printed(path: Path) -> list[str]:
    """The texts of a module that are no docstrings."""
    docs = {id(n.value) for n in nodes_of(path) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    return [n.value for n in nodes_of(path) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs]


def test_no_quaint_words_are_printed() -> None:
    texts = ((path, text) for path in sources() if "kernels" not in path.parts for text in printed(path))
    assert [(path.name, text) for path, text in texts if any(word in text for word in QUAINT)] == []


def test_missing_words_split_like_the_other_lists(run: Any) -> None:
    assert missing_words(["NA,?", "-"]) == ("NA", "?", "-")
    Path("rows.csv").write_text("x,y\n" + "1.5,a\nNA,b\n2.5,?\n3.5,a\n" * 5)
    for words in (["--missing", "NA,?"], ["--missing", "NA", "--missing", "?"]):
        code, out, _ = run("schema", "rows.csv", *words)
        assert code == 0
        assert [line.split()[-1] for line in out.splitlines()[4:]] == ["5", "5"], out
    hint = run("schema", "rows.csv")[2]
    assert "--missing NA" in hint
    assert "--missing '?'" in hint


def test_the_command_line_names_no_python_objects(run: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (300, 30))
    x[:, 1:] ^= x[:, :-1] & (rng.random((300, 29)) < 0.9)
    Path("rows.csv").write_text(",".join(f"v{i}" for i in range(30)) + "\n" + "\n".join(",".join(map(str, r)) for r in x))
    for words in (["--method", "hill-climb"], ["--method", "pc"], ["--dry-run"]):
        _, out, err = run("learn", "rows.csv", *words)
        assert not re.search(r"\bfound\.|\bsf\.|\bbn\.", out + err), (out, err)


def test_one_is_a_singular(run: Any) -> None:
    code, _, err = run("sample", "asia", "-n", 1, "-o", "one.csv")
    assert code == 0
    assert err.startswith("1 row of 8 columns written")
    assert "fitted from 1 row," in sf.fit("x", {"x": ["a"]}).fit_info
    rows = {"x": ["a", "b"] * 20, "y": ["u", "v"] * 20}
    assert "1 edge;" in sf.search(rows).summary()
    assert repr(sf.bootstrap(rows, n=1)).startswith("Bootstrap: 1 replicate of a search over 2 variables")
    assert "1 of 1 edge is significant" in repr(sf.bootstrap(rows, n=2))
    shown: list[str] = []
    run = sf.structural_em({**rows, "x": [None, *rows["x"][1:]]}, progress=lambda step: shown.append(step.what))
    assert "2 variables, 1 edge, score" in repr(run)
    assert any("1 edge" in what for what in shown)
    assert not any("1 graphs" in what for what in shown)
    with pytest.warns(sf.errors.SufficeNote, match="EM did not converge in 1 iteration;"):
        info = sf.em("x -> y", {**rows, "x": [None, *rows["x"][1:]]}, max_iter=1).model.fit_info
    assert "in 1 iteration," in info
    projection = sf.project(run.model, "x -> y")
    assert "a graph of 2 nodes, 1 edge, 3 parameters" in repr(projection)
    assert "1 edges" not in "\n".join([*shown, projection.model.fit_info, run.model.picture().svg()])


def test_a_dry_run_says_what_the_process_needs_in_all() -> None:
    plan = sf.search(sf.load("asia").sample(500, seed=0), dry_run=True)
    assert "beside the data" in str(plan)
    assert re.search(r"process +[\d.]+ [MG]iB in all", str(plan))
    assert plan.process_bytes > plan.bytes


def test_nodes_and_edges_of_a_network() -> None:
    asia = sf.load("asia")
    assert asia.nodes == asia.dag.nodes
    assert asia.edges == asia.dag.edges


def test_a_notebook_shows_progress_after_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook()
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    progress: Progress[str] = Progress("searching")
    progress.start -= 1.5
    progress.better("start", -10.0, "graph")
    assert said.getvalue() == ""
    progress.start -= patience()
    progress.check("climbing")
    assert said.getvalue().startswith("\rsearching: climbing; best so far -10.000; ")
    progress.close()
    assert said.getvalue().endswith(" \r")
    quiet: Progress[str] = Progress("searching", show=False)
    quiet.start -= 10
    before = said.getvalue()
    quiet.check()
    assert said.getvalue() == before


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert [number(x) for x in (0.123456, 12345678.9, "a")] == ["0.1235", "1.235e+07", "a"]
    assert (and_more(3, "row"), and_more(0, "row")) == ("\n… and 3 more rows", "")
    assert html_table(["x"], [["<a>"]]).endswith("<tbody><tr><td>&lt;a&gt;</td></tr></tbody></table>")
    assert not in_notebook()
    with then_printed("a -> b"):
        print("written")
    assert capsys.readouterr().out == "written\na -> b\n"
    line = StatusLine()
    outer, inner = (line.begin(lambda text=text: text, shown=False) for text in ("searching", "counting rows 34 %"))
    assert line.text() == "searching; counting rows 34 %; 0 s"
    line.end(inner)
    line.end(outer)


@pytest.mark.parametrize("name", [n for n in sf.__all__ if n not in ("errors",)])
def test_examples_of_public_names_import_from_suffice_alone(name: str) -> None:
    public, topics = getattr(sf, name), "|".join(sf._MODULES.split())
    texts = [getattr(public, "__doc__", None) or ""]
    if isinstance(public, type):
        texts += [m.__doc__ or "" for k, m in vars(public).items() if not k.startswith("_") and callable(m)]
    for line in re.findall(r">>> ((?:from|import) suffice.*)", "\n".join(texts)):
        assert re.match(rf"(from suffice import|import suffice as sf|from suffice\.({topics}) import)", line), line
