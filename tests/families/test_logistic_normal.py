"""Tables with a logistic-normal prior: mode by Newton, evidence by Laplace, intervals by weighted draws."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import betaincinv, log_expit, log_softmax, logit, logsumexp, softmax

import suffice as sf
from suffice.errors import FitError, SufficeNote
from suffice.families.hierarchical.laplace import JointLaplace, Laplace, contrasts, normal_of_rows, spread_of
from suffice.families.hierarchical.laplace_draws import (
    Lines,
    _solve_shift,
    both_sides,
    draw_rows,
    joint_drawn,
    joint_quantiles,
    pieces_at,
    quantiles,
)
from suffice.families.hierarchical.logistic_normal import LIKE_DIRICHLET, LogisticNormal
from suffice.families.priors.priors import BDeu, NormalInverseGamma
from suffice.learning.graph_score import by_evidence

ROWS = np.array([[8.0, 2, 1], [0, 7, 0], [0, 0, 0], [1, 1, 1], [0.5, 30, 4]])
MEAN = np.array([0.3, -0.5, 0.2])


def objective(n, m, v, eta):
    return float(n @ log_softmax(eta) - ((eta - m) ** 2).sum() / (2 * v))


def quadrature(n, m, v):
    """ln Z and the mean of θ, by Gauss and Hermite on the contrasts of the effects."""
    K = len(n)
    x, w = np.polynomial.hermite_e.hermegauss(160 if K == 2 else 110)
    contrasts = np.linalg.svd(np.eye(K) - 1.0 / K)[0][:, : K - 1]
    at = np.array(list(itertools.product(range(len(x)), repeat=K - 1)))
    log_theta = log_softmax(m + np.sqrt(v) * x[at] @ contrasts.T, axis=1)
    terms = log_theta @ n + np.log(w / w.sum())[at].sum(axis=1)
    log_z = logsumexp(terms)
    return log_z, np.exp(terms - log_z) @ np.exp(log_theta)


def rows_of(counts):
    cells = [(f"u{i}", f"s{k}") for i, row in enumerate(counts) for k, n in enumerate(row) for _ in range(int(n))]
    return {"x": [c[0] for c in cells], "y": [c[1] for c in cells]}


@pytest.mark.parametrize("v", [0.01, 1.0, 40.0])
def test_gradient_step_and_determinant_are_those_of_the_objective(v):
    rng = np.random.default_rng(0)
    eta = rng.normal(size=ROWS.shape)
    rows = Laplace(ROWS, MEAN, v)
    for u, n in enumerate(ROWS):
        numeric = [(objective(n, MEAN, v, eta[u] + h) - objective(n, MEAN, v, eta[u] - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
        assert rows.gradient(eta)[u] == pytest.approx(numeric, rel=1e-6, abs=1e-6)
        slopes = [(rows.gradient(eta + h)[u] - rows.gradient(eta - h)[u]) / 2e-5 for h in 1e-5 * np.eye(3)]
        theta = softmax(eta[u])
        A = n.sum() * (np.diag(theta) - np.outer(theta, theta)) + np.eye(3) / v
        assert -np.array(slopes) == pytest.approx(A, rel=1e-6, abs=1e-6)
        assert rows.newton_step(eta)[u] == pytest.approx(np.linalg.solve(A, rows.gradient(eta)[u]), rel=1e-9)
        step = rng.normal(size=3)
        gained = objective(n, MEAN, v, eta[u] + step) - objective(n, MEAN, v, eta[u])
        assert rows.gain(eta, np.tile(step, (5, 1)))[u] == pytest.approx(gained, rel=1e-9, abs=1e-9)
        at_mode = rows.probs[u]
        A = n.sum() * (np.diag(at_mode) - np.outer(at_mode, at_mode)) + np.eye(3) / v
        assert rows.log_det[u] == pytest.approx(np.linalg.slogdet(v * A)[1], abs=1e-10)


@pytest.mark.parametrize("v", [1e-6, 0.3, 5.0, 1e6])
def test_the_mode_is_the_maximum(v):
    rows = Laplace(ROWS, MEAN, v)
    assert rows.gradient(rows.effects) == pytest.approx(0.0, abs=1e-9 * (1 + 1 / v))
    assert (rows.effects - MEAN).sum(axis=1) == pytest.approx(0.0, abs=1e-7)
    for u, n in enumerate(ROWS):
        best = minimize(lambda e, n=n: -objective(n, MEAN, v, e), MEAN, method="BFGS")
        assert objective(n, MEAN, v, rows.effects[u]) >= -best.fun - 1e-9 * abs(best.fun)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6, 1e12, 1e15])
def test_newton_ends_at_any_size(scale):
    counts = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [3, 1e-12, 0, 1], [1, 1, 1, 1]]) * scale
    for v in (1e-3, 1.0, 1e3):
        rows = Laplace(counts, np.zeros(4), v)
        noise = 1e-12 * (rows.total * rows.probs + np.abs(rows.effects) / v + 1.0)
        assert np.all(np.abs(rows.gradient(rows.effects)) <= noise + 1e-9)
        means = rows.means()
        assert means.sum(axis=1) == pytest.approx(1.0)
        lower, upper = quantiles(rows, 0.025)
        assert np.all((lower >= 0) & (lower <= means + 1e-9) & (means <= upper + 1e-9) & (upper <= 1))


@pytest.mark.parametrize(
    ("v", "evidence_off", "mean_off"), [(0.1, 0.004, 2e-4), (LIKE_DIRICHLET, 0.06, 0.01), (5.0, 0.12, 0.015)]
)
def test_evidence_and_means_are_near_those_of_quadrature(v, evidence_off, mean_off):
    for n in ([0, 0], [1, 0], [2, 1], [5, 0], [30, 1], [0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 3, 3], [20, 1, 1], [50, 0, 0]):
        n = np.array(n, dtype=float)
        m = np.array([0.4, -0.1, -0.3])[: len(n)]
        rows = Laplace(n[None], m, v)
        log_z, means = quadrature(n, m, v)
        assert rows.log_evidence[0] == pytest.approx(log_z, abs=evidence_off if n.sum() else 1e-9)
        assert rows.means()[0] == pytest.approx(means, abs=mean_off)


def test_without_data_the_evidence_is_exact_and_with_much_it_becomes_so():
    assert Laplace(np.zeros((1, 4)), np.zeros(4), 3.0).log_evidence[0] == pytest.approx(0.0, abs=1e-12)
    off = []
    for N in (10, 100, 1000):
        n = np.array([0.3, 0.7]) * N
        # around the mode, as the whole range of the prior would not be seen by so few points
        x = np.linspace(-12, 12, 400_001)
        terms = n[0] * log_expit(x) + n[1] * log_expit(-x) - x**2 / 8.0 - 0.5 * np.log(8 * np.pi)
        off.append(abs(Laplace(n[None], np.zeros(2), 2.0).log_evidence[0] - logsumexp(terms) - np.log(x[1] - x[0])))
    assert off[0] > 5 * off[1] > 25 * off[2]


@pytest.mark.parametrize("n", [(0, 0), (1e-9, 0), (0.01, 0), (3, 1), (0, 10), (50, 0), (400, 300), (1000, 0), (1e12, 3)])
@pytest.mark.parametrize("v", [0.1, LIKE_DIRICHLET, 10.0, 100.0, 1e4])
def test_intervals_leave_out_the_tails_they_should(n, v):
    lower, upper = quantiles(Laplace(np.array([n], float), np.zeros(2), v), 0.025)
    reach = 12 * np.sqrt(v)
    x = np.unique(np.concatenate([np.linspace(-40, 40, 100_001), np.linspace(-reach, reach, 100_001)]))
    density = n[0] * log_expit(x) + n[1] * log_expit(-x) - x**2 / (4 * v)
    cdf = np.cumsum(np.exp(density - density.max()) * np.gradient(x))
    # the state that is rarer has the digits: the log-odds of the other are the same
    ends = -logit([upper[0, 1], lower[0, 1]]) if upper[0, 1] < 1 else logit([lower[0, 0], 1 - 1e-16])
    masses = np.interp(ends, x, cdf / cdf[-1])
    assert masses[: 1 + (upper[0, 1] < 1)] == pytest.approx([0.025, 0.975][: 1 + (upper[0, 1] < 1)], abs=1e-3)
    assert lower[0, 1] == pytest.approx(1.0 - upper[0, 0], abs=0.01)


@pytest.mark.parametrize("v", [0.1, LIKE_DIRICHLET, 100.0, 1e4])
def test_intervals_of_three_states_leave_out_the_tails_they_should(v):
    """By a grid of the two contrasts, dense where the data cuts the prior off."""
    far = 9 * np.sqrt(2 * v) + 5
    line = np.unique(np.concatenate([np.linspace(-min(30, far), min(30, far), 701), np.linspace(-far, far, 701)]))
    a, b = line[:, None], line[None]
    log_theta = np.array([-(total := np.logaddexp(np.logaddexp(a, b), 0.0)), a - total, b - total])
    prior = (a**2 - a * b + b**2) / (3 * v)
    for n in ([1000, 0, 0], [20, 1, 0], [0.3, 0, 0]):
        lower, upper = quantiles(Laplace(np.array([n], float), np.zeros(3), v), 0.025)
        density = np.einsum("k,kab->ab", n, log_theta) - prior
        mass = np.exp(density - density.max()) * np.gradient(line)[:, None] * np.gradient(line)
        for k in range(3):
            below = mass[log_theta[k] < np.log(lower[0, k])].sum() / mass.sum()
            assert below == pytest.approx(0.025, abs=0.006)
            if upper[0, k] < 0.999:
                assert mass[log_theta[k] > np.log(upper[0, k])].sum() / mass.sum() == pytest.approx(0.025, abs=0.006)


def test_a_state_without_rows_may_be_as_rare_as_the_prior_allows():
    rows = sf.scan({"x": ["a"] * 1000}, variables={"x": ["a", "b"]})
    lower = sf.fit("x", rows, prior=LogisticNormal(variance=100.0))["x"].interval(0.95).lower[1]
    assert np.log(lower) == pytest.approx(np.log(1.1e-15), abs=0.3)
    some = draw_rows(Laplace(np.array([[1000.0, 0.0]]), np.zeros(2), 100.0), 20_000, np.random.default_rng(0))[:, 0, 1]
    assert np.log(np.quantile(some, 0.025)) == pytest.approx(np.log(1.1e-15), abs=0.7)


def test_intervals_hold_parameters_drawn_from_the_prior():
    rng = np.random.default_rng(4)
    theta = softmax(rng.normal(0, 2.0, (200, 4)), axis=1)
    rows = Laplace(np.array([rng.multinomial(12, p) for p in theta], float), np.zeros(4), 4.0)
    lower, upper = quantiles(rows, 0.05)
    assert ((lower <= theta) & (theta <= upper)).mean() == pytest.approx(0.9, abs=0.03)
    some = draw_rows(rows.some(np.arange(10)), 2000, rng)
    ends = np.quantile(some, [0.05, 0.95], axis=0)
    assert np.abs(ends - np.array([lower, upper])[:, :10]).max() < 0.06
    assert some.mean(axis=0) == pytest.approx(rows.means()[:10], abs=0.03)


@pytest.mark.parametrize("c", [1e-12, 1e-3, 1.0, 1e3, 1e5, 1e12, 1e24])
def test_the_mode_of_an_effect_given_the_common_one(c):
    delta = np.concatenate([-np.logspace(-6, 8, 40), [0.0], np.logspace(-6, 2, 30)])
    e = _solve_shift(np.full(len(delta), c), delta)
    off = c * np.expm1(e) + e - delta
    assert np.all(np.abs(off) <= 1e-9 * (1.0 + np.abs(delta)))


def test_pieces_of_lines_and_contrasts():
    assert both_sides(np.array(1.0), np.array(2.0), 2).tolist() == pytest.approx([-1.0, -0.5, 0.0, 1.0, 2.0])
    place, share = pieces_at(np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([0, 1]), np.array([0.625, 0.25]))
    assert place.tolist() == [1, 2]
    assert share.tolist() == [0.5, 0.5]
    one = Lines(np.array([[0.0, 1.0, 50.0]]), np.array([[0.0, -1.0, -50.0]]))
    assert np.log(one.mass.sum(axis=1)).round(6).tolist() == [0.0]
    assert one.quantiles(np.array([0]), np.array([0.5])).round(6).tolist() == [0.693147]
    assert contrasts(2).round(4).tolist() == [[0.7071], [-0.7071]]
    assert np.allclose(spread_of(2.0 * np.eye(2), contrasts(3)), 2.0 * np.eye(3))
    assert Laplace(np.array([[3.0, 1.0], [0.0, 0.0]]), np.zeros(2), 1.0).probs.round(4).tolist() == [[0.6645, 0.3355], [0.5, 0.5]]
    assert JointLaplace.of(np.array([[3.0, 1.0]]), np.zeros(2), np.eye(2)).probs.round(4).tolist() == [[0.6645, 0.3355]]
    eight = JointLaplace.of(np.array([[8.0, 2.0]]), np.zeros(2), np.eye(2))
    assert joint_drawn(eight, 1000, np.random.default_rng(0)).mean(axis=0).round(1).tolist() == [[0.7, 0.3]]


def test_the_evidence_of_very_many_rows_has_its_digits():
    """−N ln(1 + exp(−d)) + the rest of the formula, where θ of the first state is 1 up to rounding."""
    for n in (np.array([1e12, 0.0]), np.array([1e12, 3.0])):
        rows = Laplace(n[None], np.zeros(2), 1.0)
        d = rows.effects[0, 0] - rows.effects[0, 1]
        exact = -n.sum() * np.log1p(np.exp(-d)) - n[1] * d - 0.5 * (rows.effects[0] ** 2).sum() - 0.5 * rows.log_det[0]
        assert rows.log_evidence[0] == pytest.approx(exact, abs=1e-9)


def test_large_counts_agree_with_a_dirichlet():
    n = np.array([[4e6, 6e6], [3e12, 1e12]])
    lower, upper = quantiles(Laplace(n, np.zeros(2), 1.0), 0.025)
    spread = np.sqrt(n[:, 0] * n[:, 1] / n.sum(axis=1) ** 3)
    for end, q in ((lower, 0.025), (upper, 0.975)):
        assert (end[:, 0] - betaincinv(n[:, 0], n[:, 1], q)) / spread == pytest.approx(0.0, abs=0.05)


def test_permuting_states_permutes_everything_exactly():
    n, order = np.array([[4.0, 0, 0, 7], [1, 1, 1, 0]]), [2, 0, 3, 1]
    rows, moved = (Laplace(n[:, o], np.zeros(4), 2.0) for o in (slice(None), order))
    assert moved.effects == pytest.approx(rows.effects[:, order], abs=1e-12)
    assert moved.log_evidence == pytest.approx(rows.log_evidence, abs=1e-12)
    for a, b in zip(quantiles(rows, 0.1), quantiles(moved, 0.1), strict=True):
        assert b == pytest.approx(a[:, order], rel=1e-9)
        assert a[0, 1] == a[0, 2]
        assert a[1, 0] == a[1, 1] == a[1, 2]


def test_a_constant_added_to_the_means_changes_nothing():
    rows = rows_of(ROWS[:2])
    a, b = (sf.fit("x -> y", rows, prior=LogisticNormal(mean={"y": m})) for m in (MEAN, MEAN + 5.0))
    assert a["y"].probs == pytest.approx(b["y"].probs, rel=1e-9)
    assert sf.fit("x -> y", rows, prior=LogisticNormal(mean=3.0)) == sf.fit("x -> y", rows, prior=LogisticNormal())


def test_a_network_has_modes_means_and_their_evidence():
    counts = ROWS[[0, 1, 3]]
    seen = Laplace(counts, np.zeros(3), 2.0)
    prior = LogisticNormal(variance=2.0)
    bn = sf.fit("x -> y", rows_of(counts), prior=prior)
    mode = sf.fit("x -> y", rows_of(counts), prior=prior, estimate=sf.Mode())
    assert bn["y"].probs == pytest.approx(seen.means())
    assert mode["y"].probs == pytest.approx(seen.probs)
    assert "posterior mean" in bn.fit_info
    assert bn["y"].predictive({"x": "u1"}) == pytest.approx(bn["y"].probs[1])
    assert mode["y"].predictive({"x": "u1"}) == pytest.approx(bn["y"].probs[1])
    score = sf.score("x -> y", rows_of(counts), sf.Evidence(prior), by_node=True)
    assert score["y"] == pytest.approx(seen.log_evidence.sum())
    assert bn["y"].interval(0.9).lower == pytest.approx(quantiles(seen, 0.05)[0])
    assert {"lower", "upper"} <= set(bn["y"].to_frame().columns)


def test_weights_are_repeated_rows_and_updates_are_fits_of_all():
    rows, more = rows_of(ROWS[:2]), rows_of(ROWS[[1, 3]])
    bn = sf.fit("x -> y", rows, prior=LogisticNormal(variance=None))
    later = bn.update(more)
    assert later.prior == bn.prior
    both = {k: rows[k] + more[k] for k in rows}
    assert later == sf.fit("x -> y", both, prior=bn.prior)
    weighted = sf.scan({"x": ["u0", "u0", "u1"], "y": ["s0", "s1", "s1"], "n": [3, 1, 2]}, weights="n")
    plain = {"x": ["u0"] * 4 + ["u1"] * 2, "y": ["s0"] * 3 + ["s1"] * 3}
    assert sf.fit("x -> y", weighted, prior=LogisticNormal()) == sf.fit("x -> y", plain, prior=LogisticNormal())


def test_new_states_have_the_mean_zero_or_are_refused():
    bn = sf.fit("x", {"x": ["a", "a", "b"]}, prior=LogisticNormal(variance=1.0))
    assert bn.update({"x": ["c"]})["x"].probs == pytest.approx(Laplace(np.array([[2.0, 1, 1]]), np.zeros(3), 1.0).means()[0])
    own = sf.fit("x", {"x": ["a", "a", "b"]}, prior=LogisticNormal(mean={"x": {"a": 0.0, "b": 1.0}}))
    with pytest.raises(FitError, match="differ in the state 'c'"):
        own.update({"x": ["c"]})


def test_answers_have_intervals_from_draws():
    bn = sf.fit("x -> y", rows_of(ROWS[[0, 1, 3]]), prior=LogisticNormal(variance=2.0))
    answer = bn.query("y", given={"x": "u0"}, interval=0.9)
    assert answer.probs == pytest.approx(bn["y"].probs[0])
    assert answer.interval.lower == pytest.approx(bn["y"].interval(0.9).lower[0], abs=0.04)
    assert answer.interval.upper == pytest.approx(bn["y"].interval(0.9).upper[0], abs=0.04)
    mode = sf.fit("x -> y", rows_of(ROWS[[0, 1, 3]]), prior=LogisticNormal(variance=2.0), estimate=sf.Mode())
    assert mode.query("y", given={"x": "u0"}, interval=0.9).probs == pytest.approx(bn["y"].probs[0])
    assert bn.do({"x": "u1"}).query("y", interval=0.9).probs == pytest.approx(bn["y"].probs[1])
    assert bn.query("x", given={"y": "s1"}, interval=0.9).interval.lower.shape == (3,)


def test_the_variance_of_the_largest_evidence():
    rng = np.random.default_rng(1)
    counts = np.array([rng.multinomial(15, softmax(rng.normal(0, 1.2, 3))) for _ in range(60)], float)
    best = minimize_scalar(
        lambda t: -Laplace(counts, np.zeros(3), np.exp(t)).log_evidence.sum(), bounds=(-5, 5), method="bounded"
    )
    bn = sf.fit("x -> y", rows_of(counts), prior=LogisticNormal(variance=None))
    assert bn.prior.variance["y"] == pytest.approx(np.exp(best.x), rel=1e-3)
    assert bn.prior.variance["y"] == pytest.approx(1.44, rel=0.4)
    assert bn.prior.variance["x"] == LIKE_DIRICHLET
    assert by_evidence("x -> y", rows_of(counts), LogisticNormal(variance=None)) == bn.prior
    total = sf.score("x -> y", rows_of(counts), sf.Evidence(LogisticNormal(variance=None)))
    assert total == pytest.approx(sf.score("x -> y", rows_of(counts), sf.Evidence(bn.prior)))
    with pytest.warns(SufficeNote, match=r"no more than chance.* 0\.001"):
        even = sf.fit("x -> y", rows_of([[5, 5], [5, 5]]), prior=LogisticNormal(variance=None))
    assert even.prior.variance["y"] == 1e-3
    apart = sf.fit("x -> y", rows_of([[50, 0], [0, 50]]), prior=LogisticNormal(variance=None))
    assert apart.prior.variance["y"] > 10.0


def test_numbers_that_are_none_are_refused():
    for wrong in (0, -1.0, np.nan, "a", True, {"y": 0.0}):
        with pytest.raises(FitError, match="variance of LogisticNormal"):
            LogisticNormal(variance=wrong)
    for wrong in ("a", np.inf, None):
        with pytest.raises(FitError, match="mean of LogisticNormal"):
            LogisticNormal(mean=wrong)
    with pytest.raises(FitError, match="'z', which is not in the graph"):
        sf.fit("x -> y", rows_of(ROWS[:2]), prior=LogisticNormal(variance={"z": 1.0}))
    with pytest.raises(FitError, match="'y' needs 3 numbers"):
        sf.fit("x -> y", rows_of(ROWS[:2]), prior=LogisticNormal(mean={"y": [0.0, 1.0]}))


def test_nodes_may_share_their_parameters():
    rows = {"x": ["a", "b", "b", "b"], "y": ["a", "b", "a", "a"]}
    bn = sf.fit("x; y", rows, prior=LogisticNormal(), shared=[("x", "y")])
    assert bn["x"].probs == pytest.approx(Laplace(np.array([[4.0, 4.0]]), np.zeros(2), LIKE_DIRICHLET).means()[0])
    assert bn["y"].interval(0.9).lower == pytest.approx(bn["x"].interval(0.9).lower)
    assert bn.update(rows)["x"].seen.total == 16


def test_incomplete_rows_lead_to_the_mode():
    """EM never falls, ends where the gradient of ln L and the prior is 0, and takes complete rows as `fit` does."""
    x, y = ["a", "b", "b", None, "a", "b"] * 6, ["u", "v", "w", "w", None, "v"] * 6
    for prior in (LogisticNormal(variance=2.0), LogisticNormal(covariance={"y": COVARIANCE})):
        run = sf.em("x -> y", {"x": x, "y": y}, prior=prior, estimate=sf.Mode(), tol=0, max_iter=300)
        objective = [step.objective for step in run.trace]
        assert all(b >= a - 1e-9 for a, b in itertools.pairwise(objective))
        climbed = sf.gradient("x -> y", {"x": x, "y": y}, prior=prior, estimate=sf.Mode())
        assert run.model["y"].probs == pytest.approx(climbed.model["y"].probs, abs=1e-5)
        assert objective[-1] == pytest.approx(_objective(run.model, x, y, prior), abs=1e-6)
        assert run.information().standard_errors["y"].shape == (2, 3)
    whole = {"x": ["a", "b", "b"], "y": ["u", "v", "w"]}
    fitted = sf.fit("x -> y", whole, prior=prior, estimate=sf.Mode())
    assert sf.em("x -> y", whole, prior=prior, estimate=sf.Mode()).model["y"].probs == pytest.approx(fitted["y"].probs, abs=1e-9)


def _objective(bn, x, y, prior):
    """ln p of the rows, by enumeration, and the largest ln p of effects that give these tables."""
    px, py = bn["x"].probs, bn["y"].probs
    joint = px[:, None] * py
    of_x, of_y = ({None: slice(None), **{s: i for i, s in enumerate(states)}} for states in ("ab", "uvw"))
    total = sum(np.log(joint[of_x[a], of_y[b]].sum()) for a, b in zip(x, y, strict=True))
    for node, table in (("x", px[None]), ("y", py)):
        given = (prior.covariance or {}).get(node)
        P = np.linalg.inv(np.eye(table.shape[1]) * prior.variance if given is None else np.array(given))
        for row in np.log(table):
            best = minimize_scalar(lambda c, row=row, P=P: 0.5 * (row + c) @ P @ (row + c))
            total -= best.fun
    return total


def test_means_are_not_climbed_to_and_mixtures_need_imagined_rows():
    with pytest.warns(SufficeNote, match="'x', 'y' are modes of the effects"):
        sf.em("x -> y", {"x": ["a", "b"], "y": ["u", None]}, prior=LogisticNormal())
    with pytest.raises(FitError, match="choose it first"):
        sf.em("x -> y", {"x": ["a", "b"], "y": ["u", None]}, prior=LogisticNormal(variance=None))
    with pytest.raises(FitError, match="LogisticNormal imagines no rows"):
        sf.mixture({"x": list("aabbab"), "y": list("uvuvuu")}, 2, prior=LogisticNormal())


COVARIANCE = [[1.0, 0.8, 0.0], [0.8, 1.2, 0.1], [0.0, 0.1, 1.5]]


@cache
def grid(m, S):
    """ln θ, θ and the logarithms of the normal's shares on a fine grid of the two contrasts, for three states."""
    C = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    z = np.linspace(-9.0, 9.0, 601)
    at = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1)
    d = C @ m + at @ np.linalg.cholesky(C @ S @ C.T).T
    log_theta = log_softmax(np.concatenate([d, np.zeros((*d.shape[:2], 1))], axis=-1), axis=-1)
    return log_theta, np.exp(log_theta), -0.5 * (at**2).sum(axis=-1) - np.log(2 * np.pi) + 2 * np.log(z[1] - z[0])


def by_grid(n, m, S):
    """ln Z, the mean of θ, and p and ln θ on the grid."""
    log_theta, theta, shares = grid(tuple(m), tuple(map(tuple, S)))
    terms = log_theta @ n + shares
    log_z = logsumexp(terms)
    p = np.exp(terms - log_z)
    return log_z, np.einsum("ij,ijk->k", p, theta), p, log_theta


@pytest.mark.parametrize("n", [(0, 0, 0), (1, 0, 0), (2, 1, 0), (20, 1, 1), (50, 0, 0), (300, 200, 3)])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_a_covariance_by_quadrature(n, scale):
    """Evidence, means and intervals of three states."""
    n, S = np.array(n, float), scale * np.array(COVARIANCE)
    rows = JointLaplace.of(n[None], MEAN, S)
    log_z, means, p, log_theta = by_grid(n, MEAN, S)
    assert rows.log_evidence[0] == pytest.approx(log_z, abs=0.09 if n.sum() else 1e-9)
    assert rows.means()[0] == pytest.approx(means, abs=0.012)
    lower, upper = joint_quantiles(rows, 0.025)
    for k in range(3):
        assert p[log_theta[..., k] < np.log(lower[0, k])].sum() == pytest.approx(0.025, abs=0.009)
        assert p[log_theta[..., k] > np.log(upper[0, k])].sum() == pytest.approx(0.025, abs=0.009)


def test_an_even_covariance_is_a_variance():
    a, b = Laplace(ROWS, MEAN, 1.7), JointLaplace.of(ROWS, MEAN, 1.7 * np.eye(3))
    for name in ("effects", "probs", "log_det", "log_evidence"):
        assert getattr(b, name) == pytest.approx(getattr(a, name), rel=1e-9, abs=1e-12)
    assert b.means() == pytest.approx(a.means(), rel=1e-9)
    two = sf.fit("x", {"x": ["a", "a", "b"]}, prior=LogisticNormal(covariance=[[2.0, 0.5], [0.5, 1.0]]))
    assert two["x"].probs == pytest.approx(sf.fit("x", {"x": ["a", "a", "b"]}, prior=LogisticNormal(variance=1.0))["x"].probs)


def test_only_differences_of_effects_matter():
    more = np.array(COVARIANCE) + 3.0
    rows, same = JointLaplace.of(ROWS, MEAN, np.array(COVARIANCE)), JointLaplace.of(ROWS, MEAN + 2.0, more)
    assert same.log_evidence == pytest.approx(rows.log_evidence, abs=1e-8)
    assert same.means() == pytest.approx(rows.means(), abs=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
def test_newton_ends_with_a_covariance_at_any_size(scale):
    counts = np.array([[1.0, 0, 0], [1, 1, 0], [3, 1e-12, 0], [1, 1, 1]]) * scale
    rows = JointLaplace.of(counts, np.zeros(3), np.array(COVARIANCE))
    assert np.all(np.abs(rows.gradient(rows.effects)) <= 1e-11 * (rows.total + 1.0) + 1e-9)
    A = [N * (np.diag(t) - np.outer(t, t)) + rows.precision for N, t in zip(rows.total[:, 0], rows.probs, strict=True)]
    if scale < 1e9:
        assert rows.spread == pytest.approx(np.linalg.inv(A), rel=1e-5)
        assert rows.log_det == pytest.approx(np.linalg.slogdet(np.array(COVARIANCE) @ A)[1], abs=1e-6)


def test_a_covariance_in_a_network(tmp_path):
    counts = ROWS[[0, 1, 3]]
    prior = LogisticNormal(mean={"y": MEAN}, covariance={"y": COVARIANCE})
    bn = sf.fit("x -> y", rows_of(counts), prior=prior)
    rows = JointLaplace.of(counts, MEAN - MEAN.mean(), np.array(COVARIANCE))
    assert bn["y"].probs == pytest.approx(rows.means())
    assert sf.score("x -> y", rows_of(counts), sf.Evidence(prior), by_node=True)["y"] == pytest.approx(rows.log_evidence.sum())
    assert bn["y"].interval(0.9).lower == pytest.approx(joint_quantiles(rows, 0.05)[0])
    assert bn["x"].probs == pytest.approx(sf.fit("x", {"x": rows_of(counts)["x"]}, prior=LogisticNormal())["x"].probs)
    sf.write(bn, tmp_path / "bn.json")
    back = sf.read(tmp_path / "bn.json")
    assert back.prior == bn.prior
    assert back.update(rows_of(counts)) == sf.fit("x -> y", rows_of(2 * counts), prior=prior)
    answer = bn.query("y", given={"x": "u0"}, interval=0.9)
    assert answer.interval.upper == pytest.approx(bn["y"].interval(0.9).upper[0], abs=0.05)


def test_states_that_are_frequent_together_speak_for_each_other():
    together = LogisticNormal(covariance=[[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows = sf.scan({"x": ["a"] * 20}, variables={"x": ["a", "b", "c"]})
    probs = sf.fit("x", rows, prior=together)["x"].probs
    assert probs[1] > 1.5 * probs[2]


def test_mean_and_covariance_of_the_largest_evidence():
    """That of the truth, up to chance; no other numbers near it have more; independent effects have less."""
    rng = np.random.default_rng(2)
    truth, mean = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]) * 1.5, np.array([0.5, 0.0, -0.5])
    effects = rng.multivariate_normal(mean, truth, 150)
    counts = np.array([rng.multinomial(30, softmax(e)) for e in effects], float)
    found = normal_of_rows(counts)
    C = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    assert C @ found.covariance @ C.T == pytest.approx(C @ truth @ C.T, abs=0.8)
    assert C @ found.mean == pytest.approx(C @ mean, abs=0.35)

    def evidence(m, S):
        return JointLaplace.of(counts, m, S).log_evidence.sum()

    best = evidence(found.mean, found.covariance)
    for _ in range(20):
        bent = rng.normal(size=(3, 3)) * 0.03
        assert (
            evidence(found.mean + rng.normal(size=3) * 0.03, (np.eye(3) + bent) @ found.covariance @ (np.eye(3) + bent).T) < best
        )
    even = sf.score("x -> y", rows_of(counts), sf.Evidence(LogisticNormal(mean={"y": found.mean}, variance=None)), by_node=True)
    assert even["y"] < best - 5.0
    bn = sf.fit("x -> y", rows_of(counts), prior=LogisticNormal(correlated=True))
    assert sf.score("x -> y", rows_of(counts), sf.Evidence(bn.prior), by_node=True)["y"] == pytest.approx(best, abs=1e-3)
    assert bn.update(rows_of(counts)).prior == bn.prior
    assert bn.prior == by_evidence("x -> y", rows_of(counts), LogisticNormal(correlated=True))


def test_rows_that_do_not_differ_and_many_states():
    with pytest.warns(SufficeNote, match=r"'y' differ in some direction no more than chance.* 0\.001"):
        sf.fit("x -> y", rows_of([[5, 5, 5], [5, 5, 5], [5, 5, 5]]), prior=LogisticNormal(correlated=True))
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(60, softmax(rng.normal(0, 1, 10))) for _ in range(30)], float)
    assert normal_of_rows(counts).covariance.shape == (10, 10)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], r"'y' must be a 3 × 3 matrix .* states 's0', 's1', 's2', not of the shape \(2, 2\)"),
        ([[1, 2, 0], [2, 1, 0], [0, 0, 1]], "positive definite, and the state 's1' has no variance of its own"),
        ([[1, 0.5, 0], [0.4, 1, 0], [0, 0, 1]], "symmetric, and differs at 's0', 's1' from 's1', 's0'"),
        ([[0, 0, 0], [0, 1, 0], [0, 0, 1]], "state 's0' has no variance"),
        ([[1, 0, 0], [0, np.nan, 0], [0, 0, 1]], "matrix of numbers"),
        ("a", "matrix of numbers"),
        ([[1, 0, 0], [0, 1], [0, 0, 1]], "matrix of numbers"),
    ],
)
def test_covariances_that_are_none_are_refused(covariance, message):
    with pytest.raises(FitError, match=message):
        sf.fit("x -> y", rows_of(ROWS[:2]), prior=LogisticNormal(covariance={"y": covariance}))
    with pytest.raises(FitError, match="'z', which is not in the graph"):
        sf.fit("x -> y", rows_of(ROWS[:2]), prior=LogisticNormal(covariance={"z": covariance}))


def test_searches_and_several_priors():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 400)
    rows = {"x": x.astype(str), "y": ((x + (rng.random(400) < 0.2)) % 3).astype(str), "z": rng.integers(0, 2, 400).astype(str)}
    found = sf.search(rows, score=sf.Evidence(LogisticNormal()))
    assert found.dag.cpdag() == sf.search(rows, score=sf.Evidence(BDeu(1))).dag.cpdag()
    with pytest.raises(FitError, match="choose it first"):
        sf.search(rows, score=sf.Evidence(LogisticNormal(variance=None)))
    rows["r"] = rng.normal(x, 1.0)
    bn = sf.fit("x -> y; x -> r", rows, prior=(LogisticNormal(variance=None), NormalInverseGamma()))
    assert set(bn.prior.priors[0].variance) == {"x", "y"}
    assert bn["r"].interval(0.9) is not None


def test_groups_are_rows_of_a_plate():
    """The covariance is learned across groups, which are the states of a parent."""
    rng = np.random.default_rng(5)
    effects = rng.multivariate_normal([0.0, 0.0, 0.0], [[1.5, 1.3, 0.0], [1.3, 1.5, 0.0], [0.0, 0.0, 1.5]], 25)
    counts = [rng.multinomial(20, softmax(e)) for e in effects]
    rows = {"y": rows_of(counts)["y"], "hospital": rows_of(counts)["x"]}
    prior = {"y": LogisticNormal(correlated=True), "hospital": 1}
    bn = sf.fit(sf.plates.Plate("y", group="hospital"), rows, prior=prior)
    S = np.array(bn.prior.priors["y"].covariance["y"])
    assert S[0, 0] + S[1, 1] - 2 * S[0, 1] < S[0, 0] + S[2, 2] - 2 * S[0, 2]
