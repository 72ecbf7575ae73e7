"""Answers by drawing: likelihood weighting, Gibbs sampling, Boltzmann machines, annealed importance sampling. It uses finite.
Start with `sampling`."""
