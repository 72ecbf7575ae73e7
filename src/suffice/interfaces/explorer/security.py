"""Who is answered: this machine only, by name, from the page itself, with the token.

A page of somebody else's in the same browser can send requests to 127.0.0.1, by another name of it too (DNS rebinding). So the
Host must be one of ours, the Origin, if there is one, that very host, and every answer with data needs the token, which only the
address that was printed has. There is no cookie, which other ports would share, and nothing is sent to other origins.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from suffice.errors import SufficeError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

LOOPBACK = "127.0.0.1"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer: nothing from elsewhere, nothing inline, in no frame, not kept."""

_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.ASCII)


def new_token() -> str:
    """256 random bits, as an address may have them."""
    return secrets.token_urlsafe(32)


def loopback_socket(port: int = 0, address: str = LOOPBACK) -> socket.socket:
    """A socket on this machine's own address, and on no other; port 0 takes one that is free."""
    if not ipaddress.ip_address(address).is_loopback:
        raise SufficeError(
            f"the explorer serves this machine only, at 127.0.0.1, not at {address}: reach it from elsewhere through "
            "ssh -L PORT:127.0.0.1:PORT"
        )
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio would let answers wait
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((address, port))
        own.listen(128)
    except OverflowError:
        own.close()
        raise SufficeError(f"a port is a number from 0 to 65535, not {port}") from None
    except OSError as error:
        own.close()
        why = error.strerror or str(error)
        raise SufficeError(f"port {port} cannot be used ({why}): take another, --port N, or leave it out") from None
    return own


class Guard:
    """An application whose requests are looked at first, and whose answers say what a browser may do with them."""

    def __init__(self, inner: Application, token: str) -> None:
        self._inner, self._token = inner, token.encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no sockets, and nothing at start and end

        async def seal(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*(h for h in message.get("headers", ()) if h[0].decode() not in HEADERS), *own]
            await send(message)

        refused = self._refusal(scope)
        if refused is None:
            await self._inner(scope, receive, seal)
            return
        status, words = refused
        body = json.dumps({"error": {"message": words, "kind": "refused", "remedy": None}}).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await seal({"type": "http.response.start", "status": status, "headers": headers})
        await seal({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Message) -> tuple[int, str] | None:
        """The status and words of a refusal; None if the request is answered."""
        client = scope.get("client")
        if client is not None and not _is_near(client[0]):
            return 403, "the explorer answers this machine only"
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not _HOST.fullmatch(host := hosts[0].decode("latin-1")):
            return 421, "the explorer is at 127.0.0.1 or localhost, and answers under no other name"
        if any(origin.decode("latin-1") != f"http://{host}" for origin in headers.get(b"origin", [])):
            return 403, "the explorer answers its own page only, not one from another origin"
        given = headers.get(b"authorization", [])
        word, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        known = hmac.compare_digest(token.strip(), self._token) and word.lower() == b"bearer"
        if scope["path"].startswith("/api/") and not known:
            return 401, "the token is missing or wrong: open the address that suffice explore printed, with all that follows #"
        return None


def _is_near(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:  # a test client, or a socket of another family, which nobody opens here
        return address == "testclient"
