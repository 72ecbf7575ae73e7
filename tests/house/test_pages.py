"""The pages of the documentation: their code runs, in order, in one namespace, in an empty directory."""

from __future__ import annotations

import doctest
import pkgutil
import re
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import building.pasted
from building.cells import Cell, cells_of, code_of, run
from building.links import unknown_names
from building.pasted import pasted
from building.side_by_side import peer_blocks, run_ours, tasks
from suffice.basis import registry

ROOT = Path(__file__).parents[2]
SITE = sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
PAGES = [str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *SITE)]
WIDEST = 88
"""Characters of a line of code: longer ones would scroll on the site."""
STARTUP = ROOT / "docs/building/ipython/profile_default/startup"
START = "```{code-cell} python\n"


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(text_of(page))])
def test_examples_of_the_documentation_run(page: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(text_of(page), page)
    for known in (registry._words, registry._types):  # what a page has added is no part of the package
        for key in [key for key, piece in known.items() if piece.__module__.partition(".")[0] != "suffice"]:
            del known[key]


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/coming_from/") and list(tasks(text_of(page)))])
def test_our_lines_beside_those_of_others_run(page: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_ours(text_of(page), page)


@pytest.mark.parametrize("peer", ["pgmpy", "bnlearn", "pyagrum"])
def test_those_who_come_from_large_programs_find_forty_tasks(peer: str) -> None:
    assert len(list(tasks(text_of(f"docs/coming_from/{peer}.md")))) >= 40


def test_a_table_of_two_programs_is_read() -> None:
    rows = "| or | `1 \\| 2` | – | ≠ why |\n| two | `b` | `c`, `d` | – |\n"
    page = f"```py\na = 1\n```\n\n| task | R | ours | differs |\n|---|---|---|---|\n{rows}"
    assert [(t.name, t.theirs, t.ours, t.mark, t.line) for t in tasks(page)] == [
        ("or", "1 | 2", "", "≠", 7),
        ("two", "b", "c\nd", "", 8),
    ]
    assert list(peer_blocks(page)) == ["a = 1\n"]


def test_cells_know_their_options_and_lines() -> None:
    page = f"---\nfile_format: mystnb\n---\n# Title\n\n{START}:tags: [raises-exception]\n:alt: a b\n1 / 0\n```\n\nEnd.\n"
    title, cell, end = cells_of(page)
    assert (title.source.strip(), end.source.strip()) == ("# Title", "End.")
    assert (cell.source, cell.line, cell.tags, cell.options["alt"]) == ("1 / 0\n", 9, ["raises-exception"], "a b")
    run(page, "a page")


def test_a_cell_that_should_raise_and_does_not_is_told() -> None:
    with pytest.raises(AssertionError, match=r"a page:3: .* raises none"):
        run(f"{START}:tags: [raises-exception]\n1\n```\n", "a page")


def test_an_error_in_a_page_has_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as told:
        run("# Title\n\n```python\n1\n2 / 0\n```\n", "a page")
    assert [(f.path, f.lineno + 1) for f in told.traceback][-1] == ("a page", 5)


def test_pages_name_only_what_there_is() -> None:
    assert {page: names for page in PAGES if (names := list(unknown_names(text_of(page))))} == {}


def test_what_own_pieces_derive_from_is_there() -> None:
    text = "".join(cell.source for cell in cells_of(text_of("docs/own_pieces.md")) if cell.kind == "text")
    names = re.findall(r"`@?(?:sf|suffice)\.([\w.]+)|`((?:[a-z]\w*\.)+[A-Z]\w*)", text)
    assert len(names) > 12
    for ours, other in names:
        assert pkgutil.resolve_name(f"suffice.{ours or other}")


def test_patterns_of_files_are_in_quotes() -> None:
    """A shell would make several words of one; only `merge` takes several."""
    lines = [(page, line) for page in PAGES for line in text_of(page).splitlines() if re.match(r"suffice (?!merge )\w", line)]
    assert len(lines) > 50
    assert [(page, line) for page, line in lines if "*" in re.sub(r"""(["']).*?\1|#.*""", "", line)] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *(page for page in PAGES if page != "docs/changelog.md")])
def test_files_that_a_page_names_are_there(page: str) -> None:
    places = (ROOT, ROOT / "src", ROOT / "src/suffice")
    rooms = {room.name for room in places[-1].iterdir() if room.is_dir()}
    for path in re.findall(r"(?<![\w./-])[a-z]\w*(?:/\w+)+(?:\.\w+)?", text_of(page)):
        if path.endswith(".py") or path.partition("/")[0] in rooms:
            stem = path if path.endswith(".py") else path.partition(".")[0]  # behind its dot is a function
            assert any((place / name).exists() for place in places for name in (stem, f"{stem}.py")), path


def test_a_page_with_cells_is_a_notebook() -> None:
    head = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n"
    with_cells = [page for page in PAGES if page != "README.md" and code_of(text_of(page)) and "{code-cell}" in text_of(page)]
    assert len(with_cells) > 20
    assert [page for page in with_cells if not text_of(page).startswith(head)] == []


def written(cell: Cell) -> list[str]:
    """The lines of a cell that a person wrote: of a session what was asked, not what was answered."""
    lines = cell.source.splitlines()
    return [line for line in lines if line.startswith((">>>", "..."))] if cell.kind == "pycon" else lines


def test_lines_of_code_need_no_scrolling() -> None:
    lines = [(page, line) for page in PAGES for cell in code_of(text_of(page)) for line in written(cell)]
    assert [(page, line) for page, line in lines if len(line) > WIDEST] == []


def test_pasted_blocks_give_what_the_site_shows() -> None:
    sources = ["x = [1, 2]\nprint('so')", "x", "1 / 0", "None"]
    tags = [{}, {}, {"tags": ["raises-exception"]}, {}]
    cells = [{"source": [source], "metadata": about} for source, about in zip(sources, tags, strict=True)]
    assert list(pasted(cells)) == ["so\n", "[1, 2]\n", "", ""]
    with pytest.raises(ZeroDivisionError):
        list(pasted([{"source": ["1 / 0"], "metadata": {}}]))
    assert doctest.testmod(building.pasted).failed == 0


def test_plots_of_a_cell_do_not_stay_open() -> None:
    """matplotlib warns of more than twenty, and warnings are errors."""
    import matplotlib.pyplot as plt

    run(f"{START}import matplotlib.pyplot as plt\nplt.figure()\n```\n" * 25, "a page")
    assert not plt.get_fignums()


def test_no_progress_is_shown_below_a_cell(monkeypatch) -> None:
    from suffice.basis.output import terminal

    monkeypatch.setattr(terminal, "in_notebook", lambda: True)
    assert terminal.is_shown()
    runpy.run_path(str(STARTUP / "10_progress.py"))
    assert not terminal.is_shown()


def limit_of_cells(seconds: float) -> dict[str, Callable[[object], None]]:
    """What the site's cells are begun and ended with."""
    hooks: dict[str, Callable[[object], None]] = {}
    shell = SimpleNamespace(events=SimpleNamespace(register=hooks.__setitem__))
    space = {"__name__": "limit", "get_ipython": lambda: shell}
    exec(compile((STARTUP / "20_limit.py").read_text("utf-8"), "20_limit.py", "exec"), space)
    assert space["SECONDS"] == 20
    space["SECONDS"] = seconds
    return hooks


def work_for(seconds: float) -> None:
    """Keep the processor busy."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_cell_that_takes_too_much_of_the_processor_ends_in_an_error() -> None:
    hooks = limit_of_cells(0.1)
    hooks["pre_run_cell"](None)
    with pytest.raises(Exception, match=r"the cell took 0\.1 seconds of the processor"):
        work_for(10)
    hooks["post_run_cell"](None)


def test_a_cell_that_waits_and_the_next_one_are_not_ended() -> None:
    hooks = limit_of_cells(0.2)
    hooks["pre_run_cell"](None)
    time.sleep(0.5)
    hooks["post_run_cell"](None)
    work_for(0.3)
