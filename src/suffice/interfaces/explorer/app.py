"""The requests that are answered, and the files of the page."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from suffice.errors import SufficeError
from suffice.interfaces.explorer.answers import beliefs, held, learning, network, tables
from suffice.interfaces.explorer.calls import Answering, Call, FileAnswer
from suffice.interfaces.explorer.security import Application, Guard
from suffice.interfaces.explorer.shelf import STATUS, NotHeld, Shelf, TooMuch

LONGEST_BODY = 8 * 2**20
"""Bytes of a question."""

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}

REQUESTS: tuple[tuple[str, str, Answering], ...] = (
    ("GET", "/api/state", held.state),
    ("POST", "/api/open", held.open_bundled),
    ("DELETE", "/api/models/{id}", held.drop_model),
    ("DELETE", "/api/tables/{id}", held.drop_table),
    ("GET", "/api/models/{id}/graph", network.graph),
    ("GET", "/api/models/{id}/nodes", network.nodes),
    ("POST", "/api/models/{id}/beliefs", beliefs.beliefs),
    ("POST", "/api/models/{id}/joint", beliefs.joint),
    ("POST", "/api/models/{id}/explanation", beliefs.explanation),
    ("POST", "/api/models/{id}/influence", beliefs.influence),
    ("POST", "/api/models/{id}/tornado", beliefs.tornado),
    ("POST", "/api/models/{id}/separation", beliefs.separation),
    ("GET", "/api/models/{id}/cpd", beliefs.cpd),
    ("GET", "/api/models/{id}/edge", beliefs.edge),
    ("POST", "/api/models/{id}/strengths", learning.strengths),
    ("GET", "/api/models/{id}/cases", tables.cases),
    ("GET", "/api/models/{id}/export", held.export),
    ("POST", "/api/models/{id}/picture", held.picture),
    ("POST", "/api/models/{id}/report", held.report),
    ("GET", "/api/tables/{id}", tables.table),
    ("POST", "/api/tables/{id}/schema", tables.schema),
    ("GET", "/api/choices", learning.choices),
    ("POST", "/api/learn", learning.learn),
    ("POST", "/api/jobs/{id}/stop", learning.stop),
    ("POST", "/api/compare", network.compare),
)

BETWEEN = 0.05
"""Seconds between two looks at a job."""

SILENCE = 15.0
"""Seconds after which something is sent, lest a job that says nothing be taken for gone."""


def application(shelf: Shelf, token: str) -> Application:
    """All of it, behind the guard."""
    routes = [Route(path, _endpoint(shelf, answer), methods=[method]) for method, path, answer in REQUESTS]
    routes += [Route(f"/api/{what}", _upload(shelf, what), methods=["POST"]) for what in ("models", "tables")]
    routes.append(Route("/api/jobs/{id}/events", _events(shelf), methods=["GET"]))
    routes.append(Route("/{name:path}", _files(), methods=["GET"]))
    return Guard(Starlette(routes=routes), token)


def _refusing(answer: Callable[[Request], Awaitable[Response]]) -> Any:
    """An endpoint, whose refusals are answers, too."""

    async def endpoint(request: Request) -> Response:
        try:
            return await answer(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except SufficeError as error:
            return refusal_of(error)
        except (MemoryError, RecursionError) as error:
            return refusal_of(SufficeError(f"this took more memory than there is ({type(error).__name__})"))

    return endpoint


def _endpoint(shelf: Shelf, answer: Answering) -> Any:
    async def endpoint(request: Request) -> Response:
        call = Call(shelf, request.path_params, dict(request.query_params), await _body(request))
        return await run_in_threadpool(lambda: _response(answer(call)))

    return _refusing(endpoint)


def _upload(shelf: Shelf, what: str) -> Any:
    async def upload(request: Request) -> Response:
        name = held.checked_name(request.query_params.get("name", ""))
        declared = int(request.headers.get("content-length", "0"))
        place = await held.receive(shelf, name, request.stream(), declared, held.UPLOAD_BYTES)
        return await run_in_threadpool(lambda: _response(held.hold(shelf, place, name, what)))

    return _refusing(upload)


def _events(shelf: Shelf) -> Any:
    async def stream(job: learning.LearningJob) -> AsyncIterator[str]:
        sent, last = 0, time.monotonic()
        while True:
            ended = job.end  # looked at first: what is told after it is told
            for step in job.steps[sent:]:
                sent, last = sent + 1, time.monotonic()
                yield f"event: step\ndata: {in_json(step)}\n\n"
            if ended is not None:
                yield f"event: end\ndata: {in_json(ended)}\n\n"
                return
            if time.monotonic() - last > SILENCE:
                last = time.monotonic()
                yield ": still there\n\n"
            await asyncio.sleep(BETWEEN)

    async def events(request: Request) -> Response:
        return StreamingResponse(stream(learning.job(shelf, request.path_params["id"])), media_type="text/event-stream")

    return _refusing(events)


async def _body(request: Request) -> dict[str, Any]:
    """What a request says, as JSON."""
    if request.method == "GET":
        return {}
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LONGEST_BODY:
            raise TooMuch(f"a question has at most {LONGEST_BODY:,} bytes")
    try:
        body = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        raise SufficeError("the body of the request is no JSON") from None
    if not isinstance(body, dict):
        raise SufficeError("the body of the request is a JSON object")
    return body


def _response(answer: Any) -> Response:
    if isinstance(answer, FileAnswer):
        disposition = f'attachment; filename="{answer.name}"'
        return Response(answer.data, media_type=answer.kind, headers={"content-disposition": disposition})
    status = 202 if answer == {"ready": False} else 200
    return Response(in_json(answer), status, media_type="application/json")


def in_json(answer: Any) -> str:
    """JSON as browsers read it: what is no finite number is null."""
    try:
        return json.dumps(answer, allow_nan=False, ensure_ascii=False)
    except ValueError:
        return json.dumps(_finite(answer), allow_nan=False, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refusal_of(error: SufficeError) -> Response:
    """A refusal: what is wrong, and the way out."""
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 400)
    said = {"message": str(error), "kind": type(error).__name__, "remedy": None}
    return Response(in_json({"error": said}), status, media_type="application/json")


def _files() -> Any:
    """The files of the page, by name: these and no others are sent, whatever the address says."""
    files: dict[str, tuple[str, bytes]] = {}
    for own in resources.files("suffice.interfaces.explorer").joinpath("static").iterdir():
        if kinds := [kind for suffix, kind in TYPES.items() if own.name.endswith(suffix)]:
            files[own.name] = kinds[0], own.read_bytes()

    async def file(request: Request) -> Response:
        name = request.path_params["name"] or "index.html"
        if name not in files:
            return refusal_of(NotHeld("there is nothing at this address"))
        kind, data = files[name]
        return Response(data, media_type=kind)

    return file
