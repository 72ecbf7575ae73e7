"""The demonstration of sequences: a casino whose die is sometimes loaded, and the river Nile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from suffice.engines.sequences.sequences import Sequences, sequences
from suffice.families.by_hand import Gaussian
from suffice.incomplete.first_slices import Diffuse
from suffice.learning.ascent.climb import Squarem
from suffice.learning.em import em
from suffice.models.chain import Chain
from suffice.output.display import text_table
from suffice.variables import Finite, Real

Working = Callable[[str], AbstractContextManager[None]]

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


def run(seed: int, working: Working) -> None:
    """Print the story."""
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
    _learn_back(casino, seed, working)
    _nile(working)


def _decode_rolls(casino: Chain, rolls: Sequences) -> None:
    """Which die was it, and what comes next?"""
    path, smoothed = casino.decode(rolls), casino.smooth(rolls)["die=loaded"]
    print(f"Sixty rolls, ln p = {casino.log_likelihood(rolls):.4f}; below them the likeliest dice, and p(loaded) in tenths:\n")
    print(f"  {ROLLS}\n  {''.join(die[0] for die in path['die'])}\n  {''.join(str(min(9, int(10 * p))) for p in smoothed)}\n")
    ahead = casino.forecast(rolls, steps=3)
    sixes = ", ".join(f"{p:.4f}" for p in ahead["roll=6"])
    print(f"The best path has ln p = {path.log_prob[0]:.4f}. The next roll is a six with p = {sixes} (1, 2, 3 rolls ahead).\n")


def _learn_back(casino: Chain, seed: int, working: Working) -> None:
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


def _nile(working: Working) -> None:
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
