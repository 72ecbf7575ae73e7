"""Undirected models beside their peers; each part is a file of its own with `run()`: python undirected.py [part ...]."""

from __future__ import annotations

import importlib
import sys

PARTS = {
    "exact": "exact_estimates",
    "gaussian": "gaussian_graphs",
    "ising": "ising_neighbourhoods",
    "decomposable": "decomposable_graphs",
}
"""The file of each part."""

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        importlib.import_module(PARTS[part]).run()
