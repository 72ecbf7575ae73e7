"""Questions by names, and which families an answer depends on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.graphs import Dag
from suffice.inference.network import Array
from suffice.models.evidence import Observed
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet


def requisite(dag: Dag, targets: Iterable[str], observed: Collection[str], soft: Collection[str] = ()) -> tuple[str, ...]:
    """The nodes whose p(x | parents) can change p(targets | evidence), parents before children.

    `observed` have a value, `soft` only likelihoods. All other families may be left out: those of barren nodes, and those that
    the evidence cuts off. The parents of a node in the answer are in it, too, or observed. Shachter 1998, UAI 14, p. 480.

    >>> dag = Dag("a -> b -> c -> d; e -> c")
    >>> requisite(dag, ["c"], []), requisite(dag, ["c"], ["b"]), requisite(dag, ["b"], ["c"])
    (('a', 'b', 'e', 'c'), ('e', 'c'), ('a', 'b', 'e', 'c'))
    >>> requisite(dag, ["a"], []), requisite(dag, ["a"], [], soft=["b"])
    (('a',), ('a', 'b'))
    """
    above: set[str] = set()  # visited on the way up: the family counts
    below: set[str] = set()  # visited on the way down
    stack = [(x, True) for x in targets]
    while stack:
        x, from_child = stack.pop()
        seen = x in observed
        if x not in above and (seen is not from_child or x in soft):
            above.add(x)
            stack += [(parent, True) for parent in dag.parents(x)]
        if not seen and x not in below:
            below.add(x)
            stack += [(child, False) for child in dag.children(x)]
    return tuple(x for x in dag.topological_order if x in above)


@dataclass(frozen=True, eq=False)
class Question:
    """A question by names: `nodes` are those whose families matter; `observed` and `soft` is known of them or their parents.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.models.evidence import observed
    >>> a, b, c = (Finite(name, ["no", "yes"]) for name in "abc")
    >>> bn = BayesNet("a -> b -> c", {"a": [0.5, 0.5], "b": [[1, 0], [0, 1]], "c": [[1, 0], [0, 1]]}, [a, b, c])
    >>> asked = Question.of(bn, ["c"], observed(bn, {"b": "yes"}))
    >>> asked.nodes, asked.observed
    (('c',), {'b': 1})
    """

    bn: BayesNet
    targets: tuple[Variable, ...]
    evidence: Observed
    nodes: tuple[str, ...]
    observed: Mapping[str, Any]
    soft: Mapping[str, Array]

    @classmethod
    def of(cls, bn: BayesNet, targets: Sequence[str], evidence: Observed) -> Question:
        compiled = bn.compiled
        observed: dict[str, Any] = {compiled.finite[i]: int(evidence.codes[i]) for i in np.flatnonzero(evidence.codes >= 0)}
        observed |= {compiled.reals[i]: value for i, value in evidence.reals.items()}
        soft = {compiled.finite[i]: likelihood for i, likelihood in evidence.soft.items()}
        nodes = requisite(bn.dag, targets, observed, soft)
        near = {*nodes, *(p for n in nodes for p in bn.dag.parents(n))}
        return cls(
            bn,
            tuple(bn.variables[t] for t in targets),
            evidence,
            nodes,
            {n: v for n, v in observed.items() if n in near},
            {n: v for n, v in soft.items() if n in near},
        )

    @property
    def finite(self) -> tuple[Finite, ...]:
        """The targets that have states."""
        return tuple(t for t in self.targets if isinstance(t, Finite))

    @property
    def reals(self) -> tuple[str, ...]:
        """The targets that are numbers."""
        return tuple(t.name for t in self.targets if not isinstance(t, Finite))

    @property
    def free(self) -> tuple[str, ...]:
        """What matters and is not observed."""
        return tuple(n for n in self.nodes if n not in self.observed)
