"""Kernels check nothing, so whoever calls them gives them room enough: these networks once asked for more than there was.

`make test-bounds` runs all tests with every index checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from suffice.engines import Block
from suffice.errors import TooLarge
from suffice.incomplete import finite
from suffice.incomplete.components import FlatTables, Theta
from suffice.incomplete.finite import Reduce
from suffice.numerics.inference.finite.junction_tree import JunctionTree
from suffice.numerics.inference.finite.network import NONE, Network, arrange, complete_order, greedy_order, part_of
from suffice.numerics.inference.finite.questions import TOO_LARGE, row_answers

BINARY = "variable {} {{ type discrete [2] {{ a, b }}; }}\n"


def wide(folder: Path, n_parents: int) -> sf.BayesNet:
    """One child of many roots, whose table is never anything but 1 : 3, from a file."""
    roots = [f"p{i}" for i in range(n_parents)]
    text = "network wide {}\n" + "".join(map(BINARY.format, [*roots, "c"]))
    text += "".join(f"probability ({p}) {{ table 0.5, 0.5; }}\n" for p in roots)
    text += f"probability (c | {', '.join(roots)}) {{ default 0.25, 0.75; }}\n"
    (folder / "wide.bif").write_text(text)
    return sf.read(folder / "wide.bif")


@pytest.mark.parametrize("n_parents", [17, 18, 19, 20, 21])
def test_many_parents(tmp_path: Path, n_parents: int) -> None:
    """The tree of a question once lost its dims where they were more than guessed: from 19 parents on, a segmentation fault."""
    bn = wide(tmp_path, n_parents)
    assert bn.query("c").probs == pytest.approx([0.25, 0.75])
    assert bn.query("p3", {"c": "a", "p0": "b"}).probs == pytest.approx([0.5, 0.5])
    assert bn.log_prob_of({"c": "a", "p1": "b"}) == pytest.approx(np.log(0.125))
    assert bn.marginals({"c": [0.5, 0.5]})["c"].probs == pytest.approx([0.25, 0.75])
    assert bn.most_probable({"c": "a"}).probability == pytest.approx(0.5**n_parents)
    assert np.asarray(bn.predict_proba({"p0": ["a", None]}, "c")["b"]) == pytest.approx([0.75, 0.75])


@pytest.mark.parametrize("n_parents", [5, 12, 18])
def test_a_tree_that_outgrows_the_first_guess_of_its_room(n_parents: int) -> None:
    """Of a table over all variables each sum leaves one less: dims grow with the square of their number, the guess does not."""
    child = np.full([2] * (n_parents + 1), 0.5)
    roots = [((v,), v, np.array([0.5, 0.5])) for v in range(n_parents)]
    net = Network.of([2] * (n_parents + 1), [*roots, (range(n_parents + 1), n_parents, child)])
    part = part_of(net, net.all_factors, net.no_evidence())
    tree = arrange(net, part, greedy_order(net, part).order)
    assert tree.widest == n_parents + 1
    assert tree.dim_start[-1] >= (n_parents + 1) * (n_parents + 2) // 2
    assert all((np.diff(tree.dim_place[tree.dim_start[t] : tree.dim_start[t + 1]]) > 0).all() for t in range(tree.n_tables))


def clique(n: int, n_states: int) -> Network:
    """Factors of all pairs. Their tables are left out: only sizes are asked for."""
    return Network.of(np.full(n, n_states), [(pair, NONE, np.zeros(0)) for pair in combinations(range(n), 2)])


def test_more_cells_than_floats_count() -> None:
    """An order of infinitely many cells was no better than none, so none was written, and what lay in memory was taken for it."""
    net = clique(26, 2**40)
    part = part_of(net, net.all_factors, net.no_evidence())
    for found in (greedy_order(net, part), complete_order(net, part, ())):
        assert sorted(found.order) == list(range(26))
        assert 1e299 < found.cells < np.inf
    seen = net.no_evidence().astype(np.int32)[None]
    assert row_answers(net, [], net.all_factors, seen, net.tables[None])[2] == TOO_LARGE
    tree = JunctionTree.of(net)
    assert tree.treewidth == 25
    with pytest.raises(TooLarge, match="treewidth 25"):
        tree.marginals(net.no_evidence())


def test_room_that_is_counted_in_floats_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """exp(7 ln 5) is a little less than 5^7: as a whole number it was one too few, and the same room was made again for ever."""
    monkeypatch.setattr(finite, "LIMIT", 1)
    n, seen = 7, 1
    x = [sf.Finite(f"x{v}", [str(i) for i in range(5 if v < n else 2)]) for v in range(n + 1)]
    layout = FlatTables.of(x, [*((v,) for v in x[:n]), tuple(x)])
    columns = {f"x{v}": np.array([255 if v < n else seen], np.uint8) for v in range(n + 1)}
    rows = Reduce(layout, True).of(Block(columns)).reduction()
    tables = np.concatenate([np.full(5 * n, 0.2), np.full(2 * 5**n, 0.5)])
    assert finite.FiniteComponents(rows).expect(Theta(layout, tables)).log_likelihood == pytest.approx(np.log(0.5))


def in_another_process(code: str, **settings: str) -> str:
    """What some lines print, with settings of the compiler."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("NUMBA_")} | settings
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_bounds_are_checked_where_that_is_asked_for(tmp_path: Path) -> None:
    """Three dims, and room for two loops: `make test-bounds` would notice."""
    code = (
        "import numpy as np; from suffice.numerics.kernels.inference.messages import collapse\n"
        "try: collapse(np.array([2, 2, 2]), np.array([1, 2, 4]), 3, np.zeros(12, np.int64))\n"
        "except IndexError: print('noticed')"
    )
    assert in_another_process(code, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path)) == "noticed"


def test_code_that_checks_bounds_is_not_mixed_with_other(tmp_path: Path) -> None:
    """One cache would serve both, and numba does not tell them apart."""
    code = "from suffice.numerics.kernels.inference.messages import collapse; print(type(collapse.whole()._cache).__name__)"
    assert in_another_process(code, NUMBA_BOUNDSCHECK="1") == "NullCache"
    assert in_another_process(code, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path)) == "FunctionCache"
    assert in_another_process(code) == "FunctionCache"
