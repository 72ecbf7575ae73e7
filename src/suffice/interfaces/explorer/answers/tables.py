"""Tables: what their columns are, what is missing in them, what they are corrected to, and their rows one by one."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from suffice.basis.variables import Bins, Count, Finite, Real
from suffice.errors import SchemaError, SufficeError, nearest, notes_kept
from suffice.interfaces.explorer.calls import Call
from suffice.interfaces.explorer.code import Origin, in_csv
from suffice.interfaces.explorer.shelf import HeldModel, HeldTable

MOST_STATES = 200
"""States of a column that are listed."""

MOST_PATTERNS = 50
"""Patterns of missing cells that are listed."""

MOST_CASES = 500
"""Rows of a page."""


def table(request: Call) -> dict[str, Any]:
    """A table with its columns and what is missing."""
    held = request.table
    if "detail" not in held.kept:
        held.kept["detail"] = _detail(held)
    return {**held.facts(), **held.kept["detail"]}


def _detail(held: HeldTable) -> dict[str, Any]:
    from suffice.recipes.missing.missingness import missingness

    with notes_kept() as notes:
        records = held.data.schema.records()
        columns = [_column(record) for record in records]
        gaps: dict[str, Any] = {"warning": None, "patterns": []}
        if any(record["missing"] for record in records):
            report = missingness(held.data)
            patterns = [{"columns": list(p.missing), "rows": float(p.rows)} for p in report.patterns[:MOST_PATTERNS]]
            gaps = {"warning": report.warning, "patterns": patterns}
    said = dict.fromkeys([*held.data.notes, *(str(note) for note in notes)])
    return {"columns": columns, "missingness": gaps, "notes": list(said)}


def _column(record: dict[str, Any]) -> dict[str, Any]:
    counts = record.get("states", {})
    kind = {"Finite": "finite", "Count": "count"}.get(record["kind"], "real")
    notes = [*record["doubts"], *([f"{len(counts) - MOST_STATES:,} more states"] if len(counts) > MOST_STATES else [])]
    states = [{"state": state, "count": count} for state, count in list(counts.items())[:MOST_STATES]]
    ends = {"minimum": record.get("least"), "maximum": record.get("largest")}
    return {"name": record["column"], "kind": kind, "states": states, "missing": record["missing"], **ends, "notes": notes}


def schema(request: Call) -> dict[str, Any]:
    """A new table beside the old: the same rows, some of their columns declared otherwise."""
    held, asked = request.table, request.part("columns", dict)
    declared: dict[str, Any] = {}
    python, flags, ignored = [], "", []
    for name, what in asked.items():
        if name not in held.data.columns:
            raise SchemaError(f"the table has no column {name!r}{nearest(name, held.data.columns)}")
        if not isinstance(what, dict):
            raise SufficeError(f"what {name!r} is, is told by kind, states and bins")
        if what.get("kind") == "ignore":
            ignored.append(name)
            continue
        declared[name], words, option = _declaration(held, name, what)
        python.append(f"{name!r}: {words}")
        flags += f" {option}"
    kept = [name for name in held.data.columns if name not in ignored]
    if not kept:
        raise SchemaError("all columns are left out: keep one")
    data = held.data.with_variables(declared).select(kept)
    statement = f"data = data.with_variables({{{', '.join(python)}}})" if python else ""
    statement += f"\ndata = data.select({kept!r})" if ignored else ""
    flags += f" --without {shlex.quote(in_csv(ignored))}" if ignored else ""
    lines = "\n".join(line for line in (held.origin.python, statement) if line)
    origin = Origin(lines, held.origin.word, held.origin.commands, held.origin.flags + flags)
    return request.shelf.add_table(data, f"{held.name}, corrected", origin, held.path).facts()


def _declaration(held: HeldTable, name: str, what: dict[str, Any]) -> tuple[Any, str, str]:
    """What a column is to be, in Python, and as an option of the command line."""
    kind, states, bins = what.get("kind"), what.get("states"), what.get("bins")
    if bins is not None:
        if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 100:
            raise SchemaError(f"bins of {name!r} are a number from 2 to 100, not {bins!r}")
        return Bins(bins), f"sf.Bins({bins})", f"--bins {shlex.quote(f'{name}={bins}')}"
    if kind in ("real", "count"):
        word = {"real": Real, "count": Count}[kind]
        return word(name), f"sf.{word.__name__}({name!r})", f"--{kind} {shlex.quote(name)}"
    if states is not None:
        if not isinstance(states, list) or not all(isinstance(state, str) for state in states):
            raise SchemaError(f"the states of {name!r} are a list of words")
        listed = f"{name}={','.join(states)}"
        return Finite(name, states), f"sf.Finite({name!r}, {states!r})", f"--finite {shlex.quote(listed)}"
    if kind != "finite":
        raise SchemaError(f"a column is finite, real, count or ignored; {name!r} is not {kind!r}")
    return Finite, "sf.Finite", f"--finite {shlex.quote(name)}"


def cases(request: Call) -> dict[str, Any]:
    """Rows page by page, the most surprising first."""
    model, held = request.model, request.shelf.table(request.text("table"))
    order, offset = request.text("order", "surprise"), request.number("offset", 0)
    limit = request.number("limit", 50, 1, MOST_CASES)
    if order not in ("surprise", "row"):
        raise SufficeError("rows come in the order of surprise or row")
    logs, ranked = _ranking(model, held)
    numbers = (ranked if order == "surprise" else np.arange(len(logs)))[offset : offset + limit].tolist()
    data = model.network.rows(held.data)
    cells = data.cells(numbers)
    names = list(cells)
    rows = [{"row": row, "log_prob": float(logs[row]), "cells": [cells[n][i] for n in names]} for i, row in enumerate(numbers)]
    statement = "logs = bn.log_prob(data)\nanswer = sorted(range(len(logs)), key=lambda row: logs[row])"
    return {"columns": names, "rows": rows, "total": len(logs), "code": model.origin.code(statement, None, held.origin)}


def _ranking(model: HeldModel, held: HeldTable) -> tuple[Any, Any]:
    """ln p of each row, and the rows from the least probable on; kept."""
    key = ("ranked", held.id)
    if key not in model.kept:
        logs = np.asarray(model.network.log_prob(held.data))
        model.kept[key] = logs, np.argsort(logs, kind="stable")
    found: tuple[Any, Any] = model.kept[key]
    return found
