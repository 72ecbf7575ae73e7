"""JSON of any model: our own, by the kind that it says it is of, or that of the repositories, by its keys."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import suffice.formats.repository_json as repository_json
from suffice.errors import FormatError
from suffice.formats.grammar.network_format import Format

MODULES = {
    "bayes_net": "model",
    "chain": "chain",
    "crf": "crf",
    "gaussian_markov_net": "markov",
    "markov_net": "markov",
    "rbm": "rbm",
}
"""The module that reads and writes each kind of model."""


class Json(Format):
    """Suffice's own JSON, which has room for everything."""

    word = "json"

    def read(self, text: str) -> tuple[Any, tuple[str, ...]]:
        content = repository_json.parse_object(text)
        if "suffice" in content:
            return _module(content["suffice"]).read(text), ()
        if "nodes" in content and "cpds" in content:
            return repository_json.read(text)
        raise FormatError("the JSON holds no network: it has neither the key 'suffice' nor 'nodes' and 'cpds'")

    def write(self, model: Any) -> str:
        text: str = _module(kind_of_model(model)).write(model)
        return text


def kind_of_model(model: Any) -> str:
    """What kind of model it is: each says so itself."""
    return str(getattr(model, "file_kind", "bayes_net"))


def _module(kind: object) -> Any:
    """The module of a kind of model; what is not known is refused by that of networks."""
    return import_module(f"suffice.formats.json.{MODULES.get(str(kind), 'model')}")
