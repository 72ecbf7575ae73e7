"""What `suffice fit` and `suffice learn` do with sequences: the parameters of a template, or a template that is searched for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.cli.arguments import OF_GAPS, Options, note_unheard, refuse
from suffice.cli.words.objectives import check_template, objective_of, penalty_of, prior_words
from suffice.errors import SufficeError

ROWS_ONLY = "is for rows, not for sequences"

if TYPE_CHECKING:
    from suffice.engines.sequences.sequences import Sequences
    from suffice.graphs.template import Template
    from suffice.models.chain import Chain


def fit_template(given: Options) -> Chain:
    """The chain of a template, or of a known chain's, that sequences give, or saved statistics of their steps. A chain that is
    known brings its regressions, hidden variables and first slices, where nothing else is said."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words
    from suffice.formats import writable
    from suffice.graphs.template import Template
    from suffice.learning.complete.chain_fit import fit_chain

    told, prior = prior_words(given.objective, given.prior)
    check_template(objective=objective_of(told), penalty=penalty_of(given.penalty))
    refuse(given, OF_GAPS, "is for networks of rows, not for a model of sequences")
    writable(given.out, "chain")
    refuse(given, "shared group inside pooling", ROWS_ONLY)
    template, known, climbing = Template(given.dag), given.known, given.climbing
    first = None if given.first is None else words.choice(words.FIRST, given.first, "--first")
    asked: dict[str, Any] = {
        "prior": words.prior_of(prior),
        "estimate": words.choice(words.ESTIMATES, given.estimate, "--estimate"),
        "first": first,
    }
    asked["families"] = given.families
    if given.data.lower().endswith(".stats"):
        if "fixed" in climbing:
            raise SufficeError(f"--fixed is of EM, which needs the rows: {given.data} has statistics")
        return fit_chain(template, inputs.data_of(given.data, given.read), **asked)
    unseen = inputs.hidden_of(given.hidden or [], in_steps=True)
    steps = _steps(given, template, unseen)
    if known is not None:
        asked["first"] = first or known.first_slices
        asked["families"] = given.families or {n: known[n].family for n in template.nodes if known[n].is_regression}
        unseen = unseen or [known.variables[n] for n in known.hidden]
    if given.statistics:
        from suffice.families.gathering import gather

        if unseen or "fixed" in climbing or any(steps.missing.get(n, 1) for n in template.nodes):
            why = "with missing cells or hidden variables they are only expected"
            raise SufficeError(f"--statistics are of complete steps: {why}")
        gather(steps, template).save(given.statistics)
    more = asked | climbing | {"watch": partial(setattr, given, "run")}
    chain = fit_chain(template if known is None else known, steps, hidden=tuple(unseen), **more)
    if not chain.incomplete:
        note_unheard(climbing, "complete sequences need none")
    return chain


def _steps(given: Options, template: Template, hidden: list[Any]) -> Sequences:
    """The sequences of the columns of a template, which are what the model, the families and the options say."""
    from suffice.cli import inputs
    from suffice.cli.words import vocabulary as words

    columns = inputs.columns_of(given.data, given.read)
    model = given.climbing.get("start") if given.known is None else given.known
    ours = {} if model is None else {n: v for n, v in model.variables.items() if n in columns}
    by_family = words.declared_by(given.families, [n for n in template.nodes if n not in ours])
    labels = {v.name: v for v in hidden if v.name in columns}
    rows = inputs.data_of(given.data, given.read, by_family | ours | inputs.declarations(given.read) | labels)
    rows = inputs.only_columns(rows, template.nodes, given.by, given.order)
    return inputs.sequences_of(rows, given.by, given.order, given.gaps)


def found_in_words(found: Any, score: Any, told: Sequence[Any] | None, strengths: Any, *, as_json: bool) -> str:
    """What a search for arrows found, with what explains its edges and how often they are found, for a person or a program."""
    if not as_json:
        return "\n".join(map(str, [found, *(f"\n{t}" for t in told or ()), *([] if strengths is None else [f"\n{strengths!r}"])]))
    facts = {
        **found.to_dict(),
        **({} if score is None else {"score_name": repr(score)}),
        **({"explanations": [t.to_dict() for t in told]} if told is not None else {}),
    }
    return json.dumps(facts | ({} if strengths is None else {"bootstrap": strengths.to_dict()}), ensure_ascii=False)
