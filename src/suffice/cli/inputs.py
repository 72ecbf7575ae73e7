"""What the command line opens, graphs, models, rows and sequences, as its options say; and models that it writes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

from suffice.basis.libraries import pa
from suffice.cli.arguments import ARROWS, RowOptions, TextOptions
from suffice.cli.words.question import read_settings
from suffice.cli.words.vocabulary import GAPS, INTEGERS, Words, choice, fields
from suffice.engines.encoding.sources import Dialect, TextPath
from suffice.engines.scan import rows_of, scan, source_of
from suffice.engines.sequences.sequences import Sequences, sequences
from suffice.errors import SchemaError, SufficeError, nearest
from suffice.formats import NAMES, TABLES, load, path_of, read
from suffice.formats.registry import is_model_file
from suffice.formats.rows import checked_rows_path
from suffice.graphs import Dag
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet
from suffice.registry import find
from suffice.registry import words as words_of
from suffice.statistics import Statistics
from suffice.variables import Bins, Count, Finite, Real, Variable

NO_ANSWERS = {
    "rbm": "a restricted Boltzmann machine, which has no exact answers: suffice predict gives its hidden units",
    "crf": "a conditional random field, a model of labels given all else: suffice predict labels sequences",
}
"""What is said of models that are asked for what they do not know."""

MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "blank": " "}
"""Words for what separates columns."""

ENGINES = {"memory": 2**62, "files": 0}
"""The bytes that engines take for the rows before they use a file."""


def text_path(path: str, read: TextOptions) -> str:
    """The path of rows, with what the options say of how their text is written.

    >>> text_path("rows.csv", TextOptions(separator="tab")).dialect
    Dialect(separator='\\t', decimal='.', encoding='utf-8')
    >>> type(text_path("rows.parquet", TextOptions()))
    <class 'str'>
    """
    mark = None if read.separator is None else MARKS.get(read.separator, read.separator)
    said = (mark, read.decimal, read.encoding)
    return path if said == (None, ".", "utf-8") else TextPath(path, Dialect(*said))


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
    try:
        return Dag(Path(text).read_text("utf-8-sig")), None
    except (OSError, UnicodeDecodeError) as error:
        raise SufficeError(f"{text}: the graph cannot be read ({error})") from None


def is_model(text: str) -> bool:
    """Whether this is the name of a model: of a file, or of one that comes with the package.

    >>> is_model("asia"), is_model("a -> b")
    (True, False)
    """
    return text in NAMES or is_model_file(text)


def model_of(text: str) -> Any:
    """A network or a chain from a file, or a bundled network by its name.

    >>> len(model_of("asia"))
    8
    """
    return load(text) if text in NAMES and not Path(text).exists() else read(text)


def network_of(text: str, instead: str) -> BayesNet:
    """A network; of one without arrows that which answers for it. A chain is refused, and what to do instead is said.

    >>> len(network_of("asia", ""))
    8
    """
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
    """What stands after `=` as a network takes it: a state stays text, the value of a real node or of bins becomes a number.

    >>> values_of(model_of("asia"), {"asia": "yes", "lung": (0.1, 0.9)})
    {'asia': 'yes', 'lung': (0.1, 0.9)}
    """
    result = dict(given)
    for name, value in given.items():
        variable = bn.variables.get(name)  # the network says best what is wrong with a name
        is_state = isinstance(variable, Finite) and (variable.cuts is None or value in variable.states)
        if variable is not None and isinstance(value, str) and not is_state:
            with suppress(ValueError):
                result[name] = float(value)
    return result


def settings_of(bn: Any, words: Sequence[str], option: str) -> dict[str, Any]:
    """What an option says of nodes, each time of one or several: `x=yes`, `x=yes, y=1.5`.

    >>> settings_of(model_of("asia"), ["smoke=yes", "lung=no, tub=[0.9, 0.1]"], "--do")
    {'smoke': 'yes', 'lung': 'no', 'tub': (0.9, 0.1)}
    """
    result: dict[str, Any] = {}
    for text in words:
        for name, value in read_settings(text, option).items():
            if name in result:
                raise SufficeError(f"{option} sets {name!r} twice")
            result[name] = value
    return values_of(bn, result)


def declarations(read: TextOptions) -> dict[str, Any]:
    """`--finite a,b`, `--finite smoke=no,yes`, `--real x`, `--bins age=18,65`, `--bins age=5`, `--count visits`.

    >>> declarations(RowOptions(finite=["smoke=no,yes"], bins=["age=5"]))["age"]
    Bins(how=5, target=None, width=False)
    """
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


def hidden_of(words: Sequence[str], *, in_steps: bool = False) -> list[Variable]:
    """Hidden variables with their states, `ill=no,cold,flu`, by the rules of CSV; a number of states: `class=3`; or numbers:
    `ability:real`, `ability=real`. Of sequences a name alone is a number, and states are numbered from 0, as those of classes.

    >>> hidden_of(["ill=no,cold,flu", "class=2", "ability:real"])
    [Finite('ill', ['no', 'cold', 'flu']), Finite('class', ['1', '2']), Real('ability')]
    >>> hidden_of(["state=2", "mood=calm,wild", "level", "slope=real"], in_steps=True)
    [Finite('state', ['0', '1']), Finite('mood', ['calm', 'wild']), Real('level'), Real('slope')]
    """
    alone = "=real" if in_steps else ""
    return [_hidden_variable(text if set(text) & set("=:") else f"{text}{alone}", 0 if in_steps else 1) for text in words]


def _hidden_variable(text: str, first: int) -> Variable:
    """A hidden variable; states of which only the number is said are counted from the first."""
    name, _, kind = (part.strip() for part in text.replace(":", "=").rpartition("="))
    if name and kind.lower() == "real":
        return Real(text.strip()[: len(name)])
    name, equals, states = (part.strip() for part in text.partition("="))
    each = fields(states)
    if len(each) == 1 and each[0].isdecimal() and 2 <= int(each[0]) <= 1000:
        each = [str(i + first) for i in range(int(each[0]))]
    if not equals or not name or len(each) < 2 or not all(each):
        raise SufficeError(
            f"--hidden takes a name and at least two states, 'ill=no,cold,flu', or their number, or 'ability:real'; not {text!r}"
        )
    return Finite(name, each)


def missing_words(words: Words) -> tuple[str, ...]:
    """The words of `--missing`, each time one or several, by the rules of CSV.

    >>> missing_words(["NA,?", '"a,b"']), missing_words(None)
    (('NA', '?', 'a,b'), ())
    """
    return tuple(dict.fromkeys(word for text in words or () for word in fields(text)))


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


def most_parents(rows: Any, method: Any) -> int | None:
    """The number of parents that saved statistics were gathered for, if it is less than the method's own."""
    gathered = rows.max_parents if isinstance(rows, Statistics) else None
    return gathered if gathered and (method.max_parents is None or gathered < method.max_parents) else None


def engine_of(word: str) -> dict[str, Any]:
    """Where rows are worked on, as `scan` takes it.

    >>> engine_of("files")
    {'memory_limit': 0}
    """
    if word in ENGINES:
        return {"memory_limit": ENGINES[word]}
    engine = find("engines", word.partition(":")[0])
    if engine is None:
        raise SufficeError(f"--engine is {', '.join((*ENGINES, *words_of('engines')))} or spark:MASTER, not {word!r}")
    return {"engine": engine.of_word(word, {})}


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
    blocks = list(rows.select(names[:1]).map(attrgetter("kept"), keep=names))
    return {n: pa.chunked_array([plain_text(block[n]) for block in blocks]) for n in names}


def plain_text(cells: Any) -> Any:
    """Text without its dictionary, which is another one in each part of a file."""
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def as_known(rows: Any, bn: BayesNet, declared: Collection[str]) -> Any:
    """Rows, or statistics, with the states of a network, but for columns that the user declared."""
    if isinstance(rows, Statistics):
        return bn.summary(rows)
    return rows.with_variables({n: v for n, v in bn.variables.items() if n in rows.columns and n not in declared})


def columns_of(path: str, read: TextOptions) -> tuple[str, ...]:
    """The names of the columns of a file of rows."""
    return rows_of(text_path(path, read)).columns


def left_out(data: Any, words: Sequence[str]) -> Any:
    """The data without these columns."""
    gone = [name for word in words for name in fields(word)]
    if not hasattr(data, "columns"):
        raise SufficeError("--without leaves columns of rows out, and saved statistics have none")
    for name in gone:
        if name not in data.columns:
            raise SufficeError(f"there is no column {name!r} to leave out{nearest(name, data.columns)}")
    return data.select([name for name in data.columns if name not in gone])
