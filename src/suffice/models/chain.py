"""Chains of sequences, and the questions that they answer: each is loaded when it is first asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.pictures import Focus, Picture, Pictured, PicturedTable
from suffice.engines.sequences.lagged import rename
from suffice.errors import ModelError
from suffice.families.protocol.family import Array, Cpd
from suffice.graphs.lagged import unrolled_name, variable_and_lag
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import ChainReading, refuse_diffuse
from suffice.models.networks import BayesNet

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike
    from suffice.engines.sequences.sequences import Sequences
    from suffice.models.chains.chain_answers import Decoded
    from suffice.models.chains.following import Following
    from suffice.statistics import Statistics


class Chain(ChainParts, PicturedTable):
    """A model of sequences. `fit`, `em` and `hmm` make one from data; this makes one from numbers.

    `cpds` holds for each variable of the template its distribution, as `BayesNet` takes it (parents in the order of the
    template), and for each node of the first slices its own under the name of its step, `"state[0]"`; with
    `first=Stationary()`, `Diffuse()` or `Given(...)` these are left out.

    >>> from suffice import Finite
    >>> fair, roll = Finite("die", ["fair", "loaded"]), Finite("roll", list("123456"))
    >>> chain = Chain("die[-1] -> die -> roll", {
    ...     "die": [[0.95, 0.05], [0.1, 0.9]], "die[0]": [0.5, 0.5],
    ...     "roll": [[1 / 6] * 6, [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]]}, variables=[fair, roll])
    >>> chain.order, chain.n_parameters, chain.stationary().round(3)
    (1, 13, array([0.667, 0.333]))
    """

    def _scene(self) -> Picture:
        return self.template._scene()

    def picture(self, against: Pictured | None = None, *, focus: Focus = None, steps: int = 1) -> Picture:
        """The template as a picture, past and present; `against` another, or the part around a `focus`.

        >>> import suffice as sf
        >>> template = sf.Template("x[-1] -> x -> y")
        >>> sf.Chain(template, {"x": [[1, 0], [0, 1]], "x[0]": [0.5, 0.5], "y": [[1, 0], [0, 1]]},
        ...     variables={"x": ["a", "b"], "y": ["a", "b"]}).picture()
        Picture of 3 nodes and 2 edges: save("x.svg"), .png or .pdf; a notebook shows it
        """
        return self._view(against, focus, steps)

    @one_blas_thread
    def stationary(self) -> Any:
        """What the transition settles to: the distribution of the joint state of the variables that carry the chain on, in the
        order of their names; of numbers their names, mean and covariance."""
        from suffice.models.chains.chain_answers import stationary_distribution

        return stationary_distribution(self)

    @one_blas_thread
    def log_prob(self, sequences: Sequences) -> Array:
        """ln p(what is seen) of each sequence, hidden and missing cells summed out; −inf of one that is impossible, which all
        other questions refuse."""
        from suffice.models.chains.chain_answers import answers

        return answers(ChainReading.of(self, sequences), names=(), smooth=False).log_prob

    @one_blas_thread
    def log_likelihood(self, sequences: Sequences | Statistics | None = None) -> float:
        """Σ ln p(sequence), each as often as its weight says; without sequences, of those the chain was fitted from."""
        from suffice.models.chains.chain_answers import answers, weighted_sum

        if sequences is not None:
            reading = ChainReading.of(self, sequences)
            return weighted_sum(reading, answers(reading, names=(), smooth=False).log_prob)
        if self.statistics is None:
            raise ModelError("this chain keeps no statistics of complete steps: give the sequences")
        return float(sum(cpd.log_likelihood_of_fit(self.statistics) for cpd in self._cpds.values()))

    def bic(self, sequences: Sequences | Statistics | None = None) -> float:
        """log-likelihood − ½ k ln N, N the number of steps: higher is better."""
        seen: Any = self.statistics if sequences is None else sequences
        return self.log_likelihood(sequences) - 0.5 * self.n_parameters * float(np.log(seen.weight))

    def aic(self, sequences: Sequences | Statistics | None = None) -> float:
        """log-likelihood − k: higher is better."""
        return self.log_likelihood(sequences) - self.n_parameters

    @one_blas_thread
    def filter(self, sequences: Sequences, *, interval: float | None = None) -> Any:
        """p(cell | what was seen up to its step) of each hidden or missing cell, a row for each row, in the kind of the input.

        Columns `state=calm` hold probabilities; of numbers there are the mean, `y`, the standard deviation, `y_sd`, and with
        `interval=0.9` the ends `y_lower`, `y_upper`.
        """
        from suffice.models.chains.chain_answers import posterior_frame

        return posterior_frame(self, sequences, interval, smooth=False)

    @one_blas_thread
    def smooth(self, sequences: Sequences, *, interval: float | None = None) -> Any:
        """p(cell | all that is seen of its sequence) of each hidden or missing cell; as `filter` gives it."""
        from suffice.models.chains.chain_answers import posterior_frame

        return posterior_frame(self, sequences, interval, smooth=True)

    @one_blas_thread
    def decode(self, sequences: Sequences, best: int = 1) -> Any:
        """The most probable states of a sequence's hidden and missing cells together, with ln p of them and of what is seen.
        Missing cells on which no others depend are no part of it: they are summed out.

        `best=5` gives a tuple of the five most probable. Gains within 1e-9 are equal, and the earlier state wins.
        """
        from suffice.models.chains.chain_answers import decode

        found: tuple[Decoded, ...] = decode(self, sequences, best)
        return found[0] if best == 1 else found

    @one_blas_thread
    def posterior_decode(self, sequences: Sequences) -> Any:
        """The most probable state of each hidden or missing cell by itself, in the input's kind of frame."""
        from suffice.models.chains.chain_answers import posterior_decode

        return posterior_decode(self, sequences)

    @one_blas_thread
    def forecast(
        self, sequences: Sequences, steps: int = 1, *, interval: float | None = None, given: RowsLike | None = None, seed: int = 0
    ) -> Any:
        """The next steps of each sequence: probabilities of states, means and deviations of numbers, a row for each step ahead.

        `given` has what is known of these steps, such as inputs: a column for each, as long as there are steps (the same for all
        sequences), or with the sequences' own column for each of them. What has no closed form is drawn by `seed`, and noted.
        """
        from suffice.models.chains.chain_forecast import forecast

        return forecast(self, sequences, steps, interval, given, seed)

    @one_blas_thread
    def sample(self, n: int = 1, length: int | None = None, seed: int | None = None, *, given: RowsLike | None = None) -> Any:
        """n sequences of so many steps, as an Arrow table with the columns `sequence` and `step`.

        With `given` sequences: n draws of their hidden and missing cells from p(cells | what is seen), as a list of frames.
        """
        from suffice.models.chains.chain_sampling import sample, sample_given

        return sample(self, n, length, seed) if given is None else sample_given(self, given, n, seed)

    @one_blas_thread
    def impute(self, sequences: Sequences, *, draws: int | None = None, seed: int = 0) -> Any:
        """The rows with every missing cell filled: by the most probable state, the mean, or by `draws` of all cells together."""
        from suffice.models.chains.chain_sampling import impute

        return impute(self, sequences, draws, seed)

    @one_blas_thread
    def update(self, more: Sequences | Statistics, *, decay: float = 1.0) -> Self:
        """The chain that all sequences together give, old and new, with the same prior; old ones keep `decay` of their weight."""
        from suffice.models.chains.chain_parts import update_chain

        return update_chain(self, more, decay)

    def follow(self, hidden: Iterable[str] | None = None) -> Following:
        """A filter that takes one row at a time: `following, answer = following.next({"y": 1.2})`."""
        from suffice.models.chains.following import Following

        return Following.of(self, hidden)

    def unroll(self, n: int) -> BayesNet:
        """The network of n steps, over `x[0]`, `x[1]`, …

        >>> from suffice import Finite
        >>> chain = Chain("x[-1] -> x", {"x": [[0.9, 0.1], [0.2, 0.8]], "x[0]": [0.5, 0.5]}, [Finite("x", ["a", "b"])])
        >>> chain.unroll(3).query("x[2]").probs.round(4)
        array([0.585, 0.415])
        """
        refuse_diffuse(self, "be unrolled into a network")
        dag, first, cpds = self.template.unroll(n), self.first, dict[str, Cpd]()
        own = {unrolled_name(x, t): rename(v, unrolled_name(x, t)) for x, v in self.variables.items() for t in range(n)}
        for t in range(n):
            for x in self.template.nodes:
                cpd: Any = first[t][x] if t < len(first) else self[x]
                places = map(variable_and_lag, cpd.parents)
                renamed = {
                    "child": own[unrolled_name(x, t)],
                    "parent_variables": tuple(own[unrolled_name(b, t - k)] for b, k in places),
                }
                unseen = {} if cpd.is_regression else {"seen": None, "imagined": None}
                cpds[unrolled_name(x, t)] = replace(cpd, **renamed, **unseen)
        return BayesNet.of(dag, own, cpds, fit_info=f"{n} steps of a chain {self.fit_info}")
