"""The reference on the site: blocks of names, and of modules, on the pages of docs/reference become entries.

```{names}
fit learn em
```
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from building.entries import entry, file_of, markdown
from building.listing import groups, lacks
from building.public import public_names

logger = logging.getLogger(__name__)


class Names(SphinxDirective):
    """Entries of the names that are listed; `:members:` gives members without an example entries of their own, too."""

    has_content = True
    option_spec = {"members": directives.flag}  # noqa: RUF012  # as docutils declares it

    def run(self) -> list[nodes.Node]:
        known = public_names()
        node = nodes.container()
        for word in " ".join(self.content).split():
            if word not in known:
                logger.warning("%s is no public name", word, location=self.get_location(), type="names")
                continue
            lines = "\n".join(entry(known[word], whole="members" in self.options)).splitlines()
            self.env.note_dependency(file_of(known[word]))
            self.state.nested_parse(StringList(lines, source=f"{word} (docstring)"), 0, node)
        return list(node.children)


class ModuleText(SphinxDirective):
    """What a module says of itself: of a format how its files look."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = import_module(self.arguments[0])
        node = nodes.container()
        lines = "\n".join(markdown(inspect.cleandoc(module.__doc__ or ""))).splitlines()
        self.state.nested_parse(StringList(lines, source=self.arguments[0]), 0, node)
        return list(node.children)


def check(app: Sphinx, env: BuildEnvironment) -> None:
    for word in sorted(set(public_names()) - set(groups())):
        logger.warning("the public name %s is in no group of docs/reference", word, type="names")
    for name in public_names().values():
        for problem in lacks(name):
            logger.warning(problem, type="names")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("names", Names)
    app.add_directive("module-text", ModuleText)
    app.connect("env-check-consistency", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
