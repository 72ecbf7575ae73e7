"""The last run of `make bench` on the page of benchmarks: machine, versions, and what each script printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FILE = Path(__file__).parents[1] / "last_benchmarks.json"
NONE = "No run is recorded in this checkout: `make bench` writes one."


class LastBenchmarks(SphinxDirective):
    """What docs/last_benchmarks.json says."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(FILE))
        lines = list(markdown(json.loads(FILE.read_text("utf-8")))) if FILE.exists() else [NONE]
        node = nodes.container()
        self.state.nested_parse(StringList("\n".join(lines).splitlines(), source=FILE.name), 0, node)
        return list(node.children)


def markdown(run: dict[str, Any]) -> Iterator[str]:
    """A recorded run as Markdown."""
    m = run["machine"]
    yield f"{run['day']}: {m['cores']} cores of {m['processor']}, {m['memory']}, {m['system']}, Python {m['python']}; "
    yield ", ".join(f"{name} {number}" for name, number in run["versions"].items()) + "."
    for script, result in run["scripts"].items():
        yield ""
        yield f"<details><summary>{script}: {result['seconds']} s, at a load of {result['load']}</summary>"
        yield from ("", "```text", *result["output"], "```", "", "</details>")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("last-benchmarks", LastBenchmarks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
