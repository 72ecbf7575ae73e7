"""The recorded runs of `make bench` on the page of benchmarks, and earlier ones, as far as no record has taken their place."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from building.recorded_runs import FILE, markdown, recorded, unrecorded


class LastBenchmarks(SphinxDirective):
    """What docs/last_benchmarks.json says."""

    def run(self) -> list[nodes.Node]:
        return parsed(self, list(markdown(recorded())))


class EarlierBenchmarks(SphinxDirective):
    """A table of earlier runs, without what has been recorded since."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return parsed(self, unrecorded(list(self.content), recorded()["scripts"]))


def parsed(directive: SphinxDirective, lines: list[str]) -> list[nodes.Node]:
    directive.env.note_dependency(str(FILE))
    node = nodes.container()
    directive.state.nested_parse(StringList("\n".join(lines).splitlines(), source=FILE.name), 0, node)
    return list(node.children)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("last-benchmarks", LastBenchmarks)
    app.add_directive("earlier-benchmarks", EarlierBenchmarks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
