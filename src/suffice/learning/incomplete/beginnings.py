"""The first parameters of each start of an iteration: from a network, from the data or drawn, hidden states told apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from suffice.errors import listing, note
from suffice.incomplete.components import Theta
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.learning.incomplete.starts import alike, break_symmetry
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet
from suffice.variables import Finite


def beginnings(problem: ParameterProblem, start: BayesNet | Chain | None, n: int, seed: int) -> Iterator[Theta]:
    """Where to start from: the network given, or what the data suggests, or at random; states that are alike are moved apart."""
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(n)]
    for i, rng in enumerate(generators):
        if i == 0 and start is not None:
            theta = problem.parameters({name: start[name] for name in start})
        elif i == 0 and not problem.hidden:
            theta = problem.first()
        else:
            theta = problem.random(rng)
        yield _told_apart(problem, theta, rng)


def hidden_states(problem: ParameterProblem) -> list[str]:
    """The hidden variables that have states; numbers have none that could be told apart."""
    return [n for n in problem.hidden if isinstance(problem.variables[n], Finite)]


def _told_apart(problem: ParameterProblem, theta: Theta, rng: np.random.Generator) -> Theta:
    """The same parameters, unless states of a hidden variable are alike there: EM would never tell them apart."""
    if not hidden_states(problem):
        return theta
    cpds = problem.cpds(theta)
    moved = cpds
    for name in hidden_states(problem):
        pairs = alike(problem.dag, problem.variables, name, cpds)
        if pairs:
            states = list(dict.fromkeys(s for pair in pairs for s in pair))
            note(
                f"at the start the states {listing(states)} of the hidden variable {name!r} say the same about its children, and "
                "EM would never tell them apart: the start was moved a little, at random"
            )
            moved = break_symmetry(problem.dag, name, moved, rng)
    return theta if moved is cpds else problem.parameters(moved)
