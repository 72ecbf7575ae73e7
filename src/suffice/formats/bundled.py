"""What comes with the package, so that examples need no files: networks of the Bayesian network repository, and small tables.
NOTICE names their authors and licences."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple, cast

from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FormatError, SufficeNote, nearest
from suffice.formats.registry import read
from suffice.output.display import OneTable

if TYPE_CHECKING:
    from suffice.models.networks import BayesNet


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
    """The file of a bundled network or table."""
    return str(resources.files("suffice").joinpath("bundled", *bundled.file.split("/")))


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
