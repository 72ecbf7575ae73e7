"""One registry of all that has a word: families, priors, scores, searches, tests, objectives, engines, formats, commands.

A class that is made from `Named` and says its `word`, or its `types` in files, is found by them once its module is loaded.
Modules of the package are loaded when something of theirs is first asked for, by the table below. Those of others are entry
points of the group `suffice.KIND`, whose names are the words; they are looked for when the package has no such word.

    [project.entry-points."suffice.priors"]
    optimist = "my_module"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from suffice.errors import FormatError, SufficeError, nearest, note

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Named", "command"]

T = TypeVar("T")

PLACES: dict[str, dict[str, str]] = {
    "cpds": {
        "families.categorical": "",
        "families.conditional_gaussian": "",
        "families.chosen.exponential_node": "",
        "families.regressions.regression_cpd": "",
    },
    "distributions": {"families.chosen.node_kinds": "poisson-rate exponential geometric binomial negative-binomial gamma beta"},
    "families": {"families.categorical": ""},
    "regressions": {
        "families.regressions.linear_moments": "linear",
        "families.regressions.responses": "probit binomial poisson negative-binomial gamma-log gamma-inverse",
        "families.regressions.logistic": "logistic ordinal",
    },
    "priors": {
        "families.priors.priors": "bdeu bds k2 dirichlet",
        "families.hierarchical.hierarchical": "hierarchical",
        "families.hierarchical.logistic_normal": "logistic-normal",
        "families.priors.number_priors": "nig bge gamma known-variance",
        "families.chosen.node_kinds": "conjugate",
        "models.divergence": "",
        "models.parts.sharing": "",
    },
    "scores": {"objectives.scores": "bic aic loglik", "structure.undirected.selection": "ebic"},
    "methods": {
        "structure.methods.orders": "orders",
        "structure.methods.hill_climb": "hill-climb tabu",
        "structure.methods.ges": "ges",
        "structure.methods.exact": "exact",
        "structure.methods.chow_liu": "chow-liu tan chow-liu-graph",
        "structure.methods.pc": "pc mmhc",
        "structure.undirected.graphical_lasso": "glasso",
        "structure.undirected.neighbourhoods": "neighbourhoods",
        "structure.undirected.decomposable": "decomposable",
        "recipes.stepwise": "stepwise",
    },
    "tests": {"structure.independence": "g2 chi2 mi fisher-z likelihood-ratio"},
    "selections": {"structure.undirected.selection": "ebic stars cv"},
    "objectives": {"objectives.principles": "likelihood max-entropy pseudo cd pcd conditional perceptron margin"},
    "penalties": {"objectives.principles": "l1 l2"},
    "samplers": {"numerics.inference.sampling.sampling": "lw gibbs"},
    "engines": {"engines.spark": "spark"},
    "formats": {
        "formats.bif": "bif dsc",
        "formats.xml": "xmlbif bifxml xml xdsl",
        "formats.net": "net dsl",
        "formats.uai": "uai",
        "formats.json.model": "json",
    },
    "commands": {
        "interfaces.cli.commands.fit": "fit",
        "interfaces.cli.commands.learn": "learn",
        "interfaces.cli.commands.query": "query",
        "interfaces.cli.commands.predict": "predict impute",
        "interfaces.cli.commands.score": "score",
        "interfaces.cli.commands.data": "schema missing gather merge",
        "interfaces.cli.commands.sequences": "decode smooth filter forecast",
        "interfaces.cli.commands.show": "show draw explore report sample compare convert",
        "interfaces.cli.commands.package": "networks warm demo",
    },
}
"""Where the words of each kind are, module by module."""

_words: dict[tuple[str, str], Any] = {}
_types: dict[tuple[str, str], Any] = {}


class Named:
    """What is found by a word on the command line, or by a type in files, once it is defined.

    >>> class Lucky(Named):
    ...     listed_in, word = "priors", "lucky"
    >>> find("priors", "lucky") is Lucky
    True
    >>> del _words["priors", "lucky"]
    """

    listed_in: ClassVar[str] = ""
    """The kind of thing that it is: a key of PLACES."""
    word: ClassVar[str] = ""
    """What the command line calls it; that of distributions and formats stands in files, too."""
    types: ClassVar[tuple[str, ...]] = ()
    """What files call it; what has none is not written."""
    after_colon: ClassVar[tuple[str, Callable[[str], Any]] | None] = None
    """The argument that follows its word, as in `bdeu:10`, and what reads it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for word in cls.__dict__.get("word", "").split():
            for kind in cls.listed_in.split():
                register(kind, word, cls)
        for name in cls.__dict__.get("types", ()):
            _types[cls.listed_in, name] = cls

    @classmethod
    def of_word(cls, text: str, given: dict[str, Any]) -> Self:
        """The value of WORD or WORD:TEXT, with arguments that were given in another way."""
        word, colon, after = text.partition(":")
        name, read = cls.after_colon or ("", float)
        if colon:
            try:
                given = given | {name: read(after)}
            except ValueError:
                name = ""
            if not name:
                why = f" as its {cls.after_colon[0]}" if cls.after_colon else ": nothing stands after a colon of it"
                raise SufficeError(f"{text!r} does not take the number {after!r}{why}")
        for field in getattr(cls, "__dataclass_fields__", {}).values():
            if field.init and field.default is field.default_factory and field.name not in given:  # neither is there
                raise SufficeError(f"{text!r} needs its {field.name}: {word}:{1 if read is not str else field.name.upper()}")
        return cls(**given)


def register(kind: str, word: str, piece: T) -> T:
    """List something under its word, which nothing else may have."""
    known = _words.setdefault((kind, word), piece)
    if known is not piece and _name(known) != _name(piece):
        raise SufficeError(f"{_name(piece)} has the word {word!r} of {_name(known)}, among {kind}: give it another")
    _words[kind, word] = piece
    return piece


def command(word: str) -> Callable[[T], T]:
    """A function as a command of the command line, `suffice WORD`: its arguments are those of the command, as typer reads them.

    `word` is what stands behind `suffice`.

    >>> @command("hello-world")
    ... def hello() -> None:
    ...     print("hello")
    >>> find("commands", "hello-world") is hello
    True
    >>> del _words["commands", "hello-world"]
    """
    return lambda function: register("commands", word, function)


def words(kind: str) -> tuple[str, ...]:
    """The words of a kind: those of the package in their order, then those of others."""
    own = [word for _, several in PLACES[kind].items() for word in several.split()]
    return tuple(dict.fromkeys([*own, *sorted(_plugins(kind)), *(w for k, w in _words if k == kind)]))


def find(kind: str, word: str) -> Any:
    """What has a word; None if nothing has it."""
    if (kind, word) not in _words:
        module = next((m for m, several in PLACES[kind].items() if word in several.split()), None)
        if module is not None:
            import_module(f"suffice.{module}")
        elif word in _plugins(kind):
            _load(kind, _plugins(kind)[word])
    return _words.get((kind, word))


def look_up(kind: str, word: str, what: str, more: str = "") -> Any:
    """What has a word; a word that is not known is refused with those that are."""
    piece = find(kind, word)
    if piece is None:
        raise SufficeError(f"{what} is not known; use {', '.join(words(kind))}{more}{nearest(word, words(kind))}")
    return piece


def find_type(kind: str, name: str) -> Any:
    """What files call so; None if nothing is called so."""
    for load in (_load_package, _load_plugins):
        if (kind, name) not in _types:
            load(kind)
    return _types.get((kind, name))


def not_known(what: str) -> FormatError:
    """The refusal of something in a file that nothing here has the word or the type of."""
    return FormatError(f"{what} is not known: a package that brings it may not be installed")


def every(kind: str) -> dict[str, Any]:
    """All of a kind by their words, and by their types where they have none."""
    _load_package(kind)
    _load_plugins(kind)
    named = {word: _words[kind, word] for word in words(kind) if (kind, word) in _words}
    return named | {name: piece for (k, name), piece in _types.items() if k == kind and piece not in named.values()}


def type_of(piece: Named) -> str:
    """What files call something; refused if they could not find it again."""
    name = next(iter(piece.types), "")
    if _types.get((piece.listed_in, name)) is not type(piece):
        article = "an" if piece.listed_in[0] in "aeio" else "a"
        what = f"{article} {piece.listed_in.removesuffix('s')}"
        raise FormatError(f"{what} of the type {type(piece).__name__} cannot be written to a file")
    return name


def _load_package(kind: str) -> None:
    for module in PLACES[kind]:
        import_module(f"suffice.{module}")


def _load_plugins(kind: str) -> None:
    """All of others; of one that cannot be loaded only a note speaks, for it may not be wanted."""
    for plugin in _plugins(kind).values():
        try:
            _load(kind, plugin)
        except SufficeError as error:
            note(error.said)


@cache
def _plugins(kind: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # takes a tenth of a second

    return {plugin.name: plugin for plugin in entry_points(group=f"suffice.{kind}")}


def _load(kind: str, plugin: EntryPoint) -> None:
    of = f" of {plugin.dist.name} {plugin.dist.version}" if plugin.dist is not None else ""
    said = f"the plug-in {plugin.name!r}{of} (suffice.{kind}: {plugin.value})"
    try:
        plugin.load()
    except Exception as error:
        raise SufficeError(f"{said} cannot be loaded: {type(error).__name__}: {error}") from error
    if (kind, plugin.name) not in _words and (kind, plugin.name) not in _types:
        raise SufficeError(f"{said} defines nothing of that word: give its class word = {plugin.name!r}")


def _name(piece: Any) -> str:
    return f"{piece.__module__}.{piece.__qualname__}"
