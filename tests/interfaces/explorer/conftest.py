"""A server as a user starts it, and a client that knows its token."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer


class Client:
    """Requests as the page sends them."""

    def __init__(self, page: Explorer) -> None:
        self.page = page
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{page.port}",
            headers={"authorization": f"Bearer {page.token}"},
            timeout=60,
            trust_env=False,
        )

    def close(self) -> None:
        self.http.close()
        self.page.close()

    @property
    def model(self) -> str:
        return str(self.page.shelf.open["model"])

    @property
    def table(self) -> str:
        return str(self.page.shelf.open["table"])

    def get(self, path: str, **query: Any) -> Any:
        return self._answer(self.http.get(f"/api/{path}", params=query))

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return self._answer(self.http.post(f"/api/{path}", json={} if body is None else body, params=query))

    def send(self, path: str, data: bytes, name: str) -> httpx.Response:
        return self.http.post(f"/api/{path}", content=data, params={"name": name})

    def ask(self, question: str, **body: Any) -> Any:
        """A question to the model that is open."""
        return self.post(f"models/{self.model}/{question}", body)

    def refusal(self, method: str, path: str, status: int = 400, **request: Any) -> str:
        """What is said of a request that is refused."""
        answer = self.http.request(method, f"/api/{path}", **request)
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert set(error) == {"message", "kind", "remedy"}
        return str(error["message"])

    def events(self, job: str) -> list[tuple[str, Any]]:
        """All that a job tells, to its end."""
        found, kind = [], ""
        with self.http.stream("GET", f"/api/jobs/{job}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            for line in stream.iter_lines():
                word, _, rest = line.partition(": ")
                kind = rest if word == "event" else kind
                if word == "data":
                    found.append((kind, json.loads(rest)))
        return found

    @staticmethod
    def _answer(reply: httpx.Response) -> Any:
        assert reply.status_code == 200, reply.text
        return reply.json()


@pytest.fixture(scope="module")
def opened() -> Iterator[Callable[..., Client]]:
    """Start an explorer, as `sf.explore` does. All of a file are closed at its end, side by side: each looks ten times a second
    whether it is to end, which a hundred of them would do all through the other tests."""
    clients: list[Client] = []

    def start(*given: Any, **more: Any) -> Client:
        clients.append(Client(sf.explore(*given, **more)))
        return clients[-1]

    yield start
    with ThreadPoolExecutor(max(1, len(clients))) as pool:
        list(pool.map(Client.close, clients))


@pytest.fixture(scope="session")
def rows() -> dict[str, list[str]]:
    return {name: column.to_pylist() for name, column in zip(*_columns(), strict=True)}


def _columns() -> tuple[list[str], list[Any]]:
    table = sf.load("asia").sample(2000, seed=1)
    return table.column_names, table.columns


@pytest.fixture(scope="module")
def asia(opened: Callable[..., Client]) -> Client:
    """A network that comes with the package: no data, and no posterior."""
    return opened("asia")


@pytest.fixture(scope="session")
def fitted(rows: dict[str, list[str]]) -> sf.BayesNet:
    return sf.fit(sf.load("asia").dag, rows, prior=sf.BDeu(1))


@pytest.fixture(scope="module")
def learned(opened: Callable[..., Client], fitted: sf.BayesNet, rows: dict[str, list[str]]) -> Client:
    """A network with a posterior, and the rows that it was fitted from."""
    return opened(fitted, rows)
