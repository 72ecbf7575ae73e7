"""Undirected models: values that say which tables, features or units a model has, their networks, and Boltzmann machines."""

from suffice.graphs import Graph
from suffice.learning.undirected.rbm import rbm
from suffice.models.gaussian_markov_net import GaussianMarkovNet
from suffice.models.networks import MarkovNet
from suffice.models.rbm import RBM
from suffice.models.undirected.features import Features
from suffice.models.undirected.log_linear import Ising, LogLinear, Pairwise

__all__ = ["RBM", "Features", "GaussianMarkovNet", "Graph", "Ising", "LogLinear", "MarkovNet", "Pairwise", "rbm"]
