"""The reference of the site: every public name has a place there, an example, and a meaning for each of its arguments.

What Sphinx makes of it, `make docs` looks at; here it is checked without Sphinx.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from building.listing import examples_of, groups, lacks, without_example
from building.public import public_names

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command_line.md"


def test_every_public_name_is_in_a_group_of_the_reference() -> None:
    assert set(groups()) == set(public_names())


def test_a_public_name_has_an_example_and_its_arguments_a_meaning() -> None:
    assert {name: lacking for name, piece in public_names().items() if (lacking := list(lacks(piece)))} == {}


def test_every_command_has_an_example() -> None:
    assert without_example(PAGE.read_text("utf-8")) == []


def test_the_examples_of_the_command_line_run(run) -> None:
    printed, said = {}, {}
    for example in examples_of(PAGE.read_text("utf-8")):
        code, printed[example.line], said[example.line] = run(*example.arguments)
        assert code == 0, f"{example.line}: {said[example.line]}"
    assert "kernels ready" in said["suffice warm"]
    assert "KL(truth || fitted)" in printed["suffice demo"]
    timed = [line for line in printed["suffice demo"].splitlines() if re.search(r"\d m?s\b", line)]
    assert [line for line in timed if not line.startswith("found by ")] == []  # how long a step took says nothing


def test_examples_of_the_machinery_run() -> None:
    import building.cells
    import building.links

    for module in (building.cells, building.links):
        assert doctest.testmod(module).failed == 0
