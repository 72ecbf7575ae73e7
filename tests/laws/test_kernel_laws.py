"""A kernel's two copies agree: what is compiled, and the Python that it is.

Public functions are called with little data; on the way every call of a kernel runs both copies on the same arguments. Those that
may be interpreted must agree bit for bit. Where the compiler may reorder sums, or a kernel is never interpreted, to many digits.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines import Block, gather
from suffice.engines.bitmaps import Bitmaps
from suffice.incomplete.components import FlatTables
from suffice.incomplete.finite import Reduce
from suffice.numerics.kernels.compiler.compiling import Kernel, interpret, kernels
from suffice.numerics.kernels.counting.count import rehash

called: set[str] = set()


def copied(argument: Any, roots: dict[int, Any]) -> Any:
    """The same numbers elsewhere; arrays that overlap still do."""
    if isinstance(argument, tuple):
        return tuple(copied(a, roots) for a in argument)
    if not isinstance(argument, np.ndarray):
        return argument
    root = argument
    while isinstance(root.base, np.ndarray):
        root = root.base
    buffer = roots.setdefault(id(root), root.copy())
    offset = argument.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return np.ndarray(argument.shape, argument.dtype, buffer, offset, argument.strides)


def flat(argument: Any) -> list[Any]:
    return [x for a in argument for x in flat(a)] if isinstance(argument, tuple) else [argument]


def both(kernel: Kernel, *arguments: Any) -> Any:
    """The result of the compiled copy, which is that of the other, as is all that was written."""
    theirs = copied(arguments, {})
    other = interpret(kernel.in_python(), theirs)
    result = kernel.compiled(*arguments)
    exact = kernel.exact and kernel.work is not None
    for a, b in zip(flat((result, *arguments)), flat((other, *theirs)), strict=True):
        if exact:
            np.testing.assert_array_equal(a, b, err_msg=kernel.name)
        elif isinstance(a, (float, np.ndarray)) and np.asarray(a).dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, err_msg=kernel.name)
        else:
            np.testing.assert_array_equal(a, b, err_msg=kernel.name)
    called.add(kernel.name)
    return result


@pytest.fixture(autouse=True)
def both_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "__call__", both)
    monkeypatch.setattr(gather, "SMALL", 0)


def table(n: int, k: int, states: int = 3, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, states, (k, n))
    for j in range(1, k):
        x[j] = np.where(rng.random(n) < 0.6, x[j - 1], x[j])
    return {f"v{j}": np.array(list("abcdefgh"))[row] for j, row in enumerate(x)}


def numbers(n: int, k: int, seed: int = 0) -> dict[str, Any]:
    x = np.random.default_rng(seed).normal(size=(k, n))
    x[1:] += 0.7 * x[:-1]
    return {f"x{j}": row for j, row in enumerate(x)}


def holed(rows: dict[str, Any], share: float = 0.15) -> dict[str, Any]:
    rng = np.random.default_rng(9)
    return {n: [None if u < share else v for u, v in zip(rng.random(len(x)), x, strict=True)] for n, x in rows.items()}


def questions() -> None:
    bn = sf.load("asia")
    bn.query("lung", {"xray": "yes"})
    bn.marginals({"xray": "yes", "dysp": "no"})
    bn.most_probable({"xray": "yes"})
    rows = holed(bn.sample(40, seed=1).to_pydict())
    bn.predict_proba({**rows, "lung": [None] * 40}, "lung")
    bn.impute(rows)
    bn.log_prob(rows)
    sf.load("asia").log_prob_of({"xray": "yes"})


def counts() -> None:
    rows = {**table(120, 4), **numbers(120, 2)}
    dag = "v0 -> v1 -> v2; v1 -> v3; v0 -> x0 -> x1"
    sf.fit(dag, rows)
    sf.fit(dag, sf.scan(rows, weights=np.random.default_rng(0).uniform(size=120)))


def orders() -> None:
    rows = table(150, 6, 2)
    sf.search(rows)
    sf.search(table(80, 5, 3), sf.Evidence(sf.BDeu(1)))
    sf.search(table(80, 4, 3), sf.Evidence(sf.K2()))
    sf.search(table(60, 17, 2), method=sf.Orders(max_parents=1, rounds=1, chains=1))
    sf.search(table(200, 4, 7), method=sf.Orders(max_parents=2))
    sf.search(numbers(100, 5))


def climbs() -> None:
    sf.search(table(150, 5, 3), method=sf.HillClimb())
    sf.search(table(150, 4, 3), sf.Evidence(sf.BDeu(1)), sf.HillClimb())
    sf.search(numbers(100, 4), method=sf.HillClimb())


def independence() -> None:
    sf.search(table(300, 5, 3), method=sf.PC())
    sf.search(table(300, 4, 8), method=sf.PC())
    sf.search(numbers(200, 5), method=sf.PC())
    mixed = {**table(120, 3, 3), **numbers(120, 3)}
    for x, y, given in (("v0", "x0", ["v1", "x1"]), ("x0", "x1", ["v0", "x2"]), ("v0", "v1", ["v2", "x0"])):
        sf.independence.independence_test(mixed, x, y, given)


def gaps() -> None:
    rows = holed(table(80, 5, 3))
    run = sf.em("v0 -> v1 -> v2 -> v3; v1 -> v4", rows, max_iter=3)
    run.model.impute(rows)
    sf.structural_em(holed(table(60, 4, 2)), rounds=1)


def many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only many rows, or many states, lead to."""
    variables = [sf.Finite(f"v{j}", list("abc")) for j in range(8)]
    layout = FlatTables.of(variables, [(variables[0],), *pairwise(variables)])
    codes = np.random.default_rng(1).choice(np.array([0, 1, 2, 255], np.uint8), (2, 8, 1_500))
    parts = [Reduce(layout, True).of(Block({v.name: c for v, c in zip(variables, half, strict=True)})) for half in codes]
    assert (parts[0] + parts[1]).reduction().shape_at[0] > 8
    rehash(40, np.random.default_rng(3).integers(0, 2**63, 40).astype(np.uint64), np.full(64, -1))
    many = np.random.default_rng(2).integers(0, 200, (3, 300)).astype(str)
    sf.search({f"w{j}": x for j, x in enumerate(many)}, method=sf.HillClimb())
    monkeypatch.setattr(Bitmaps, "is_little_work", lambda *_: False)
    sf.search(table(100, 4, 3), method=sf.HillClimb())
    sf.fit("v0 -- v1 -- v2 -- v3 -- v0", table(100, 4, 2, seed=3), penalty=sf.L2(0.1))


def undirected() -> None:
    rows = table(100, 4, 2)
    sf.fit("v0 -- v1 -- v2 -- v3 -- v0", rows, method=sf.methods.IPF())
    sf.fit("v0 -- v1 -- v2", table(60, 3, 3), objective=sf.PseudoLikelihood(), penalty=sf.L2(0.1))
    sf.search(rows, method=sf.Decomposable(sf.BIC()))
    sf.search(rows, method=sf.Neighbourhoods(0.05))
    sf.search(table(80, 3, 3), method=sf.Neighbourhoods(0.05))
    sf.search(numbers(100, 5), method=sf.Neighbourhoods(0.1))
    sf.search(numbers(100, 5), method=sf.GraphicalLasso(0.1))
    sf.undirected.rbm(rows, 2, epochs=1)


def regressions() -> None:
    x = numbers(60, 3)
    noise = np.random.default_rng(5).normal(size=60)
    y, three = (x["x0"] + x["x1"] + 2 * noise > 0).astype(int), np.digitize(x["x0"] + 2 * noise, [-0.5, 0.5])
    rows = {**x, "y": np.array(["n", "y"])[y], "z": np.array(list("abc"))[three], "k": (3 * np.abs(x["x0"])).astype(int)}
    data = sf.scan(rows, {"k": sf.Count("k")})
    for node, family in {"y": sf.Logistic(), "z": sf.Logistic(), "k": sf.regressions.PoissonLog()}.items():
        sf.fit(f"x0 -> {node}; x1 -> {node}", data, families={node: family})
    sf.fit("x0 -> y", data, families={"y": sf.regressions.Probit()})


def sequences() -> None:
    rows = {"s": np.repeat(np.arange(4), 15), "y": table(60, 1, 3)["v0"], **numbers(60, 2)}
    s = sf.sequences({n: rows[n] for n in ("s", "y")}, by="s")
    run = sf.em("h[-1] -> h -> y", s, hidden=[sf.Finite("h", ["a", "b"])], max_iter=2, starts=1)
    run.model.decode(s)
    x = sf.sequences({n: rows[n] for n in ("s", "x0", "x1")}, by="s")
    sf.em("h[-1] -> h; h -> x0; h -> x1", x, hidden=[sf.Finite("h", ["a", "b"])], max_iter=2, starts=1)
    sf.em("h[-1] -> h; h -> x0; h -> x1", x, hidden=[sf.Real("h")], max_iter=2, starts=1)


def draws() -> None:
    bn = sf.load("asia")
    bn.query("lung", {"xray": "yes"}, method=sf.methods.Gibbs(20))
    sf.methods.order_mcmc(table(60, 4, 2), samples=20, chains=1)
    sf.search(table(100, 5, 2), method=sf.Exact())


SMALL_WORK: list[Callable[..., None]] = [questions, counts, orders, climbs, independence, gaps, many_blocks]
LARGE_WORK: list[Callable[..., None]] = [undirected, regressions, sequences, draws]


@pytest.mark.parametrize("work", [*SMALL_WORK, *LARGE_WORK], ids=lambda f: f.__name__)
def test_both_copies_agree(work: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    work(monkeypatch) if work is many_blocks else work()


def test_every_kernel_that_may_be_interpreted_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    for work in SMALL_WORK:
        test_both_copies_agree(work, monkeypatch)
    assert {n for n, k in kernels.items() if k.work is not None} - called == set()
