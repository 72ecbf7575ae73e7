"""What a format of files is: how a model is read from a text, and written to one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

from suffice.basis.registry import Named
from suffice.basis.variables import Finite, Variable
from suffice.errors import FormatError, listing, note
from suffice.errors.remedies import of_python
from suffice.formats.grammar.finite_network import FiniteNetwork, NetworkTable
from suffice.formats.grammar.tokens import show
from suffice.graphs import Dag

if TYPE_CHECKING:
    from suffice.models.networks import BayesNet

INSTEAD = {
    "chain": f"a chain: write .json{of_python('; chain.unroll(n) is a network of n steps')}",
    "crf": "a linear chain of labels: write .json",
    "gaussian_markov_net": "a Gaussian Markov network: write .json",
    "markov_net": "a Markov network: write .uai or .json"
    f"{of_python('; of a decomposable graph, net.to_bayes_net() is a Bayesian network')}",
    "rbm": "a restricted Boltzmann machine: write .json",
}
"""What is said of models that a format of Bayesian networks has no room for."""


@dataclass(eq=False)
class Format(Named):
    """A format of files. Its `word` is the suffix, without the dot, or several with blanks between."""

    suffix: str = ""
    """That of the file, of which `compressed` says whether `.gz` stands after it."""
    compressed: bool = False

    listed_in = "formats"
    is_xml: ClassVar[bool] = False
    """Whether a text says itself how it is encoded, as XML does."""
    read_only: ClassVar[str] = ""
    """What to do instead of writing it."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of models that it holds; none are named where it holds all."""
    contents: ClassVar[str] = "models"
    finite: ClassVar[bool] = False
    """Whether it holds only finite variables."""

    def read(self, text: str) -> tuple[Any, tuple[str, ...]]:
        """The model in a text, and what its reader should be told."""
        raise NotImplementedError

    def write(self, model: Any) -> str:
        raise NotImplementedError


class NetworkFormat(Format):
    """A format of Bayesian networks of finite variables. One of its own says `parse` and `text`."""

    kinds: ClassVar[tuple[str, ...]] = ("bayes_net",)
    contents: ClassVar[str] = "Bayesian networks"
    finite: ClassVar[bool] = True

    def parse(self, text: str) -> FiniteNetwork:
        """The network in a text."""
        raise NotImplementedError

    def text(self, network: FiniteNetwork) -> str:
        """The text of a network."""
        raise NotImplementedError

    def read(self, text: str) -> tuple[Any, tuple[str, ...]]:
        return self.model(self.parse(text))

    def model(self, network: FiniteNetwork) -> tuple[BayesNet, tuple[str, ...]]:
        """The network of these tables, and what its reader should be told."""
        from suffice.models.networks import BayesNet

        tables, names = network.tables, [v.name for v in network.variables]
        dag = Dag({name: list(table.parents) for name, table in tables.items()}, nodes=names)
        return BayesNet(dag, {n: table.probs for n, table in tables.items()}, variables=network.variables), network.notes

    def write(self, model: Any) -> str:
        return self.text(self.finite_network(model))

    def finite_network(self, bn: BayesNet) -> FiniteNetwork:
        """The tables of a network whose variables are all finite; what is dropped, such as cut points, is said."""
        from suffice.models.parts.closed_forms import as_closed_form

        suffix = self.suffix
        refuse_numbers(self, bn.variables.values(), f"model{suffix}")
        finite = [v for v in bn.variables.values() if isinstance(v, Finite)]
        if bn.statistics is not None:
            note(f"{suffix} keeps the probabilities, but not the prior and the counts behind them; .json does")
        for nodes in bn.shared:
            note(f"{suffix} keeps the tables of {listing(nodes)}, but not that they share their parameters; .json does")
        if cut := [v.name for v in finite if v.cuts is not None]:
            note(f"{suffix} does not keep where {show(cut[0])} was cut into intervals; .json does")
        if regressions := [v.name for v in finite if bn[v.name].is_regression]:
            note(f"{suffix} keeps a table of {show(regressions[0])}, but not the regression that it comes from; .json does")
        cpds: dict[str, Any] = {v.name: as_closed_form(bn[v.name]) for v in finite}
        return FiniteNetwork(tuple(finite), {name: NetworkTable(tuple(cpd.parents), cpd.probs) for name, cpd in cpds.items()})


def refuse_numbers(form: Format, variables: Iterable[Variable], path: str | PathLike[str]) -> None:
    """Refuse variables that a format of finite ones has no room for."""
    other = [v.name for v in variables if not isinstance(v, Finite)]
    if other:
        raise FormatError(
            f"{form.suffix} holds only finite variables, and {show(other[0])} is none; write .json instead", path=path
        )
