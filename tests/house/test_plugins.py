"""One of each kind of piece from outside the package, each in a file of its own, through entry points: they work in Python, on
the command line and in a saved model, which a process reads that never heard of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.interfaces.cli.test_pipes_and_signals import environment_of_a_user

PIECES = {
    "distributions": (
        "pareto",
        """
        from dataclasses import dataclass
        import numpy as np
        from scipy.stats import pareto
        from suffice.exponential import Exponential, ExponentialFamily
        from suffice.families.chosen.node_kinds import ExponentialKind

        @dataclass(frozen=True, eq=False, repr=False)
        class Pareto(Exponential):
            "Numbers from 1 up, whose logarithms are exponential: T(x) = ln x, h(x) = 1/x."

            support = "numbers from 1 up"

            def _inside(self, x):
                x = np.asarray(x, dtype=float)
                return x, x >= 1.0

            def sufficient(self, x):
                return np.log(np.asarray(x, dtype=float))[..., None]

            def log_base(self, x):
                return np.where(self._inside(x)[1], -np.log(x), -np.inf)

            def _log_density(self, x):
                return np.log(self.rate) - (self.rate + 1.0) * np.log(x)

            @property
            def mean(self):
                return pareto(self.rate).mean()

            @property
            def variance(self):
                return pareto(self.rate).var()

            def entropy(self):
                return 1.0 - np.log(self.rate) + 1.0 / self.rate

            def sample(self, n, seed=0):
                return np.exp(super().sample(n, seed))

            _predictive = ExponentialFamily._predictive

        class ParetoKind(ExponentialKind):
            word, of = "pareto", Pareto
            statistic, base = ("ln x",), ("ln x", -1.0)

            def scipy(self, member):
                return pareto(member.rate)

            def from_moments(self, distribution, mean, variance):
                return Pareto(mean / (mean - 1.0))
        """,
    ),
    "priors": (
        "optimist",
        """
        from dataclasses import dataclass
        import numpy as np
        import suffice as sf
        from suffice.families.protocol.family import Prior

        @dataclass(frozen=True)
        class Optimist(Prior):
            "So many imagined rows in each cell whose state is the last, one in the others."

            word = "optimist"
            types = ("Optimist",)
            after_colon = ("rows", float)

            rows: float = 1.0

            def imagine(self, child, parents, seen=None):
                if not all(isinstance(v, sf.Finite) for v in (*parents, child)):
                    return None
                counts = np.ones([v.n_states for v in (*parents, child)])
                counts[..., -1] = self.rows
                return sf.statistics.Counts((*parents, child), counts)
        """,
    ),
    "families": (
        "noisy-or",
        """
        from dataclasses import dataclass
        import numpy as np
        from suffice.families.categorical import FiniteFamily

        @dataclass(frozen=True)
        class NoisyOr(FiniteFamily):
            "p(no | u) = Π (1 − p_i) over the parents i that are there, and a leak: each causes its child by itself."

            word = "noisy-or"
            after_colon = ("rounds", int)

            rounds: int = 200

            def n_parameters(self, child, parents):
                return 1 + len(parents)

            def probs(self, child, parents, counts):
                there = np.stack([np.ones(counts.shape[:-1]), *np.indices(counts.shape[:-1])]).reshape(1 + len(parents), -1)
                no, yes = counts.reshape(-1, 2).T
                p = np.full(len(there), 0.3)
                for _ in range(self.rounds):  # EM over which cause it was
                    none = np.exp(there.T @ np.log1p(-p))
                    blamed = there * p[:, None] / np.maximum(1.0 - none, 1e-300)
                    p = np.clip((blamed @ yes) / (there @ (no + yes)), 1e-12, 1.0 - 1e-12)
                none = np.exp(there.T @ np.log1p(-p))
                return np.stack([none, 1.0 - none], axis=-1).reshape(counts.shape)
        """,
    ),
    "objectives": (
        "shy",
        """
        from dataclasses import dataclass, replace
        from suffice.objectives import L2, Objective

        @dataclass(frozen=True)
        class Shy(Objective):
            "The pseudo-likelihood, with a price of its own on weights."

            word = "shy"
            types = ("Shy",)
            after_colon = ("strength", float)
            models = ("log-linear",)

            strength: float = 1.0

            def fit(self, problem):
                return replace(problem, penalties=problem.penalties + L2(self.strength)).by_pseudo_likelihood()
        """,
    ),
    "engines": (
        "buckets",
        """
        from dataclasses import dataclass, replace
        from functools import partial
        from suffice.engines.scan import Backend
        from suffice.engines.partitions.partitions import Partitions, Raw
        from suffice.engines.partitions.workers import deal_out, tables, text_files

        @dataclass(frozen=True)
        class Heap:
            "Rows of a kind that nobody else knows."

            table: object

        class BucketRows(Partitions):
            def __init__(self, parts, names, options):
                super().__init__(names, options)
                self.parts, self.all = parts, names

            def again(self, options):
                return BucketRows(self.parts, self.all, options)

            def run(self, work):
                return (work(part(work.reader.columns)) for part in self.parts)

        def slice_of(table, i, size, columns):
            return [Raw(i, table.slice(i * size, size).select(columns).combine_chunks())]

        @dataclass(frozen=True)
        class Buckets(Backend):
            "Rows in so many buckets, one after the other."

            word = "buckets"
            after_colon = ("n", int)

            n: int = 3

            @classmethod
            def takes(cls, x):
                return isinstance(x, Heap)

            def of_frame(self, x, options):
                size = -(-len(x.table) // self.n)
                return BucketRows([partial(slice_of, x.table, i, size) for i in range(self.n)], x.table.column_names, options)

            def of_files(self, source, options):
                parts = [partial(tables, pieces) for pieces in deal_out(text_files(source), self.n)]
                return BucketRows(parts, source.names, replace(options, decimal=source.decimal))
        """,
    ),
    "scores": (
        "hannan-quinn",
        """
        from dataclasses import dataclass
        from math import log
        import suffice as sf

        @dataclass(frozen=True)
        class HannanQuinn(sf.scores.Penalised):
            word = "hannan-quinn"
            after_colon = ("factor", float)

            factor: float = 1.0

            def price(self, weight):
                return self.factor * log(log(weight))
        """,
    ),
    "methods": (
        "alphabet",
        """
        from dataclasses import dataclass
        from suffice.structure.problem import Method
        from suffice.structure.problem import Outcome

        @dataclass(frozen=True)
        class Alphabet(Method):
            "Each variable hangs on the one before it, where that gains."

            word = "alphabet"

            def run(self, problem):
                order = sorted(range(problem.n), key=lambda i: problem.names[i])
                parents = [()] * problem.n
                for before, i in zip(order, order[1:]):
                    if problem.scores.family(i, (before,)) > problem.scores.family(i, ()):
                        parents[i] = (before,)
                return Outcome(parents)
        """,
    ),
    "formats": (
        "lines",
        """
        import json
        import numpy as np
        from suffice import Finite
        from suffice.formats.grammar.finite_network import FiniteNetwork, NetworkTable
        from suffice.formats.grammar.network_format import NetworkFormat

        class Lines(NetworkFormat):
            "A line of JSON for each variable: its name, states, parents and probabilities."

            word = "lines"

            def parse(self, text):
                rows = [json.loads(line) for line in text.splitlines()]
                variables = tuple(Finite(name, states) for name, states, *_ in rows)
                tables = {name: NetworkTable(tuple(parents), np.array(probs)) for name, _, parents, probs in rows}
                return FiniteNetwork(variables, tables)

            def text(self, network):
                rows = ((v.name, v.states, *network.tables[v.name]) for v in network.variables)
                return "".join(json.dumps([n, s, p, probs.tolist()]) + "\\n" for n, s, p, probs in rows)
        """,
    ),
    "commands": (
        "count",
        """
        from suffice import read
        from suffice.registry import command

        @command("count")
        def count(model: str) -> None:
            "Count the nodes of a network."
            print(len(read(model)), "nodes")
        """,
    ),
}

ROWS = "a,b,c,x\n" + "".join(
    f"{'nyy'[i % 3]},{'nny'[i % 3 if i % 7 else 0]},{'ny'[(i % 3 > 0) * (i % 4 > 0)]},{1.1 + 0.25 * (i % 11)}\n"
    for i in range(120)
)

IN_PYTHON = """
import math
import numpy as np
import suffice as sf
import pyarrow.csv
from toy_distributions import Pareto
from toy_engines import BucketRows, Buckets, Heap
from toy_families import NoisyOr
from toy_methods import Alphabet
from toy_objectives import Shy
from toy_priors import Optimist
from toy_scores import HannanQuinn

rows = sf.scan("rows.csv")
bn = sf.fit("a -> b; a -> x", rows, prior=(Optimist(3.0), sf.priors.Conjugate(2.0, Pareto(1.5))), families={"x": Pareto()})
sf.write(bn, "python.json")
seen = sf.gather(rows, "a -> b").counts(["a", "b"]).dense()
wanted = (seen + [1.0, 3.0]) / (seen + [1.0, 3.0]).sum(axis=1, keepdims=True)
assert np.allclose(bn["b"].probs, wanted)
assert bn["x"].interval(0.9)["rate"].lower.shape == (2,)
found = sf.search(rows.select(["a", "b"]), HannanQuinn(), Alphabet())
assert found.dag.edges == (("a", "b"),)
of_likelihood = sf.score("a; b", rows, sf.LogLikelihood())
assert math.isclose(sf.score("a; b", rows, HannanQuinn(1.0)) + 2 * math.log(math.log(120)), of_likelihood)

elsewhere = sf.scan("rows.csv", engine=Buckets(2))
heap = sf.scan(Heap(pyarrow.csv.read_csv("rows.csv")))
for data in (elsewhere, heap):
    assert type(data.engine) is BucketRows and sf.fit("a -> b", data, prior=Optimist(3.0))["b"].same(bn["b"])
assert list(bn.predict(heap, "b")) == list(bn.predict(rows, "b"))

either = sf.fit("a -> c; b -> c", rows, families={"c": NoisyOr()}, prior=sf.BDeu(1))
sf.write(either, "either.json")
no = either["c"].probs[..., 0]
assert math.isclose(no[0, 0] * no[1, 1], no[0, 1] * no[1, 0]) and either.n_parameters == 1 + 1 + 3
assert either["c"].family == NoisyOr() and either.update(rows)["c"].family == NoisyOr()
by_table = sf.score("a -> c; b -> c", rows, by_node=True)["c"]
price = 0.5 * math.log(120)
by_causes = sf.score("a -> c; b -> c", rows, families={"c": NoisyOr()}, by_node=True)["c"]
assert by_causes - price < by_table < by_causes + 4 * price
assert sf.score("a -> c; b -> c", sf.gather(rows, "a -> c; b -> c"), families={"c": NoisyOr()}, by_node=True)["c"] == by_causes
found = sf.search(rows.select(["a", "b", "c"]), families={"c": NoisyOr()}, constraints=sf.Require(("a", "c"), ("b", "c")))
assert found.score == sf.score(found.dag, rows, families={"c": NoisyOr()})
gaps = {n: [None if i % 13 == k else x for i, x in enumerate(column)] for k, (n, column) in enumerate(
    pyarrow.csv.read_csv("rows.csv").select(["a", "b", "c"]).to_pydict().items())}
run = sf.em("a -> c; b -> c", gaps, families={"c": NoisyOr()}, prior=sf.BDeu(1))
no, climb = run.model["c"].probs[..., 0], [record.objective for record in run.trace]
assert math.isclose(no[0, 0] * no[1, 1], no[0, 1] * no[1, 0]) and all(b >= a - 1e-9 for a, b in zip(climb, climb[1:]))
evidence = sf.Evidence(sf.BDeu(1))
for refused in (either["c"].interval, run.information, lambda: sf.score(either, rows, evidence)):
    try:
        refused()
        raise AssertionError("it has no posterior")
    except sf.SufficeError as error:
        assert "'c' is NoisyOr(rounds=200)" in str(error), error

net = sf.fit("a -- b", rows, objective=Shy(2.0))
strict = sf.fit("a -- b", rows, objective=sf.objectives.PseudoLikelihood(), penalty=sf.objectives.L2(2.0))
assert net.objective == Shy(2.0) and np.array_equal(net.flat_weights, strict.flat_weights)
try:
    sf.fit("a -> b", rows, objective=Shy(2.0))
    raise AssertionError("it is for undirected models")
except sf.SufficeError as error:
    assert "Shy(strength=2.0) is not for a Bayesian network; the nearest is Likelihood()" in str(error)
    assert "Shy is for a log-linear model" in str(error)
"""

NUMBERS = """
import numpy as np
import scipy.stats as st
import suffice as sf
from toy_distributions import Pareto

rng = np.random.default_rng(0)
rows = {"a": np.repeat(["n", "y"], 4000), "x": np.exp(rng.exponential(np.repeat([0.25, 0.2], 4000)))}
bn = sf.fit("a -> x", rows, prior=(sf.BDeu(1), sf.priors.Conjugate(2.0)), families={"x": Pareto()})
near = lambda mine, theirs, rel=1e-9: np.testing.assert_allclose(mine, theirs, rtol=rel)
rates, points, missing = bn["x"].rate, np.array([1.1, 1.5, 4.0]), {"a": ["n", "y"], "x": [None, None]}
many = bn.impute({"a": np.repeat(["n", "y"], 4000), "x": np.full(8000, np.nan)}, draws=2, seed=1)[0]["x"].reshape(2, -1)
made = {name: np.asarray(column) for name, column in bn.sample(20000).to_pydict().items()}
for state, rate, drawn in zip("ny", rates, many):
    true, own, answer = st.pareto(rate), Pareto(rate), bn.query("x", {"a": state})
    near([own.mean, own.variance, own.entropy()], [true.mean(), true.var(), true.entropy()])
    near(own.log_prob(points), true.logpdf(points))
    near([answer.mean, answer.sd, answer.variance], [true.mean(), true.std(), true.var()])
    near([answer.cdf(x) for x in points], true.cdf(points))
    near([answer.quantile(q) for q in (0.01, 0.5, 0.99)], true.ppf([0.01, 0.5, 0.99]))
    near(answer.interval(0.9), true.interval(0.9))
    for sample in (own.sample(20000, 1), drawn, made["x"][made["a"] == state]):
        assert st.kstest(sample, true.cdf).pvalue > 1e-3
heavy = sf.fit("x", {"x": np.exp(rng.exponential(1.0, 400))}, families={"x": Pareto()})
true = st.pareto(rates)
near(bn.predict({"a": ["n", "y"]}, "x"), true.mean())
near(bn.impute(missing)["x"], true.mean())
near(bn.marginals()["x"].mean, true.mean() @ bn["a"].probs)
near(bn.query("x").quantile(0.5), bn.marginals()["x"].quantile(0.5))
near(st.pareto(rates).cdf(bn.query("x").quantile(0.3)) @ bn["a"].probs, 0.3)
near(bn["x"].interval(0.9)["rate"].lower, st.gamma(4003, scale=rates / 4002).ppf(0.05), 0.01)
for refused in (lambda: bn["x"].predictive({"a": "n"}), lambda: heavy.query("x").mean):
    try:
        refused()
        raise AssertionError("there is none")
    except sf.SufficeError as error:
        assert "has no formula" in str(error) or "no finite variance" in str(error), error
"""

IN_A_FRESH_PROCESS = """
import sys
import suffice as sf
from suffice.basis import registry

python, fitted, learned = (sf.read(f"{name}.json") for name in ("python", "fitted", "learned"))
assert type(fitted.prior).__name__ == "Optimist" and fitted.prior.rows == 3.0
assert type(fitted.variables["x"].family.distribution).__name__ == "Pareto"
assert python["b"].same(fitted["b"]) and python == sf.read("python.json")
assert learned.dag.edges == (("a", "b"),) and learned == sf.read("learned.json")
sf.write(sf.read("learned.lines"), "again.lines")
assert open("again.lines").read() == open("learned.lines").read() and "toy_formats" in sys.modules
assert python.update(sf.scan("rows.csv")).prior == python.prior
either, caused, net = (sf.read(f"{name}.json") for name in ("either", "caused", "net"))
assert type(either["c"].family).__name__ == "NoisyOr" and either["c"].family.rounds == 200 and caused["c"].family.rounds == 150
assert either.n_parameters == 5 and either == sf.read("either.json")
assert 0.9 < either.query("c", given={"a": "y", "b": "y"})["y"] + either.query("c", given={"a": "y", "b": "y"})["n"] < 1.1
assert either.update(sf.scan("rows.csv"))["c"].family == either["c"].family
assert type(net.objective).__name__ == "Shy" and net.objective.strength == 2.0
own = dict(distributions="pareto", priors="optimist", scores="hannan-quinn", methods="alphabet", families="noisy-or")
for kind, word in (own | dict(engines="buckets", objectives="shy")).items():
    assert registry.words(kind)[-1] == word, registry.words(kind)
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules of a distribution and what an installer writes beside them."""
    folder = tmp_path_factory.mktemp("outside")
    meta = folder / "suffice_toys-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: suffice-toys\nVersion: 1.0\n")
    lines = [f"[suffice.{kind}]\n{word} = toy_{kind}\n" for kind, (word, _) in PIECES.items()]
    (meta / "entry_points.txt").write_text("".join(lines))
    for kind, (_, text) in PIECES.items():
        (folder / f"toy_{kind}.py").write_text(dedent(text))
    (folder / "rows.csv").write_text(ROWS)
    return folder


def python(folder: Path, *words: str) -> str:
    """What Python prints, with this package and what is in the folder, in it."""
    environment = environment_of_a_user()
    environment["PYTHONPATH"] += os.pathsep + str(folder)
    done = subprocess.run([sys.executable, "-c", *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


ON_THE_COMMAND_LINE = """
import contextlib, io, json, sys
from suffice.interfaces.cli.app import main

told = []
for words in json.loads(sys.argv[1]):
    sys.argv, code = ["suffice", *words], 0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    told.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""


def suffice(folder: Path, *commands: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """The exit codes, outputs and errors of commands, in one process: most of the time of one is its start."""
    return [(code, out, err) for code, out, err in json.loads(python(folder, ON_THE_COMMAND_LINE, json.dumps(commands)))]


def test_a_piece_of_each_kind_from_outside(outside: Path) -> None:
    python(outside, IN_PYTHON)
    own = ("--score", "hannan-quinn", "--method", "alphabet", "--prior", "optimist:2", "--without", "x,c")
    told = suffice(
        outside,
        ("fit", "a -> b; a -> x", "rows.csv", "-o", "fitted.json", "--prior", "optimist:3", "--family", "x=pareto"),
        ("learn", "rows.csv", "-o", "learned.json", *own),
        ("fit", "a -> c; b -> c", "rows.csv", "-o", "caused.json", "--family", "c=noisy-or:150", "--engine", "buckets:2"),
        ("fit", "a -- b", "rows.csv", "-o", "net.json", "--objective", "shy:2"),
        ("fit", "--help"),
        ("convert", "learned.json", "learned.lines"),
        ("count", "learned.json"),
        ("learn", "--help"),
        ("--help",),
    )
    assert [code for code, *_ in told] == [0] * 9, told
    *_, of_fit, _, counted, of_learn, of_all = (out for _, out, _ in told)
    assert all(word in of_fit for word in ("noisy-or", "buckets", "shy"))
    assert "2 nodes" in counted
    assert all(word in of_learn for word in ("alphabet", "hannan-quinn", "pareto"))
    assert "count" in of_all
    python(outside, IN_A_FRESH_PROCESS)


def test_a_distribution_from_outside_has_the_numbers_of_scipy(outside: Path) -> None:
    python(outside, NUMBERS)


def test_a_plug_in_that_is_broken_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken-2.1.dist-info").mkdir()
    (tmp_path / "broken-2.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2.1\n")
    (tmp_path / "broken-2.1.dist-info" / "entry_points.txt").write_text(
        "[suffice.priors]\nlost = no_such_module\nsilent = silent_module\n[suffice.commands]\nlost = no_such_module\n"
    )
    (tmp_path / "silent_module.py").write_text("")
    (tmp_path / "rows.csv").write_text("a,b\nn,n\ny,y\n")
    fit = ("fit", "a -> b", "rows.csv", "-o", "m.json", "--prior")
    lost, silent, known, help_of_all = suffice(tmp_path, (*fit, "lost"), (*fit, "silent"), (*fit, "bdeu:1"), ("--help",))
    assert lost[0] == 1
    assert lost[2].strip() == (
        "error: the plug-in 'lost' of broken 2.1 (suffice.priors: no_such_module) cannot be loaded: ModuleNotFoundError: No "
        "module named 'no_such_module'"
    )
    assert "defines nothing of that word: give its class word = 'silent'" in silent[2]
    assert "broken" not in known[2]  # nobody asked for it
    assert help_of_all[0] == 0
    assert "note: the plug-in 'lost' of broken 2.1" in help_of_all[2]
