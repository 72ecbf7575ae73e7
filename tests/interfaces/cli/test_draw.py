"""`suffice draw`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import suffice as sf
from suffice.interfaces.cli.app import app


def draw(*words: object) -> str:
    result = CliRunner().invoke(app, ["draw", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_files_of_each_kind(tmp_path: Path) -> None:
    for suffix, start in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        said = draw("asia", "-o", tmp_path / f"x{suffix}")
        assert "8 nodes, 8 edges" in said
        assert (tmp_path / f"x{suffix}").read_bytes().startswith(start)


def test_it_is_the_picture_that_python_draws(tmp_path: Path) -> None:
    asked = ["--given", "xray=yes", "--do", "smoke=no", "--focus", "lung", "--steps", "2"]
    draw("asia", "-o", tmp_path / "x.svg", *asked)
    picture = sf.load("asia").picture({"xray": "yes"}, do={"smoke": "no"}, focus=["lung"], steps=2)
    assert (tmp_path / "x.svg").read_text("utf-8") == picture.svg()


def test_two_graphs_chains_and_networks_without_arrows(tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    assert "9 edges" in draw("asia", "-o", out, "--against", "asia -> tub; smoke -> lung -> xray")
    assert "2 nodes" in draw("a -> b", "-o", out)
    sf.write(sf.load("asia").moral(), tmp_path / "moral.json")
    assert "given xray=yes" in draw(tmp_path / "moral.json", "-o", out, "--given", "xray=yes")
    chain = sf.Chain("x[-1] -> x", {"x": [[1, 0], [0, 1]], "x[0]": [0.5, 0.5]}, variables={"x": ["a", "b"]})
    sf.write(chain, tmp_path / "chain.json")
    assert "2 nodes, 1 edge;" in draw(tmp_path / "chain.json", "-o", out)
    ElementTree.parse(out)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["asia", "-o", "x.gif"], "saved as .svg"),
        (["asia", "-o", "nowhere/x.svg"], "cannot be written"),
        (["asia", "-o", "x.svg", "--given", "tub=yes, either=no"], "probability zero"),
        (["asia", "-o", "x.svg", "--given", "tub=yes", "--given", "tub=no"], "--given sets 'tub' twice"),
        (["asia", "-o", "x.svg", "--focus", "nobody"], "no node 'nobody'"),
        (["asia", "-o", "x.svg", "--given", "tub=yes", "--against", "cancer"], "leave one of them out"),
        (["a -> b", "-o", "x.svg", "--given", "a=yes"], "no beliefs"),
    ],
)
def test_refusals(words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sf.SufficeError, match=why):
        CliRunner().invoke(app, ["draw", *words], catch_exceptions=False)
