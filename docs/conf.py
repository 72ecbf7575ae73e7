"""How Sphinx makes the site: `make docs`. Every number on it is computed while it is built."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from shutil import copytree

import suffice

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from building.sources import fingerprint  # noqa: E402

project = "Suffice"
author = "The Suffice developers"
copyright = author
version = release = suffice.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.mathjax",
    "building.benchmarks",
    "building.commands",
    "building.finished_report",
    "building.pictures",
    "building.reference",
    "building.site",
]
library = fingerprint()  # all pages are made anew when it changes
exclude_patterns = ["_build", "building", "**/jupyter_execute", "Thumbs.db"]
nitpicky = True
default_role = "code"

myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# Cells run in an empty directory, as in the tests. What they gave is kept by their content and that of the library. How much of
# the processor a cell may take, building/ipython says; the timeout is for one that hangs, on a machine with other work.
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / "cells" / library)
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
os.environ["IPYTHONDIR"] = str(copytree(DOCS / "building" / "ipython", DOCS / "_build" / "ipython", dirs_exist_ok=True))

mathjax_path = "tex-svg.js"

logging.getLogger("traitlets").setLevel(logging.WARNING)

html_theme = "furo"
html_title = f"Suffice {version}"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
