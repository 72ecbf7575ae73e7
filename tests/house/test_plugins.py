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

import suffice as sf

PIECES = {
    "distributions": (
        "pareto",
        """
        from dataclasses import dataclass
        import numpy as np
        from suffice.exponential import Exponential
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

            def sample(self, n, seed=0):
                return np.exp(super().sample(n, seed))

        class ParetoKind(ExponentialKind):
            word, of = "pareto", Pareto
            statistic, base = ("ln x",), ("ln x", -1.0)
        """,
    ),
    "priors": (
        "optimist",
        """
        from dataclasses import dataclass
        import numpy as np
        import suffice as sf
        from suffice.families.priors.prior import Prior

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

ROWS = "a,b,x\n" + "\n".join(f"{'nyy'[i % 3]},{'nny'[i % 3 if i % 7 else 0]},{1.1 + 0.25 * (i % 11)}" for i in range(120)) + "\n"

IN_PYTHON = """
import math
import numpy as np
import suffice as sf
from toy_distributions import Pareto
from toy_methods import Alphabet
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
"""

IN_A_FRESH_PROCESS = """
import sys
import suffice as sf
from suffice import registry

python, fitted, learned = (sf.read(f"{name}.json") for name in ("python", "fitted", "learned"))
assert type(fitted.prior).__name__ == "Optimist" and fitted.prior.rows == 3.0
assert type(fitted.variables["x"].family.distribution).__name__ == "Pareto"
assert python["b"].same(fitted["b"]) and python == sf.read("python.json")
assert learned.dag.edges == (("a", "b"),) and learned == sf.read("learned.json")
sf.write(sf.read("learned.lines"), "again.lines")
assert open("again.lines").read() == open("learned.lines").read() and "toy_formats" in sys.modules
assert python.update(sf.scan("rows.csv")).prior == python.prior
for kind, word in dict(distributions="pareto", priors="optimist", scores="hannan-quinn", methods="alphabet").items():
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
    here = str(Path(sf.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([here, str(folder)])}
    done = subprocess.run([sys.executable, "-c", *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


ON_THE_COMMAND_LINE = """
import contextlib, io, json, sys
from suffice.cli.app import main

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
    own = ("--score", "hannan-quinn", "--method", "alphabet", "--prior", "optimist:2", "--without", "x")
    told = suffice(
        outside,
        ("fit", "a -> b; a -> x", "rows.csv", "-o", "fitted.json", "--prior", "optimist:3", "--family", "x=pareto"),
        ("learn", "rows.csv", "-o", "learned.json", *own),
        ("convert", "learned.json", "learned.lines"),
        ("count", "learned.json"),
        ("learn", "--help"),
        ("--help",),
    )
    assert [code for code, *_ in told] == [0] * 6, told
    *_, counted, of_learn, of_all = (out for _, out, _ in told)
    assert "2 nodes" in counted
    assert all(word in of_learn for word in ("alphabet", "hannan-quinn", "pareto"))
    assert "count" in of_all
    python(outside, IN_A_FRESH_PROCESS)


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
