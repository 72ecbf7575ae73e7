"""UAI, the format of the inference competitions: Bayesian and Markov networks, without names.

    BAYES        or MARKOV
    2            number of variables
    2 3          number of states of each
    2            number of factors, one per variable
    1 0          scope of a factor: how many variables, and which; the last is the child
    2 0 1
    2 0.1 0.9    how many numbers a factor has, and the numbers: the child varies fastest, the first of the scope slowest
    6 ...

The factors of a MARKOV file are functions: numbers of at least 0 that need not sum to 1, any number of them over any scopes, the
same one several times or none at all ("0": a constant).

Numbers are separated by blanks, `#` opens a comment up to the end of the line. Reading names the variables x0, x1, ... and
their states 0, 1, ...; writing drops names and states, and says so.
"""

from __future__ import annotations

import math
import re
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.basis.variables import Finite
from suffice.errors import FormatError, bytes_in_words, listing, note
from suffice.formats.grammar.finite_network import MAX_PARENTS, Definition, FiniteNetwork, Numbers, check_network, declare
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.tokens import Grammar, Tokens, show

if TYPE_CHECKING:
    from suffice.models.networks import MarkovNet

_GRAMMAR = Grammar(re.compile(r"\S+"), "")


def read(text: str) -> FiniteNetwork | MarkovNet:
    tokens = Tokens(re.sub(r"#[^\n]*+", "", text), _GRAMMAR)
    undirected = tokens.accept("MARKOV")
    if not undirected and not tokens.accept("BAYES"):
        raise tokens.unexpected_token("'BAYES' or 'MARKOV'")
    sizes = _counts(tokens, tokens.count("the number of variables"), "a number of states")
    names = [f"x{k}" for k in range(len(sizes))]
    variables: dict[str, Finite] = {}
    if sum(sizes) > len(tokens.words):
        raise tokens.error(f"the variables have {sum(sizes)} states together, more than the file has numbers", tokens.at - 1)
    for name, size in zip(names, sizes, strict=True):
        declare(variables, name, map(str, range(size)), lambda: None)
    n_factors = tokens.count("the number of factors")
    if undirected:
        return _functions(tokens, variables, n_factors)
    if n_factors != len(names):
        raise tokens.error(f"there are {n_factors} factors for {len(names)} variables; a network has one for each", tokens.at - 1)
    scopes = [_scope(tokens, names) for _ in range(n_factors)]
    definitions = [_definition(tokens, scope) for scope in scopes]
    if tokens.word:
        raise tokens.unexpected_token("the end of the file")
    return check_network(variables, definitions)


def _functions(tokens: Tokens, variables: dict[str, Finite], n_factors: int) -> MarkovNet:
    """The Markov network of function tables."""
    from suffice.models.networks import MarkovNet
    from suffice.models.undirected.factor import Factor

    names = list(variables)
    if n_factors > len(tokens.words):
        raise tokens.error(f"{n_factors} factors are announced, more than the file has numbers", tokens.at - 1)
    scopes = [_scope(tokens, names, constant=True) for _ in range(n_factors)]
    tables = []
    for scope in scopes:
        at, shape = tokens.at, [variables[n].n_states for n in scope]
        what = f"the factor of {listing(scope, style='str')}" if scope else "a factor without variables"
        if len(scope) > MAX_PARENTS + 1:
            cells = math.prod(shape[:64])
            raise tokens.error(f"{what} has {cells:,} joint states or more ({bytes_in_words(8.0 * cells)}), too many", at)
        n = tokens.count(f"the number of numbers of {what}")
        wanted = next((c for c in accumulate(shape, mul, initial=1) if c > len(tokens.words)), None) or int(np.prod(shape or [1]))
        if n != wanted:
            raise tokens.error(f"{what} has {n} numbers, and its variables have {wanted} joint states", at)
        if tokens.at + n >= len(tokens.words):  # the last word of all is empty
            raise tokens.error(f"the file ends before the {n} numbers of {what}", at)
        values = tokens.numbers(tokens.words[tokens.at : tokens.at + n], tokens.at)
        tokens.at += n
        if not (np.isfinite(values).all() and (values >= 0.0).all()):
            raise tokens.error(f"{what} has the number {values.min():g}: a function table has numbers of at least 0", at)
        tables.append(values.reshape(shape))
    if tokens.word:
        raise tokens.unexpected_token("the end of the file")
    owners = [tuple(variables[n] for n in scope) for scope in scopes]
    with np.errstate(divide="ignore"):
        factors = [Factor(own, np.log(table)) for own, table in zip(owners, tables, strict=True)]
    return MarkovNet.of(variables, factors, fit_info="read from a file")


def _counts(tokens: Tokens, n: int, what: str) -> list[int]:
    if n > len(tokens.words):
        raise tokens.error(f"{n} numbers are announced, more than the file has", tokens.at - 1)
    return [tokens.count(what) for _ in range(n)]


def _scope(tokens: Tokens, names: list[str], *, constant: bool = False) -> list[str]:
    at = tokens.at
    scope = _counts(tokens, tokens.count("the size of a scope"), "a variable of a scope")
    if constant and len(set(scope)) < len(scope):
        raise tokens.error("the scope names a variable twice", at)
    if not scope and not constant:
        raise tokens.error("a factor without variables cannot be a conditional probability", at)
    if unknown := [k for k in scope if k >= len(names)]:
        raise tokens.error(f"the scope names variable {unknown[0]}; there are {len(names)}, from 0 up", at)
    return [names[k] for k in scope]


def _definition(tokens: Tokens, scope: list[str]) -> Definition:
    at = tokens.at
    n = tokens.count(f"the number of numbers of the factor of {show(scope[-1])}")
    words = tokens.words[tokens.at : tokens.at + n]
    if len(words) < n or (words and not words[-1]):
        raise tokens.error(f"the file ends before the {n} numbers of the factor of {show(scope[-1])}", at)
    values = tokens.numbers(words, tokens.at)
    tokens.at += n
    return Definition(scope[-1], tuple(scope[:-1]), Numbers(values), lambda _: tokens.line(at))


def write(network: FiniteNetwork) -> str:
    note(".uai holds no names: variables become x0, x1, ... and their states 0, 1, ...")
    index = {variable.name: str(k) for k, variable in enumerate(network.variables)}
    parts = ["BAYES", str(len(index)), " ".join(str(v.n_states) for v in network.variables), str(len(index))]
    for name, (parents, _) in network.tables.items():
        parts.append(" ".join([str(len(parents) + 1), *(index[parent] for parent in parents), index[name]]))
    for table in network.tables.values():
        parts += ["", str(table.probs.size), *table.rows()]
    return "\n".join(parts) + "\n"


def write_functions(net: MarkovNet) -> str:
    """The text of a Markov network: each factor as a function table."""
    note(".uai holds no names: variables become x0, x1, ... and their states 0, 1, ...")
    if net.statistics is not None:
        note(".uai keeps the factors, but not what they were fitted from; .json does")
    index = {name: str(k) for k, name in enumerate(net.variables)}
    parts = ["MARKOV", str(len(index)), " ".join(str(v.n_states) for v in net.variables.values()), str(len(net.factors))]
    parts += [" ".join([str(len(f.names)), *(index[n] for n in f.names)]) for f in net.factors]
    for f in net.factors:
        if f.log.max(initial=-np.inf) > 700.0:
            raise FormatError(f"the factor of {', '.join(f.names)} has numbers beyond floats, e^{f.log.max():.0f}; write .json")
        parts += ["", str(f.log.size), " ".join(map(repr, np.exp(f.log).reshape(-1).tolist()))]
    return "\n".join(parts) + "\n"


class Uai(NetworkFormat):
    """The format of files that end in .uai, of networks with and without arrows."""

    word = "uai"
    kinds = ("bayes_net", "markov_net")
    contents = "networks of finite variables"
    text = staticmethod(write)

    def read(self, text: str) -> tuple[Any, tuple[str, ...]]:
        found = read(text)
        return self.model(found) if isinstance(found, FiniteNetwork) else (found, ())

    def write(self, model: Any) -> str:
        undirected = getattr(model, "file_kind", "bayes_net") == "markov_net"
        return write_functions(model) if undirected else super().write(model)
