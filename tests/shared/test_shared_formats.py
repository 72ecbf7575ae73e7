"""Every network and every file of the shared test material: read, or refused for its reason, and round-tripped.

Run by `make reference`; it needs the folder ../shared, or the one that SUFFICE_SHARED names.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FormatError
from suffice.formats import read, write

SHARED = Path(os.environ.get("SUFFICE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
NETWORKS = sorted(path.name for path in (SHARED / "networks").glob("*.bif.gz"))
HYBRID = sorted(path.name for path in (SHARED / "networks").glob("*.json"))
MARKOV = ("uai/grid4x4.uai", "uai/grid4x4_with_triplets.uai", "uai/markov_example.uai")
FILES = sorted(
    f"{kind}/{path.name}"
    for kind in ("bif", "xmlbif", "net", "dsc", "dsl", "xdsl", "uai")
    for path in (SHARED / "formats" / kind).iterdir()
    if f"{kind}/{path.name}" not in MARKOV
)
REFUSED = {
    "bif/BIFReader_file1.bif": "has no variables",
    "bif/BIFReader_file3.bif": "'n6' has 10 numbers; its 2 states and 2 parents need 12",
    "bif/BIFReader_file4.bif": "'n6' has 10 numbers; its 2 states and 2 parents need 12",
    "bif/BIFReader_file5.bif": "'n6' has 10 numbers; its 2 states and 2 parents need 12",
    "bif/dBN_with_errors.bif": "line 2157: a comma has nothing before or after it",
    "bif/pybn_urn.bif": "line 13: variable 'group_action' declares 2 states and lists 4",
    "uai/BNUAIReader_file1.uai": "the file ends where the number of variables was expected",
    "uai/BNUAIReader_file3.uai": "variable 'x5' given x4=0, x1=0: the probabilities sum to 0.8",
    "xdsl/influence_diagram_pinball.xdsl": "node 'BusinessDecision' is a decision: influence diagrams",
    "xmlbif/BNBIFXMLReader_file1.bifxml": "has no variables",
    "xmlbif/BNBIFXMLReader_file3.bifxml": "variable 'n6' given n5=space, n1=0: the probabilities sum to 0.8",
    "xmlbif/influence_diagram_mikailo.bifxml": "variable 're' is a decision: influence diagrams",
    # not marked in the README, but no networks either:
    "bif/carpo.bif": "variable 'N5' is given by a function",  # noisy maxima; N117 has no probabilities at all
    "dsl/carpo.dsl": "variable 'N117': the probabilities sum to 0",  # what another program made of that
    "xmlbif/carpo.bifxml": "variable 'N5' given N143=1, N187=1: the probabilities sum to 0",
    "bif/dBN.bif": "line 432: variable 'c1t_1' has this row twice",  # (6, 4), where (6_5, 4) is missing; and more
}
EXACT = (".bif", ".bif.gz", ".xmlbif", ".bifxml", ".xml", ".net", ".dsc", ".xdsl")


def load(name: str) -> sf.BayesNet:
    return read(SHARED / "networks" / f"{name}.bif.gz")


def read_file(name: str) -> sf.BayesNet:
    return read(SHARED / "formats" / name)


def check_round_trips(bn: sf.BayesNet, folder: Path) -> None:
    for suffix in EXACT:
        path = folder / f"a{suffix}"
        write(bn, path)
        again = read(path)
        assert dict(again.variables) == dict(bn.variables)
        assert list(again.variables) == list(bn.variables)
        for name in bn.variables:
            assert again[name].parents == bn[name].parents
            assert np.array_equal(again[name].probs, bn[name].probs)
    write(bn, folder / "a.uai")
    for old, new in zip(bn.variables, (again := read(folder / "a.uai")).variables, strict=True):
        assert np.array_equal(again[new].probs, bn[old].probs)


def check_same(a: sf.BayesNet, b: sf.BayesNet, tolerance: float) -> None:
    """The same model up to the order of parents and states, and the case of names."""
    ours = {name.lower(): name for name in a.variables}
    assert ours.keys() == {name.lower() for name in b.variables}
    for name in b.variables:
        mine, yours = a[ours[name.lower()]], b[name]
        table = mine.probs.transpose(*(mine.parents.index(ours[p.lower()]) for p in yours.parents), mine.probs.ndim - 1)
        for axis, node in enumerate((*yours.parents, name)):
            states = [s.lower() for s in a.variables[ours[node.lower()]].states]
            table = table.take([states.index(s.lower()) for s in b.variables[node].states], axis=axis)
        np.testing.assert_allclose(table, yours.probs, atol=tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_round_trip(name: str, tmp_path: Path) -> None:
    start = time.perf_counter()
    bn = read(SHARED / "networks" / name)
    assert time.perf_counter() - start < 2.0
    check_round_trips(bn, tmp_path)


def enumerated(text: str) -> tuple[float, np.ndarray]:
    """log Z and the marginals of all variables of a MARKOV file of few variables, by going through all joint states."""
    words = iter(re.sub(r"#.*", "", text).split())
    assert next(words) == "MARKOV"
    sizes = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    weights = np.ones(sizes)
    for scope in scopes:
        table = np.array([float(next(words)) for _ in range(int(next(words)))]).reshape([sizes[v] for v in scope])
        order = np.argsort(scope)
        weights = weights * table.transpose(order).reshape([n if v in scope else 1 for v, n in enumerate(sizes)])
    axes = range(len(sizes))
    marginals = [weights.sum(axis=tuple(a for a in axes if a != v)) / weights.sum() for v in axes]
    return float(np.log(weights.sum())), np.concatenate(marginals)


@pytest.mark.parametrize("name", MARKOV)
def test_markov_files_are_undirected_models(name: str, tmp_path: Path) -> None:
    net = read_file(name)
    log_normaliser, marginals = enumerated((SHARED / "formats" / name).read_text())
    assert net.log_normaliser == pytest.approx(log_normaliser, rel=1e-12)
    np.testing.assert_allclose(np.concatenate([net.marginals()[v].probs for v in net.variables]), marginals, atol=1e-12)
    for suffix in (".json", ".uai"):
        write(net, tmp_path / f"a{suffix}")
        assert read(tmp_path / f"a{suffix}").log_normaliser == pytest.approx(log_normaliser, rel=1e-12)


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    if name in REFUSED:
        with pytest.raises(FormatError) as caught:
            read_file(name)
        assert REFUSED[name] in str(caught.value)
        assert str(SHARED / "formats" / name) in str(caught.value)
    else:
        check_round_trips(read_file(name), tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "tolerance"),
    [
        ("alarm", "bif/alarm.bif", 1e-6),
        ("alarm", "net/alarm.net", 1e-12),
        ("alarm", "dsc/bnlearn_alarm.dsc", 1e-12),
        ("hailfinder", "bif/hailfinder.bif", 1e-6),
        ("survey", "bif/survey.bif", 1e-12),
        ("insurance", "dsc/bnlearn_insurance.dsc", 1e-12),
        ("insurance", "net/bnlearn_insurance.net", 1e-12),
        *((name, f"net/bnlearn_{name}.net", 1e-12) for name in ("asia", "cancer", "earthquake", "sachs", "survey")),
        *((name, f"dsc/bnlearn_{name}.dsc", 1e-12) for name in ("asia", "cancer", "earthquake", "sachs", "survey")),
    ],
)
def test_the_same_network_in_two_formats(name: str, file: str, tolerance: float) -> None:
    check_same(load(name), read_file(file), tolerance)


def test_asia_in_the_other_formats() -> None:
    """Other names for the variables and states: compared by place."""
    asia = load("asia")
    chest = read_file("net/grain_chest_clinic.net")
    names = {"A": "asia", "T": "tub", "S": "smoke", "L": "lung", "B": "bronc", "E": "either", "X": "xray", "D": "dysp"}
    uai = read_file("uai/asia.uai")
    order = ["asia", "smoke", "bronc", "lung", "tub", "either", "dysp", "xray"]
    bool_names = ["asia", "tub", "either", "xray", "lung", "smoke", "bronc", "dysp"]
    old = read_file("bif/asia_bool.bif")
    for other, true in (
        (chest, names),
        (uai, {f"x{k}": name for k, name in enumerate(order)}),
        (old, dict(zip(old.variables, bool_names, strict=True))),
    ):
        for name in other.variables:
            mine, yours = asia[true[name]], other[name]
            axes = [mine.parents.index(true[p]) for p in yours.parents]
            np.testing.assert_allclose(mine.probs.transpose(*axes, len(axes)), yours.probs, atol=1e-15)


@pytest.mark.parametrize("file", ["dsl/alarm.dsl", "xmlbif/alarm.bifxml", "dsl/hailfinder.dsl", "xmlbif/hailfinder.bifxml"])
def test_nodes_with_one_parent_agree(file: str) -> None:
    """These files were written by a program that lists parents in another order than their numbers: of nodes with several
    parents only the set of numbers is the same.
    """
    bn, true = read_file(file), load(file.split("/")[1].split(".")[0])
    ours = {name.lower(): name for name in true.variables}
    for name in bn.variables:
        mine, yours = true[ours[name.lower()]], bn[name]
        assert {p.lower() for p in mine.parents} == {p.lower() for p in yours.parents}
        np.testing.assert_allclose(np.sort(mine.probs.reshape(-1)), np.sort(yours.probs.reshape(-1)), atol=2e-6)


@pytest.mark.parametrize("name", HYBRID)
def test_gaussian_and_conditional_gaussian_networks(name: str) -> None:
    bn = read(SHARED / "networks" / name)
    content = json.loads((SHARED / "networks" / name).read_text())
    assert list(bn.variables) == content["nodes"]
    assert sorted(bn.dag.edges) == sorted(map(tuple, content["arcs"]))
    for node, cpd in content["cpds"].items():
        mine = bn[node]
        if cpd.get("type") == "discrete":
            flat = mine.probs.transpose(*reversed(range(mine.probs.ndim - 1)), mine.probs.ndim - 1).reshape(-1)
            np.testing.assert_allclose(flat, cpd["prob"], atol=1e-9)
            continue
        finite = [p for p in mine.parents if isinstance(bn.variables[p], sf.Finite)]
        reals = [p for p in mine.parents if p not in finite]
        for config in cpd.get("configs", [cpd]):
            place = tuple(bn.variables[p].code(config["given"][p]) for p in finite)
            numbers = {key: float(np.ravel(value)[0]) for key, value in config["coefficients"].items()}
            variance = config["sd"] ** 2 if "sd" in config else config["variance"][0]
            assert mine.intercept[place] == numbers.pop("(Intercept)")
            assert dict(zip(reals, mine.coefficients[place], strict=True)) == numbers
            assert mine.variance[place] == pytest.approx(variance, rel=1e-15)


def test_munin_reads_in_two_seconds() -> None:
    start = time.perf_counter()
    assert len(load("munin").variables) == 1041
    assert time.perf_counter() - start < 2.0
