"""Models from and to files, the format chosen by the suffix; and the networks that come with the package."""

from __future__ import annotations

import gzip
import os
import shlex
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import FormatError, ModelError, SufficeError, TooLarge, nearest, note
from suffice.errors.remedies import Remedy
from suffice.formats.grammar.network_format import INSTEAD, Format, refuse_numbers
from suffice.formats.grammar.tokens import show
from suffice.formats.json.model import Json
from suffice.output.files import replacing, text_of
from suffice.registry import find, words
from suffice.variables import Variable

if TYPE_CHECKING:
    from suffice.models.chain import Chain
    from suffice.models.crf import Crf
    from suffice.models.gaussian_markov_net import GaussianMarkovNet
    from suffice.models.networks import BayesNet, MarkovNet
    from suffice.models.rbm import RBM


def read(path: str | PathLike[str]) -> BayesNet | Chain | Crf | GaussianMarkovNet | MarkovNet | RBM:
    """The network in a file, or the chain. The suffix tells the format; `.gz` after it is a compressed file.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "coin.bif"
    >>> _ = file.write_text("variable coin { type discrete [ 2 ] { head, tail }; } probability ( coin ) { table 0.5, 0.5; }")
    >>> read(file)["coin"].probs
    array([0.5, 0.5])
    """
    place = Path(path)
    form = _format(place, to_read=True)
    text = text_of(place, compressed=form.compressed, xml=form.is_xml)
    try:
        found, notes = form.read(text)
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
    """The model in the text of a file with this suffix, and what its reader should be told."""
    return _format(Path(f"model{suffix}")).read(text)


def write(bn: BayesNet | Chain | Crf | GaussianMarkovNet | MarkovNet | RBM, path: str | PathLike[str]) -> None:
    """Write a network, a chain or a machine to a file, which takes the place of one that is there once it is complete.

    >>> import tempfile, pathlib
    >>> from suffice import BayesNet, Finite
    >>> bn = BayesNet("coin", {"coin": [0.5, 0.5]}, variables=[Finite("coin", ["head", "tail"])])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "coin.xdsl.gz"
    >>> write(bn, file)
    >>> read(file).variables
    mappingproxy({'coin': Finite('coin', ['head', 'tail'])})
    """
    place = Path(path)
    if isinstance(bn, type) or not hasattr(bn, "file_kind"):
        raise ModelError(f"what is written is a model, such as fit(dag, data) gives, not {type(bn).__name__}")
    form = writable(place, bn.file_kind)
    try:
        data = form.write(bn).encode("utf-8")
    except FormatError as error:
        raise error.at(place) from None
    except UnicodeEncodeError as error:
        raise FormatError(f"{show(error.object[error.start - 20 : error.end])} cannot be written in UTF-8", path=place) from None
    with replacing(place) as beside:
        try:
            beside.write_bytes(gzip.compress(data, mtime=0) if form.compressed else data)
        except OSError as error:
            raise FormatError(f"the file cannot be written: {error.strerror}", path=place) from None


def json_of(model: Any) -> str:
    """Suffice's own JSON of a model."""
    return Json().write(model)


def writable(path: str | PathLike[str], kind: str | None = None, variables: Iterable[Variable] = ()) -> Format:
    """The format of `path`. A place where no model could be written, or none of this `kind` or of these `variables`, is refused,
    before work is done for it."""
    place = Path(path)
    form = _format(place)
    if form.read_only:
        raise FormatError(form.read_only, path=place)
    if place.is_dir():
        raise FormatError("this is a directory; give the name of a file", path=place)
    if not place.parent.is_dir():
        raise FormatError(f"there is no directory {str(place.parent)!r}", path=place)
    if kind is not None and form.kinds and kind not in form.kinds:
        raise FormatError(f"{form.suffix} holds {form.contents}, and this is {INSTEAD[kind]}", path=path)
    if form.finite:
        refuse_numbers(form, variables, path)
    return form


def holds(path: str | PathLike[str], variables: Iterable[Variable]) -> None:
    """Refuse a format that has no room for variables of these kinds, before work is done for it."""
    form = _format(Path(path))
    if form.finite:
        refuse_numbers(form, variables, path)


def is_model_file(path: str) -> bool:
    """Whether this is the name of a file in a format of models."""
    return find("formats", Path(path.lower().removesuffix(".gz")).suffix[1:]) is not None


ROWS = ".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow"
"""Suffixes of files that hold rows."""


def _refuse_no_model(path: Path, suffix: str) -> None:
    """Say what a file is that is no model, where that helps more than its suffix: a name that is misspelt, or a table."""
    if not path.exists() and path.parent.is_dir():
        raise FormatError(f"there is no such file{nearest(path.name, os.listdir(path.parent))}", path=path)
    if suffix in ROWS:
        first = Remedy("learn(data)", f"suffice learn {shlex.quote(str(path))} -o model.json")
        raise FormatError(f"this is a table of rows, as it seems, not a model; learn one from it first: {first}", path=path)


def _format(path: Path, *, to_read: bool = False) -> Format:
    """The format that the suffix says, in whatever case, with or without `.gz`."""
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    form = find("formats", suffix[1:])
    if form is None:
        if to_read:
            _refuse_no_model(path, suffix)
        known = " ".join(f".{word}" for word in words("formats"))
        raise FormatError(f"the suffix {suffix!r} is not known; known are {known}, each also with .gz", path=path)
    made: Format = form(suffix, name.endswith(".gz"))
    return made
