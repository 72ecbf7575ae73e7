"""From a file to a network: dropped or chosen, a column corrected, learned, stopped, explained, compared, taken away and read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as pc
import pytest
from playwright.sync_api import expect

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer
from tests.browser.visits import Visit, agrees_everywhere

Open = Callable[..., Visit]
Start = Callable[..., Explorer]

DROP = """([name, text]) => {
    const files = new DataTransfer();
    files.items.add(new File([text], name));
    document.dispatchEvent(new DragEvent('dragover', {dataTransfer: files, bubbles: true, cancelable: true}));
    document.dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));
}"""


@pytest.fixture
def table(tmp_path: Path, asia_rows: Any) -> Path:
    """Rows of ASIA, and a column of whole numbers that is taken for states."""
    path = tmp_path / "visits.csv"
    numbers = [str(i % 4) for i in range(asia_rows.num_rows)]
    pc.write_csv(asia_rows.append_column("ward", [numbers]), path)
    return path


def test_a_network_is_dropped(explored: Start, tab: Open, tmp_path: Path) -> None:
    sf.write(sf.load("cancer"), tmp_path / "mine.bif")
    visit = tab(explored())
    expect(visit.test_id("drop")).to_be_visible()
    visit.shoot("welcome")
    visit.page.evaluate(DROP, ["mine.bif", (tmp_path / "mine.bif").read_text()])
    expect(visit.node("Cancer")).to_be_visible()
    expect(visit.test_id("model-picker").locator("option:checked")).to_have_text("mine.bif")
    agrees_everywhere(visit, sf.load("cancer"))


def test_a_bundled_network_is_chosen(explored: Start, tab: Open) -> None:
    visit = tab(explored())
    visit.button("asia").click()
    expect(visit.node("smoke")).to_be_visible()
    agrees_everywhere(visit, sf.load("asia"))


def test_a_table_is_chosen_corrected_and_learned_from(explored: Start, tab: Open, table: Path, tmp_path: Path) -> None:
    visit = tab(explored())
    visit.test_id("file").set_input_files(table)
    columns = visit.test_id("columns")
    expect(columns.locator("tbody tr")).to_have_count(9)
    visit.shoot("data")
    columns.get_by_label("kind of ward").select_option("ignore")
    expect(columns.locator("[data-column=ward]")).to_contain_text("corrected")
    columns.locator("[data-column=smoke]").get_by_label(re.compile("later")).first.click()
    visit.test_id("apply").click()
    expect(visit.test_id("table-picker").locator("option")).to_have_count(2)
    expect(columns.locator("tbody tr")).to_have_count(8)
    visit.button("learn from it").click()
    expect(visit.test_id("cost")).not_to_contain_text("estimating")
    visit.shoot("learn")
    visit.test_id("learn").click()
    expect(visit.test_id("node")).to_have_count(8)
    taken = taken_away(visit, "model as json", tmp_path)
    bn = sf.read(taken)
    assert isinstance(bn, sf.BayesNet)
    assert tuple(bn.variables["smoke"].states) == ("yes", "no")
    agrees_everywhere(visit, bn)
    visit.bar("xray", "yes").click()
    agrees_everywhere(visit, bn, {"xray": "yes"})
    visit.shoot("learned")


def test_learning_is_stopped_and_keeps_the_best(explored: Start, tab: Open) -> None:
    visit = tab(explored(sf.load("asia"), sf.load("pathfinder").sample(20_000, seed=0)))
    visit.refusals_expected = True  # the junction tree of what is found by then may be too large
    visit.tab("Learn")
    expect(visit.test_id("cost")).not_to_contain_text("estimating")
    visit.page.get_by_label("method").select_option("orders")
    visit.test_id("learn").click()
    expect(visit.test_id("progress")).to_contain_text("step")
    expect(visit.button("learn")).to_be_disabled()
    visit.tab("Network")  # answers go on meanwhile
    visit.bar("smoke", "yes").click()
    agrees_everywhere(visit, sf.load("asia"), {"smoke": "yes"})
    visit.tab("Learn")
    visit.shoot("learning")
    visit.test_id("stop").click()
    expect(visit.test_id("model-picker").locator("optgroup[label=held] option")).to_have_count(2)
    expect(visit.page.get_by_role("application")).to_have_attribute("aria-label", re.compile("109 nodes"))


def test_an_edge_is_explained_and_ruled_out(explored: Start, tab: Open, asia: sf.BayesNet, asia_rows: Any) -> None:
    visit = tab(explored(asia, asia_rows))
    panel = visit.choose("lung")
    panel.get_by_role("button", name="why", exact=True).click()
    panel.get_by_role("button", name="smoke → lung").click()
    edge = visit.test_id("edge-panel")
    expect(edge).to_contain_text("The edge is in the graph.")
    expect(edge).to_contain_text("Score lost without it")
    visit.shoot("edge")
    edge.get_by_role("button", name="forbid").click()
    edge.get_by_role("button", name="close the panel").click()
    panel = visit.choose("xray")
    panel.get_by_role("button", name="why", exact=True).click()
    panel.get_by_label("why no edge from").select_option("asia")
    panel.get_by_role("button", name="ask").click()
    expect(edge).to_contain_text("The edge is not in the graph.")
    visit.tab("Learn")
    expect(visit.test_id("rules")).to_contain_text("forbid smoke → lung")
    visit.test_id("learn").click()
    expect(visit.test_id("model-picker").locator("optgroup[label=held] option")).to_have_count(2)
    expect(visit.node("lung")).to_be_visible()
    assert visit.page.locator('[data-edge="smoke → lung"]').count() == 0


def test_two_networks_are_compared(explored: Start, tab: Open, asia: sf.BayesNet, asia_rows: Any) -> None:
    other = sf.fit(sf.Dag("smoke -> lung; smoke -> xray", nodes=list(asia.variables)), asia_rows, prior=sf.BDeu(1))
    visit = tab(explored(asia, asia_rows, against=other))
    visit.tab("Compare")
    expect(visit.test_id("comparison")).to_contain_text("structural Hamming distance")
    expect(visit.test_id("comparison").locator("dd").first).to_have_text(str(sf.shd(asia.dag, other.dag)))
    expect(visit.page.locator(".canvas .edge.style-there")).to_have_count(1)
    expect(visit.node("xray").locator("[data-testid=bar]")).to_have_count(2)
    visit.bar("smoke", "yes").click()
    visit.node("xray").locator(".heading").click()
    shares = visit.test_id("comparison").locator("[data-state=yes] .share")
    wanted = [bn.query("xray", given={"smoke": "yes"})["yes"] for bn in (asia, other)]
    expect(shares).to_have_text([f"{100 * p:.1f} %" for p in wanted])
    visit.shoot("compare")


def test_a_surprising_row_becomes_the_evidence(explored: Start, tab: Open, asia: sf.BayesNet, asia_rows: Any) -> None:
    visit = tab(explored(asia, asia_rows))
    visit.tab("Cases")
    rows = visit.test_id("cases").locator("tbody tr")
    expect(rows).to_have_count(50)
    least = min(asia.log_prob(asia_rows))
    assert float(rows.first.locator("td.number").first.inner_text()) == pytest.approx(least, rel=1e-3)
    names = visit.test_id("cases").locator("thead th").all_inner_texts()[2:]
    cells = rows.first.locator("td:not(.number)").all_inner_texts()
    visit.shoot("cases")
    rows.first.click()
    expect(visit.node("smoke")).to_be_visible()
    agrees_everywhere(visit, asia, dict(zip(names, cells, strict=True)))


@pytest.mark.parametrize("format", ["json", "bif", "xmlbif", "net", "dsc", "uai"])
def test_the_model_is_taken_away_and_read_again(
    explored: Start, tab: Open, asia: sf.BayesNet, tmp_path: Path, format: str
) -> None:
    visit = tab(explored(asia))
    expect(visit.node("smoke")).to_be_visible()
    path = taken_away(visit, f"model as {format}", tmp_path)
    back = sf.read(path)
    assert isinstance(back, sf.BayesNet)
    names = list(back.variables)
    last = "dysp" if format != "uai" else names[list(asia.variables).index("dysp")]
    assert back.query(last).probs == pytest.approx(asia.query("dysp").probs)


def test_pictures_and_the_report_are_taken_away(
    explored: Start, tab: Open, asia: sf.BayesNet, asia_rows: Any, tmp_path: Path
) -> None:
    visit = tab(explored(asia, asia_rows))
    visit.bar("smoke", "yes").click()
    expect(visit.test_id("p-evidence")).to_be_visible()
    assert "<svg" in taken_away(visit, "picture as SVG", tmp_path).read_text()
    assert taken_away(visit, "picture as PNG", tmp_path).read_bytes().startswith(b"\x89PNG")
    assert "<!doctype html>" in taken_away(visit, "report as HTML", tmp_path).read_text().lower()


def taken_away(visit: Visit, what: str, folder: Path) -> Path:
    """Take something from the menu, as it would be saved."""
    visit.button(re.compile("^export")).click()
    with visit.page.expect_download() as download:
        visit.button(what).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path
