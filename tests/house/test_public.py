"""The public interface: its names, and what importing it costs."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import suffice as sf

ROOT = Path(__file__).parents[2]


def test_every_public_name_exists_and_has_an_example() -> None:
    finder = doctest.DocTestFinder(recurse=True)
    for name in sf.__all__:
        thing = getattr(sf, name)
        if name in ("SufficeError", "SufficeNote", "BGe"):
            continue
        assert thing.__doc__, name
        assert any(t.examples for t in finder.find(thing, name)), f"{name} has no runnable example"
    with pytest.raises(AttributeError, match="nonsense"):
        sf.nonsense  # noqa: B018


def test_type_checkers_find_the_same_names() -> None:
    imports = [node for node in ast.walk(ast.parse(Path(sf.__file__).read_text())) if isinstance(node, ast.ImportFrom)]
    seen = {a.asname: node.module for node in imports for a in node.names if a.asname}
    assert seen == {name: f"suffice.{home}" for name, home in sf._HOME.items()}


def test_import_takes_only_numpy_and_the_standard_library() -> None:
    heavy = "scipy pyarrow networkx narwhals duckdb numba typer rich pandas"
    code = f"import sys, suffice; print([m for m in {heavy.split()} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("page", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_examples_of_the_documentation_run(page: str, tmp_path, monkeypatch) -> None:
    """Every ```python block of a page runs, in order, in one namespace, in an empty directory; ```pycon is checked."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for kind, block in re.findall(r"```(python|pycon)\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL):
        if kind == "python":
            exec(compile(block, page, "exec"), namespace)
            continue
        test = doctest.DocTestParser().get_doctest(block, namespace, page, page, 0)
        said: list[str] = []
        runner.run(test, out=said.append, clear_globs=False)
        assert not said, "".join(said)
        namespace = test.globs


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_notes_come_from_the_users_line() -> None:
    with pytest.warns(sf.SufficeNote, match="whole numbers") as caught:
        sf.fit("x", {"x": [1, 2, 3, 3]})
    assert caught[0].filename == __file__
