"""Each format: what it accepts, in which order its numbers stand, what it refuses, and that it reads what it wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.basis.registry import every
from suffice.basis.variables import Finite
from suffice.errors import FormatError, SufficeError, SufficeNote, TooLarge
from suffice.formats import uai
from suffice.formats.bif import Bif, Dsc
from suffice.formats.grammar.finite_network import FiniteNetwork, NetworkTable
from suffice.formats.net import Dsl, Net
from suffice.formats.xml import Xdsl, XmlBif, read_xml

bif, dsc, net = (SimpleNamespace(read=form.parse, write=form.text) for form in (Bif, Dsc, Net))
xmlbif, xdsl = (SimpleNamespace(read=form.parse, write=form.text) for form in (XmlBif, Xdsl))
dsl = SimpleNamespace(read=Dsl.parse)
WRITERS = {"bif": bif, "xmlbif": xmlbif, "net": net, "dsc": dsc, "xdsl": xdsl}

BIF = """network wet { property version 1; }
variable rain { type discrete [ 2 ] { no, yes }; }
variable pump { type discrete [ 3 ] { off, low, high }; }
variable wet { type discrete [ 2 ] { no, yes }; }
probability ( rain ) { table 0.8, 0.2; }
probability ( pump ) { table 0.5, 0.3, 0.2; }
probability ( wet | rain, pump ) {
  (no, off) 1.0, 0.0;
  (yes, off) 0.3, 0.7;
  (no, low) 0.6, 0.4;
  (yes, low) 0.2, 0.8;
  (no, high) 0.5, 0.5;
  (yes, high) 0.1, 0.9;
}
"""

XMLBIF = """<?xml version="1.0"?>
<!DOCTYPE BIF [ <!ELEMENT BIF (NETWORK)*> <!ATTLIST BIF VERSION CDATA #REQUIRED> ]>
<BIF VERSION="0.3"><NETWORK><NAME>wet</NAME>
<VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><!-- between -->
<OUTCOME>yes</OUTCOME><PROPERTY>x = 1</PROPERTY></VARIABLE>
<VARIABLE><NAME> pump </NAME><OUTCOME>off</OUTCOME><OUTCOME>low</OUTCOME><OUTCOME>high</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>wet</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>
<DEFINITION><FOR>pump</FOR><TABLE>0.5 <!-- low --> 0.3 0.2</TABLE></DEFINITION>
<DEFINITION><FOR>wet</FOR><GIVEN>rain</GIVEN><GIVEN>pump</GIVEN><TABLE>
  1 0  .6 .4  .5 .5
  .3 .7  .2 .8  .1 .9</TABLE></DEFINITION>
</NETWORK></BIF>
"""

NET = """% a comment with a " in it
net { node_size = (80 40); HR_Desc = "a \\"long\\" text; with % and } in it"; }
node rain { states = ("no" "yes"); label = "Rain?"; }
discrete node pump { states = ("off" "low" "high"); position = (1 2); }
node wet { states = ("no" "yes"); subtype = label; }
potential (rain) { data = ( 80 20 ); }
potential (pump) { data = ( 0.5 0.3 0.2 ); }
potential (wet | rain pump) {
  data = ((( 1 0 )	% rain=no pump=off
           ( 0.6 0.4 )
           ( 1 1 ))
          (( 3 7 )
           ( 0.2 0.8 )
           ( 0.1 0.9 )));
}
"""

DSC = """belief network "wet" // a comment
node rain { name : "Rain?"; type : discrete [ 2 ] = { "no", "yes" }; position : (1, 2); }
node pump { type : discrete [ 3 ] = { "off", "low", "high" }; }
node wet { type : discrete [ 2 ] = { "no", "yes" }; }
probability ( rain ) { 0.8, 0.2; }
probability ( pump ) { 0.5, 0.3, 0.2; }
probability ( wet | rain, pump ) {
  (0, 0) : 1, 0;
  (1, 0) : 0.3, 0.7;
  (0, 1) : 0.6, 0.4;
  (1, 1) : 0.2, 0.8;
  (0, 2) : 0.5, 0.5;
  (1, 2) : 0.1, 0.9;
}
"""

DSL = """net wet
{
  HEADER = { ID = wet; NAME = "Wet; {really}"; };
  node rain { TYPE = CPT; HEADER = { ID = rain; }; PARENTS = ();
    DEFINITION = { NAMESTATES = (no, yes); PROBABILITIES = (0.8, 0.2); }; };
  node pump { TYPE = CPT; SCREEN = { POSITION = { X = 1; }; }; PARENTS = ();
    DEFINITION = { NAMESTATES = (off, low, high); PROBABILITIES = (0.5, 0.3, 0.2); }; };
  node wet { TYPE = CPT; PARENTS = (rain, pump); // row by row
    DEFINITION = { NAMESTATES = (no, yes); PROBABILITIES = (1, 0, 0.6, 0.4, 0.5, 0.5, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9); }; };
  OBSERVATION_COST = { node rain { PARENTS = (); COSTS = (0.0); }; };
};
"""

XDSL = """<?xml version="1.0" encoding="ISO-8859-1"?>
<smile version="1.0" id="wet"><nodes>
<cpt id="rain"><state id="no" /><state id="yes" /><probabilities>0.8 0.2</probabilities></cpt>
<cpt id="pump"><state id="off" /><state id="low" /><state id="high" /><probabilities>0.5 0.3 0.2</probabilities></cpt>
<cpt id="wet"><state id="no" /><state id="yes" /><parents>rain pump</parents>
<probabilities>1 0 0.6 0.4 0.5 0.5 0.3 0.7 0.2 0.8 0.1 0.9</probabilities></cpt>
</nodes><extensions><genie version="1.0" app="GeNIe"><node id="rain"><name>Rain?</name></node></genie></extensions></smile>
"""

UAI = """# a comment
BAYES
3
2 3 2   # rain pump wet
3
1 0
1 1
3 0 1 2

2
 0.8 0.2
3
 0.5 0.3 0.2
12
 1 0 0.6 0.4 0.5 0.5
 0.3 0.7 0.2 0.8 0.1 0.9
"""

TEXTS = {"bif": BIF, "xmlbif": XMLBIF, "net": NET, "dsc": DSC, "dsl": DSL, "xdsl": XDSL, "uai": UAI}
READERS: dict[str, Any] = {"bif": bif, "xmlbif": xmlbif, "net": net, "dsc": dsc, "dsl": dsl, "xdsl": xdsl, "uai": uai}
WET = [[[1.0, 0.0], [0.6, 0.4], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8], [0.1, 0.9]]]


def same(a: FiniteNetwork, b: FiniteNetwork) -> bool:
    tables = a.tables.keys() == b.tables.keys() and all(
        a.tables[n].parents == b.tables[n].parents and np.array_equal(a.tables[n].probs, b.tables[n].probs) for n in a.tables
    )
    return tables and a.variables == b.variables


def refusal(form: str, text: str) -> str:
    with pytest.raises(FormatError) as caught:
        READERS[form].read(text)
    return str(caught.value)


def changed(form: str, old: str, new: str) -> str:
    assert TEXTS[form].count(old) >= 1
    return TEXTS[form].replace(old, new, 1)


@pytest.mark.parametrize("form", TEXTS)
def test_one_network_in_every_format(form: str) -> None:
    network = READERS[form].read(TEXTS[form])
    if form == "uai":
        assert [v.name for v in network.variables] == ["x0", "x1", "x2"]
        assert network.variables[1].states == ("0", "1", "2")
    else:
        assert network.variables == (
            Finite("rain", ["no", "yes"]),
            Finite("pump", ["off", "low", "high"]),
            Finite("wet", ["no", "yes"]),
        )
    rain, pump, wet = network.tables.values()
    np.testing.assert_allclose(rain.probs, [0.8, 0.2], rtol=1e-15)
    np.testing.assert_allclose(wet.probs, WET, rtol=1e-15)
    assert pump.parents == ()
    assert not wet.probs.flags.writeable
    with pytest.raises(AttributeError):
        network.notes = ()  # type: ignore[misc]


@pytest.mark.parametrize("form", TEXTS)
def test_cut_anywhere_is_refused(form: str) -> None:
    text = TEXTS[form].rstrip()
    complete = READERS[form].read(text)
    for end in range(len(text) - (2 if form == "dsl" else 1)):
        try:
            network = READERS[form].read(text[:end])
        except FormatError:
            continue
        # UAI knows no end but its last number, which may be cut to another number with the same value
        assert form == "uai"
        assert same(network, complete)


def test_every_format_is_here() -> None:
    """UAI, whose files have no names, and JSON, which is for all models, have tests of their own."""
    forms = every("formats")
    assert {forms[word] for word in (*READERS, "json")} == set(forms.values())
    assert {forms[word] for word in (*WRITERS, "uai", "json")} == {form for form in forms.values() if not form.read_only}


@pytest.mark.parametrize("form", WRITERS)
def test_written_is_read_back_bit_by_bit(form: str) -> None:
    network = odd_network()
    text = WRITERS[form].write(network)
    assert same(WRITERS[form].read(text), network)
    assert WRITERS[form].write(WRITERS[form].read(text)) == text


def odd_network() -> FiniteNetwork:
    """Names and states that no format has words for, a variable of one state, children before parents."""
    names = ['the "child" \\n', "property", "naïve Größe", "0<x", "x", "ends with space ", "日本"]
    states = [
        ["a b", " a", "a,b", '"a"', "a", "\\", "\\n", "line\nend\r\t", "(", "table", "property", "//", "/*", "%", "&amp;", "<5"],
        ["0", "1"],
        ["1", "0"],
        ["only"],
        ["yes", "no", "y es"],
        ["property x", ";", "}"],
        ["はい", "\u2028", "\xa0"],
    ]
    variables = tuple(Finite(n, s) for n, s in zip(names, states, strict=True))
    rng = np.random.default_rng(0)
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    parents[names[0]] = (names[3], names[2], names[1])
    parents[names[1]] = (names[4], names[5])
    parents[names[2]] = (names[6],)
    sizes = {v.name: v.n_states for v in variables}
    tables = {}
    for name in names:
        shape = tuple(sizes[p] for p in parents[name])
        probs = rng.dirichlet(np.full(sizes[name], 0.3), shape)
        tables[name] = NetworkTable(parents[name], probs)
    return FiniteNetwork(variables, tables)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(WRITERS)),
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1),
        min_size=2,
        max_size=4,
        unique=True,
    ),
    st.integers(0, 10**6),
)
def test_any_names_survive(form: str, words: list[str], seed: int) -> None:
    names = [word for word in words if word.strip()] or ["x"]
    variables = tuple(Finite(name, words) for name in names)
    rng = np.random.default_rng(seed)
    tables = {}
    for k, name in enumerate(names):
        shape = (len(words),) * k
        tables[name] = NetworkTable(tuple(reversed(names[:k])), rng.dirichlet(np.ones(len(words)), shape))
    network = FiniteNetwork(variables, tables)
    assert same(WRITERS[form].read(WRITERS[form].write(network)), network)


def test_uai_keeps_the_numbers_and_says_what_it_drops() -> None:
    network = odd_network()
    with pytest.warns(SufficeNote, match="no names"):
        text = uai.write(network)
    read = uai.read(text)
    for old, new in zip(network.tables.values(), read.tables.values(), strict=True):
        assert np.array_equal(old.probs, new.probs)


def test_xml_cannot_hold_control_characters() -> None:
    network = FiniteNetwork((Finite("x", ["a\x01", "b"]),), {"x": NetworkTable((), np.array([0.5, 0.5]))})
    with pytest.raises(FormatError, match=r"'a\\x01' holds the character .* write .json"):
        xmlbif.write(network)
    assert same(xdsl.read(xdsl.write(network)), network)


class TestSums:
    """What holds in every format, shown in BIF."""

    def text(self, row: str) -> str:
        return f"variable x {{ type discrete [ 3 ] {{ a, b, c }}; }}\nprobability ( x ) {{\n  table {row};\n}}"

    def test_a_small_error_is_scaled_away_with_one_note(self) -> None:
        network = bif.read(self.text("0.333333, 0.333333, 0.333333"))
        assert network.tables["x"].probs.sum() == pytest.approx(1.0, abs=1e-15)
        assert network.notes == ("1 row was divided by its sum, which was not exactly 1",)

    def test_the_worst_of_rounded_rows_is_named(self) -> None:
        network = bif.read(self.text("0.33333, 0.33333, 0.33333"))
        assert network.tables["x"].probs == pytest.approx(1 / 3)
        told = "1 row was divided by its sum, which was not exactly 1; the worst is variable 'x', whose numbers sum to 0.99999"
        assert network.notes == (told,)
        text = changed("bif", "(no, low) 0.6", "(no, low) 0.60005")
        assert "the worst is variable 'wet' given rain=no, pump=low, whose numbers sum to 1.00005" in bif.read(text).notes[0]

    def test_rounding_is_left_alone(self) -> None:
        network = bif.read(self.text("0.1, 0.2, 0.7000000000000001"))
        assert network.tables["x"].probs[2] == 0.7000000000000001
        assert network.notes == ()

    def test_minus_zero_is_zero(self) -> None:
        assert str(bif.read(self.text("-0.0 1 0")).tables["x"].probs[0]) == "0.0"

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("0.3, 0.3, 0.3", "line 2: variable 'x': the probabilities sum to 0.9, not to 1"),
            ("0.333, 0.333, 0.333", "sum to 0.999, not to 1"),
            ("0.33329, 0.3333, 0.3333", "sum to 0.99989, not to 1"),
            ("-0.1, 0.6, 0.5", "the probability -0.1 is negative"),
            ("nan, 0.5, 0.5", "line 3: nan is not a probability"),
            ("-inf, 0.5, 0.5", "-inf is not a probability"),
            ("1e999, 0, 0", "the probability inf is not a finite number"),
            ("0.5, 0.5", "has 2 numbers; its 3 states and 0 parents need 3"),
            ("0.5, 0.5, 0, 0", "has 4 numbers"),
            ("0_5, 0.5, 0", "'0_5' is not a number"),
            ("0.5, 0.5, x", "line 3: 'x' is not a number"),
            ("0.5, 0.5, 1e", "'1e' is not a number"),
            ("0.5, 0.5, ٠", "is not a number"),
            ("0.5,, 0.5, 0", "line 3: a comma has nothing before or after it"),
            ("0.5, 0.5, 0,", "a comma has nothing"),
            ("", "has 0 numbers"),
        ],
    )
    def test_what_is_refused(self, row: str, message: str) -> None:
        assert message in refusal("bif", self.text(row))

    def test_a_row_is_named_with_its_line(self) -> None:
        text = changed("bif", "(no, low) 0.6", "(no, low) 0.5")
        assert refusal("bif", text) == "line 10: variable 'wet' given rain=no, pump=low: the probabilities sum to 0.9, not to 1"


class TestStructure:
    def test_cycle(self) -> None:
        text = "".join(f"variable {n} {{ type discrete [ 1 ] {{ s }}; }}" for n in "abc")
        text += "".join(f"probability ( {c} | {p} ) {{ (s) 1; }}" for c, p in ("ab", "bc", "ca"))
        assert "cycle" in refusal("bif", text)
        assert "a -> c" in refusal("bif", text)

    @pytest.mark.parametrize("form", ["bif", "xmlbif", "net", "dsc", "dsl", "xdsl"])
    def test_unknown_parent(self, form: str) -> None:
        old = {
            "bif": "| rain, pump",
            "xmlbif": "<GIVEN>rain",
            "net": "wet | rain",
            "dsc": "| rain",
            "dsl": "(rain,",
            "xdsl": "<parents>rain",
        }
        text = changed(form, old[form], old[form].replace("rain", "ran"))
        message = refusal(form, text)
        assert "there is no variable 'ran'; did you mean 'rain'?" in message
        assert message.startswith("line ")

    @pytest.mark.parametrize(
        ("form", "old", "new", "message"),
        [
            ("bif", "variable pump", "variable rain", "line 3: variable 'rain' is declared twice"),
            ("bif", "{ no, yes }", "{ no, no }", "line 2: variable 'rain' has the state 'no' twice"),
            ("bif", "probability ( pump ) {", "probability ( rain ) {", "variable 'rain' is defined twice"),
            ("bif", "probability ( pump ) { table 0.5, 0.3, 0.2; }", "", "variable 'pump' has no probabilities"),
            ("bif", "wet | rain, pump", "wet | rain, rain", "has no state 'off'"),
            ("bif", "[ 3 ]", "[ 2 ]", "line 3: variable 'pump' declares 2 states and lists 3"),
            ("bif", "discrete [ 3 ]", "continuous [ 3 ]", "only discrete"),
            ("xmlbif", "<NAME> pump", "<NAME> rain", "line 6: variable 'rain' is declared twice"),
            ("xmlbif", "<OUTCOME>low</OUTCOME>", "<OUTCOME>off</OUTCOME>", "the state 'off' twice"),
            ("xmlbif", "<OUTCOME>low</OUTCOME>", "<OUTCOME/>", "a state without a name"),
            ("xmlbif", "<FOR>pump", "<FOR>rain", "line 9: variable 'rain' is defined twice"),
            ("xmlbif", "<GIVEN>pump", "<GIVEN>rain", "line 10: the definition of 'wet' names a variable twice"),
            ("xmlbif", "<GIVEN>pump", "<GIVEN>wet", "names a variable twice"),
            ("xmlbif", "<FOR>wet</FOR>", "<FOR>wet</FOR><FOR>rain</FOR>", "for several variables"),
            ("xmlbif", "0.8 0.2", "0.8 0.2 0", "has 3 numbers; its 2 states and 0 parents need 2"),
            ("xmlbif", "0.8 0.2", "0.8, 0.2", "'0.8,' is not a number"),
            ("xmlbif", "<NAME> pump </NAME>", "", "line 6: <VARIABLE> has no <NAME>; it needs one"),
            ("xmlbif", 'TYPE="nature"', 'TYPE="decision"', "influence diagrams cannot be read"),
            ("xmlbif", 'TYPE="nature"', 'TYPE="utility"', "influence diagrams cannot be read"),
            ("xmlbif", 'TYPE="nature"', 'TYPE="chance"', "only nature"),
            ("xmlbif", "<!ELEMENT BIF (NETWORK)*>", '<!ENTITY x "y">', "line 2: the entity 'x' is refused"),
            ("xmlbif", "</NETWORK>", "", "the XML is broken: mismatched tag"),
            ("net", "( 80 20 )", "( 0 0 )", "variable 'rain': the probabilities sum to 0, which cannot be made 1"),
            ("net", "( 80 20 )", "( 80 )", "has 1 numbers; its 2 states"),
            ("net", "((( 1 0 )", "(( 1 0 )", "line 9: the brackets around the data of 'wet'"),
            ("net", "discrete node", "continuous node", "line 4: the file has a continuous node"),
            ("net", "discrete node", "decision", "line 4: the file has a decision node: influence diagrams"),
            ("net", "discrete node", "utility", "influence diagrams"),
            ("net", 'states = ("no" "yes");', "", "variable 'rain' has no states"),
            ("net", "subtype = label;", "}", "expected 'net', 'node' or 'potential'"),
            ("net", '("no" "yes")', '("no" "yes)', "line"),
            ("net", "data = ( 80 20 )", "model_nodes = (); model_data = (x)", "given by a function"),
            ("dsc", "(1, 0) : 0.3", "(0, 0) : 0.3", "line 9: variable 'wet' has this row twice"),
            ("dsc", "(1, 0) :", "(2, 0) :", "line 9: variable 'rain' has no state '2'"),
            ("dsc", "(1, 0) :", "(1) :", "line 9: the row names 1 states for the 2 parents of 'wet'"),
            ("dsc", "(1, 0) :", "(1, 0)", "line 9: expected ':', found '0.3'"),
            ("dsc", "0.8, 0.2;", "function : max;", "given by a function"),
            ("dsc", "node rain", "decision rain", "influence diagrams"),
            ("dsl", "TYPE = CPT", "TYPE = NOISY_MAX", "only tables"),
            ("dsl", "TYPE = CPT", "TYPE = TABLE", "influence diagrams"),
            ("dsl", "PARENTS = ();", "", "variable 'rain' has no PARENTS"),
            ("dsl", "(0.8, 0.2)", "(0.8, 0.2", "line"),
            ("xdsl", '<cpt id="rain">', '<cpt name="rain">', "<cpt> has no attribute 'id'"),
            ("xdsl", '<cpt id="pump">', '<cpt id="rain">', "'rain' is declared twice"),
            ("xdsl", "<extensions>", "<nodes/><extensions>", "<smile> has 2 <nodes>; it needs one"),
            ("uai", "BAYES", "BAYES BAYES", "expected the number of variables"),
            ("uai", "3 0 1 2", "3 0 1 1", "variable 'x1' is defined twice"),
            ("uai", "3 0 1 2", "3 0 1 3", "the scope names variable 3"),
            ("uai", "3 0 1 2", "0", "a factor without variables"),
            ("uai", "\n3\n1 0", "\n2\n1 0", "there are 2 factors for 3 variables"),
            ("uai", "12\n", "13\n", "the file ends before the 13 numbers"),
            ("uai", "12\n", "11\n", "expected the end of the file, found '0.9'"),
        ],
    )
    def test_refused(self, form: str, old: str, new: str, message: str) -> None:
        assert message in refusal(form, changed(form, old, new))

    def test_xdsl_in_another_order(self) -> None:
        """aGrUM has the first parent vary before the last; a child that varies slowest is known by sums."""
        states = "".join(f'<state id="{s}"/>' for s in "uv")
        three = "".join(f'<state id="{s}"/>' for s in "xyz")
        roots = f'<cpt id="a">{states}<probabilities>0.4 0.6</probabilities></cpt><cpt id="b">{three}'
        roots += "<probabilities>0.2 0.3 0.5</probabilities></cpt>"

        def text(numbers: str, app: str) -> str:
            own = f'<cpt id="c">{states}<parents>a b</parents><probabilities>{numbers}</probabilities></cpt>'
            genie = f'<extensions><genie version="1.0" app="{app}"/></extensions>'
            return f"<smile><nodes>{roots}{own}</nodes>{genie}</smile>"

        plain = xdsl.read(text("0.1 0.9 0.2 0.8 0.3 0.7 0.4 0.6 0.5 0.5 0.6 0.4", "GeNIe"))
        turned = xdsl.read(text("0.1 0.9 0.4 0.6 0.2 0.8 0.5 0.5 0.3 0.7 0.6 0.4", "aGrUM 3.3.1"))
        slow = xdsl.read(text("0.1 0.2 0.3 0.4 0.5 0.6 0.9 0.8 0.7 0.6 0.5 0.4", "GeNIe"))
        for network in (turned, slow):
            assert network.tables["c"].parents == plain.tables["c"].parents
            assert network.tables["c"].probs == pytest.approx(plain.tables["c"].probs)
        assert plain.notes == ()
        assert "the file is aGrUM's" in turned.notes[0]
        assert "'c' is read so" in turned.notes[0]
        assert "the rows of 'c' sum to 1 only where the child varies slowest" in slow.notes[0]

    def test_xdsl_kinds(self) -> None:
        for kind in ("decision", "utility", "mau"):
            text = changed("xdsl", "<nodes>", f'<nodes><{kind} id="d"></{kind}>')
            assert f"node 'd' is a {kind}: influence diagrams cannot be read" in refusal("xdsl", text)
        for kind in ("noisymax", "equation"):
            assert f"<{kind}> cannot be read" in refusal("xdsl", changed("xdsl", "<nodes>", f'<nodes><{kind} id="d"></{kind}>'))

    @pytest.mark.parametrize(
        ("form", "text"),
        [
            ("bif", "network x { property version 1; }"),
            ("bif", ""),
            ("xmlbif", "<BIF><NETWORK/></BIF>"),
            ("net", "net { }"),
            ("dsc", "belief network"),
            ("dsl", "net x { };"),
            ("xdsl", "<smile><nodes/></smile>"),
            ("uai", "BAYES 0 0"),
        ],
    )
    def test_a_network_without_variables_is_refused(self, form: str, text: str) -> None:
        assert "has no variables" in refusal(form, text)

    @pytest.mark.parametrize("form", sorted(READERS))
    def test_nothing_and_nonsense(self, form: str) -> None:
        for text in ("", "\n\n", "hello", "BAYES", "{}", "<a/>", "\x00", '"'):
            refusal(form, text)


class TestSizes:
    def declared(self, n: int) -> str:
        return "".join(f"variable v{k} {{ type discrete [ 2 ] {{ a, b }}; }}" for k in range(n))

    def roots(self, n: int) -> str:
        return "".join(f"probability ( v{k} ) {{ default 0.5 0.5; }}" for k in range(1, n))

    def test_a_huge_table_with_few_numbers_is_a_wrong_count(self) -> None:
        given = ", ".join(f"v{k}" for k in range(1, 31))
        text = self.declared(31) + f"probability ( v0 | {given} ) {{ table 0.5 0.5; }}" + self.roots(31)
        assert "has 2 numbers; its 2 states and 30 parents need 2.1e+09" in refusal("bif", text)

    def test_a_huge_table_by_default_is_too_large(self) -> None:
        given = ", ".join(f"v{k}" for k in range(1, 31))
        text = self.declared(31) + f"probability ( v0 | {given} ) {{ default 0.5 0.5; }}" + self.roots(31)
        with pytest.raises(TooLarge, match=r"2.15e\+09 cells \(16.0 GiB\) and the file gives numbers for 0; most are of 'v0'"):
            bif.read(text)

    def test_many_large_tables_are_too_large_together(self) -> None:
        blocks = "".join(
            f"probability ( v{k} | {', '.join(f'v{j}' for j in range(k + 1, k + 26))} ) {{ default 1 0; }}" for k in range(5)
        )
        text = self.declared(30) + blocks + "".join(f"probability ( v{k} ) {{ default 1 0; }}" for k in range(5, 30))
        with pytest.raises(TooLarge):
            bif.read(text)

    def test_more_parents_than_axes(self) -> None:
        names = "".join(f"variable v{k} {{ type discrete [ 1 ] {{ a }}; }}" for k in range(70))
        text = names + f"probability ( v0 | {', '.join(f'v{k}' for k in range(1, 70))} ) {{ default 1; }}"
        assert "has 69 parents, and so 1 numbers or more; at most 31" in refusal("bif", text)

    def test_uai_announcing_too_much(self) -> None:
        assert "more than the file has" in refusal("uai", "BAYES 999999999")
        assert "more than the file has" in refusal("uai", "BAYES 1 999999999 1 1 0 2 1 0")
        assert "more than the file has" in refusal("uai", "BAYES 1 2 1 999999999 0")
        assert "ends before" in refusal("uai", "BAYES 1 2 1 1 0 999999999 0.5")


class TestBif:
    def test_dialects(self) -> None:
        """Comments, blanks for commas, properties anywhere, quoted names, default for roots, blocks in any order, CRLF."""
        text = """
        probability ( "wet" | rain pump ) { // before its variables
          property p = 1;
          ("yes", off) .3 .7; (yes low) 0.2,0.8 ; (yes, high) 0.1
             0.9; /* a comment
             over two lines */ default 0.6 0.4
          ; (no, off) 1. 0;
        }
        network "a name" {
          property Source = "no semicolon"
          property url = http://example.org/;
          property long = one two
             three; property size = ( 20, 12);
        }
        variable rain { property x = (1, 2); type discrete[2] {no,yes}; property y "; }" ; }
        variable pump { type discrete [ 3 ] { off low high } ; }
        variable wet { type discrete[2]{ no , "yes" }; property last }
        probability(rain){default 0.8 0.2;}
        probability(pump){table 0.5 0.3 0.2;}
        """
        text = text.replace("property last }", "property last\n}")
        network = bif.read(text)
        assert [v.name for v in network.variables] == ["rain", "pump", "wet"]
        wet = network.tables["wet"].probs
        np.testing.assert_array_equal(wet[1], [[0.3, 0.7], [0.2, 0.8], [0.1, 0.9]])
        np.testing.assert_array_equal(wet[0], [[1.0, 0.0], [0.6, 0.4], [0.6, 0.4]])
        np.testing.assert_array_equal(network.tables["rain"].probs, [0.8, 0.2])

    def test_in_a_table_with_parents_the_child_is_slowest(self) -> None:
        rows = BIF[BIF.index("  (no, off)") : BIF.rindex("}")]
        text = BIF.replace(rows, "table 1.0 .6 .5 .3 .2 .1  0.0 .4 .5 .7 .8 .9;")
        np.testing.assert_array_equal(bif.read(text).tables["wet"].probs, WET)

    def test_states_that_are_no_identifiers(self) -> None:
        text = "variable x-1 { type discrete [ 4 ] { 0_0mmol_kg, <5, 12.5, default }; }"
        text += "variable y { type discrete [ 2 ] { table, property }; }"
        text += "probability ( x-1 ) { table 0.25 .25 .25 .25; } probability ( y | x-1 ) {"
        text += "(default) 1 0; (<5) 0 1; (12.5) .5 .5; (0_0mmol_kg) .25 .75; }"
        network = bif.read(text)
        assert network.variables[1].states == ("table", "property")
        np.testing.assert_array_equal(network.tables["y"].probs, [[0.25, 0.75], [0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("(no, low) 0.6, 0.4;", "", "line 7: variable 'wet' has no probabilities given rain=no, pump=low"),
            ("(no, low)", "(no, off)", "line 10: variable 'wet' has this row twice"),
            ("(no, low)", "(no, lo)", "line 10: variable 'pump' has no state 'lo'; did you mean 'low'?"),
            ("(no, low)", "(no,)", "line 10: a comma has nothing"),
            ("(no, low)", "(, no, low)", "line 10: "),
            ("(no, low)", "(no)", "line 10: the row names 1 states for the 2 parents"),
            ("(no, low) 0.6, 0.4;", "(no, low) 0.6;", "line 10: the row has 1 numbers for the 2 states of 'wet'"),
            ("(no, low) 0.6, 0.4;", "(no, low) 0.6, 0.4", "line 11: expected a number, found '('"),
            ("(no, low) 0.6, 0.4;", "table 1 2;", "has both a table and rows"),
            ("(no, low) 0.6, 0.4;", "default 1 0; default 1 0;", "two default rows"),
            ("(no, low) 0.6, 0.4;", "default 1;", "line 10: the row has 1 numbers"),
            ("(no, low) 0.6, 0.4;", "property function max;", "line 10: variable 'wet' is given by a function"),
            ("(no, low) 0.6, 0.4;", "hello", "line 10: expected a row, 'table', 'default' or '}', found 'hello'"),
            ("wet | rain, pump", "wet | ", "a parent is missing"),
            ("wet | rain, pump", "wet, rain, pump", "after the one variable"),
            ("{ no, yes }", '{ no, "yes }', "line 2: "),
            ("variable wet", "variable", "expected the name of a variable, found '{'"),
            ("[ 2 ]", "[ two ]", "expected the number of states, found 'two'"),
            ("network", "nitwork", "line 1: expected 'network', 'variable' or 'probability', found 'nitwork'"),
            ("probability ( rain )", "/* probability ( rain )", "line 5: a comment is opened here and never closed"),
        ],
    )
    def test_refused(self, old: str, new: str, message: str) -> None:
        assert message in refusal("bif", changed("bif", old, new))


class TestNet:
    def test_weights_are_noted(self) -> None:
        assert net.read(NET).notes == ("3 rows were divided by their sum, which was not exactly 1",)

    def test_without_data_all_weights_are_equal(self) -> None:
        network = net.read(changed("net", "data = ( 0.5 0.3 0.2 );", ""))
        np.testing.assert_allclose(network.tables["pump"].probs, 1 / 3)
        assert network.notes[0] == "the potential of 'pump' has no data and is taken as uniform"

    def test_flat_data_and_class(self) -> None:
        body = "node a { states = (0 1); } potential (a) { data = (1 3); } inputs = ();"
        body += "node b { states = (0 1); } potential (b | a) { data = (1 0 1 1); }"
        network = net.read(f"class C {{ {body} }}")
        np.testing.assert_array_equal(network.tables["b"].probs, [[1, 0], [0.5, 0.5]])

    def test_odd_names_are_noted(self) -> None:
        network = FiniteNetwork((Finite("a b", ["x"]),), {"a b": NetworkTable((), np.array([1.0]))})
        with pytest.warns(SufficeNote, match="'a b' is no identifier"):
            net.write(network)
        with pytest.warns(SufficeNote, match="'a b' is no identifier"):
            dsc.write(network)


class TestDsc:
    def test_names_defaults_and_lists(self) -> None:
        text = """network { } properties { p : string; }
        node a { type = discrete[2] = { x, "y z" }; } node b { type is discrete[2] = { "1", "0" }; }
        node c { type: discrete[2] = {u, v}; }
        probability(a) { 0.5, 0.5; }
        probability(b | a) { default: 0.25, 0.75; ("y z"): 1, 0; }
        probability(c | a, b) { 0.1 0.9 0.2 0.8 0.3 0.7 0.4 0.6; }"""
        network = dsc.read(text)
        np.testing.assert_array_equal(network.tables["b"].probs, [[0.25, 0.75], [1, 0]])
        np.testing.assert_array_equal(network.tables["c"].probs[0, 1], [0.2, 0.8])

    def test_an_index_is_not_a_name(self) -> None:
        text = 'belief network "n" node b { type : discrete [ 2 ] = { "1", "0" }; } node c { type : discrete [ 1 ] = { "u" }; }'
        text += "probability ( b ) { 0.5, 0.5; } probability ( b2 | b ) { }"
        text = text.replace("node c", "node b2").replace('[ 1 ] = { "u" }', '[ 2 ] = { "u", "v" }')
        text = text.replace("( b2 | b ) { }", '( b2 | b ) { (0) : 0.25, 0.75; ("0") : 1, 0; }')
        np.testing.assert_array_equal(dsc.read(text).tables["b2"].probs, [[0.25, 0.75], [1, 0]])


class TestGenie:
    def test_deterministic_nodes(self) -> None:
        nodes = '<cpt id="a"><state id="x"/><state id="y"/><probabilities>0.5 0.5</probabilities></cpt>'
        nodes += '<deterministic id="d"><state id="u"/><state id="v"/><parents>a</parents>'
        nodes += "<resultingstates>v u</resultingstates></deterministic>"
        network = xdsl.read(f"<smile><nodes>{nodes}</nodes></smile>")
        np.testing.assert_array_equal(network.tables["d"].probs, [[0, 1], [1, 0]])
        assert "has no state 'w'" in refusal("xdsl", f"<smile><nodes>{nodes.replace('v u', 'v w')}</nodes></smile>")
        assert "has 1 resulting states; its parents need 2" in refusal(
            "xdsl", f"<smile><nodes>{nodes.replace('v u', 'v')}</nodes></smile>"
        )

    def test_truth_tables(self) -> None:
        node = "node d { TYPE = TRUTHTABLE; PARENTS = (rain); DEFINITION = { NAMESTATES = (u, v); RESULTINGSTATES = (v, 0); }; };"
        network = dsl.read(changed("dsl", "node pump", node + " node pump"))
        np.testing.assert_array_equal(network.tables["d"].probs, [[0, 1], [1, 0]])
        assert "has no state 'w'" in refusal("dsl", changed("dsl", "node pump", node.replace("(v, 0)", "(v, w)") + " node pump"))

    def test_ids_are_identifiers_and_parents_come_first(self) -> None:
        text = xdsl.write(odd_network())
        for line in text.splitlines():
            for tag in ("<cpt ", "<state ", "<node "):
                if line.strip().startswith(tag):
                    name = line.split('"')[1]
                    assert name.replace("_", "a").isalnum()
                    assert not name[0].isdigit()
                    assert name[0] != "_"
        assert text.index('<cpt id="naïve_Größe">') < text.index('<cpt id="the__child__')

    def test_a_name_that_was_changed_in_genie_is_believed(self) -> None:
        network = FiniteNetwork((Finite("a b", ["<5", ">5"]),), {"a b": NetworkTable((), np.array([0.5, 0.5]))})
        text = xdsl.write(network)
        renamed = text.replace('id="a_b"', 'id="c"').replace('"s_5"', '"low"')
        assert xdsl.read(renamed).variables == (Finite("c", ["low", "s_5_2"]),)
        broken = text.replace("&quot;a b&quot;", "[[[")
        assert xdsl.read(broken).variables[0].name == "a_b"


class TestXml:
    def test_the_root_element_decides(self) -> None:
        assert same(read_xml(XMLBIF), xmlbif.read(XMLBIF))
        assert same(read_xml(XDSL), xdsl.read(XDSL))
        with pytest.raises(FormatError, match="line 1: the root element is <html>; it must be"):
            read_xml("<html/>")
        assert same(xmlbif.read(XDSL), xdsl.read(XDSL))
        assert same(xdsl.read(XMLBIF), xmlbif.read(XMLBIF))

    def test_entities_that_are_not_declared(self) -> None:
        assert "broken: undefined entity" in refusal("xmlbif", XMLBIF.replace("<NAME>wet", "<NAME>&wet;"))
        outside = XMLBIF.replace(XMLBIF.splitlines()[1], '<!DOCTYPE BIF SYSTEM "file:///etc/passwd">')
        assert same(xmlbif.read(outside), xmlbif.read(XMLBIF))
        assert "the entity 'wet' is refused" in refusal("xmlbif", outside.replace("<NAME>wet", "<NAME>&wet;"))

    def test_standard_entities_and_references(self) -> None:
        text = XMLBIF.replace("<OUTCOME>high<", "<OUTCOME>&lt;&#53;<")
        assert xmlbif.read(text).variables[1].states == ("off", "low", "<5")


def test_messages_are_one_short_line() -> None:
    long = "x" * 100_000
    texts = [
        f"variable {long} {{ type discrete [ 1 ] {{ s, t }}; }}",
        f"variable a {{ type discrete [ 2 ] {{ {long}, {long} }}; }}",
        f"variable a {{ type discrete [ 1 ] {{ s }}; }} probability ( {long} ) {{ table 1; }}",
        f"variable a {{ type discrete [ 1 ] {{ s }}; }} probability ( a ) {{ table {long}; }}",
        f"variable {long} {{ type discrete [ 1 ] {{ s }}; }} probability ( {long} ) {{ table 2; }}",
    ]
    for text in texts:
        with pytest.raises(SufficeError) as caught:
            bif.read(text)
        assert len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)
