"""Models from and to files, the format chosen by the suffix; and what comes with the package, so that examples need no files:
networks of the Bayesian network repository, and small tables, whose authors and licences NOTICE names."""

from __future__ import annotations

import gzip
import os
import shlex
import warnings
from collections.abc import Iterable
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from suffice.basis.output.display import OneTable
from suffice.basis.output.files import replacing, text_of
from suffice.basis.registry import find, words
from suffice.basis.variables import Variable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FormatError, ModelError, SufficeError, SufficeNote, TooLarge, nearest, note
from suffice.errors.remedies import Remedy
from suffice.formats.grammar.network_format import INSTEAD, Format, refuse_numbers
from suffice.formats.grammar.tokens import show
from suffice.formats.json.model import Json

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
    before work is done for it.

    >>> from suffice import Finite
    >>> writable("model.bif", "bayes_net", [Finite("coin", ["head", "tail"])]).suffix
    '.bif'
    """
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
    """Refuse a format that has no room for variables of these kinds, before work is done for it.

    >>> from suffice import Finite
    >>> holds("model.bif", [Finite("coin", ["head", "tail"])])
    """
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


class Bundled(NamedTuple):
    """A network or a table that comes with the package."""

    name: str
    size: str
    about: str
    file: str


def _network(name: str, nodes: int, edges: int, parameters: int, about: str) -> Bundled:
    """A network of tables, or a Gaussian one, as it says itself."""
    file = f"{name}.json" if about.endswith(", Gaussian") else f"{name}.bif.gz"
    return Bundled(name, f"{nodes:,} nodes, {edges:,} edges, {parameters:,} parameters", about, file)


def _rows(name: str, rows: int, columns: int, about: str, file: str | None = None) -> Bundled:
    return Bundled(name, f"{rows:,} rows, {columns:,} columns", about, f"tables/{file or f'{name}.csv'}")


NETWORKS = {
    b.name: b
    for b in (
        _network("alarm", 37, 46, 509, "monitoring of patients"),
        _network("arth150", 107, 150, 364, "genes of thale cress, Gaussian"),
        _network("asia", 8, 8, 18, "lung disease, after a journey"),
        _network("cancer", 5, 4, 10, "lung cancer"),
        _network("diabetes", 413, 602, 429_409, "insulin, hour by hour"),
        _network("earthquake", 5, 4, 10, "an alarm, and who calls"),
        _network("ecoli70", 46, 70, 162, "genes of E. coli, Gaussian"),
        _network("hailfinder", 56, 66, 2_656, "severe weather in Colorado"),
        _network("insurance", 27, 52, 1_008, "risks of cars"),
        _network("link", 724, 1_125, 14_211, "a pedigree"),
        _network("magic-niab", 44, 66, 154, "traits and genes of wheat, Gaussian"),
        _network("mildew", 35, 46, 540_150, "mildew in winter wheat"),
        _network("munin", 1_041, 1_397, 80_592, "nerves and muscles"),
        _network("munin1", 186, 273, 15_622, "nerves and muscles, a part"),
        _network("munin2", 1_003, 1_244, 69_431, "nerves and muscles, a part"),
        _network("munin3", 1_041, 1_306, 71_059, "nerves and muscles, a part"),
        _network("munin4", 1_038, 1_388, 80_352, "nerves and muscles, a part"),
        _network("pathfinder", 109, 195, 72_079, "diseases of lymph nodes"),
        _network("pigs", 441, 592, 5_618, "a pedigree of pigs"),
        _network("sachs", 11, 17, 178, "proteins in cells"),
        _network("survey", 6, 6, 21, "who travels how"),
    )
}
TABLES = {
    b.name: b
    for b in (
        _rows("anes96", 944, 10, "an election study, 1996"),
        _rows("auto_mpg", 392, 8, "cars and their mileage"),
        _rows("bridges", 108, 12, "bridges of Pittsburgh, some cells missing", "pittsburgh_bridges.csv"),
        _rows("galton", 898, 5, "heights of parents and children"),
        _rows("penguins", 344, 8, "penguins of three species, some cells missing"),
        _rows("randhie", 20_190, 10, "visits to a doctor, and who pays", "randhie.csv.gz"),
        _rows("south_german_credit", 1_000, 21, "credits, and whether they were paid back"),
        _rows("student_performance", 395, 33, "pupils, their homes and grades"),
    )
}
NAMES = tuple(NETWORKS)
"""The networks that come with the package."""


class Listing(OneTable, tuple[str, ...]):
    """Names of what comes with the package; prints as a table."""

    __slots__ = ()

    def _table(self) -> tuple[list[str], list[list[object]]]:
        known = {**NETWORKS, **TABLES}
        return ["name", "size", "what"], [[name, known[name].size, known[name].about] for name in self]


def networks() -> Listing:
    """The networks that come with the package, which `load` gives by their names.

    >>> "alarm" in networks(), len(networks())
    (True, 21)
    """
    return Listing(NETWORKS)


def tables() -> Listing:
    """The tables that come with the package, which `table` gives by their names.

    >>> tables()
    name                 size                     what
    ───────────────────  ───────────────────────  ─────────────────────────────────────────────
    anes96               944 rows, 10 columns     an election study, 1996
    auto_mpg             392 rows, 8 columns      cars and their mileage
    bridges              108 rows, 12 columns     bridges of Pittsburgh, some cells missing
    galton               898 rows, 5 columns      heights of parents and children
    penguins             344 rows, 8 columns      penguins of three species, some cells missing
    randhie              20,190 rows, 10 columns  visits to a doctor, and who pays
    south_german_credit  1,000 rows, 21 columns   credits, and whether they were paid back
    student_performance  395 rows, 33 columns     pupils, their homes and grades
    """
    return Listing(TABLES)


def table(name: str) -> Data:
    """A table that comes with the package, as `scan` gives it.

    >>> table("penguins").n_rows
    344
    """
    if name not in TABLES:
        raise DataError(f"there is no bundled table {name!r}{nearest(str(name), TABLES)}; there are {', '.join(TABLES)}")
    return scan(path_of(TABLES[name]))


def path_of(bundled: Bundled) -> str:
    """The file of a bundled network or table.

    >>> path_of(TABLES["penguins"]).endswith("penguins.csv")
    True
    """
    return str(resources.files("suffice").joinpath("formats", "bundled", *bundled.file.split("/")))


@cache
def load(name: str) -> BayesNet:
    """A network of the Bayesian network repository that comes with the package; `networks()` lists them.

    >>> load("asia").dag.parents("either")
    ('lung', 'tub')
    """
    if name not in NETWORKS:
        raise FormatError(f"there is no bundled network {name!r}{nearest(str(name), NAMES)}; there are {', '.join(NAMES)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        return cast("BayesNet", read(path_of(NETWORKS[name])))
