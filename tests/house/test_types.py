"""What a user's own type checker sees: no `Any` in an ordinary script, nor in what public functions take and return.
(Arrays of numpy have one in their shapes.)"""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import suffice

SCRIPT = """
import suffice as sf
import suffice.exponential as ef
from suffice.latent import Tied
from suffice.plates import Partial
from suffice.priors import Conjugate
from suffice.registry import Named
from suffice.reports import report_html

bn = sf.load("asia")
nodes, edges = bn.nodes, bn.edges
answer = bn.query("lung", given={"xray": "yes"})
how: str = answer.how
done = bn.do({"smoke": "yes"}).query("lung")
cpd = bn["lung"]
parents: tuple[str, ...] = cpd.parents
data = sf.scan("visits.csv", {"age": sf.Real, "ill": ["no", "yes"], "dose": sf.Bins(5)}, weights="n")
rows: int = data.n_rows
found = sf.search(data, sf.BIC(), sf.HillClimb())
directions = found.directions
dag = found.dag
names = sf.formats.networks()
penguins = sf.table("penguins").schema

table = {"smoke": ["no", "yes", "yes"], "lung": ["no", "no", "yes"]}
fitted: sf.BayesNet = sf.fit("smoke -> lung", table, prior=sf.BDeu(1), estimate=sf.Mode())
again: sf.BayesNet = sf.fit(dag, sf.gather(data, dag), prior={"lung": [[9, 1], [1, 1]], "smoke": sf.BDeu(10)})
more: sf.BayesNet = sf.fit({"lung": ["smoke"]}, data, prior=(sf.BDeu(1), sf.NormalInverseGamma()))
pairs: sf.BayesNet = sf.fit([("smoke", "lung")], data, prior=1, families={"lung": sf.Logistic()}, shared=[("a", "b")])
same: sf.BayesNet = sf.fit(bn, "visits.parquet", objective=sf.Conditional("lung"), penalty=sf.L2(0.1))
plate: sf.BayesNet = sf.fit(sf.plates.Plate("smoke -> lung", group="hospital"), data)
predicted = fitted.predict(table, "lung")
statistics: sf.Statistics = sf.gather(data, max_parents=2) + sf.gather(data, max_parents=2)
points: float = sf.score("smoke -> lung", table, sf.Evidence(sf.BDeu(1)))
parts: dict[str, float] = sf.score("smoke -> lung", table, by_node=True)
prior = sf.priors.by_evidence("smoke -> lung", table, sf.BDeu())

waits: Conjugate = Conjugate(2.0, ef.Exponential(0.5))
schools: sf.plates.Plate = sf.plates.Plate("smoke -> lung", group="school", pooling=Partial())
page: str = report_html(bn)
kind: type[Named] = sf.BIC

steps = sf.sequences(data, by="patient", order="day")
chain: sf.Chain = sf.fit("ill[-1] -> ill", steps, first=sf.chains.Stationary())
template: sf.Chain = sf.fit(sf.Template("ill[-1] -> ill"), steps)
tagger: sf.Crf = sf.fit(sf.LinearChain("tag", "word"), steps, objective=sf.Conditional("tag"), penalty=sf.L1(0.1) + sf.L2(0.1))
asked = sf.load("asia").moral().query("lung", {"xray": "yes"}, interval=None, seed=1)
by_hand = sf.undirected.GaussianMarkovNet("a -- b", [[2.0, -1.0], [-1.0, 2.0]])
markov: sf.MarkovNet = sf.fit(sf.LogLinear([("a", "b")]), data, objective=sf.PseudoLikelihood(), penalty=sf.L1(0.1))
undirected: sf.MarkovNet | sf.undirected.GaussianMarkovNet = sf.fit(sf.Graph("a -- b"), data)
deviance: float = undirected.deviance
arrows: sf.Dag = sf.fit(sf.Graph("a -- b"), data).to_bayes_net().dag
lines: sf.MarkovNet = sf.fit("a -- b", data, method=sf.methods.IPF())

learned: sf.BayesNet = sf.learn(data)
tabu: sf.BayesNet = sf.learn(table, sf.BIC(), sf.methods.Tabu(), prior=None, constraints=sf.Forbid(("lung", "smoke")))
by_steps: sf.Chain = sf.learn(steps, lags=2)
joined: sf.MarkovNet | sf.undirected.GaussianMarkovNet = sf.learn(data, method=sf.Decomposable())
lasso: sf.results.FoundGraph = sf.search(data, method=sf.GraphicalLasso())
cost = sf.search(data, dry_run=True)

run = sf.em("ill -> a; ill -> b", data, hidden=[sf.Finite("ill", ["no", "cold", "flu"])], starts=3, prior=sf.BDeu(1))
model: sf.BayesNet = run.model
converged: bool = run.converged
states: sf.Chain = sf.em("s[-1] -> s -> y", steps, hidden={"s": ["u", "v"]}).model
climbed: sf.BayesNet = sf.gradient("a -> b", data).model
graph: sf.Dag = sf.structural_em(data, hidden=[sf.Finite("ill", ["no", "yes"])], score=sf.BIC(), method=sf.HillClimb()).dag
classes: sf.BayesNet = sf.mixture(data, 3, Tied()).model
several = sf.mixture(data, range(1, 6), choose=sf.choices.ICL()).choices
regimes: sf.Chain = sf.hmm(steps, 3, covariance={"x": sf.latent.Diagonal()}, sticky=1.0).model
loadings: sf.BayesNet = sf.factors(data, 2, noise=sf.latent.Spherical()).model

strength: float = sf.bootstrap(data, method=sf.HillClimb(), n=50).strength("smoke", "lung")
mean: float = sf.cross_validate(data, method="smoke -> lung", folds=5).mean
searched: float = sf.cross_validate(data, sf.AIC(), sf.HillClimb()).mean
compared = sf.cross_validate(data, method="lung -> smoke", objective=[sf.Likelihood(), sf.Conditional("lung")])
accuracy: float = compared["Likelihood()"].accuracy
posterior: float = sf.methods.order_mcmc(data, samples=100).adjacent("smoke", "lung")
p_value: float = sf.independence.independence_test(data, "smoke", "lung").p_value
report: str = str(sf.missingness(data))
classifier: sf.BayesNet = sf.naive_bayes(data, "ill")
distance: float = sf.information.kl(data, bn) + sf.information.entropy(bn)
projected: sf.BayesNet = sf.information.project(bn, "smoke -> lung").model
stored = sf.read("net.json")
if isinstance(stored, sf.BayesNet):
    sf.write(stored, "net.bif")
"""

WITH_ANY: dict[str, str] = {}
"""Public functions whose annotations have an `Any`, each with the reason."""


WRONG = (
    'sf.fit("a -> b", {"a": []}, prior="BDeu")',
    'sf.fit("a -> b", {"a": []}, first=sf.chains.Free())',
    "sf.fit(3, {})",
    "sf.scan(3)",
    'sf.search("a.csv", "BIC")',
    'sf.mixture({"x": []}, "two")',
    'sf.em("a -> b", {}, hidden="a")',
    'sf.load("asia").moral().query("lung", intervall=0.9)',
    'sf.load("asia").moral().predict({"xray": ["yes"]}, "lung", seed="one")',
    'sf.load("asia").query("lung").meen',
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says of scripts that use the package, the last of which is the README: with the options of the package, so that
    it takes what it knows of that from its cache, but that no expression of the first is to be untyped."""
    pytest.importorskip("mypy")
    root, place = Path(__file__).parents[2], tmp_path_factory.mktemp("scripts")
    (place / "right.py").write_text("# mypy: disallow-any-expr\n" + SCRIPT)
    (place / "wrong.py").write_text("import suffice as sf\n" + "\n".join(WRONG))
    readme = doctest.DocTestParser().get_examples((root / "README.md").read_text())
    (place / "readme.py").write_text("".join(example.source for example in readme))
    own = ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache")]
    environment = {"MYPYPATH": str(root / "src"), "PATH": "", "PYTHONPATH": ""}
    call = [sys.executable, "-m", "mypy", *own, "right.py", "wrong.py", "readme.py"]
    return subprocess.run(call, cwd=place, env=environment, capture_output=True, text=True, check=False).stdout


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for name in suffice.__all__:
        value = inspect.unwrap(getattr(suffice, name))
        if inspect.isfunction(value):
            yield name, value


def test_a_script_has_no_untyped_expressions(told: str) -> None:
    assert "in 1 file (checked 3 source files)" in told
    assert "right.py" not in told, told


def test_the_lines_of_the_readme_have_no_faults(told: str) -> None:
    assert "readme.py" not in told, told


def test_what_functions_refuse_a_type_checker_refuses(told: str) -> None:
    for line, call in enumerate(WRONG, start=2):
        assert f"wrong.py:{line}: error" in told, call


def test_no_public_function_takes_or_returns_any() -> None:
    found = {name for name, f in public_functions() if "Any" in re.findall(r"\w+", str(f.__annotations__))}
    assert found == set(WITH_ANY)


HELD = (
    "BayesNet", "Chain", "Crf", "Data", "Dag", "GaussianMarkovNet", "Graph", "MarkovNet", "RBM", "Sequences", "Statistics",
    "EmRun", "FactorsRun", "Found", "FoundGraph", "HmmRun", "MixtureRun", "RbmRun", "Run", "StructuralRun",
)  # fmt: skip
"""Classes whose values a user holds."""

TAKES_ANY = {
    "made, or called, by the library": {"of", "at", "rows", "hides_columns", "is_summed"},
    "an axes or a path of matplotlib": {"plot"},
    "arrays of any type": {"in_order"},
}
"""Methods that take an `Any`, by the reason."""

MADE_BY_THE_LIBRARY = {"EmRun", "Found", "FoundGraph", "Sequences", "StructuralRun"}
"""Classes whose values no user makes by calling them."""

RETURNS_ANY = {
    "a frame or a column of the library that the rows came from": {
        "predict", "predict_proba", "impute", "filter", "smooth", "forecast", "decode", "posterior_decode", "sample",
        "transform", "reconstruct",
    },
    "an axes of matplotlib, a graph of networkx": {"plot", "to_networkx"},
    "facts for JSON": {"to_dict"},
    "of states a distribution, of numbers moments": {"stationary"},
    "keyed as the model was written: by names or by terms": {"by_term"},
    "read by the library, whatever rows are": {"in_order"},
}  # fmt: skip
"""Methods that return an `Any`, by the reason."""


def held(name: str) -> type:
    """A class at the front door, or in a module by topic."""
    homes = (suffice, *(module for module in (getattr(suffice, n) for n in dir(suffice)) if inspect.ismodule(module)))
    return next(getattr(home, name) for home in homes if name in getattr(home, "__all__", ()))


def public_methods(kind: type) -> Iterator[tuple[str, Callable[..., object]]]:
    for member in dir(kind):
        found = inspect.getattr_static(kind, member)
        method = getattr(found, "__func__", found)
        method = inspect.unwrap(method) if callable(method) else None
        ours = inspect.isfunction(method) and method.__module__.startswith("suffice")
        if ours and (not member.startswith("_") or member == "__init__"):
            yield member, method


def with_any(method: Callable[..., object]) -> set[str]:
    """The annotations of a function that have an `Any`, those of `**keywords` too."""
    return {name for name, kind in method.__annotations__.items() if "Any" in re.findall(r"\w+", str(kind))}


@pytest.mark.parametrize("name", HELD)
def test_no_public_method_takes_any(name: str) -> None:
    allowed = set().union(*TAKES_ANY.values()) | ({"__init__"} if name in MADE_BY_THE_LIBRARY else set())
    for member, method in public_methods(held(name)):
        taken = with_any(method) - {"return"}
        assert not taken or member in allowed, f"{name}.{member} takes Any as {taken}"


@pytest.mark.parametrize("name", HELD)
def test_no_public_method_returns_any(name: str) -> None:
    allowed = set().union(*RETURNS_ANY.values())
    for member, method in public_methods(held(name)):
        assert "return" not in with_any(method) or member in allowed, f"{name}.{member} returns Any"


def test_exceptions_are_needed() -> None:
    every = [(member, with_any(method)) for name in HELD for member, method in public_methods(held(name))]
    assert set().union(*TAKES_ANY.values()) <= {member for member, found in every if found - {"return"}}
    assert set().union(*RETURNS_ANY.values()) <= {member for member, found in every if "return" in found}


@pytest.mark.parametrize("name", HELD)
def test_keywords_that_methods_pass_on_are_listed_by_type(name: str) -> None:
    for member, method in public_methods(held(name)):
        for parameter in inspect.signature(method).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD and member not in TAKES_ANY["made, or called, by the library"]:
                assert str(parameter.annotation).startswith("Unpack["), f"{name}.{member} takes any keyword"


def test_a_keyword_that_is_none_is_refused_with_the_nearest() -> None:
    net = suffice.load("asia").moral()
    calls: list[tuple[Callable[..., object], str]] = [
        (lambda: net.query("lung", intervall=0.9), "query takes no intervall=; did you mean 'interval'?"),  # type: ignore[call-arg]
        (lambda: net.predict({"xray": ["yes"]}, "lung", sed=1), "predict takes no sed=; did you mean 'seed'?"),  # type: ignore[call-arg]
        (lambda: net.impute({"xray": ["yes"]}, draw=1), "impute takes no draw=; did you mean 'draws'?"),  # type: ignore[call-arg]
    ]
    for call, said in calls:
        with pytest.raises(suffice.SufficeError, match=re.escape(said)):
            call()
