"""The arguments that several commands share, with what `--help` says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar, get_type_hints

from typer import Argument, Option

from suffice.errors import SufficeError, listing, say

T = TypeVar("T")
Options = SimpleNamespace
"""What a command was given, by the names of its arguments, and what it made of that."""
ARROWS = ("->", "<-", "→", "←")
"""What a text has that spells a graph with arrows."""
OF_GAPS = "information missing_depends_on dry_run"
"""Options about missing cells, which only networks of rows take."""


def refuse(given: Options, names: str, why: str, instead: str = ": leave it out") -> None:
    """Refuse those of the options that were given where nothing would listen to them."""
    for name in names.split():
        if getattr(given, name):
            raise SufficeError(f"{option_of(name)} {why}{instead}")


def note_unheard(given: dict[str, Any], why: str) -> None:
    """Say which options of EM nothing listened to."""
    if unheard := [option_of(name) for name in given if name != "memory_limit"]:
        say(f"note: {listing(unheard, style='str')} {'is' if len(unheard) == 1 else 'are'} for EM: {why}")


def option_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


Model = Annotated[
    str, Argument(metavar="MODEL", help="a network, in a file whose suffix is one of <formats>, or a chain: json; also .gz")
]
DataFile = Annotated[str, Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet .conll, a glob in quotes; or .stats")]
AsJson = Annotated[bool, Option("--json", help="print JSON for a program to read")]
Weights = Annotated[str | None, Option(help="the column that holds row weights")]
Missing = Annotated[
    list[str] | None,
    Option(metavar="A,B", help="words that mean a missing cell, besides the empty cell: NA,?; one with a comma in quotes"),
]
EngineWord = Annotated[
    str | None,
    Option(
        metavar="WORD",
        help="where rows are worked on: memory, files (a spill on disk), <engines> or spark:MASTER; by default by their size",
    ),
]
Separator = Annotated[
    str | None, Option(metavar="MARK", help="what separates the columns of text: ';', tab, ...; else by the first lines")
]
Decimal = Annotated[str, Option(metavar="MARK", help="the decimal mark of text files: . or ,")]
Encoding = Annotated[str, Option(help="how text files are encoded: utf-8, latin-1, utf-16, ...")]
Unknown = Annotated[str, Option(help="states that the network does not know: refuse, or missing (taken for missing cells)")]
Integers = Annotated[str, Option(help="what whole numbers are: real, finite, or auto: finite where they have few values")]
FiniteWords = Annotated[list[str] | None, Option(help="a,b: these columns are finite; smoke=no,yes: with these states")]
RealWords = Annotated[list[str] | None, Option(help="a,b: these columns are real")]
CountWords = Annotated[list[str] | None, Option(help="a,b: these columns are counts, 0, 1, 2, ...")]
FamilyWords = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=WORD",
        help="make a node a regression on its parents, y=logistic, one of <regressions>; with a ridge y=logistic:1; "
        "n=poisson,offset=t; ill=binomial,trials=n; or give it a distribution by its finite parents, wait=gamma, one of "
        "<distributions|families>; k=binomial,n=12; k=negative-binomial,size=3 (may be repeated)",
    ),
]
MemoryLimit = Annotated[
    str | None, Option(metavar="SIZE", help="what may be taken beside the data: 2GB; what needs more is refused")
]
SharedWords = Annotated[
    list[str] | None,
    Option(
        metavar="A,B,C",
        help="these nodes have one parameter set; their parents correspond in the order of the graph (may be repeated)",
    ),
]
GroupWord = Annotated[
    str | None, Option(metavar="COLUMN", help="nodes have distributions of their own in each group of this column")
]
InsideWords = Annotated[str | None, Option(metavar="A,B", help="of --group: these nodes only; all, if not given")]
PoolingWord = Annotated[
    str | None,
    Option(
        metavar="WORD",
        help="of --group: separate (if not given), pooled, or partial; partial:10 is a strength of 10 rows; partial:dose also "
        "gives numbers random slopes of dose, and reml, reml:dose is the same by restricted likelihood",
    ),
]
HiddenWords = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=A,B,C",
        help="a variable that no row shows, with its states, or how many it has; or a number: ability:real (may be repeated)",
    ),
]
FixedWords = Annotated[
    list[str] | None,
    Option(
        metavar="NAME[=A,B]",
        help="of EM: this node stays as it is at --start, or in the model that is given; of a Gaussian maybe only its intercept, "
        "coefficients, variance, or the coefficients of some parents: level=intercept,level[-1] (may be repeated)",
    ),
]
StartModel = Annotated[str | None, Option(metavar="MODEL", help="of EM: a model's file, to begin from")]
By = Annotated[
    str | None, Option(metavar="COLUMN", help="of sequences: rows with the same cell here are one; all rows if not given")
]
Order = Annotated[
    str | None, Option(metavar="COLUMN", help="of sequences: what their rows are sorted by; as they come if not given")
]
Gaps = Annotated[str, Option(help="steps that a whole-number --order leaves out: refuse, or missing (nothing observed)")]
First = Annotated[str | None, Option(help="how sequences begin: free (if not given), stationary or diffuse")]
Chained = Annotated[str, Argument(metavar="MODEL", help="a chain, as fit writes it: .json, also .gz")]
Rows = Annotated[str, Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")]
Do = Annotated[list[str] | None, Option(metavar="X=YES", help="first set a variable from outside (may be repeated)")]
Steps = Annotated[str, Argument(metavar="DATA", help="rows of sequences: .csv .csv.gz .parquet .conll, a glob in quotes")]
Interval = Annotated[float | None, Option(metavar="LEVEL", help="0.9: of numbers also the ends of this interval")]
Keep = Annotated[list[str] | None, Option(metavar="A,B", help="copy these columns of the rows, too")]
Starts = Annotated[
    int | None, Option(help="with missing cells: so many starts; with hidden variables 10 (learn: 5), else 1", min=1)
]
CheckpointDir = Annotated[
    str | None,
    Option(metavar="DIR", help="keep what is found there while it runs: killed or stopped, the same words go on from it"),
]
BinWords = Annotated[list[str] | None, Option(help="age=18,65 or age=5: cut a column of numbers into intervals")]
Without = Annotated[list[str] | None, Option(metavar="A,B", help="leave these columns out")]
RowsOut = Annotated[str | None, Option("-o", "--out", metavar="OUT", help=".csv .csv.gz .parquet; standard output if not given")]
ReportFile = Annotated[str | None, Option(metavar="FILE", help="also write what was learned from what into one HTML file")]


@dataclass(frozen=True)
class TextOptions:
    """How rows are read from files."""

    missing: Missing = None
    separator: Separator = None
    decimal: Decimal = "."
    encoding: Encoding = "utf-8"


@dataclass(frozen=True)
class StepOptions(TextOptions):
    """How sequences are read, and where answers about them go."""

    out: RowsOut = None
    by: By = None
    order: Order = None
    gaps: Gaps = "refuse"


@dataclass(frozen=True)
class WeightOptions(TextOptions):
    """How rows are read whose columns are known."""

    engine: EngineWord = None
    weights: Weights = None


@dataclass(frozen=True)
class RowOptions(WeightOptions):
    """How rows are read, and what their columns are."""

    integers: Integers = "auto"
    finite: FiniteWords = None
    real: RealWords = None
    bins: BinWords = None
    count: CountWords = None


@dataclass(frozen=True)
class ColumnOptions(RowOptions):
    """How rows are read, what their columns are, and which are left out."""

    without: Without = None


def with_options(kind: Any) -> Callable[[T], T]:
    """A command that has all fields of a dataclass as options, too, which come to it as keywords."""

    def extend(function: Any) -> Any:
        hints = get_type_hints(function, include_extras=True) | get_type_hints(kind, include_extras=True)
        own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        more = [Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default) for f in fields(kind)]
        function.__signature__ = Signature([p.replace(annotation=hints[p.name]) for p in (*own, *more)])
        function.__annotations__ = hints
        return function

    return extend
