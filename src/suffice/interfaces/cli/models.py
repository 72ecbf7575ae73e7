"""Models that the command line opens and writes, graphs, and reports."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from suffice.basis.output.terminal import working
from suffice.basis.variables import Finite
from suffice.errors import FormatError, SufficeError, say
from suffice.formats import NAMES, load, read, write
from suffice.formats.registry import is_model_file
from suffice.graphs import Dag
from suffice.interfaces.cli.arguments import ARROWS, Options, option_of, refuse
from suffice.interfaces.cli.question import read_settings
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet

NO_ANSWERS = {
    "rbm": "a restricted Boltzmann machine, which has no exact answers: suffice predict gives its hidden units",
    "crf": "a conditional random field, a model of labels given all else: suffice predict labels sequences",
}
"""What is said of models that are asked for what they do not know."""

FEW = 100
"""Networks of up to so many parameters keep the observed information in their file without being asked: 2 E-steps each."""


def graph_of(text: str) -> tuple[Any, Any]:
    """A graph from a model's file (with it), a text file, or the text itself: 'a -> b; b -> c'. Of a chain, its template."""
    if any(arrow in text for arrow in ARROWS) or text.lstrip().startswith("["):
        return Dag(text), None
    if is_model(text):
        model = model_of(text)
        if model.file_kind not in ("chain", "bayes_net"):
            raise SufficeError(f"{text} holds a model without arrows, and here a Bayesian network or its graph is needed")
        return (model.template if isinstance(model, Chain) else model.dag), model
    if not Path(text).is_file():
        raise SufficeError(f"there is no file {text!r}, and it is not a graph either; write a graph like 'a -> b; b -> c'")
    return Dag(_graph_text(text)), None


def has_lines(graph: str) -> bool:
    """Whether a text without arrows, or the file that it names, is a graph or a model without arrows."""
    if is_model(graph):
        return hasattr(model_of(graph), "graph")
    text = lines_in(graph)
    return "--" in text and not any(arrow in text for arrow in ARROWS)


def lines_in(graph: str) -> str:
    """The text of an undirected graph, its own or that of the text file which it names; of the file of a model none."""
    if "--" in graph or any(arrow in graph for arrow in ARROWS):
        return graph
    return "" if is_model(graph) or not Path(graph).is_file() else _graph_text(graph)


def _graph_text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SufficeError(f"{path}: the graph cannot be read ({error})") from None


def is_model(text: str) -> bool:
    """Whether this is the name of a model: of a file, or of one that comes with the package."""
    return text in NAMES or is_model_file(text)


def model_of(text: str) -> Any:
    """A network or a chain from a file, or a bundled network by its name."""
    return load(text) if text in NAMES and not Path(text).exists() else read(text)


def network_of(text: str, instead: str) -> BayesNet:
    """A network; of one without arrows that which answers for it. A chain is refused, and what to do instead is said."""
    model = model_of(text)
    if isinstance(model, Chain):
        raise SufficeError(f"{text} holds a chain, a model of sequences: {instead}")
    refuse_answers(text, model)
    network: BayesNet = getattr(model, "directed", model)
    return network


def refuse_answers(text: str, model: Any) -> None:
    """Refuse a model that is no distribution of all of its variables, or has no exact answers."""
    if model.file_kind in NO_ANSWERS:
        raise SufficeError(f"{text} holds {NO_ANSWERS[model.file_kind]}")


def values_of(bn: BayesNet, given: dict[str, Any]) -> dict[str, Any]:
    """What stands after `=` as a network takes it: a state stays text, the value of a real node or of bins becomes a number."""
    result = dict(given)
    for name, value in given.items():
        variable = bn.variables.get(name)  # the network says best what is wrong with a name
        is_state = isinstance(variable, Finite) and (variable.cuts is None or value in variable.states)
        if variable is not None and isinstance(value, str) and not is_state:
            with suppress(ValueError):
                result[name] = float(value)
    return result


def settings_of(bn: Any, words: Sequence[str], option: str) -> dict[str, Any]:
    """What an option says of nodes, each time of one or several: `x=yes`, `x=yes, y=1.5`."""
    result: dict[str, Any] = {}
    for text in words:
        for name, value in read_settings(text, option).items():
            if name in result:
                raise SufficeError(f"{option} sets {name!r} twice")
            result[name] = value
    return values_of(bn, result)


def write_model(model: Any, out: str | None, spent: str) -> None:
    """Write a model, if there is a place for it, and say so."""
    if out is None:
        return
    write(model, out)
    say(f"{model._headline()}; {spent}; written to {out}")


def with_information(model: Any, out: str, asked: bool | None = None) -> Any:
    """The model with what its file is to have; where it cannot be found and nobody asked for it, or Ctrl-C ends that, it is
    noted."""
    kept = model.incomplete and Path(out).suffix.lower() == ".json"
    if kept and (asked or (asked is None and model.n_parameters <= FEW)):
        try:
            model.parameter_covariance  # noqa: B018 - it is kept once it was found
        except SufficeError as error:
            if asked:
                raise
            say(f"note: the file has no intervals of answers: {error.in_options()}")
        except KeyboardInterrupt:
            say("note: the file has no intervals of answers: what they need was interrupted")
    return model


def check_report(given: Options) -> None:
    """Refuse a place where no report can be written, and one beside an option that learns nothing."""
    if given.report is None:
        return
    place = Path(given.report)
    if given.dry_run:
        refuse(given, "report", "is of what was learned, and --dry-run learns nothing")
    for option in ("chain", "rbm"):
        if vars(given).get(option) is not None:
            refuse(given, "report", f"shows the tables of nodes, which models of {option_of(option)} do not have")
    if place.is_dir():
        raise FormatError("this is a directory; give the name of a file", path=place)
    if not place.parent.is_dir():
        raise FormatError(f"there is no directory {str(place.parent)!r}", path=place)
    if given.out is not None and place.resolve() == Path(given.out).resolve():
        raise FormatError("the report and the model need a file each", path=place)


def write_report(place: str | None, x: Any, data: Any = None, *, found: Any = None, held_out: Any = None) -> None:
    """Write the report of a model, whose graph was `found`, or of a run, where one is asked for, and say so."""
    if place is None:
        return
    from suffice.interfaces.reports import report
    from suffice.interfaces.reports.subject import of_search

    command = shlex.join(["suffice", *sys.argv[1:]])
    with working("writing the report"):
        report(x if found is None else of_search(found, x), data, place, held_out=held_out, command=command)
    say(f"report written to {place}")
