"""The maximum of the likelihood of a finite undirected model: in closed form, by IPF, or by L-BFGS on *seen − expected*.

Decomposable models: p(x) = Π p(cliques) / Π p(separators), each from its own table, without iteration. With imagined counts that
agree on the separators the prior is hyper-Dirichlet, and so is the posterior (Dawid & Lauritzen 1993, Annals of Statistics 21,
p. 1272): the estimate is its mean, and

    ln p(data) = Σ e(cliques) − Σ e(separators),   e = ln Γ(α) − ln Γ(α + N) + Σ [ln Γ(α_i + N_i) − ln Γ(α_i)]

All others:

    −log L(w) = N log Z(w) − N_cells · A w,    gradient = Aᵀ (N expected − seen)

Where L-BFGS crawls, on data at the boundary of what is possible under a small penalty, Newton steps go on: weights then go far
out, and curvatures fall by many powers of ten on the way, which a few past steps cannot tell. (Not with a price of |w|: the
curvature is nearly singular between the weights that a price keeps apart, and steps within an orthant jam.)

    f(w) = ln Σ_x e^{b(x)·w} − seen·w + Σ c2 w²,    f'' = Σ_x p(x) b(x) b(x)ᵀ − E[b] E[b]ᵀ + 2 c2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, listing
from suffice.errors.remedies import BDEU, MAX_ENTROPY, TABLE_PRIORS, Remedy, of_python, weight_penalty
from suffice.learning.gradient import LBFGS
from suffice.learning.owlqn import ROUNDING, Minimum
from suffice.learning.undirected.ipf import IPF, CliqueTree
from suffice.learning.undirected.moments import check_interior
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.models.undirected.factor import Factor
from suffice.models.undirected.log_linear import Ising, LogLinear, Names
from suffice.numerics.exponential.arithmetic.special import log_gamma_step
from suffice.statistics import Counts
from suffice.statistics.counts import describe, n_configurations


def closed_form(problem: UndirectedProblem) -> MarkovNet:
    """The estimate of a decomposable model: a factor p(what a clique adds | its separator) for each clique."""
    graph, statistics = problem.model.graph, problem.statistics
    cliques, separators = graph.perfect_sequence(), ((), *graph.separators())
    prior = bound_prior(problem)
    for k, own in enumerate(separators[1:] if prior is not None else (), 1):
        other = next((c for c in cliques[:k] if own and set(own) <= set(c)), cliques[0])
        _require_agreement(prior, {c: imagined_counts(prior, problem, c) for c in (cliques[k], other)}, own)
    factors, evidence = {}, 0.0
    for clique, separator in zip(cliques, separators, strict=True):
        seen = statistics.counts(clique)
        imagined = None if prior is None else imagined_counts(prior, problem, clique)
        whole = seen.dense() if imagined is None else seen.dense() + imagined
        axes = tuple(i for i, n in enumerate(clique) if n not in separator)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(whole) - np.log(whole.sum(axis=axes, keepdims=True))
        log[whole == 0.0] = -np.inf
        factors[clique] = Factor(seen.variables, log)
        if imagined is not None:
            evidence += _evidence(seen.dense(), imagined)
            if separator:
                evidence -= _evidence(seen.dense().sum(axis=axes), imagined.sum(axis=axes))
    by = "maximum likelihood" if prior is None else "posterior mean (hyper-Dirichlet)"
    info = f"fitted from {statistics.weight:,.10g} rows, {by} in closed form: the model is decomposable"
    fitted: dict[str, Any] = {} if prior is None else {"prior": prior, "log_evidence": evidence}
    return problem.network([factors[c] for c in problem.model.scopes], info, log_normaliser=0.0, **fitted)


def bound_prior(problem: UndirectedProblem) -> Any:
    """The prior with its defaults filled in."""
    if problem.prior is None:
        return None
    return problem.prior.bind(dict(problem.variables), problem.statistics)


def imagined_counts(prior: Any, problem: UndirectedProblem, scope: Names) -> Array:
    """What a prior imagines of the table of some variables."""
    own = [problem.variables[n] for n in scope]
    imagined = prior.imagine(own[-1], own[:-1])
    if not isinstance(imagined, Counts):
        name = " and ".join(type(p).__name__ for p in prior.parts)
        raise FitError(f"{name} imagines no counts of {listing(scope)}: a prior of tables is {TABLE_PRIORS}")
    return imagined.marginal(scope).dense()


def agreeing_counts(prior: Any, problem: UndirectedProblem) -> list[Array]:
    """What a prior imagines of the tables of all scopes, which must be those of one table of all variables."""
    scopes = problem.model.scopes
    tables = [imagined_counts(prior, problem, s) for s in scopes]
    for i, (a, table) in enumerate(zip(scopes, tables, strict=True)):
        for b, other in zip(scopes[:i], tables[:i], strict=True):
            _require_agreement(prior, {a: table, b: other}, [n for n in a if n in b])
    return tables


def _require_agreement(prior: Any, tables: Mapping[Names, Array], both: Sequence[str]) -> None:
    """Refuse a prior that does not imagine the same of the variables that are in both of two tables."""
    mine, theirs = (t.sum(axis=tuple(i for i, n in enumerate(scope) if n not in both)) for scope, t in tables.items())
    if not np.allclose(mine, theirs, rtol=1e-9, atol=0.0):
        a, b = map(listing, tables)
        where = f"of {listing(both)} " if both else ""
        raise FitError(
            f"what {prior!r} imagines {where}in the table of {a} is not what it imagines in that of {b}, so that "
            f"it is no prior of one distribution: {BDEU} spreads the same rows over every table"
        )


def _evidence(seen: Array, imagined: Array) -> float:
    """e of a table: the log-evidence of a Dirichlet."""
    total = log_gamma_step(np.array([imagined.sum()]), np.array([seen.sum()]))
    return float(log_gamma_step(imagined.reshape(-1), seen.reshape(-1)).sum() - total.sum())


MAX_STATES, MAX_WEIGHTS, MAX_NUMBERS = 2**14, 2000, 2**22
"""Joint states, weights, and numbers in states × weights, up to which curvatures are reckoned."""
STEPS = 200


class Curved(NamedTuple):
    """f, its gradient and its second derivatives: b(x) of all states, what is seen, and c2."""

    states: Any
    seen: Array
    l2: Array

    @staticmethod
    def of(problem: UndirectedProblem, mean: Array, total: float) -> Curved | None:
        """None where not all weights have a c2 alone, or there are too many states or weights."""
        if problem.l1.any() or not problem.l2.all():
            return None
        terms, n = problem.terms, n_configurations(problem.variables.values())
        if n > MAX_STATES or terms.n_weights > MAX_WEIGHTS or n * terms.n_weights > MAX_NUMBERS:
            return None
        design = terms.design(terms.names, np.arange(n, dtype=np.int64))
        return Curved(design, terms.by_weight(mean), problem.l2 / total)

    def value(self, w: Array) -> float:
        """f."""
        return self._log_z(w)[0] - float(self.seen @ w) + float(self.l2 @ (w * w))

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        """f' and f''."""
        _, p = self._log_z(w)
        mean = self.states.T @ p
        products = (self.states.T @ (self.states * p[:, None])).toarray()
        return mean - self.seen + 2.0 * self.l2 * w, products - np.outer(mean, mean) + np.diag(2.0 * self.l2)

    def _log_z(self, w: Array) -> tuple[float, Array]:
        logs = self.states @ w
        top = float(logs.max())
        p = np.exp(logs - top)
        return top + float(np.log(p.sum())), p / p.sum()


def newton(f: Curved, start: Array, tol: float) -> Minimum:
    """The minimum of f, where the steepest slope is at most `tol`, from a start that need not be near."""
    w, value, steepest = np.array(start), f.value(start), np.inf
    for step in range(STEPS):
        slope, curvature = f.derivatives(w)
        steepest = float(np.abs(slope).max(initial=0.0))
        direction = -np.linalg.solve(curvature, slope).astype(np.float64)
        moved = None if steepest <= tol else _move(f, w, value, direction, float(slope @ direction))
        if moved is None:
            return Minimum(w, value, steepest, step, step + 1, steepest <= tol)
        w, value = moved
    return Minimum(w, value, steepest, STEPS, STEPS, False)


def _move(f: Curved, w: Array, value: float, direction: Array, promised: float) -> tuple[Array, float] | None:
    """The point after a step, halved until it gains enough, and its value; None where nothing is gained."""
    length = 1.0
    while length > 1e-10:
        after = f.value(w + length * direction)
        if after <= value + 1e-4 * length * promised + ROUNDING * max(abs(value), 1.0):
            return w + length * direction, after
        length /= 2.0
    return None


FEW_CYCLES = 200
"""Cycles of IPF after which, unless it was asked for, L-BFGS takes over."""
MAX_CLIQUES = 2**24
"""Cells of all cliques up to which IPF is taken by itself."""
TOL = 1e-9
"""Moments agree to this share of all rows."""
FAR = 6.0
"""Weights beyond this may be on their way to infinity: it is found out whether they are."""
LEAST = 1e-3
"""Variances of features are taken as no smaller than this share of their unit's square."""
MAX_ITER = 10_000
FEW = 500
"""Iterations of L-BFGS after which Newton steps take over, where states are few."""


def maximum_likelihood(problem: UndirectedProblem) -> MarkovNet:
    """The estimate by the way that was asked for, or by the one that suits best."""
    _check_method(problem)
    if problem.penalties and problem.prior is not None:
        raise FitError(f"give {Remedy('a penalty on weights or a prior that imagines rows', '--penalty or --prior')}, not both")
    if problem.base is not None:
        raise FitError(f"a base measure is for moments: objective={MAX_ENTROPY}")
    problem.check_margins()
    spins = isinstance(problem.model, Ising)
    if problem.method is None and not problem.penalties and problem.model.is_decomposable and not spins:
        return closed_form(problem)
    if problem.prior is not None and not isinstance(problem.model, LogLinear):
        raise FitError("a prior imagines counts of tables, and features have none: take a penalty")
    seen, prior = problem.terms.count_cells(problem.statistics), bound_prior(problem)
    if prior is not None:
        seen = seen + np.concatenate([t.reshape(-1) for t in agreeing_counts(prior, problem)])
    if spins and not problem.penalties:
        _refuse_unseen_pairs(problem, seen)
    plain = all(t.basis is None for t in problem.terms.terms)
    if isinstance(problem.method, IPF) or (problem.method is None and not problem.penalties and plain):
        found = _by_ipf(problem, seen, prior)
        if found is not None:
            return found
    return by_gradient(problem, seen, prior)


def _check_method(problem: UndirectedProblem) -> None:
    method = problem.method
    if isinstance(method, type) or not isinstance(method, (IPF, LBFGS, type(None))):
        raise FitError(f"the method of a likelihood is IPF() or LBFGS(), not {method!r}")
    if isinstance(method, IPF) and problem.penalties:
        raise FitError("IPF() fits margins exactly and has no place for a penalty: method=LBFGS()")
    if isinstance(method, IPF) and not isinstance(problem.model, LogLinear):
        raise FitError("IPF() fits margins, and features are no margins: method=LBFGS()")


def _by_ipf(problem: UndirectedProblem, seen: Array, prior: Any) -> MarkovNet | None:
    """None where it was not asked for and takes too long, or more memory than the gradient does."""
    method, tree = problem.method or IPF(), CliqueTree(problem.terms)
    if problem.method is None and tree.n_cells > MAX_CLIQUES:
        return None
    total = float(seen[: problem.terms.table_start[1]].sum())
    most = None if problem.method else min(FEW_CYCLES, method.max_iter)
    with closing(problem.budget.watch("iterative proportional fitting")) as watch:
        found = tree.fit(seen / total, method, lambda n, off: watch.check(f"cycle {n}, margins off by {off:.2g}"), most)
    if not found.converged:
        check_interior(problem, seen)
        if problem.method is None:
            return None
        raise FitError(
            f"IPF did not converge in {found.n:,} cycles: margins are still off by {found.off:.2g} of all rows"
            f"{of_python('; allow more, IPF(max_iter=...), or take method=LBFGS()')}"
        )
    terms, log_z = problem.terms, float(np.log(problem.terms.sizes).sum())  # each cycle begins at the uniform distribution
    info = f"{_from(problem, prior)} by IPF: {found.n} cycles, margins to {found.off:.1g}" + _zeros(found.log_tables)
    if all(t.basis is None for t in terms.terms):
        return problem.make_network(found.log_tables, info, log_normaliser=log_z, prior=prior)
    weights = terms.centred_weights(found.log_tables)
    log_tables = terms.log_tables(weights)
    first = terms.table_start[:-1]  # the same distribution up to a constant, which one joint state shows
    log_z += float((log_tables[first] - found.log_tables[first]).sum())
    return problem.make_network(log_tables, info, log_normaliser=log_z, prior=prior, weights=weights)


def by_gradient(problem: UndirectedProblem, seen: Array, prior: Any) -> MarkovNet:
    """The estimate by L-BFGS; with an L1 penalty kept to orthants."""
    terms, total = problem.terms, float(seen[: problem.terms.table_start[1]].sum())
    found, log_z = descend(problem, seen / total, total)
    free = (problem.l1 + problem.l2) == 0.0
    if not found.converged or np.abs(found.x * terms.units)[free].max(initial=0.0) > FAR:
        check_interior(problem, seen)
    if not found.converged:
        raise FitError(
            f"L-BFGS did not converge in {found.iterations:,} iterations: moments are still off by {found.slope:.2g} of all "
            f"rows; {way_out(problem)}"
        )
    log_tables = terms.log_tables(found.x) + excluded_cells(problem, seen)
    info = f"{_from(problem, prior)} by L-BFGS: {found.iterations} iterations, gradient to {found.slope:.1g}"
    weights = found.x if problem.penalties or any(t.basis is not None for t in terms.terms) else None
    fitted = {"log_normaliser": log_z, "prior": prior, "weights": weights}
    return problem.make_network(log_tables, info + _zeros(log_tables), **fitted)


def way_out(problem: UndirectedProblem) -> str:
    """What to do where an estimate does not converge."""
    if not problem.penalties:
        return f"a penalty, as {weight_penalty(2, 1.0)}, makes the estimate exist"
    larger = f"a larger one, as {weight_penalty(2, 1.0, '')}, makes the way shorter"
    return f"the penalty {problem.penalties!r} hardly holds weights that run off: {larger}"


def descend(problem: UndirectedProblem, mean: Array, total: float) -> tuple[Minimum, float]:
    """The weights at the minimum of log Z − mean·A w + (c1 Σ|w| + c2 Σ w²) / N, and log Z there. Weights are scaled by the spread
    of their features, so that the first steps are about as long as they should be."""
    terms = problem.terms
    tree, _ = terms.tree()
    zeros = excluded_cells(problem, mean)
    seen, l1, l2 = terms.by_weight(mean), problem.l1 / total, problem.l2 / total
    scale = np.sqrt(np.maximum(terms.variances(mean) + 2.0 * l2, LEAST * terms.units**2))
    last: list[float] = [0.0]

    def loss(z: Array) -> tuple[float, Array]:
        w = z / scale
        log_z, probs = tree(terms.log_tables(w) + zeros)
        last[0] = log_z
        value = log_z - float(seen @ w) + float(l2 @ (w * w))
        return value, (terms.by_weight(probs) - seen + 2.0 * l2 * w) / scale

    curved = Curved.of(problem, mean, total) if problem.penalties else None
    shown, most = "iteration {n}, loss {loss:.6f} a row", MAX_ITER if curved is None else FEW
    start = np.zeros(terms.n_weights)
    found = problem.minimise("maximum likelihood", shown, loss, start, l1=l1 / scale, tol=TOL, max_iter=most)
    if curved is not None and not found.converged:
        end = newton(curved, found.x / scale, TOL)
        found = end._replace(x=end.x * scale, iterations=found.iterations + end.iterations)
    loss(found.x)
    return found._replace(x=found.x / scale), last[0]


def excluded_cells(problem: UndirectedProblem, seen: Array) -> Array:
    """−inf at the cells of margins that were never seen, where an estimate without a penalty is zero, too."""
    plain = all(t.basis is None for t in problem.terms.terms)
    return np.where(seen == 0.0, -np.inf, 0.0) if plain and not problem.penalties else np.zeros(len(seen))


def _refuse_unseen_pairs(problem: UndirectedProblem, seen: Array) -> None:
    """Fields and a coupling are all there is to say of two spins: where a pair of states was never seen, they run off."""
    terms = problem.terms
    for scope, table in zip(terms.scopes, terms.tables(seen), strict=True):
        if (table == 0.0).any():
            cell = describe(int(np.argmin(table)), tuple(problem.variables[n] for n in scope))
            raise FitError(
                f"no row has {cell}, so that the field and coupling of {listing(scope)} run off to infinity: "
                f"{weight_penalty(2, 0.1)} or {weight_penalty(1, 0.1, '')}, or {BDEU}, gives an estimate"
            )


def _from(problem: UndirectedProblem, prior: Any) -> str:
    by = f"with {problem.penalties!r}" if problem.penalties else "maximum likelihood" if prior is None else "with imagined counts"
    return f"fitted from {problem.weight:,.10g} rows, {by},"


def _zeros(log_tables: Array) -> str:
    zeros = int(np.sum(log_tables == -np.inf))
    return f"; {zeros} cells of margins were never seen and are expected never" if zeros else ""
