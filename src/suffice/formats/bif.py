"""BIF, the Interchange Format for Bayesian Networks 0.15 and the dialects that grew from it.

    network NAME { }
    variable NAME { type discrete [ 2 ] { yes, no }; }
    probability ( CHILD | PARENT, PARENT ) { (yes, no) 0.1, 0.9;  default 0.5, 0.5;  table ...; }

Rows may stand in any order, their numbers are those of the child's states; `default` holds for the rows that are not named.
In a `table` with parents the child varies slowest and the last parent fastest. Commas may be blanks; names are words or
quoted strings (with the escapes `\\" \\\\ \\n \\r \\t`); `//` and `/* */` are comments; `property` lines are passed over, also
without their semicolon, but for `property function`, which makes a table something else. Blocks come in any order. The
writer names every row and quotes only what is no plain word.
"""

from __future__ import annotations

import re
from functools import cache

from suffice.formats.grammar.finite_network import Definition, FiniteNetwork, check_network, declare
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.probability_block import Codes, block_lines, by_name, head, read_rows, read_states
from suffice.formats.grammar.tokens import Spelling, Tokens, grammar, show, without_comments
from suffice.variables import Finite

_GRAMMAR = grammar("(){}[]|;", special=r'property(?=[ \t]+[^\s,){}|;])(?:"[^"\n]*+"|[^;\n])*+;?+|')
_FUNCTION = re.compile(r"property\s+function\b")
_word = Spelling(re.compile(r"[\w.<>=+-]+"), {"property"})


def read(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text), _GRAMMAR)
    if "," in tokens.words:
        raise tokens.error("a comma has nothing before or after it to separate", tokens.words.index(","))
    variables: dict[str, Finite] = {}
    blocks: list[int] = []
    while tokens.word:
        at = tokens.at
        if tokens.accept("network"):
            if tokens.word != "{":
                tokens.name("the name of the network")
            tokens.expect("{")
            _properties(tokens, ("}",))
            tokens.expect("}")
        elif tokens.accept("variable"):
            _read_variable(tokens, variables)
        elif tokens.accept("probability"):
            tokens.until("}")
            blocks.append(at)
        elif not _properties(tokens, ("network", "variable", "probability", "")):
            raise tokens.unexpected_token("'network', 'variable' or 'probability'")
    codes = cache(by_name)
    return check_network(variables, [_read_probability(tokens, at, variables, codes) for at in blocks])


def _properties(tokens: Tokens, follow: tuple[str, ...]) -> bool:
    """Pass over properties. One without a semicolon ends with its line, unless the next line is none of `follow`."""
    start = tokens.at
    while tokens.word.startswith(("property ", "property\t")):
        tokens.at += 1
        going_on = not tokens.words[tokens.at - 1].endswith(";") and not tokens.word.startswith("property")
        if going_on and tokens.word not in follow:
            tokens.until(";")
    return tokens.at > start


def _read_variable(tokens: Tokens, variables: dict[str, Finite]) -> None:
    start = tokens.at
    name = tokens.name("the name of a variable")
    tokens.expect("{")
    states: list[str] | None = None
    while not tokens.accept("}"):
        if _properties(tokens, ("type", "}")):
            continue
        if states is not None:
            raise tokens.unexpected_token("'}'")
        tokens.expect("type")
        states = read_states(tokens, name)
        tokens.expect(";")
    if states is None:
        raise tokens.error(f"variable {show(name)} has no type", start)
    declare(variables, name, states, lambda: tokens.line(start))


def _read_probability(tokens: Tokens, at: int, variables: dict[str, Finite], codes: Codes) -> Definition:
    tokens.at = at
    block = head(tokens, variables)
    while not tokens.accept("}"):
        if tokens.word == "(":
            read_rows(block, codes, colon=False)
        elif tokens.accept("table"):
            block.read_everything()
        elif tokens.accept("default"):
            block.read_default()
        elif _FUNCTION.match(tokens.word):
            raise tokens.error(f"variable {show(block.child.name)} is given by a function; only tables can be read")
        elif not _properties(tokens, ("(", "table", "default", "}")):
            raise tokens.unexpected_token("a row, 'table', 'default' or '}'")
    return block.definition(child_first=True)


def write(network: FiniteNetwork) -> str:
    states = {v.name: [_word(s) for s in v.states] for v in network.variables}
    parts = ["network unknown {\n}\n"]
    for name, words in states.items():
        parts.append(f"variable {_word(name)} {{\n  type discrete [ {len(words)} ] {{ {', '.join(words)} }};\n}}\n")
    return "".join([*parts, *block_lines(network, _word, states, colon="", alone="table")])


class Bif(NetworkFormat):
    """The format of files that end in .bif."""

    word = "bif"
    parse, text = staticmethod(read), staticmethod(write)
