"""Numbers of other programs, from per-family counts and moments (figures; the rows are GPL and are not here).

Where they come from: bnlearn 5.2.1 under R 4.2.2 (computed once), GOBNILP's notebooks and test suite (published). bnlearn puts
the unbiased variance into its Gaussian likelihoods; the numbers here are the exact maximum likelihood ones.
`make reference` computes the same from the rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import suffice as sf

HERE = Path(__file__).parent
LEARNING = "[A][C][F][B|A][D|A:C][E|B:F]"
GAUSSIAN = "[A][B][E][G][C|A:B][D|B][F|A:D:E:G]"
HYBRID = "[A][B][C][H][D|A:H][F|B:C][E|B:D][G|A:D:E:F]"
ASIA = "[A][S][T|A][L|S][B|S][D|B:E][E|T:L][X|E]"
EMPTY = "[A][B][C][D][E][F]"
LL, AIC, BIC = sf.LogLikelihood(), sf.AIC(), sf.BIC()
BDEU = {ess: sf.Evidence(sf.BDeu(ess)) for ess in (1, 5, 10, 100)}
K2, BGE = sf.Evidence(sf.K2()), sf.Evidence(sf.BGe())


def statistics(name: str) -> sf.Statistics:
    return sf.Statistics.load(HERE / f"{name}.stats")


@pytest.mark.parametrize(
    ("table", "graph", "score", "expected"),
    [
        ("learning.test", LEARNING, LL, -23832.1317720741),
        ("learning.test", LEARNING, AIC, -23873.1317720741),
        ("learning.test", LEARNING, BIC, -24006.7342324982),
        ("learning.test", LEARNING, K2, -23958.6953378115),
        ("learning.test", LEARNING, BDEU[1], -24028.0947783535),
        ("learning.test", LEARNING, BDEU[5], -23979.8095671378),
        ("learning.test", LEARNING, BDEU[10], -23967.6496254011),
        ("learning.test", LEARNING, BDEU[100], -24047.6049298826),
        ("learning.test", EMPTY, LL, -28230.7484396390),
        ("learning.test", EMPTY, BIC, -28277.5930021918),
        ("learning.test", EMPTY, K2, -28273.9942764841),
        ("learning.test", EMPTY, BDEU[1], -28280.3178688614),
        ("gaussian.test", GAUSSIAN, BGE, -53258.94161814058),
        ("gaussian.test", GAUSSIAN, BIC, -53221.34568733569),
        ("gaussian.test", GAUSSIAN, LL, -53131.915158825),
        ("clgaussian.test", HYBRID, LL, -20074.107878523),
        ("clgaussian.test", HYBRID, AIC, -20125.107878523),
        ("clgaussian.test", HYBRID, BIC, -20291.296304904),
        ("asia", ASIA, LL, -11033.08713377),
        ("asia", ASIA, AIC, -11051.08713377),
        ("asia", ASIA, BIC, -11109.74187249),
        ("asia", ASIA, K2, -11110.15171927),
        ("asia", ASIA, BDEU[1], -11095.82418300),
        ("asia", ASIA, BDEU[10], -11142.01436634),
    ],
)
def test_scores(table: str, graph: str, score: object, expected: float) -> None:
    assert sf.score(graph, statistics(table), score) == pytest.approx(expected, rel=1e-10)


LOCAL_BDEU = {
    "A": -5502.137377150637,
    "B": -3688.9395212202216,
    "C": -3501.5105385969146,
    "D": -3555.014444236549,
    "E": -4310.304956470649,
    "F": -3470.18794067853,
}
LOCAL_BIC = {
    "A": -5501.56823278780,
    "B": -3686.92202132694,
    "C": -3501.19909636370,
    "D": -3544.56065213067,
    "E": -4302.52213056360,
    "F": -3469.96209932545,
}
LOCAL_BGE = {
    "A": -7124.782936593152,
    "B": -12656.351445396509,
    "C": -3743.043565645632,
    "D": -1548.939409177594,
    "E": -10545.851006239516,
    "F": -7109.807736959905,
    "G": -10530.165518128275,
}


@pytest.mark.parametrize(
    ("table", "graph", "score", "expected"),
    [
        ("learning.test", LEARNING, BDEU[1], LOCAL_BDEU),
        ("learning.test", LEARNING, BIC, LOCAL_BIC),
        ("gaussian.test", GAUSSIAN, BGE, LOCAL_BGE),
    ],
)
def test_local_scores(table: str, graph: str, score: object, expected: dict[str, float]) -> None:
    assert sf.score(graph, statistics(table), score, by_node=True) == pytest.approx(expected, rel=1e-10)


def test_bge_of_single_families() -> None:
    """Published by GOBNILP: B | D and D alone; n is that of the whole graph."""
    s = statistics("gaussian.test")
    prior = sf.BGe().bind({n: sf.Real(n) for n in "ABCDEFG"}, s)
    family = sf.fit(GAUSSIAN, s)["B"].family
    b, d = sf.Real("B"), sf.Real("D")
    assert family.log_evidence(b, s.moments([], ["D", "B"]), prior.imagine(b, [d])) == pytest.approx(
        487.26955605315015, rel=1e-10
    )
    assert family.log_evidence(d, s.moments([], ["D"]), prior.imagine(d, [])) == pytest.approx(-14692.560410628308, rel=1e-10)


def test_tables() -> None:
    s = statistics("learning.test")
    bn = sf.fit(LEARNING, s)
    assert bn.n_parameters == 41
    assert bn["D"].predictive({"A": "a", "C": "a"}) == pytest.approx([0.8008130081, 0.0902439024, 0.1089430894], abs=1e-10)
    bayes = sf.fit(LEARNING, s, prior=sf.BDeu(10))
    assert bayes["A"].probs == pytest.approx([0.333599467731, 0.333998669328, 0.332401862941], abs=1e-12)
    assert bayes["D"].predictive({"A": "a", "C": "c"}) == pytest.approx(
        [0.427328111401, 0.204090513490, 0.368581375109], abs=1e-12
    )


GAUSSIAN_FIT = {  # intercept, coefficients in the order of the parents, unbiased sd
    "A": (1.0074934255, [], 1.0042328551),
    "B": (2.0394985555, [], 3.0341107638),
    "C": (2.0010831585, [1.9959014103, 1.9991077310], 0.5089771984),
    "D": (5.9950355879, [1.4983953656], 0.3286671636),
    "E": (3.4939063310, [], 1.9898598526),
    "F": (-0.0060473209, [1.9948530411, 1.0056369092, 1.0025770025, 1.4943732652], 0.9961474863),
    "G": (5.0280757884, [], 1.9836308232),
}


def test_gaussians() -> None:
    bn = sf.fit(GAUSSIAN, statistics("gaussian.test"))
    assert bn.n_parameters == 21
    for node, (intercept, coefficients, sd) in GAUSSIAN_FIT.items():
        cpd = bn[node]
        n = 5000
        unbiased = np.sqrt(cpd.variance * n / (n - 1 - len(coefficients)))
        assert cpd.intercept == pytest.approx(intercept, abs=1e-9)
        assert cpd.coefficients == pytest.approx(coefficients, abs=1e-9)
        assert unbiased == pytest.approx(sd, abs=1e-9)
    assert sf.score(GAUSSIAN, statistics("gaussian.test"), LL, by_node=True)["F"] == pytest.approx(-7072.8916466945, rel=1e-12)


def test_conditional_gaussians() -> None:
    s = statistics("clgaussian.test")
    bn = sf.fit(HYBRID, s)
    assert bn.n_parameters == 51
    d = bn["D"]
    counts = s.moments(["A"], ["H", "D"]).count
    assert d.intercept == pytest.approx([5.291930009, 10.041054916], abs=1e-7)
    assert d.coefficients[:, 0] == pytest.approx([0.881719270, 0.983447417], abs=1e-8)
    assert np.sqrt(d.variance * counts / (counts - 2)) == pytest.approx([0.509920821, 0.307321548], abs=1e-8)
    assert bn["H"].intercept == pytest.approx(2.341019234, abs=1e-8)
    assert np.sqrt(bn["H"].variance * 5000 / 4999) == pytest.approx(0.121434730, abs=1e-8)


LONGLEY = """\
83.0 234289 2356 1590 107608 1947 60323
88.5 259426 2325 1456 108632 1948 61122
88.2 258054 3682 1616 109773 1949 60171
89.5 284599 3351 1650 110929 1950 61187
96.2 328975 2099 3099 112075 1951 63221
98.1 346999 1932 3594 113270 1952 63639
99.0 365385 1870 3547 115094 1953 64989
100.0 363112 3578 3350 116219 1954 63761
101.2 397469 2904 3048 117388 1955 66019
104.6 419180 2822 2857 118734 1956 67857
108.4 442769 2936 2798 120445 1957 68169
110.8 444546 4681 2637 121950 1958 66513
112.6 482704 3813 2552 123366 1959 68655
114.2 502601 3931 2514 125368 1960 69564
115.7 518173 4806 2572 127852 1961 69331
116.9 554894 4007 2827 130081 1962 70551
"""


def test_longley() -> None:
    """NIST's certified values of Longley's regression (1967, public domain), whose columns nearly determine each other."""
    rows = np.array([[float(x) for x in line.split()] for line in LONGLEY.splitlines()])
    names = ["deflator", "gnp", "unemployed", "army", "population", "year", "employed"]
    bn = sf.fit({"employed": names[:-1]}, dict(zip(names, rows.T, strict=True)))
    certified = [
        15.0618722713733,
        -0.0358191792925910,
        -2.02022980381683,
        -1.03322686717359,
        -0.0511041056535807,
        1829.15146461355,
    ]
    assert bn["employed"].coefficients == pytest.approx(certified, rel=1e-8)
    assert bn["employed"].intercept == pytest.approx(-3482258.63459582, rel=1e-8)
