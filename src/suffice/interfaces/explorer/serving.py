"""The explorer as it is started: a thread that serves one page on this machine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from suffice.errors import SufficeError
from suffice.interfaces.explorer.code import Origin
from suffice.interfaces.explorer.security import LOOPBACK, loopback_socket, new_token
from suffice.interfaces.explorer.shelf import HeldModel, Shelf, bundled_model, read_model, read_table

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike

WAIT = 10.0
"""Seconds until a server that was started should serve, or one that was stopped be gone."""


class Explorer:
    """A page at `url`, until it is closed; `explore` starts one."""

    def __init__(self, shelf: Shelf, port: int = 0) -> None:
        uvicorn = _require()
        from suffice.interfaces.explorer.app import application

        self.shelf, self.token = shelf, new_token()
        self._socket = loopback_socket(port)
        self.port: int = self._socket.getsockname()[1]
        quiet = dict.fromkeys(("access_log", "server_header", "date_header", "proxy_headers"), False)
        options = {"log_level": "critical", "lifespan": "off", "ws": "none", "http": "h11", "loop": "asyncio"}
        own = {**options, **quiet, "timeout_graceful_shutdown": 1}
        self._server = uvicorn.Server(uvicorn.Config(application(shelf, self.token), **own))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="suffice explorer", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page; what follows # stays in the browser, and is what lets it in."""
        return f"http://{LOOPBACK}:{self.port}/#token={self.token}"

    def wait(self) -> None:
        """Until it is closed, by Ctrl-C or by another thread."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop serving, and let go of all that is held; what was uploaded is removed."""
        self._server.should_exit = True
        self._thread.join(WAIT)
        self._socket.close()
        self.shelf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Explorer at {self.url}" if self._thread.is_alive() else "Explorer, closed"


def explore(
    model: object = None, data: RowsLike | None = None, *, against: object = None, port: int = 0, browser: bool = False
) -> Explorer:
    """Show models and data on a page that answers clicks: at `.url`, until `.close()`, or the end of a `with`.

    `model` is a network, the name of a bundled one, or a file; `data` is anything that `scan` takes; `against` another network to
    compare it with. `browser=True` opens the page. Only this machine is served.

    >>> import suffice as sf
    >>> with sf.explore(sf.load("asia")) as page:
    ...     page.url.partition(str(page.port))[0]
    'http://127.0.0.1:'
    """
    _require()
    shelf = Shelf()
    try:
        table = None
        if isinstance(data, (str, Path)):
            table = read_table(shelf, Path(data), Path(data).name, str(data))
        elif data is not None:
            from suffice.engines.scan import scan

            table = shelf.add_table(scan(data), "data", Origin("# data: the rows that were passed to explore", None))
        first, second = (None if x is None else _model(shelf, x, name) for x, name in ((model, "bn"), (against, "other")))
        if first is not None:
            first.table = None if table is None else table.id
        held = {"model": first, "table": table, "against": second}
        shelf.open = {name: None if x is None else x.id for name, x in held.items()}
        page = Explorer(shelf, port)
    except BaseException:
        shelf.close()
        raise
    if browser:
        import webbrowser

        webbrowser.open(page.url)
    return page


def _model(shelf: Shelf, model: Any, name: str) -> HeldModel:
    if not isinstance(model, (str, Path)):
        return shelf.add_model(model, name, Origin(f"# {name}: the network that was passed to explore", None))
    from suffice.formats.registry import NAMES

    text = str(model)
    if text in NAMES and not Path(text).exists():
        return bundled_model(shelf, text)
    return read_model(shelf, Path(text), Path(text).name, text)


def _require() -> Any:
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise SufficeError("the explorer needs starlette and uvicorn: pip install 'suffice[explore]'") from None
    return uvicorn
