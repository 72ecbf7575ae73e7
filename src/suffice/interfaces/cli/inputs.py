"""What the command line reads: rows and sequences, as its options say, and what they say that columns and variables are."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from suffice.basis.libraries import pa
from suffice.basis.registry import find
from suffice.basis.registry import words as words_of
from suffice.basis.variables import Bins, Count, Finite, Real, Variable
from suffice.engines.encoding.sources import Dialect, TextPath
from suffice.engines.scan import rows_of, scan, source_of
from suffice.engines.sequences.sequences import Missing, Refuse, Sequences, sequences
from suffice.errors import SchemaError, SufficeError, nearest
from suffice.families.chosen.node_kinds import distribution_of
from suffice.families.named_families import variables_with_distributions
from suffice.formats import TABLES, path_of
from suffice.formats.rows import checked_rows_path
from suffice.interfaces.cli.arguments import RowOptions, TextOptions
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet
from suffice.statistics import Statistics

Words = Sequence[str] | None
"""What an option was given, perhaps several times, or not at all."""

MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "blank": " "}
"""Words for what separates columns."""

ENGINES = {"memory": 2**62, "files": 0}
"""The bytes that engines take for the rows before they use a file."""

INTEGERS: dict[str, dict[str, Any]] = {"auto": {}, "real": {"integers": Real}, "finite": {"integers": Finite}}
GAPS = {"refuse": Refuse(), "missing": Missing()}


def data_of(path: Any, read: TextOptions, variables: dict[str, Any] | None = None) -> Any:
    """Data from a path or a table: rows, read as those of the options say that were given, or statistics that were saved. Where
    it is not given what columns are, the options declare it, too."""
    given = {name: value for name, value in vars(read).items() if value != getattr(type(read), name) and value != []}
    if isinstance(path, str) and path in TABLES and not Path(path).exists():
        path = path_of(TABLES[path])
    if isinstance(path, str) and given.keys() & {"separator", "decimal", "encoding"}:
        path = text_path(path, read)
    if variables is None and given.keys() & {"finite", "real", "count", "bins"}:
        variables = declarations(read)
    options: dict[str, Any] = {"variables": variables or None, "weights": given.get("weights")}
    if "integers" in given:
        options |= choice(INTEGERS, given["integers"], "--integers")
    if "missing" in given:
        options["missing"] = missing_words(given["missing"])
    if "engine" in given:
        options |= engine_of(given["engine"])
    if not isinstance(path, str) or not path.lower().endswith(".stats"):
        rows: Any = scan(path, **options)
    elif any(options.values()) or "engine" in given or isinstance(path, TextPath):
        raise SufficeError(f"{path} holds statistics, not rows: columns cannot be declared, weighted or read otherwise any more")
    else:
        rows = Statistics.load(path)
    return left_out(rows, given["without"]) if "without" in given else rows


def text_path(path: str, read: TextOptions) -> str:
    """The path of rows, with what the options say of how their text is written."""
    mark = None if read.separator is None else MARKS.get(read.separator, read.separator)
    said = (mark, read.decimal, read.encoding)
    return path if said == (None, ".", "utf-8") else TextPath(path, Dialect(*said))


def declarations(read: TextOptions) -> dict[str, Any]:
    """`--finite a,b`, `--finite smoke=no,yes`, `--real x`, `--bins age=18,65`, `--bins age=5`, `--count visits`."""
    result: dict[str, Any] = {}
    if not isinstance(read, RowOptions):
        return result
    for words in read.finite or ():
        name, equals, states = words.partition("=")
        result |= {name: Finite(name, states.split(","))} if equals else dict.fromkeys(words.split(","), Finite)
    for words in read.real or ():
        result |= dict.fromkeys(words.split(","), Real)
    for words in read.count or ():
        result |= {name: Count(name) for name in words.split(",")}
    for words in read.bins or ():
        name, _, cuts = words.partition("=")
        try:
            numbers = [float(c) for c in cuts.split(",") if c.strip()]
        except ValueError:
            numbers = []
        if not numbers:
            raise SchemaError(f"--bins takes NAME=5 (a number of bins), NAME=18,65 or NAME=18, (cut points); not {words!r}")
        result[name] = Bins(numbers if "," in cuts or not numbers[0].is_integer() else int(numbers[0]))
    return result


def engine_of(word: str) -> dict[str, Any]:
    """Where rows are worked on, as `scan` takes it."""
    if word in ENGINES:
        return {"memory_limit": ENGINES[word]}
    engine = find("engines", word.partition(":")[0])
    if engine is None:
        raise SufficeError(f"--engine is {', '.join((*ENGINES, *words_of('engines')))} or spark:MASTER, not {word!r}")
    return {"engine": engine.of_word(word, {})}


def missing_words(words: Words) -> tuple[str, ...]:
    """The words of `--missing`, each time one or several, by the rules of CSV."""
    return tuple(dict.fromkeys(word for text in words or () for word in fields(text)))


def left_out(data: Any, words: Sequence[str]) -> Any:
    """The data without these columns."""
    gone = [name for word in words for name in fields(word)]
    if not hasattr(data, "columns"):
        raise SufficeError("--without leaves columns of rows out, and saved statistics have none")
    for name in gone:
        if name not in data.columns:
            raise SufficeError(f"there is no column {name!r} to leave out{nearest(name, data.columns)}")
    return data.select([name for name in data.columns if name not in gone])


def columns_of(path: str, read: TextOptions) -> tuple[str, ...]:
    """The names of the columns of a file of rows."""
    return rows_of(text_path(path, read)).columns


def as_known(rows: Any, bn: BayesNet, declared: Collection[str]) -> Any:
    """Rows, or statistics, with the states of a network, but for columns that the user declared."""
    if isinstance(rows, Statistics):
        return bn.summary(rows)
    return rows.with_variables({n: v for n, v in bn.variables.items() if n in rows.columns and n not in declared})


def read_families(words: Sequence[str]) -> dict[str, Any]:
    """Regressions of nodes: `y=logistic`, with a ridge `y=logistic:1`, with parents in a role of their own
    `n=poisson,offset=log_time` and `ill=binomial,trials=n`; and distributions by finite parents: `wait=gamma`,
    `ill=binomial,n=12`."""
    result: dict[str, Any] = {}
    for text in words:
        name, equals, rest = (part.strip() for part in text.partition("="))
        kind, *options = fields(rest) or [""]
        if not equals or not name or not kind:
            raise _no_family(text)
        if name in result:
            raise SufficeError(f"--family names {name!r} twice")
        parts = [option.partition("=") for option in options]
        result[name] = _family(text, kind.lower(), {key.strip(): value.strip() for key, _, value in parts})
    return result


def _no_family(text: str) -> SufficeError:
    return SufficeError(
        f"--family takes a node and a regression or distribution, as in 'y=logistic', 'n=poisson:1,offset=t' or 'wait=gamma'; "
        f"not {text!r}; regressions are {', '.join(words_of('regressions'))}; distributions are "
        f"{', '.join((*words_of('distributions'), *words_of('families')))}"
    )


def _family(text: str, kind: str, given: dict[str, str]) -> Any:
    """A regression, or a distribution with its known number: of a word that is both, the options tell which."""
    word = kind.partition(":")[0]
    if (of_states := find("families", word)) is not None:
        return of_states.of_word(kind, given)
    regression: Any = find("regressions", word)
    roles = [r for r in ("offset", "trials") if regression is not None and r in regression.__dataclass_fields__]
    if (regression is None or not given.keys() <= set(roles)) and find("distributions", word) is not None:
        numbers = {key: number_in(value) for key, value in given.items()}
        if kind != word or None in numbers.values():
            constant = find("distributions", word).constant
            raise SufficeError(f"--family {text}: a distribution has no ridge, and its {constant or 'options'} must be a number")
        try:
            return distribution_of(word, {key: x for key, x in numbers.items() if x is not None})
        except SufficeError as error:
            raise SufficeError(f"--family {text}: {error}") from None
    if regression is None:
        raise _no_family(text)
    if not given.keys() <= set(roles) or not all(given.values()):
        raise SufficeError(f"--family {text}: {word} takes {' and '.join(f'{k}=NAME' for k in roles) or 'no roles of parents'}")
    return regression.of_word(kind, given)


def declared_by(families: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """What the columns of regressions are by their families: counts and trials, or states even if they are written as numbers."""
    chosen: dict[str, Any] = {n: v for n, v in variables_with_distributions(families).items() if n in columns}
    families = {n: f for n, f in families.items() if n not in variables_with_distributions(families)}
    kinds = {n: f.kind for n, f in families.items()} | {f.trials: Count for f in families.values() if f.trials is not None}
    return chosen | {n: Count(n) if kind is Count else Finite for n, kind in kinds.items() if kind is not Real and n in columns}


def hidden_of(words: Sequence[str], *, in_steps: bool = False) -> list[Variable]:
    """Hidden variables with their states, `ill=no,cold,flu`, by the rules of CSV; a number of states: `class=3`; or numbers:
    `ability:real`, `ability=real`. Of sequences a name alone is a number, and states are numbered from 0, as those of classes."""
    result: list[Variable] = []
    for text in words:
        said = text if set(text) & set("=:") else f"{text}{'=real' if in_steps else ''}"
        name, _, kind = (part.strip() for part in said.replace(":", "=").rpartition("="))
        if name and kind.lower() == "real":
            result.append(Real(said.strip()[: len(name)]))
            continue
        name, equals, states = (part.strip() for part in said.partition("="))
        each = fields(states)
        if len(each) == 1 and each[0].isdecimal() and 2 <= int(each[0]) <= 1000:
            each = [str(i + (not in_steps)) for i in range(int(each[0]))]
        if not equals or not name or len(each) < 2 or not all(each):
            raise SufficeError(
                f"--hidden takes a name and at least two states, 'ill=no,cold,flu', or their number, or 'ability:real'; "
                f"not {said!r}"
            )
        result.append(Finite(name, each))
    return result


def sequences_of(rows: Any, by: str | None, order: str | None, gaps: str = "refuse") -> Sequences:
    """Which rows belong together, and in which order, as the options say."""
    if isinstance(rows, Statistics):
        raise SufficeError("the data are saved statistics, and this needs the rows of sequences")
    how = choice(GAPS, gaps, "--gaps")
    if order is None and gaps != "refuse":
        raise SufficeError("--gaps are steps that an order leaves out: give --order")
    return sequences(rows, by, order, gaps=how)


def only_columns(rows: Any, wanted: Sequence[str], by: str | None, order: str | None) -> Any:
    """Rows without columns that nobody asks for, of which nothing need be said."""
    some = [n for n in rows.columns if n in wanted]
    return rows.select([n for n in rows.columns if n in (*some, by, order)]) if some else rows


def sequences_for(chain: Chain, path: str, by: str | None, order: str | None, gaps: str, read: TextOptions) -> Sequences:
    """Sequences that a chain is asked about: states are those that it knows."""
    if path.lower().endswith(".stats"):
        raise SufficeError(f"{path} holds statistics, and a chain is asked about sequences: give their rows")
    columns = columns_of(path, read)
    rows = data_of(path, read, {n: v for n, v in chain.variables.items() if n in columns})
    return sequences_of(only_columns(rows, list(chain.variables), by, order), by, order, gaps)


def checked_out(out: str | None, data: str) -> None:
    """Refuse a place for rows that has another suffix, or that the rows come from."""
    if out is None:
        return
    checked_rows_path(out)
    if Path(out).resolve() in {Path(p).resolve() for p in getattr(source_of(data), "paths", ())}:
        raise SufficeError(f"{out} is where the rows come from: write the answers to another file")


def kept_columns(words: Words, names: Sequence[str], written: Sequence[str], what: str = "the answer") -> list[str]:
    """The columns to copy beside answers, by the rules of CSV."""
    kept = list(dict.fromkeys(name for word in words or () for name in fields(word)))
    for name in kept:
        if name not in names:
            raise SufficeError(f"there is no column {name!r} to keep{nearest(name, names)}")
        if name in written:
            raise SufficeError(f"the column {name!r} cannot be kept: {what} is written under this name")
    return kept


def beside(data: Any, keys: Sequence[str | None], keep: list[str] | None, written: Sequence[str]) -> dict[str, Any]:
    """The columns of the data that stand beside the answers, as they came."""
    rows = rows_of(data)
    named = [k for k in keys if k is not None]
    names = [*named, *(n for n in kept_columns(keep, rows.columns, [*written, *named]))]
    if not names:
        return {}
    blocks = list(rows.select(()).map(attrgetter("kept"), keep=names))  # none is read as a variable, and doubted as such
    return {n: pa.chunked_array([plain_text(block[n]) for block in blocks]) for n in names}


def plain_text(cells: Any) -> Any:
    """Text without its dictionary, which is another one in each part of a file."""
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def fields(text: str) -> list[str]:
    """What stands between commas, by the rules of CSV."""
    try:
        return [field.strip() for field in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise SufficeError(f"{text!r} is not a list with commas ({error})") from None


def number_in(text: str) -> float | None:
    """The number that a text is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def choice(table: dict[str, Any], word: str, what: str) -> Any:
    """What a word of a small table means."""
    if word not in table:
        raise SufficeError(f"{what} is {' or '.join(table)}, not {word!r}")
    return table[word]
