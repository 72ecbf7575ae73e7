"""Models from and to files, the format chosen by the suffix; and the networks that come with the package."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import suffice.formats.bif as bif
import suffice.formats.dsc as dsc
import suffice.formats.dsl as dsl
import suffice.formats.grammar.xml_tree as xml_tree
import suffice.formats.net as net
import suffice.formats.repository_json as repository_json
import suffice.formats.uai as uai
import suffice.formats.xdsl as xdsl
import suffice.formats.xmlbif as xmlbif
from suffice.errors import FormatError, SufficeError, TooLarge, listed, note
from suffice.formats.files import text_of, write_bytes
from suffice.formats.grammar.finite_network import FiniteNetwork, NetworkTable
from suffice.formats.grammar.tokens import shown
from suffice.formats.uai import FunctionTables
from suffice.graphs import Dag
from suffice.remedies import of_python
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.models.chain import Chain
    from suffice.models.crf import Crf
    from suffice.models.gaussian_markov_net import GaussianMarkovNet
    from suffice.models.networks import BayesNet, MarkovNet
    from suffice.models.rbm import RBM


def _read_xml(text: str) -> FiniteNetwork:
    """XMLBIF or XDSL, by the root element."""
    root = xml_tree.tree(text)
    if root.tag not in ("BIF", "smile"):
        raise FormatError(f"the root element is <{root.tag[:60]}>; it must be <BIF> (XMLBIF) or <smile> (XDSL)", line=root.line)
    return xmlbif.read_tree(root) if root.tag == "BIF" else xdsl.read_tree(root)


_XML = (".xmlbif", ".bifxml", ".xml", ".xdsl")
_READERS: dict[str, Callable[[str], FiniteNetwork | FunctionTables]] = {
    ".bif": bif.read,
    **dict.fromkeys(_XML, _read_xml),
    ".net": net.read,
    ".dsc": dsc.read,
    ".dsl": dsl.read,
    ".uai": uai.read,
}
_WRITERS: dict[str, Callable[[FiniteNetwork], str]] = {
    ".bif": bif.write,
    **dict.fromkeys((".xmlbif", ".bifxml", ".xml"), xmlbif.write),
    ".xdsl": xdsl.write,
    ".net": net.write,
    ".dsc": dsc.write,
    ".uai": uai.write,
}
_JSON = {
    "bayes_net": "model",
    "chain": "chain",
    "crf": "crf",
    "gaussian_markov_net": "markov",
    "markov_net": "markov",
    "rbm": "rbm",
}
"""The module that reads and writes each kind of model."""
_INSTEAD = {
    "chain": f"a chain: write .json{of_python('; chain.unroll(n) is a network of n steps')}",
    "crf": "a linear chain of labels: write .json",
    "gaussian_markov_net": "a Gaussian Markov network: write .json",
    "markov_net": "a Markov network: write .uai or .json"
    f"{of_python('; of a decomposable graph, net.to_bayes_net() is a Bayesian network')}",
    "rbm": "a restricted Boltzmann machine: write .json",
}
"""What is said of models that a format of Bayesian networks has no room for."""
SUFFIXES = (*_READERS, ".json")
"""The suffixes that are known, each also with `.gz`."""


def read(path: str | PathLike[str]) -> BayesNet | Chain | Crf | GaussianMarkovNet | MarkovNet | RBM:
    """The network in a file, or the chain. The suffix tells the format; `.gz` after it is a compressed file.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "coin.bif"
    >>> _ = file.write_text("variable coin { type discrete [ 2 ] { head, tail }; } probability ( coin ) { table 0.5, 0.5; }")
    >>> read(file)["coin"].probs
    array([0.5, 0.5])
    """
    place = Path(path)
    suffix, compressed = _suffix(place)
    text = text_of(place, compressed=compressed, xml=suffix in _XML)
    try:
        found, notes = model_in(text, suffix)
    except FormatError as error:
        raise error.at(place) from None
    except TooLarge as error:
        raise TooLarge(f"{place}: {error.said}") from None
    except SufficeError as error:
        raise FormatError(error.said, path=place) from None
    if notes:
        note(f"{place}: {'; '.join(notes)}")
    model: BayesNet | Chain | Crf | GaussianMarkovNet | MarkovNet | RBM = found
    return model


def model_in(text: str, suffix: str) -> tuple[Any, tuple[str, ...]]:
    """The model in the text of a file with this suffix, and what its reader should be told.

    >>> model_in("BAYES 1 2 1 1 0 2 0.5 0.5", ".uai")[0]["x0"].probs
    array([0.5, 0.5])
    """
    return _read_json(text) if suffix == ".json" else _model(_READERS[suffix](text))


def write(bn: BayesNet | Chain | Crf | GaussianMarkovNet | MarkovNet | RBM, path: str | PathLike[str]) -> None:
    """Write a network, a chain or a machine to a file, which takes the place of one that is there once it is complete.

    >>> import tempfile, pathlib
    >>> from suffice import BayesNet
    >>> bn = BayesNet("coin", {"coin": [0.5, 0.5]}, variables=[Finite("coin", ["head", "tail"])])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "coin.xdsl.gz"
    >>> write(bn, file)
    >>> read(file).variables
    mappingproxy({'coin': Finite('coin', ['head', 'tail'])})
    """
    place = Path(path)
    suffix, compressed = _suffix(place)
    writable(place)
    holds_kind(place, _kind(bn))
    model: Any = bn  # of the kind that was asked for
    try:
        if suffix == ".json":
            text = json_of(bn)
        elif _kind(bn) == "markov_net":
            text = uai.write_functions(model)
        else:
            text = _WRITERS[suffix](finite_network(model, suffix))
        data = text.encode("utf-8")
    except FormatError as error:
        raise error.at(place) from None
    except UnicodeEncodeError as error:
        raise FormatError(f"{shown(error.object[error.start - 20 : error.end])} cannot be written in UTF-8", path=place) from None
    write_bytes(place, data, compressed=compressed)


def json_of(model: Any) -> str:
    """Suffice's own JSON of a model.

    >>> from suffice import load
    >>> json_of(load("asia"))[:40]
    '{"suffice": "bayes_net", "version": 1, "'
    """
    text: str = _json(_kind(model)).write(model)
    return text


def writable(path: str | PathLike[str]) -> None:
    """Refuse a place where no network could be written, before work is done for it.

    >>> writable("model.json")
    """
    place = Path(path)
    if _suffix(place)[0] == ".dsl":
        raise FormatError(".dsl is only read; write .xdsl, which GeNIe opens as well", path=place)
    if place.is_dir():
        raise FormatError("this is a directory; give the name of a file", path=place)
    if not place.parent.is_dir():
        raise FormatError(f"there is no directory {str(place.parent)!r}", path=place)


def holds(path: str | PathLike[str], variables: Iterable[Variable]) -> None:
    """Refuse a format that has no room for variables of these kinds, before work is done for it.

    >>> holds("model.bif", [Finite("coin", ["head", "tail"])])
    """
    place = Path(path)
    suffix = _suffix(place)[0]
    other = [v.name for v in variables if not isinstance(v, Finite)]
    if other and suffix != ".json":
        raise FormatError(f"{suffix} holds only finite variables, and {shown(other[0])} is none; write .json instead", path=place)


def holds_chains(path: str | PathLike[str]) -> None:
    """Refuse a format that has no room for chains, before work is done for it.

    >>> holds_chains("chain.json.gz")
    """
    holds_kind(path, "chain")


def holds_kind(path: str | PathLike[str], kind: str) -> None:
    """Refuse a format that has no room for a kind of model, before work is done for it.

    >>> holds_kind("net.uai", "markov_net")
    """
    suffix = _suffix(Path(path))[0]
    if suffix != ".json" and kind in _INSTEAD and (suffix, kind) != (".uai", "markov_net"):
        own = "networks of finite variables" if suffix == ".uai" else "Bayesian networks"
        raise FormatError(f"{suffix} holds {own}, and this is {_INSTEAD[kind]}", path=path)


def _kind(model: Any) -> str:
    """What kind of model it is: each says so itself."""
    return str(getattr(model, "file_kind", "bayes_net"))


def _suffix(path: Path) -> tuple[str, bool]:
    """The suffix in lower case without `.gz`, and whether that was there."""
    name = path.name.lower()
    compressed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in SUFFIXES:
        raise FormatError(f"the suffix {suffix!r} is not known; known are {' '.join(SUFFIXES)}, each also with .gz", path=path)
    return suffix, compressed


def _read_json(text: str) -> tuple[Any, tuple[str, ...]]:
    """Our own JSON or that of the repositories, by its keys."""
    content = repository_json.parsed(text)
    if "suffice" in content:
        return _json(content["suffice"]).read(text), ()
    if "nodes" in content and "cpds" in content:
        return repository_json.read(text)
    raise FormatError("the JSON holds no network: it has neither the key 'suffice' nor 'nodes' and 'cpds'")


def _json(kind: object) -> Any:
    """The module that reads and writes a kind of model; what is not known is refused by that of networks."""
    module = _JSON.get(str(kind), "model")
    return importlib.import_module(f"suffice.formats.json.{module}")


def _model(network: FiniteNetwork | FunctionTables) -> tuple[Any, tuple[str, ...]]:
    if isinstance(network, FunctionTables):
        return network.net(), ()
    from suffice.models.networks import BayesNet

    dag = Dag({name: list(table.parents) for name, table in network.tables.items()}, nodes=[v.name for v in network.variables])
    return BayesNet(
        dag, {name: table.probs for name, table in network.tables.items()}, variables=network.variables
    ), network.notes


def finite_network(bn: BayesNet, suffix: str) -> FiniteNetwork:
    """The tables of a network whose variables are all finite; cut points are dropped, and that is said."""
    finite = [v for v in bn.variables.values() if isinstance(v, Finite)]
    holds(f"model{suffix}", bn.variables.values())
    if bn.statistics is not None:
        note(f"{suffix} keeps the probabilities, but not the prior and the counts behind them; .json does")
    for nodes in bn.shared:
        note(f"{suffix} keeps the tables of {listed(nodes)}, but not that they share their parameters; .json does")
    if cut := [v.name for v in finite if v.cuts is not None]:
        note(f"{suffix} does not keep where {shown(cut[0])} was cut into intervals; .json does")
    from suffice.models.parts.closed_forms import closed

    if regressions := [v.name for v in finite if bn[v.name].is_regression]:
        note(f"{suffix} keeps a table of {shown(regressions[0])}, but not the regression that it comes from; .json does")
    cpds: dict[str, Any] = {v.name: closed(bn[v.name]) for v in finite}
    return FiniteNetwork(tuple(finite), {name: NetworkTable(tuple(cpd.parents), cpd.probs) for name, cpd in cpds.items()})
