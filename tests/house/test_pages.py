"""The pages of the documentation: their code runs, in order, in one namespace, in an empty directory."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from building.cells import cells_of, code_of, run
from building.links import unknown_names

ROOT = Path(__file__).parents[2]
SITE = sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
PAGES = [str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *SITE)]
WIDEST = 88
"""Characters of a line of code: longer ones would scroll on the site."""
START = "```{code-cell} python\n"


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(text_of(page))])
def test_examples_of_the_documentation_run(page: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(text_of(page), page)


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


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_only_what_there_is(page: str) -> None:
    assert not list(unknown_names(text_of(page)))


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(text_of(page)) and page != "README.md"])
def test_a_page_with_cells_is_a_notebook(page: str) -> None:
    text = text_of(page)
    assert "{code-cell}" not in text or text.startswith("---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n")


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith(("docs/howto", "docs/tutorials", "docs/start"))])
def test_lines_of_code_need_no_scrolling(page: str) -> None:
    assert not [line for cell in code_of(text_of(page)) for line in cell.source.splitlines() if len(line) > WIDEST]


def test_plots_of_a_cell_do_not_stay_open() -> None:
    """matplotlib warns of more than twenty, and warnings are errors."""
    import matplotlib.pyplot as plt

    run(f"{START}import matplotlib.pyplot as plt\nplt.figure()\n```\n" * 25, "a page")
    assert not plt.get_fignums()


def test_no_progress_is_shown_below_a_cell(monkeypatch) -> None:
    from suffice.output import status

    monkeypatch.setattr(status, "in_notebook", lambda: True)
    assert status.is_shown()
    runpy.run_path(str(ROOT / "docs/building/ipython/profile_default/startup/10_progress.py"))
    assert not status.is_shown()
