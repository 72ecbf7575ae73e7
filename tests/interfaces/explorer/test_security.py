"""Who is answered, and who is not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import suffice as sf
from suffice.errors import SufficeError
from suffice.interfaces.explorer.app import LONGEST_BODY
from suffice.interfaces.explorer.security import Guard, loopback_socket, new_token
from tests.interfaces.explorer.conftest import Client


def ask(client: Client, path: str = "/api/state", method: str = "GET", **headers: str) -> httpx.Response:
    own = {"authorization": f"Bearer {client.page.token}", **headers}
    return client.http.request(method, path, headers={name: value for name, value in own.items() if value})


def test_the_token_is_long_random_and_in_the_fragment(asia: Client) -> None:
    address, _, fragment = asia.page.url.partition("#token=")
    assert address == f"http://127.0.0.1:{asia.page.port}/"
    assert len(fragment) >= 43  # 256 bits, six to a letter
    assert new_token() != new_token()


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", "Basic {}", "{}", "Bearer {}x", "bearer é"])
def test_a_wrong_token_is_refused(asia: Client, header: str) -> None:
    for method, path in (("GET", "/api/state"), ("POST", f"/api/models/{asia.model}/beliefs"), ("DELETE", "/api/models/m1")):
        given = header.format(asia.page.token).encode("utf-8")
        reply = asia.http.request(method, path, headers={b"authorization": given})
        assert reply.status_code == 401
        assert "token" in reply.json()["error"]["message"]


def test_no_token_is_refused_and_the_page_itself_needs_none(asia: Client) -> None:
    bare = httpx.Client(base_url=f"http://127.0.0.1:{asia.page.port}", trust_env=False)
    with bare:
        assert bare.get("/api/state").status_code == 401
        assert bare.get("/api/nothing").status_code == 401
        assert bare.get("/").status_code == 200
        assert asia.page.token not in bare.get("/").text
        assert bare.get("/api/state", params={"token": asia.page.token}).status_code == 401
        assert bare.get("/api/state", headers={"cookie": f"token={asia.page.token}"}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "0.0.0.0", "[::1]", "", "127.0.0.1:x", "127.0.0.2"]
)
def test_a_foreign_host_is_refused(asia: Client, host: str) -> None:
    for path in ("/api/state", "/"):
        assert asia.http.get(path, headers={"host": host}).status_code == 421


def test_the_own_hosts_are_answered(asia: Client) -> None:
    for host in ("127.0.0.1", "localhost", "localhost:9000", f"127.0.0.1:{asia.page.port}"):
        assert ask(asia, host=host).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{}", "http://127.0.0.1:1", "http://localhost:{}"]
)
def test_a_foreign_origin_is_refused(asia: Client, origin: str) -> None:
    assert ask(asia, origin=origin.format(asia.page.port)).status_code == 403


def test_the_own_origin_is_answered(asia: Client) -> None:
    assert ask(asia, origin=f"http://127.0.0.1:{asia.page.port}").status_code == 200
    assert ask(asia, host="localhost:81", origin="http://localhost:81").status_code == 200


def test_every_answer_forbids_what_is_not_needed(asia: Client) -> None:
    replies = [
        asia.http.get("/"),
        ask(asia),
        ask(asia, host="evil.example"),
        asia.http.get("/nothing"),
        ask(asia, "/api/models/x/nodes"),
    ]
    assert [reply.status_code for reply in replies] == [200, 200, 421, 404, 404]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "server" not in reply.headers
        assert "access-control-allow-origin" not in reply.headers
        assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fserving.py",
        "/static/index.html",
        "/etc/passwd",
        "//etc/passwd",
        "/app.py",
        "/%2e%2e/app.py",
    ],
)
def test_no_path_of_the_machine_is_served(asia: Client, path: str) -> None:
    with socket.create_connection(("127.0.0.1", asia.page.port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        reply = b""
        while chunk := raw.recv(65536):
            reply += chunk
    assert reply.startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize(
    "name", ["../x.csv", "/etc/passwd", "a/b.csv", "a\\b.csv", "C:x.csv", "", ".hidden", "x\n.csv", "x\0.csv", "x" * 300]
)
def test_an_upload_names_no_path(asia: Client, name: str) -> None:
    for what in ("models", "tables"):
        assert "name of a file" in asia.refusal("POST", what, params={"name": name}, content=b"a\n1\n")


def test_a_body_over_the_limit_is_refused(asia: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    big = b'{"given": "' + b"x" * LONGEST_BODY + b'"}'
    assert "at most" in asia.refusal("POST", f"models/{asia.model}/beliefs", 413, content=big)
    monkeypatch.setattr("suffice.interfaces.explorer.answers.held.UPLOAD_BYTES", 1000)
    said = asia.refusal("POST", "tables", 413, params={"name": "x.csv"}, content=b"a\n" + b"1\n" * 1000)
    assert "larger than 1,000 bytes" in said
    assert not list(asia.page.shelf.room.iterdir())


def test_an_upload_that_breaks_off_leaves_nothing(asia: Client) -> None:
    before = len(asia.page.shelf.tables)
    with socket.create_connection(("127.0.0.1", asia.page.port)) as raw:
        head = f"POST /api/tables?name=x.csv HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {asia.page.token}\r\n"
        raw.sendall(f"{head}Content-Length: 1000\r\n\r\na,b\n1,2\n".encode())
    assert asia.get("state")["version"] == sf.__version__  # it goes on
    for _ in range(100):
        if not list(asia.page.shelf.room.iterdir()):
            break
        asia.get("state")
    assert not list(asia.page.shelf.room.iterdir())
    assert len(asia.page.shelf.tables) == before


@pytest.mark.parametrize("address", ["0.0.0.0", "192.168.1.5", "8.8.8.8"])
def test_another_address_than_loopback_is_refused(address: str) -> None:
    with pytest.raises(SufficeError, match="this machine only"):
        loopback_socket(0, address)


def test_a_client_elsewhere_is_refused() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def nothing(*_: Any) -> None:
        raise AssertionError("it was answered")

    scope = {"type": "http", "path": "/", "headers": [(b"host", b"localhost")], "client": ("192.168.1.5", 1)}
    asyncio.run(Guard(nothing, "token")(scope, nothing, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 403


def test_a_port_that_is_taken_is_said(asia: Client) -> None:
    with pytest.raises(SufficeError, match=f"port {asia.page.port} cannot be used.*take another"):
        sf.explore(port=asia.page.port)


def test_no_sockets_and_no_other_methods(asia: Client) -> None:
    upgrade = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-key": "x" * 22 + "==",
        "sec-websocket-version": "13",
    }
    assert asia.http.get("/api/state", headers=upgrade).status_code == 200  # answered as any request
    assert asia.http.put("/api/state").status_code == 405
    assert asia.http.options("/api/state").status_code == 405


def test_what_is_uploaded_goes_with_the_explorer(opened: Callable[..., Client]) -> None:
    with sf.explore() as page:
        client = Client(page)
        table = client.send("tables", b"a,b\nx,1.5\ny,2.5\n", "x.csv").json()
        room = page.shelf.room
        assert len(list(room.iterdir())) == 1
        client.http.delete(f"/api/tables/{table['id']}")
        assert not list(room.iterdir())
        client.send("tables", b"a,b\nx,1.5\ny,2.5\n", "x.csv")
        client.http.close()
    assert not room.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(page.url, trust_env=False)
