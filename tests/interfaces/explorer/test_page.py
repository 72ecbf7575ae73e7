"""The page as it is shipped, and its sources: small, nothing inline, nothing from elsewhere, no text made into HTML."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import suffice

STATIC = Path(suffice.__file__).parent / "interfaces" / "explorer" / "static"
WEB = Path(__file__).parents[3] / "web"


def test_static_files_are_small() -> None:
    sizes = {file.name: file.stat().st_size for file in STATIC.iterdir()}
    assert sizes["app.js"] <= 150_000
    assert sum(sizes.values()) <= 400_000


def test_nothing_is_inline_or_from_elsewhere() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["icon.svg", "app.css", "app.js"]
    assert not re.search(r"url\(|https?://|@import", (STATIC / "app.css").read_text())
    addresses = set(re.findall(r"https?://[\w./]+", (STATIC / "app.js").read_text()))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML", "http://www.w3.org/1999/xhtml"}


def sources() -> list[Path]:
    return sorted(file for file in (WEB / "src").rglob("*") if file.suffix in (".ts", ".tsx"))


@pytest.mark.parametrize("file", sources(), ids=lambda file: file.name)
def test_sources_make_no_html_of_text(file: Path) -> None:
    text = file.read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bas any\b|: any\b|@ts-ignore", text
    )
    assert len(text.splitlines()) <= 400


def test_versions_are_exact_and_no_host_is_named() -> None:
    package = json.loads((WEB / "package.json").read_text())
    versions = {**package["dependencies"], **package["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    lock = (WEB / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "registry" not in lock
    assert f"preact {versions['preact']}," in (STATIC / "THIRD_PARTY.txt").read_text()
