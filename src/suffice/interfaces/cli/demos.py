"""The demonstrations: a known network, rows drawn from it, and what Suffice learns back: the numbers, then the graph as well. And
of sequences: a casino whose die is sometimes loaded, and the river Nile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.basis.libraries import pa
from suffice.basis.output.display import text_table
from suffice.basis.output.terminal import working
from suffice.basis.variables import Finite, Real
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences, sequences
from suffice.engines.steps.blocks import n_threads
from suffice.families.by_hand import Gaussian
from suffice.families.gathering import gather
from suffice.families.priors.priors import BDeu
from suffice.formats import load
from suffice.graphs import compare
from suffice.incomplete.first_slices import Diffuse
from suffice.learning.em import em
from suffice.learning.fit import fit
from suffice.learning.graph_score import score
from suffice.learning.incomplete.climb import Squarem
from suffice.models.chain import Chain
from suffice.models.divergence import kl
from suffice.models.networks import BayesNet
from suffice.numerics.kernels import ESSENTIAL, warm
from suffice.objectives.scores import BIC
from suffice.recipes.missing.missingness import missingness
from suffice.structure.search import search

NEXT = """What to try next, on a table of your own (CSV or Parquet, a row per line, the names of the columns first):

    suffice learn rows.csv -o network.json       the graph and its numbers
    suffice show network.json                    what was learned
    suffice query network.json "P(x | y=some)"   a question, x and y being columns"""


def show_networks(n: int, seed: int) -> None:
    """Print the story of a network."""
    truth = load("alarm")
    print(f"ALARM watches patients: {len(truth)} variables, {len(truth.dag.edges)} edges, {truth.n_parameters} parameters.")
    print(f"Draw {n:,} rows from it, forget the numbers, learn them back from the rows.\n")
    with working("getting ready"):
        warm(processes=n_threads(), only=ESSENTIAL)
        gather(truth.sample(10, seed=seed), truth.dag)
    rows = truth.sample(n, seed=seed)
    data = scan(rows)
    statistics = gather(data, truth.dag)  # 37 tables in one scan
    bn = fit(truth.dag, statistics, prior=BDeu(1))
    print(bn["VENTLUNG"], "\n")
    _intervals(truth, bn, "HYPOVOLEMIA")
    unsupported = sum(int(bn[x].unsupported.sum()) for x in bn)
    print(f"KL(truth || fitted) = {kl(truth, bn):.5f} nats per row; BIC of the graph {score(truth.dag, statistics, BIC()):,.2f}.")
    print(f"{unsupported} configurations of parents never occurred; bn[node].unsupported says which.\n")
    _ask(truth, bn)
    _gaps(truth, rows, seed)
    _graph(truth, data)
    print(NEXT)


def _gaps(truth: BayesNet, rows: Any, seed: int) -> None:
    """Lose cells at random, hide a variable, and learn the numbers all the same."""
    rng, columns = np.random.default_rng(seed), {}
    for name in rows.column_names:
        cells = rows[name].combine_chunks()
        codes = pa.array(cells.indices.to_numpy(), mask=rng.random(len(cells)) < 0.1)
        columns[name] = pa.DictionaryArray.from_arrays(codes, cells.dictionary)
    hidden = truth.variables["LVEDVOLUME"]
    assert isinstance(hidden, Finite)
    del columns["LVEDVOLUME"]
    print("Lose a tenth of the cells, hide LVEDVOLUME, which no row shows any more, and learn the numbers by EM.\n")
    data = scan(columns, variables={n: v for n, v in truth.variables.items() if n in columns})
    run = em(truth.dag, data, hidden=[hidden], prior=BDeu(1), starts=3)
    whole = missingness(data).complete
    print(f"{run.model.fit_info}.")
    print(f"The best of three starts took {run.n_iterations:,} iterations; only {whole:,.0f} rows had all other cells.\n")


def _ask(truth: BayesNet, bn: BayesNet) -> None:
    """A question, with what the rows leave open about its answer, and all marginals."""
    seen = {"CVP": "HIGH", "HRBP": "HIGH"}
    print("Ask the fitted network: what if the central venous pressure and the heart rate are high?\n")
    print(bn.query("LVFAILURE", given=seen, interval=0.95))
    print(f"In truth p(LVFAILURE=TRUE | ...) is {truth.marginals(seen)['LVFAILURE']['TRUE']:.4f}.")
    likely = bn.marginals(seen)["HYPOVOLEMIA"]["TRUE"]
    print(f"All 37 marginals given these come from one junction tree; p(HYPOVOLEMIA=TRUE | ...) is {likely:.4f} among them.\n")


def _graph(truth: BayesNet, data: Data) -> None:
    """Forget the graph, too, and learn it back."""
    print("Now forget the graph as well, and search for the one that the rows support best.\n")
    with working("searching"):
        found = search(data)
    compared = compare(truth.dag, found.dag)
    print(found.summary())
    print(f"BIC of the true graph {score(truth.dag, data, BIC()):,.3f}; the distance of the two classes (SHD) is {compared.shd}.")
    for word, edges in (("not found", compared.missing), ("too many", compared.extra)):
        if edges:
            print(f"{word}: {', '.join(f'{a} -> {b}' for a, b in edges)}")
    print(f"KL(truth || learned) = {kl(truth, fit(found.dag, data, prior=BDeu(1))):.5f} nats per row.\n")
    for edge in (*compared.missing[:1], ("VENTLUNG", "EXPCO2")):
        print(found.explain(edge), "\n")


def _intervals(truth: BayesNet, bn: BayesNet, node: str) -> None:
    """One root's probabilities beside the true ones, with what the data leaves open."""
    lower, upper = bn[node].interval(0.95)
    known = truth[node]
    cells = zip(bn[node].child.states, bn[node].probs, lower, upper, strict=True)
    rows = [[s, float(known.probs[known.child.code(s)]), *map(float, rest)] for s, *rest in cells]
    print(text_table([node, "truth", "fitted", "95 % from", "to"], rows), "\n")


ROLLS = "315116246446644245311321631164152133625144543631656626566666"
"""Sixty rolls, the first 48 of a fair die, the others of a loaded one."""

NILE = (
    "1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260 1220 "
    "1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 "
    "845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 "
    "986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740"
)
"""The yearly flow of the Nile at Aswan, 1871 to 1970, in 10⁸ m³ (Cobb 1978, Biometrika 65, p. 243)."""

COLUMNS = ("level", "level_lower", "level_upper")
DIE, ROLL = Finite("die", ["fair", "loaded"]), Finite("roll", list("123456"))


def show_sequences(seed: int) -> None:
    """Print the story of a casino and a river."""
    casino = Chain(
        "die[-1] -> die -> roll",
        {"die": [[0.95, 0.05], [0.1, 0.9]], "die[0]": [0.5, 0.5], "roll": [[1 / 6] * 6, [0.1] * 5 + [0.5]]},
        [DIE, ROLL],
    )
    print("A casino rolls a fair die, and now and then changes to a loaded one. Nobody says when: the die is hidden.\n")
    print(casino, "\n")
    rolls = sequences({"roll": list(ROLLS)}, variables={"roll": ROLL})
    with working("getting ready"):
        _decode_rolls(casino, rolls)
    _learn_back(casino, seed)
    _nile()


def _decode_rolls(casino: Chain, rolls: Sequences) -> None:
    """Which die was it, and what comes next?"""
    path, smoothed = casino.decode(rolls), casino.smooth(rolls)["die=loaded"]
    print(f"Sixty rolls, ln p = {casino.log_likelihood(rolls):.4f}; below them the likeliest dice, and p(loaded) in tenths:\n")
    print(f"  {ROLLS}\n  {''.join(die[0] for die in path['die'])}\n  {''.join(str(min(9, int(10 * p))) for p in smoothed)}\n")
    ahead = casino.forecast(rolls, steps=3)
    sixes = ", ".join(f"{p:.4f}" for p in ahead["roll=6"])
    print(f"The best path has ln p = {path.log_prob[0]:.4f}. The next roll is a six with p = {sixes} (1, 2, 3 rolls ahead).\n")


def _learn_back(casino: Chain, seed: int) -> None:
    """Forget the numbers, and learn them back from rolls alone."""
    drawn = casino.sample(100, 300, seed)
    evenings = sequences(drawn.drop_columns(["die"]), by="sequence", order="step", variables={"roll": ROLL})
    print(f"Draw {evenings.n_sequences} evenings of 300 rolls, forget the numbers, learn them back by EM from the rolls alone.\n")
    with working("EM"):
        found = em(casino.template, evenings, hidden=[DIE], starts=3, seed=seed)
    chain = found.model
    loaded = int(np.argmax(chain["roll"].probs[:, -1]))  # which of the two it is called is a matter of chance
    fair = 1 - loaded
    facts = [
        ("the loaded die shows a six", 0.5, chain["roll"].probs[loaded, -1]),
        ("the fair die shows a six", 1 / 6, chain["roll"].probs[fair, -1]),
        ("a loaded die stays", 0.9, chain["die"].probs[loaded, loaded]),
        ("a fair die stays", 0.95, chain["die"].probs[fair, fair]),
    ]
    print(text_table(["p", "truth", "learned"], [(what, truth, float(p)) for what, truth, p in facts]))
    print(f"{found.n_iterations} iterations; ln p {found.trace[-1].log_likelihood:,.3f}, ", end="")
    print(f"of the truth {casino.log_likelihood(evenings):,.3f}.\n")


def _nile() -> None:
    """Hidden numbers: a level that wanders, seen through noise."""
    flow = [float(x) for x in NILE.split()]
    years = sequences({"year": range(1871, 1971), "flow": flow}, order="year", variables={"flow": Real("flow")})
    print("Hidden numbers, the same calls: the flow of the Nile is a level that wanders, and noise. Learn how much of each.\n")
    start: Any = Chain(
        "level[-1] -> level -> flow",
        {"level": Gaussian(0.0, {"level[-1]": 1.0}, 1e3), "flow": Gaussian(0.0, {"level": 1.0}, 1e4)},
        first=Diffuse(),
    )
    known = {node: ["intercept", "coefficients"] for node in ("level", "flow")}  # only the variances are learned
    with working("EM by Kalman smoother"):
        found = em(start, years, hidden=[Real("level")], start=start, first=Diffuse(), fixed=known, method=Squarem())
    chain: Any = found.model
    noise, step = float(chain["flow"].variance), float(chain["level"].variance)
    print(f"Variance of the noise {noise:,.0f}, of the level's steps {step:,.0f}; ln p {found.trace[-1].log_likelihood:.4f}.\n")
    smoothed, ahead = chain.smooth(years, interval=0.9), chain.forecast(years, steps=2, interval=0.9)
    rows: list[Any] = [(1871 + i, flow[i], *(float(smoothed[c][i]) for c in COLUMNS)) for i in (0, 27, 28, 99)]
    rows += [(1971 + i, "", *(float(ahead[c][i]) for c in COLUMNS)) for i in (0, 1)]
    print(text_table(["year", "flow", "level", "90 % from", "to"], rows))
    print("After 1898 the level falls: in these years the first dam at Aswan was begun.")
