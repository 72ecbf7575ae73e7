"""What networks and chains have in common: a distribution for each of their nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from suffice.errors import ModelError, nearest
from suffice.families.protocol.family import Cpd
from suffice.models.parts.provenance import Provenance
from suffice.output.display import Tabular
from suffice.variables import Declaration, Finite, Variable, by_name


class NodeDistributions(Provenance, Tabular):
    """A model of distributions by node, each looked up by the node's name."""

    _word: ClassVar[str]
    """What the model is called in refusals."""
    _variables: dict[str, Variable]
    _cpds: dict[str, Cpd]
    _lines, _indent = 40, "  "

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables by name, in the order in which they were declared or stand in the file; of a chain those of a slice."""
        return MappingProxyType(self._variables)

    def __getitem__(self, name: str) -> Cpd:
        if name not in self._cpds:
            raise ModelError(f"the {self._word} has no node {name!r}{nearest(str(name), self._cpds)}")
        return self._cpds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cpds)

    def __len__(self) -> int:
        return len(self._cpds)

    def __contains__(self, name: object) -> bool:
        return name in self._cpds

    def _same_distributions(self, other: NodeDistributions) -> bool:
        return all(type(self[n]) is type(other[n]) and self[n].same(other[n]) for n in self)


def declared_variables(
    cpds: Mapping[str, object], variables: Mapping[str, Declaration] | Iterable[Variable]
) -> dict[str, Variable]:
    """The variables that a user declares beside distributions by node, {name: [states]} among them, as `scan` takes them, too."""
    if not isinstance(cpds, Mapping):
        raise ModelError(f"the distributions are given by node: {{'x': [0.5, 0.5], ...}}, not as {type(cpds).__name__}")
    declared: Any = variables
    if isinstance(variables, Mapping):
        declared = {n: Finite(n, v) if isinstance(v, (list, tuple)) else v for n, v in variables.items()}
    return by_name(declared)


def check_nodes(cpds: Mapping[str, object], known: Iterable[str], wanted: Collection[str], word: str) -> None:
    """Refuse what is no node of a graph, and a node without a distribution."""
    for name in [*cpds, *known]:
        if name not in wanted:
            raise ModelError(f"the {word} has no node {name!r}{nearest(name, wanted)}")
    if lacking := [n for n in wanted if n not in cpds]:
        raise ModelError(f"there is no distribution for the node {lacking[0]!r}")
