"""How the explorer is started: `suffice explore`, `sf.explore`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import suffice as sf
from tests.interfaces.explorer.conftest import Client

SOURCE = Path(sf.__file__).parents[1]


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("asia,tub\nyes,no\nno,no\n")
    words = [sys.executable, "-m", "suffice", "explore", "asia", "rows.csv", "--against", "cancer", "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, **pipes) as process:
        assert process.stdout is not None
        address, _, token = process.stdout.readline().strip().partition("#token=")
        reply = httpx.get(f"{address}api/state", headers={"authorization": f"Bearer {token}"}, trust_env=False)
        state = reply.json()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert [model["name"] for model in state["models"]] == ["asia", "cancer"]
    assert state["open"] == {"model": "m2", "table": "d1", "against": "m3"}
    assert "Traceback" not in err
    assert "Ctrl-C" in err
    with pytest.raises(httpx.ConnectError):
        httpx.get(address, trust_env=False)


def test_refusals_are_one_sentence(run: Any) -> None:
    for words, said in (
        (["nothing.bif"], "nothing.bif"),
        (["asia", "nothing.csv"], "nothing.csv"),
        (["asia", "--against", "nothing.json"], "nothing.json"),
    ):
        status, out, err = run("explore", *words, "--no-browser")
        assert (status, out) == (1, "")
        assert said in err
        assert len(err.strip().splitlines()) == 1
    assert run("explore", "--port", "70000")[0] == 2


def test_a_port_that_is_taken(run: Any, asia: Client) -> None:
    status, _, err = run("explore", "asia", "--no-browser", "--port", asia.page.port)
    assert status == 1
    assert "--port N" in err


def test_without_the_extra_it_says_what_to_install(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    status, out, err = run("explore", "asia", "--no-browser")
    assert (status, out) == (1, "")
    assert "pip install 'suffice[explore]'" in err
    with pytest.raises(sf.SufficeError, match="suffice\\[explore\\]"):
        sf.explore()


def test_the_browser_is_opened_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with sf.explore(browser=True) as page:
        assert opened == [page.url]
        assert repr(page) == f"Explorer at {page.url}"
    assert repr(page) == "Explorer, closed"
    page.close()  # again, and nothing happens


def test_nothing_of_it_is_imported_before_it_is_started() -> None:
    code = "import suffice, sys; suffice.explore; assert not {'starlette', 'uvicorn', 'asyncio', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=True)
