"""Inference on numbered variables, in cases whose answers can be found by hand."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.numerics.inference.chains.factored.slice_program import SliceProgram
from suffice.numerics.inference.chains.lanes import in_eights
from suffice.numerics.inference.finite.junction_tree import FactorTree, JunctionTree
from suffice.numerics.inference.finite.logs import (
    Elimination,
    LogFactor,
    likelihood_factors,
    log_joint,
    log_sum,
    shares,
    summed_to,
    weigh_factors,
)
from suffice.numerics.inference.finite.network import Network, steps, strides
from suffice.numerics.inference.finite.questions import most_probable, posterior
from suffice.numerics.inference.numbers.gaussian import CountNode, DensityNode, GaussianNode, Gaussians, log_poisson
from suffice.numerics.inference.numbers.hybrid import blocks
from suffice.numerics.inference.numbers.sparse_precision import sparse_precision
from suffice.numerics.inference.sampling.blankets import Blankets
from suffice.numerics.inference.sampling.boltzmann import LayerUnits, LogNormaliser, Machine, key_of, log_mean
from suffice.numerics.inference.sampling.gibbs import GibbsState, Walker, collapse
from suffice.numerics.inference.sampling.sampling import Chained, Weighted

PAIR = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
TWO_LOGS = [LogFactor((0,), np.log([[0.25, 0.75]])), LogFactor((0, 1), np.log([[[0.5, 0.5], [0.1, 0.9]]]))]


def test_a_network_as_arrays() -> None:
    assert (PAIR.n_variables, PAIR.n_factors, PAIR.table(1).tolist()) == (2, 2, [[1.0, 0.0], [0.5, 0.5]])


def test_a_step_of_two_chains() -> None:
    program = SliceProgram.of((3, 3, 3, 3), (1, 3), (0, 2), ((1, 0), (3, 2), (0, 2)))
    assert program.operations == ((0, 2, (1, 2), 3), (4, 1, (0, 2), 1), (5, 3, (0, 2), -1))
    assert (program.cost, program.largest, program.widest) == (63, 9, 27)


def test_columns_in_eights() -> None:
    assert in_eights(np.arange(32.0).reshape(2, 16))[:16].tolist() == [*range(8), *range(16, 24)]


def test_posteriors() -> None:
    assert posterior(PAIR, [0], np.array([-1, 0])).probs == pytest.approx([2 / 3, 1 / 3])
    uneven = Network.of([2, 2], [((0,), 0, np.array([0.4, 0.6])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    assert most_probable(uneven, [0, 1], uneven.no_evidence()).codes.tolist() == [0, 0]
    assert most_probable(uneven, [0], uneven.no_evidence()).codes.tolist() == [1]


def test_marginals() -> None:
    tree = JunctionTree.of(PAIR)
    assert tree.marginals(np.array([-1, 0])).probs == pytest.approx([2 / 3, 1 / 3, 1.0, 0.0])
    alone = Network.of([2], [((0,), 0, np.array([0.5, 0.5]))])
    found = JunctionTree.of(alone).marginals_in_rows(np.array([[1.0, 3.0], [2.0, 2.0]]))
    assert found.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    free = Network.of([2, 2], [((0,), -1, np.ones(2)), ((0, 1), -1, np.ones((2, 2)))])
    log_z, probs = FactorTree(free, "a model")(np.log([1.0, 3.0, 1.0, 1.0, 0.5, 0.5]))
    assert np.exp(log_z) == pytest.approx(5.0)
    assert probs == pytest.approx([0.4, 0.6, 0.2, 0.2, 0.3, 0.3])


def test_factors_as_logs() -> None:
    assert shares(np.log([[0.5, 1.5], [0.1, 0.1]]), (1,)).tolist() == [pytest.approx([0.25, 0.75]), pytest.approx([0.5, 0.5])]
    assert log_sum(np.log([[0.25, 0.75], [0.5, 0.5]]), (1,)) == pytest.approx([0.0, 0.0])
    gone = Elimination(TWO_LOGS, [(1, 0), (1,)], np.array([2, 2]))
    assert np.exp(gone.joint(())[0]) == pytest.approx(1.0)
    assert {v: p.round(12).tolist() for v, p in gone.marginals().items()} == {1: [0.2, 0.8], 0: [0.25, 0.75]}
    assert np.exp(log_joint(TWO_LOGS, [1], np.array([2, 2]))) == pytest.approx(np.array([[0.2, 0.8]]))
    assert summed_to(np.array([[1.0, 2.0], [3.0, 4.0]]), (0, 1), (1,)).tolist() == [4.0, 6.0]
    alone = Network.of([2], [((0,), 0, np.array([0.25, 0.75]))])
    said = weigh_factors(alone, np.array([-1]), likelihood_factors({0: np.array([0.5, 0.1])}))
    assert said.tables == pytest.approx([0.25, 0.15])


def test_orders_and_strides() -> None:
    two = np.array([2, 2, 2])
    assert steps([(0, 1), (1, 2)], two, [1]) == [(0, 2, 1)]
    assert steps([(0, 1), (1, 2)], two, [], [1, 0]) == [(1, 0), (2, 1)]
    assert strides([2, 3, 4]) == [12, 4, 1]


def test_nodes_of_numbers() -> None:
    node = CountNode.of((0,), np.array([0.5, 3.0]))
    assert node.rates.tolist() == [0.5, 3.0]
    assert node.real_parents == ()
    known = DensityNode.of((0,), np.log([0.5, 0.25]), np.ones(2))
    assert np.exp(known.weight(np.zeros(1), np.arange(2))[0]).tolist() == [[0.5], [0.25]]
    assert log_poisson(np.array([0.0, 1.0]), np.array([0.0, 0.0])).tolist() == [0.0, -np.inf]


def test_gaussians_and_counts() -> None:
    x = GaussianNode((), (), np.array(1.0), np.zeros(0), np.array(1.0))
    y, z = (GaussianNode((), (p,), np.array(0.0), np.array([2.0]), np.array(1.0)) for p in (0, 1))
    answer = Gaussians([x, y]).condition([0, 1], [0], {1: np.array([2.0, 7.0])}, {})
    assert answer.mean.ravel() == pytest.approx([1.0, 3.0])
    assert answer.variance == pytest.approx(np.array([[0.2]]))
    counted = Gaussians([CountNode.of((0,), np.array([0.5, 3.0]))])
    found = counted.condition([0], [], {0: np.array([2.0])}, {0: np.array([0, 1])}, 2)
    assert np.exp(found.log_density[:, 0]) == pytest.approx([0.075816, 0.224042], abs=1e-6)
    assert [b.members for b in blocks([x, y, z], [2], {1: 0.0})] == [(0, 1), (2,)]


def test_a_penalty_is_taken_off_a_correlation() -> None:
    found = sparse_precision(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[0.0, 0.2], [0.2, 0.0]]), gap=1e-12)
    assert found.covariance == pytest.approx(np.array([[1.0, 0.3], [0.3, 1.0]]))


def test_draws() -> None:
    drawn = Weighted(np.log([1.0, 1.0, 2.0]))
    assert drawn.weights == pytest.approx([0.25, 0.25, 0.5])
    assert drawn.effective_sample_size == pytest.approx(8 / 3)
    assert drawn.shares(np.array([0, 1, 1]), 2).mean == pytest.approx([0.25, 0.75])
    assert Chained(n_chains=2, length=4).mean(np.array([1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 1.0])).mean == 1.5


def test_chains() -> None:
    network = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[0.9, 0.1], [0.2, 0.8]]))])
    walker = Walker(network, free=[0], targets=[0])
    trace = walker.chain(GibbsState(np.array([0, 1]), np.zeros(0)), 10_000, np.random.default_rng(0))
    assert trace.cells.mean() == pytest.approx(0.8 / 0.9, abs=0.02)
    equal = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.eye(2))])
    assert collapse(equal, np.array([-1, -1]), last=[0]).summed == (1,)


def test_undirected_models() -> None:
    blankets = Blankets.of([2, 2], [(0, 1)])
    logs = np.log([4.0, 1.0, 1.0, 4.0])
    value, gradient = blankets.pseudo(blankets.columns(np.array([[0, 0], [0, 1]])), np.ones(2), logs)
    assert np.exp(value) == pytest.approx((0.8 * 0.2) ** 2)
    assert gradient == pytest.approx([-0.4, 1.4, -0.2, -0.8])


def test_machines() -> None:
    assert key_of(0, 1) == key_of(0, 1)
    assert len({key_of(0, 1), key_of(0, 2), key_of(1, 0)}) == 3
    units = LayerUnits(2, (3,), 1)
    assert (units.n, units.first.tolist(), units.n_states) == (6, [2, 5], np.inf)
    machine = Machine(LayerUnits(2), np.array([[1.0], [-1.0]]), np.zeros(2), np.array([0.5]))
    assert machine.free_energy(np.array([[1.0, 0.0]])) == pytest.approx([-1.701413], abs=1e-6)
    assert machine.log_partition() == pytest.approx(2.51654, abs=1e-5)
    assert log_mean(np.zeros(3)) == LogNormaliser(0.0, 0.0)
