"""Every learner on another engine: what it learns from rows in other processes is what it learns from rows here.

The toy engine pickles every step and every partial sum. No rows but those of `sample` and `distinct` reach the learner.
"""

from __future__ import annotations

import importlib
import itertools
import pickle
import pkgutil
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines import Data, Step, Sum
from suffice.engines.views.sample import Distinct, Sample, Stretches
from suffice.numerics.exponential import Poisson
from tests.toy_engine import Toy, leaves, pool, run, toy

N = 600
SOURCE = Path(sf.__file__).parent


def cells(n: int = N) -> dict[str, Any]:
    """a → b → c, a → x → y, counts k by a, a logistic l of x, and steps t of sequences i."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    b = (a + (rng.random(n) < 0.3)) % 2
    c = (b + (rng.random(n) < 0.2)) % 2
    x = a + rng.normal(size=n)
    y = 2 * x + rng.normal(size=n)
    label = rng.random(n) < 1 / (1 + np.exp(-x + 1))
    words = {n: np.array([f"{n}{i}" for i in range(3)])[v] for n, v in {"a": a, "b": b, "c": c, "l": label.astype(int)}.items()}
    return {**words, "x": x, "y": y, "k": rng.poisson(1.0 + a), "i": np.arange(n) // 20, "t": np.arange(n) % 20}


def gaps(table: dict[str, Any], share: float = 0.1) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    lost = {name: rng.random(len(column)) < share for name, column in table.items()}
    return {n: [None if gap else v for v, gap in zip(c.tolist(), lost[n], strict=True)] for n, c in table.items()}


WHOLE, HOLED = cells(), gaps(cells())
FINITE, REAL = ("a", "b", "c", "l"), ("x", "y")


def some(table: dict[str, Any], *names: str) -> dict[str, Any]:
    return {n: table[n] for n in names}


def numbers(bn: sf.BayesNet) -> list[Any]:
    """All parameters of a network."""
    parts = ("probs", "rates", "parameters", "intercept", "coefficients", "variance")
    return [np.asarray(getattr(cpd, p)) for n in sorted(bn) for cpd in [bn[n]] for p in parts if hasattr(cpd, p)]


def logs(net: sf.MarkovNet) -> list[Any]:
    """The factors of a Markov network."""
    return [f.log for f in net.factors]


def found(method: Any, score: Any = None, **how: Any) -> Callable[[Data], Any]:
    def search(data: Data) -> Any:
        result = sf.search(data, **({} if score is None else {"score": score}), method=method, **how)
        return [sorted(map(sorted, result.cpdag.undirected)), sorted(result.cpdag.directed), result.score or 0.0]

    return search


def undirected(method: Any, *, chosen: bool = True) -> Callable[[Data], Any]:
    """An undirected graph; which penalty is chosen depends on the blocks where rows are held out."""

    def search(data: Data) -> Any:
        result = sf.search(data, method=method)
        edges = [list(result.graph.edges), list(result.strengths.values()), result.score] if chosen else []
        return [*edges, [entry.objective for entry in result.path]]

    return search


def in_turn(data: Data) -> Any:
    """What is learned of sequences that are redrawn: their weight, and the counts of pairs of steps."""
    redrawn = sf.sequences(data, by="i", order="t").resample(1)
    pairs = redrawn.lagged({"a": ("a", 0), "a[-1]": ("a", 1)}, first=1)
    return [redrawn.sequence_weight, pairs.gather([sf.statistics.Request(("a", "a[-1]"))]).counts(["a", "a[-1]"]).values]


def turns(data: Data) -> sf.chains.Sequences:
    return sf.sequences(data, by="i", order="t")


def fields(net: sf.MarkovNet) -> list[Any]:
    return [np.asarray(f.log) for f in net.factors]


def complete(data: Data) -> sf.LogLinear:
    """All pairs."""
    return sf.Pairwise(list(itertools.combinations(data.columns, 2)))


HIDDEN_STATE: dict[str, Any] = {"hidden": [sf.Finite("h", ["u", "v"])], "starts": 2, "max_iter": 5, "tol": 0}


@cache
def chain() -> sf.Chain:
    """A chain that was fitted here."""
    return sf.em("h[-1] -> h -> a; h -> x", turns(sf.scan(some(WHOLE, "a", "x", "i", "t"))), **HIDDEN_STATE).model


LABELS = sf.LinearChain("a", [sf.Window(["b", "x"], at=(0, -1))])
SECOND = sf.LinearChain("a", [sf.Window(["b"])], order=2)


@cache
def tagger() -> sf.Crf:
    """A linear chain that was fitted here."""
    return sf.fit(LABELS, turns(sf.scan(some(WHOLE, "a", "b", "x", "i", "t"))), penalty=sf.L2(1), max_iter=5)


LEARNERS: dict[str, tuple[dict[str, Any], Callable[[Data], Any]]] = {
    "fit tables": (some(WHOLE, *FINITE), lambda d: numbers(sf.fit("a -> b -> c; a -> l", d, prior=sf.BDeu(1)))),
    "fit numbers": (some(WHOLE, "a", *REAL), lambda d: numbers(sf.fit("a -> x -> y", d))),
    "score": (some(WHOLE, *FINITE), lambda d: sf.score("a -> b -> c; l", d, sf.BIC())),
    "schema": (some(WHOLE, *FINITE, *REAL), lambda d: str(d.schema)),
    "update": (some(WHOLE, "a", "b"), lambda d: numbers(sf.fit("a -> b", some(WHOLE, "a", "b")).update(d))),
    "naive Bayes": (some(WHOLE, *FINITE, *REAL), lambda d: numbers(sf.naive_bayes(d, "a"))),
    "naive Bayes with gaps": (some(HOLED, *FINITE), lambda d: numbers(sf.naive_bayes(d, "a"))),
    "naive Bayes with gaps in numbers": (
        {**some(WHOLE, "a"), **some(HOLED, "b", *REAL)},
        lambda d: numbers(sf.naive_bayes(d, "a")),
    ),
    "discriminant with gaps": ({**some(WHOLE, "a"), **some(HOLED, *REAL)}, lambda d: numbers(sf.latent.discriminant(d, "a"))),
    "shared discriminant with gaps": (
        {**some(WHOLE, "a"), **some(HOLED, *REAL)},
        lambda d: numbers(sf.latent.discriminant(d, "a", covariance=sf.latent.Tied())),
    ),
    "discriminant": (some(WHOLE, "a", *REAL), lambda d: numbers(sf.latent.discriminant(d, "a"))),
    "TAN": (some(WHOLE, *FINITE), found(sf.methods.TAN("a"))),
    "Gaussian search": (some(WHOLE, *REAL), found(sf.HillClimb())),
    "search of both": (some(WHOLE, *FINITE, *REAL), found(sf.Orders())),
    "search with regressions": (some(WHOLE, *FINITE, *REAL), found(sf.Exact(max_parents=1), families={"a": sf.Logistic(1.0)})),
    "PC, Fisher": (some(WHOLE, *REAL), found(sf.PC(test=sf.independence.FisherZ()))),
    "PC, G squared": (some(WHOLE, *FINITE), found(sf.PC())),
    "closed form of a graph": (some(WHOLE, *FINITE), lambda d: logs(sf.fit("a -- b; b -- c; a -- l", d, prior=sf.BDeu(1)))),
    "log-linear model": (some(WHOLE, *FINITE), lambda d: logs(sf.fit(sf.LogLinear.all(2, FINITE), d))),
    "penalised log-linear model": (some(WHOLE, *FINITE), lambda d: logs(sf.fit(sf.Pairwise("a -- b -- c"), d, penalty=sf.L2(1)))),
    "Ising model": (some(WHOLE, "b", "c", "l"), lambda d: logs(sf.fit(sf.Ising("b -- c -- l -- b"), d))),
    "graphical lasso": (some(WHOLE, *REAL), undirected(sf.GraphicalLasso())),
    "graphical lasso, held-out rows": (
        some(WHOLE, *REAL),
        undirected(sf.GraphicalLasso(select=sf.choices.HeldOut(2)), chosen=False),
    ),
    "neighbourhoods of numbers": (some(WHOLE, *REAL), undirected(sf.Neighbourhoods())),
    "neighbourhoods of states": (some(WHOLE, *FINITE), undirected(sf.Neighbourhoods())),
    "neighbourhoods of both": (some(WHOLE, *FINITE, *REAL), undirected(sf.Neighbourhoods(n_penalties=5))),
    "decomposable": (some(WHOLE, *FINITE), undirected(sf.Decomposable())),
    "decomposable, numbers": (some(WHOLE, *REAL), undirected(sf.Decomposable())),
    "stepwise": (some(WHOLE, *FINITE), undirected(sf.methods.Stepwise())),
    "hill climbing": (some(WHOLE, *FINITE), found(sf.HillClimb())),
    "hill climbing, few equal rows": (
        {f"{n}{i}": np.roll(WHOLE[n], i) for n in FINITE for i in range(3)},
        found(sf.HillClimb(max_parents=2)),
    ),
    "tabu": (some(WHOLE, *FINITE), found(sf.methods.Tabu(), sf.Evidence(sf.BDeu(1)))),
    "GES": (some(WHOLE, *FINITE), found(sf.methods.GES())),
    "orders": (some(WHOLE, *FINITE), found(sf.Orders())),
    "exact": (some(WHOLE, *FINITE), found(sf.Exact())),
    "Chow-Liu": (some(WHOLE, *FINITE), found(sf.methods.ChowLiu())),
    "MMHC": (some(WHOLE, *FINITE), found(sf.methods.MMHC())),
    "order MCMC": (
        some(WHOLE, *FINITE),
        lambda d: sf.methods.order_mcmc(d, samples=100, burn_in=100, seed=1).adjacent("a", "b"),
    ),
    "conditional likelihood": (
        some(WHOLE, *FINITE),
        lambda d: numbers(sf.fit("a -> b -> c; a -> c; a -> l", d, objective=sf.Conditional("a"), penalty=sf.L2(1))),
    ),
    "margin": (some(WHOLE, *FINITE), lambda d: numbers(sf.fit("a -> b; a -> c; a -> l", d, objective=sf.Margin("a")))),
    "conditional likelihood, undirected": (
        some(WHOLE, *FINITE),
        lambda d: logs(sf.fit("a -- b -- c -- a; a -- l", d, objective=sf.Conditional("a"), penalty=sf.L2(1))),
    ),
    "logistic": (some(WHOLE, "l", "x"), lambda d: numbers(sf.fit("x -> l", d, families={"l": sf.Logistic()}))),
    "tied linear": (
        some(WHOLE, "x", "y"),
        lambda d: numbers(
            sf.fit("x; y", d, families={"x": sf.regressions.Linear(), "y": sf.regressions.Linear()}, shared=[("x", "y")])
        ),
    ),
    "logistic after more rows": (
        some(WHOLE, "l", "x"),
        lambda d: numbers(sf.fit("x -> l", some(WHOLE, "l", "x"), families={"l": sf.Logistic()}).update(d)),
    ),
    "probit with gaps in numbers": (
        {**some(WHOLE, "l"), **some(HOLED, "x")},
        lambda d: numbers(sf.em("x -> l", d, families={"l": sf.regressions.Probit()}, max_iter=5).model),
    ),
    "Poisson": (some(WHOLE, "k", "x"), lambda d: numbers(sf.fit("x -> k", d, families={"k": sf.regressions.PoissonLog()}))),
    "negative binomial": (
        some(WHOLE, "k", "x"),
        lambda d: numbers(sf.fit("x -> k", d, families={"k": sf.regressions.NegativeBinomialLog()})),
    ),
    "ordinal": (some(WHOLE, "a", "y"), lambda d: numbers(sf.fit("y -> a", d, families={"a": sf.regressions.ProportionalOdds()}))),
    "EM of tables": (some(HOLED, *FINITE), lambda d: numbers(sf.em("a -> b -> c; a -> l", d).model)),
    "EM with numbers": (some(HOLED, "a", *REAL), lambda d: numbers(sf.em("a -> x -> y", d).model)),
    "EM of a distribution": (
        {**some(HOLED, "a"), **some(WHOLE, "k")},
        lambda d: numbers(sf.em("a -> k", d, families={"k": Poisson()}, prior=(sf.BDeu(1), sf.priors.Conjugate(1))).model),
    ),
    "hidden": (
        some(WHOLE, "b", "c", "l"),
        lambda d: sf.em("h -> b; h -> c; h -> l", d, hidden=[sf.Finite("h", ["u", "v"])], starts=2, max_iter=30).log_likelihood,
    ),
    "gradient": (some(HOLED, "a", "b"), lambda d: numbers(sf.gradient("a -> b", d).model)),
    "information": (
        some(HOLED, "a", "b"),
        lambda d: [np.asarray(v) for v in sf.em("a -> b", d).information().standard_errors.values()],
    ),
    "structural EM": (some(HOLED, *FINITE), lambda d: sorted(sf.structural_em(d).model.dag.edges)),
    "hidden class of numbers": (
        some(WHOLE, *REAL),
        lambda d: sf.em("h -> x; h -> y", d, hidden=[sf.Finite("h", ["u", "v"])], starts=2, max_iter=10).log_likelihood,
    ),
    "EM with a regression": (
        {**some(HOLED, "l"), **some(WHOLE, "x")},
        lambda d: numbers(sf.em("x -> l", d, families={"l": sf.Logistic()}).model),
    ),
    "structural EM of both": (some(HOLED, "a", "b", "x"), lambda d: sorted(sf.structural_em(d).model.dag.edges)),
    "structural EM of numbers": (some(HOLED, *REAL), lambda d: sorted(sf.structural_em(d).model.dag.cpdag().edges)),
    "factors": (some(WHOLE, *REAL), lambda d: sf.factors(d, 1, noise=sf.latent.Spherical(), choose=sf.BIC()).log_likelihood),
    "factors by held-out rows": (
        some(WHOLE, *REAL),
        lambda d: sf.factors(d, [1], noise=sf.latent.Spherical(), choose=sf.choices.HeldOut(2)).log_likelihood > -np.inf,
    ),
    "factors with gaps": (
        some(HOLED, *REAL),
        lambda d: sf.factors(d, 1, noise=sf.latent.Spherical(), starts=1, max_iter=10, tol=0).log_likelihood,
    ),
    "EM with a hidden number": (
        some(WHOLE, "a", *REAL),
        lambda d: sf.em("a -> x; h -> x; h -> y", d, hidden=[sf.Real("h")], starts=1, max_iter=10, tol=0).log_likelihood,
    ),
    "mixture": (some(WHOLE, *REAL), lambda d: sf.mixture(d, 2, starts=2, max_iter=20).log_likelihood),
    "mixture, held-out rows": (
        some(WHOLE, *REAL),
        lambda d: sf.mixture(d, [1, 2], choose=sf.choices.HeldOut(2), starts=1, max_iter=5).log_likelihood > -np.inf,
    ),
    "mixture with gaps": (some(HOLED, "a", *REAL), lambda d: sf.mixture(d, 2, starts=2, max_iter=20).log_likelihood),
    "sequences": (some(WHOLE, "a", "i", "t"), in_turn),
    "chain": (some(WHOLE, "a", "b", "x", "i", "t"), lambda d: numbers(sf.fit("a[-1] -> a -> b; a -> x <- x[-2]", turns(d)))),
    "hidden chain": (
        some(WHOLE, "a", "x", "i", "t"),
        lambda d: sf.em("h[-1] -> h -> a; h -> x", turns(d), **HIDDEN_STATE).log_likelihood,
    ),
    "chain with gaps": (
        {**some(HOLED, "a", "b", "x"), **some(WHOLE, "i", "t")},
        lambda d: numbers(sf.em("a[-1] -> a -> b; a -> x", turns(d), max_iter=3, tol=0).model),
    ),
    "chain of numbers": (
        {**some(HOLED, "x", "y"), **some(WHOLE, "i", "t")},
        lambda d: numbers(sf.em("x[-1] -> x -> y", turns(d), max_iter=3, tol=0).model),
    ),
    "answers of a chain": (
        {**some(HOLED, "a", "x"), **some(WHOLE, "i", "t")},
        lambda d: [
            chain().log_prob(turns(d)),
            chain().decode(turns(d), best=2)[1].log_prob,
            *(np.asarray(ask(turns(d))["h=u"]) for ask in (chain().smooth, chain().filter, chain().forecast)),
        ],
    ),
    "linear chain of second order": (
        some(WHOLE, "a", "b", "i", "t"),
        lambda d: sf.fit(SECOND, turns(d), penalty=sf.L2(1), max_iter=5).weight_vector,
    ),
    "linear chain": (
        {**some(WHOLE, "b", "x", "i", "t"), **some(HOLED, "a")},
        lambda d: sf.fit(LABELS, turns(d), penalty=sf.L2(1), max_iter=5).weight_vector,
    ),
    "answers of a linear chain": (
        {**some(WHOLE, "a", "x", "i", "t"), **some(HOLED, "b")},
        lambda d: [
            tagger().log_prob(turns(d)),
            np.asarray(tagger().predict_proba(turns(d))["a0"]),
            tagger().most_probable(turns(d), 2)[1].log_prob,
            tagger().evaluate(turns(d)).n_right,
        ],
    ),
    "pseudo-likelihood": (
        some(WHOLE, *FINITE),
        lambda d: fields(sf.fit(sf.Pairwise("a -- b -- c; a -- l"), d, objective=sf.PseudoLikelihood(), penalty=sf.L2(1))),
    ),
    "pseudo-likelihood, many neighbours": (
        {f"{n}{i}": np.roll(WHOLE[n], i) for n in FINITE for i in range(4)},
        lambda d: fields(sf.fit(complete(d), d, objective=sf.PseudoLikelihood(), penalty=sf.L2(1000))),
    ),
    "contrastive divergence": (
        some(WHOLE, *FINITE),
        lambda d: [
            fields(sf.fit(sf.Pairwise("a -- b -- c; a -- l"), d, objective=o, method=sf.methods.RobbinsMonro(5)))
            for o in (sf.ContrastiveDivergence(), sf.ContrastiveDivergence(persistent=True))
        ],
    ),
    "missingness": (some(HOLED, *FINITE, *REAL), lambda d: sf.missingness(d).missing),
    "cases compared": (
        some(HOLED, *FINITE, *REAL),
        lambda d: [row.complete for row in sf.missingness(d, compare="a; b; x").compared.rows],
    ),
    "bins": (some(WHOLE, *REAL), lambda d: sf.scan(d, {"x": sf.Bins(4), "y": sf.Bins(3, width=True)}).schema["x"].cuts),
    "bootstrap": (some(WHOLE, *FINITE), lambda d: sf.bootstrap(d, method=sf.HillClimb(), n=5).strength("a", "b") > 0.5),
    "cross-validation": (some(WHOLE, *FINITE), lambda d: sf.cross_validate(d, method="a -> b -> c; l", folds=3).folds[0].n_edges),
    "principles compared": (
        some(WHOLE, *FINITE),
        lambda d: (
            sf.cross_validate(d, method="a -> b; a -> c", folds=2, objective=[sf.Likelihood(), sf.Margin("a")])[
                "Likelihood()"
            ].weight
        ),
    ),
    "log_prob": (some(HOLED, "a", "b"), lambda d: sf.fit("a -> b", some(WHOLE, "a", "b")).log_prob(d)),
    "log-likelihood": (some(HOLED, "a", "b"), lambda d: sf.fit("a -> b", some(WHOLE, "a", "b")).log_likelihood(d)),
    "predict": (
        some(HOLED, "a", "b"),
        lambda d: sf.fit("a -> b", some(WHOLE, "a", "b")).predict_proba(d, "b")["b1"].to_numpy(),
    ),
    "impute": (
        some(HOLED, "a", "b"),
        lambda d: sf.fit("a -> b", some(WHOLE, "a", "b")).impute(d).to_pydict(),
    ),
}


@cache
def learned_here(name: str) -> Any:
    """What a learner gives on rows in memory."""
    table, learn = LEARNERS[name]
    return learn(sf.scan(table, {"k": sf.Count} if "k" in table else None))


def check_there(name: str, n: int) -> None:
    """What a learner gives on rows in so many partitions."""
    table, learn = LEARNERS[name]
    there = toy(table, {"k": sf.Count} if "k" in table else None, n=n)
    alike(learn(there), learned_here(name))
    assert there.engine.rows_out == []


@pytest.mark.parametrize("n", [1, 17])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs_on_another_engine(name: str, n: int) -> None:
    check_there(name, n)


def grown(table: dict[str, Any], n: int) -> dict[str, Any]:
    """A table with the same columns and n rows."""
    whole = cells(n)
    holed = gaps(whole)
    own = {name: (holed if isinstance(column, list) else whole) for name, column in table.items()}
    return {name: own[name].get(name) if name in whole else np.roll(whole[name[0]], int(name[1:])) for name in table}


def bytes_back(monkeypatch: pytest.MonkeyPatch, learn: Callable[[], object]) -> dict[str, int]:
    """The most bytes that a sum of each step has on its way back from a partition."""
    most: dict[str, int] = {}
    spy = Toy._spy

    def note(engine: Toy, work: Any, result: Any) -> None:
        spy(engine, work, result)
        step = getattr(work, "step", None)
        while hasattr(step, "step"):
            step = step.step
        if isinstance(result, Sum) and not isinstance(step, (Sample, Distinct, Stretches)):
            name = type(step).__name__
            most[name] = max(most.get(name, 0), len(pickle.dumps(result)))

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "_spy", note)
        learn()
    return most


@pytest.mark.parametrize("name", LEARNERS)
def test_so_it_does_in_three_partitions_and_what_comes_back_does_not_grow_with_the_rows(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Eight times the rows give sums of about the same size: a step that hands rows back, scaled or in part, is noticed."""
    table, learn = LEARNERS[name]
    large = toy(grown(table, 8 * N), {"k": sf.Count} if "k" in table else None, n=3, size=8 * N // 6)
    few, many = bytes_back(monkeypatch, lambda: check_there(name, 3)), bytes_back(monkeypatch, lambda: learn(large))
    assert {step: size for step, size in many.items() if size > 1.5 * few.get(step, 0) + 2000} == {}


def alike(a: Any, b: Any) -> None:
    if isinstance(b, (list, tuple)) and not all(isinstance(x, (int, float)) for x in b):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            alike(x, y)
    elif isinstance(b, (float, np.ndarray, list, tuple)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    else:
        assert a == b


@pytest.mark.parametrize("name", ["fit tables", "hill climbing", "EM with numbers", "mixture", "logistic", "predict"])
def test_learners_run_in_other_processes(name: str) -> None:
    table, learn = LEARNERS[name]
    alike(learn(toy(table, n=3, size=250, here=False)), learned_here(name))


def steps(of: type = Step) -> list[type]:
    for module in pkgutil.walk_packages(sf.__path__, "suffice."):
        if module.name != "suffice.__main__":
            importlib.import_module(module.name)
    return [s for sub in of.__subclasses__() for s in (sub, *steps(sub))]


ELSEWHERE = {"Each", "ScanTables", "Stretches", "_FirstImpossible"}
"""Steps that other tests pickle: of functions, of tables with many cells, of starts of regressions of many rows, of
impossible rows."""


def test_every_step_of_the_library_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is pickled, run in another process, and gives the same bits there; none is forgotten."""
    seen: set[str] = set()
    run_here = Toy.run

    def noted(engine: Toy, work: Any) -> Any:
        step, new = getattr(work, "step", None), False
        while step is not None:
            new |= type(step).__name__ not in seen
            seen.update({type(step).__name__, *(type(s).__name__ for s in getattr(step, "steps", ()))})
            step = getattr(step, "step", None)
        for blocks in engine.partitions() if new else ():
            message = pickle.dumps(work)
            here, there = (
                pickle.loads(answer) for answer in (run(message, blocks), pool().submit(run, message, blocks).result())
            )
            for a, b in zip(leaves(here), leaves(there), strict=True):
                assert a.tobytes() == b.tobytes() if isinstance(a, np.ndarray) else str(a) == str(b) or a == b, (work, a, b)
        return run_here(engine, work)

    monkeypatch.setattr(Toy, "run", noted)
    for table, learn in LEARNERS.values():
        learn(toy(table, {"k": sf.Count} if "k" in table else None, n=3))
    known = {step.__name__ for step in steps() if step.__module__.startswith("suffice") and not step.__subclasses__()}
    assert known - seen <= ELSEWHERE


def test_steps_are_frozen_values_of_modules() -> None:
    for step in steps():
        if step.__module__.startswith("suffice"):
            assert step.__dataclass_params__.frozen, step  # type: ignore[attr-defined]
            assert "<locals>" not in step.__qualname__, step


ROWS = re.compile(r"\.(batches|pick|written_out|_store)\(|\b(block|batch)\.start\b|\.(fold|map)\(lambda")
PRIVATE = re.compile(r"from suffice\.engines\.([\w.]+) import")
PUBLIC = {
    *("data", "engine", "scan", "gather", "bitmaps", "checkpoints", "spark", "steps.blocks", "steps.bits", "encoding.sources"),
    *("reading.conll", "sequences.sequences", "sequences.lagged", "sequences.arrangement", "local.kept", "views.sample"),
}


def test_no_rows_outside_the_engines() -> None:
    """What is new is covered without being listed: any module outside, any module inside that is not one of the doors."""
    texts = {str(p.relative_to(SOURCE)): p.read_text() for p in SOURCE.rglob("*.py") if "engines" not in p.parts}
    assert {name: rows for name, text in texts.items() if (rows := ROWS.findall(text))} == {}
    assert {name: inside for name, text in texts.items() if (inside := set(PRIVATE.findall(text)) - PUBLIC)} == {}
