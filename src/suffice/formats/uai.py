"""UAI, the format of the inference competitions: Bayesian networks only, without names.

    BAYES
    2            number of variables
    2 3          number of states of each
    2            number of factors, one per variable
    1 0          scope of a factor: how many variables, and which; the last is the child
    2 0 1
    2 0.1 0.9    how many numbers a factor has, and the numbers: the child varies fastest, the first of the scope slowest
    6 ...

Numbers are separated by blanks, `#` opens a comment up to the end of the line. Reading names the variables x0, x1, ... and
their states 0, 1, ...; writing drops names and states, and says so.
"""

from __future__ import annotations

import re

from suffice.errors import note
from suffice.formats.finite_network import Definition, FiniteNetwork, Numbers, declare, finished
from suffice.formats.tokens import Grammar, Tokens, shown
from suffice.variables import Finite

_GRAMMAR = Grammar(re.compile(r"\S+"), "")


def read(text: str) -> FiniteNetwork:
    tokens = Tokens(re.sub(r"#[^\n]*+", "", text), _GRAMMAR)
    if tokens.word == "MARKOV":
        raise tokens.error("the file holds a Markov network; undirected models cannot be read yet, only BAYES files")
    tokens.expect("BAYES")
    sizes = _counts(tokens, tokens.count("the number of variables"), "a number of states")
    names = [f"x{k}" for k in range(len(sizes))]
    variables: dict[str, Finite] = {}
    if sum(sizes) > len(tokens.words):
        raise tokens.error(f"the variables have {sum(sizes)} states together, more than the file has numbers", tokens.at - 1)
    for name, size in zip(names, sizes, strict=True):
        declare(variables, name, map(str, range(size)), lambda: None)
    n_factors = tokens.count("the number of factors")
    if n_factors != len(names):
        raise tokens.error(f"there are {n_factors} factors for {len(names)} variables; a network has one for each", tokens.at - 1)
    scopes = [_scope(tokens, names) for _ in range(n_factors)]
    definitions = [_definition(tokens, scope) for scope in scopes]
    if tokens.word:
        raise tokens.unexpected("the end of the file")
    return finished(variables, definitions)


def _counts(tokens: Tokens, n: int, what: str) -> list[int]:
    if n > len(tokens.words):
        raise tokens.error(f"{n} numbers are announced, more than the file has", tokens.at - 1)
    return [tokens.count(what) for _ in range(n)]


def _scope(tokens: Tokens, names: list[str]) -> list[str]:
    at = tokens.at
    scope = _counts(tokens, tokens.count("the size of a scope"), "a variable of a scope")
    if not scope:
        raise tokens.error("a factor without variables cannot be a conditional probability", at)
    if unknown := [k for k in scope if k >= len(names)]:
        raise tokens.error(f"the scope names variable {unknown[0]}; there are {len(names)}, from 0 up", at)
    return [names[k] for k in scope]


def _definition(tokens: Tokens, scope: list[str]) -> Definition:
    at = tokens.at
    n = tokens.count(f"the number of numbers of the factor of {shown(scope[-1])}")
    words = tokens.words[tokens.at : tokens.at + n]
    if len(words) < n or (words and not words[-1]):
        raise tokens.error(f"the file ends before the {n} numbers of the factor of {shown(scope[-1])}", at)
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
