"""Broken and hostile files: only our own errors come out, and soon."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from suffice.errors import SufficeError
from suffice.formats import read
from tests.formats.test_formats import READERS, TEXTS

MILLION = 1_000_000
BODIES = {
    "brackets": "(" * MILLION,
    "braces": "{" * MILLION,
    "squares": "[" * MILLION,
    "quotes": '"' * MILLION,
    "escaped quotes": '"\\' * (MILLION // 2),
    "quotes in lines": '"\n' * (MILLION // 2),
    "commas": ", " * (MILLION // 2),
    "blanks": " " * MILLION,
    "one word": "a" * MILLION,
    "one number": "9" * MILLION,
    "numbers": "0.5 " * (MILLION // 4),
    "comment": "/*" + "*" * MILLION,
    "comments": "/*" * (MILLION // 2),
    "line comments": '%//#"\n' * (MILLION // 6),
    "elements": "<a>" * (MILLION // 3),
    "empty elements": "<a/>" * (MILLION // 4),
    "entities": "&lt;" * (MILLION // 4),
    "properties": "property x " * (MILLION // 11),
    "properties in lines": 'property "x\n' * (MILLION // 12),
    "nodes": "node a { } " * (MILLION // 11),
    "attributes": "a = { " * (MILLION // 6),
    "classes": "class a { " * (MILLION // 10),
    "zeros": "\0" * MILLION,
}
HEADS = {
    "bif": "variable a { type discrete [ 2 ] { x, y }; } probability ( a ) { table ",
    "net": 'net { } node a { states = ("x" "y"); } potential (a) { data = ',
    "dsc": 'belief network "u" node a { type : discrete [ 2 ] = { "x", "y" }; } probability ( a ) { ',
    "dsl": "net u { node a { TYPE = CPT; PARENTS = (); DEFINITION = { NAMESTATES = (x, y); PROBABILITIES = (",
    "uai": "BAYES 1 2 1 1 0 2 ",
    "xmlbif": "<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME></VARIABLE><DEFINITION><FOR>a</FOR><TABLE>",
    "xdsl": '<smile><nodes><cpt id="a"><state id="x"/><probabilities>',
}


@pytest.mark.parametrize("form", sorted(HEADS))
def test_a_megabyte_ends_soon(form: str) -> None:
    for name, body in BODIES.items():
        start = time.process_time()
        with pytest.raises(SufficeError) as caught:
            READERS[form].read(HEADS[form] + body)
        assert time.process_time() - start < 10.0, name  # a hang; of the processor, which others may keep busy
        assert len(str(caught.value)) < 400, name
        with pytest.raises(SufficeError):
            READERS[form].read(body[:1000])


def test_many_states_and_many_names_end_soon() -> None:
    start = time.process_time()
    states = ", ".join(f"s{k}" for k in range(100_000))
    variable = f"variable a {{ type discrete [ 100000 ] {{ {states} }}; }}"
    for block in ("probability ( a ) { table 1; }", "probability ( b ) { table 1; }"):
        with pytest.raises(SufficeError):
            READERS["bif"].read(variable + block)
    rows = "variable b { type discrete [ 1 ] { x }; } probability ( b | a ) { (s100000) 1; }"
    with pytest.raises(SufficeError, match="no state 's100000'"):
        READERS["bif"].read(variable + rows)
    assert time.process_time() - start < 20.0


def test_a_chain_of_default_tables_takes_no_memory() -> None:
    variables = "".join(f"variable v{k} {{ type discrete [ 2 ] {{ x, y }}; }}" for k in range(2000))
    blocks = "".join(
        f"probability ( v{k} | {' '.join(f'v{j}' for j in range(k + 1, k + 28))} ) {{ default 1 0; }}" for k in range(1900)
    )
    start = time.process_time()
    with pytest.raises(SufficeError):
        READERS["bif"].read(variables + blocks)
    assert time.process_time() - start < 20.0


BITS = [
    *'(){}[]"\\;,|=:<>&%#\n\0',
    "/*",
    "*/",
    "//",
    "0",
    "-1",
    "1e999",
    "nan",
    "property x",
    "default",
    "table",
    "node",
    "1_0",
    "é",
    "",
]


def broken(text: str, rng: random.Random) -> str:
    """The text with a few pieces cut, doubled, swapped or replaced."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        a = rng.randrange(len(text) + 1)
        b = min(len(text), a + rng.choice([1, 3, 20]))
        words = re.findall(r"\w+|\s+|[^\w\s]", text)
        i, j = rng.randrange(len(words) or 1), rng.randrange(len(words) or 1)
        match rng.randrange(6):
            case 0:
                text = text[:a]
            case 1:
                text = text[:a] + text[b:]
            case 2:
                text = text[:a] + rng.choice(BITS) + text[b if rng.random() < 0.5 else a :]
            case 3:
                text = text[:b] + text[a:]
            case 4 if words:
                words[i], words[j] = words[j], words[i]
                text = "".join(words)
            case 5 if words:
                words[i] = words[j]
                text = "".join(words)
    return text


@pytest.mark.parametrize("form", sorted(TEXTS))
def test_broken_files_are_read_or_refused(form: str, tmp_path: Path) -> None:
    rng = random.Random(form)
    messages = []
    for k in range(400):
        text = broken(TEXTS[form], rng)
        try:
            if k % 10:
                READERS[form].read(text)
            else:
                path = tmp_path / f"a.{form}"
                path.write_bytes(text.encode())
                read(path)
        except SufficeError as error:
            messages.append(str(error))
    assert len(messages) > 200
    assert not any("\n" in message for message in messages)
