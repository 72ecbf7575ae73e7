"""Kernels: compiled loops over arrays and whole numbers. They know no names, no classes, and check nothing.

A kernel declares its one signature, so that nothing compiles twice and `warm` can compile everything ahead. Compiled code is
cached on disk; `announce` says when something is about to be compiled all the same. The compiler itself is loaded with the
first module of kernels, not with this one.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from suffice.errors import note

_kernels: list[tuple[Any, Any]] = []
_listener: Callable[[str], None] | None = note
_listening = False
_together: set[tuple[str, ...]] = set()


def kernel(
    signature: Any, *, reorder: bool = False, fuse: bool = False, apart: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function without Python on its first call, with its signature known to `warm`.

    Compiling waits for the first call, or imports would pay for every kernel of a module. `reorder` lets the compiler add up
    floats in another (fixed) order, which it needs for several sums at once; `fuse` only to round a product and a sum once.
    `apart` promises that what is written through one argument is not read or written through another: short loops spend as long
    on checking this as on their work.

    >>> from suffice.kernels.count import count
    >>> count in [compiled for compiled, _ in _kernels]
    True
    """

    def decorate(function: Callable[..., Any]) -> Any:
        import numba

        _listen()
        fast = {"reassoc", "contract"} if reorder else {"contract"} if fuse else False
        options: dict[str, Any] = {"nogil": True, "fastmath": fast}
        if apart:
            options["pipeline_class"] = _without_overlap()
        try:
            compiled = numba.njit(cache=_cacheable(), **options)(function)
        except RuntimeError:  # no directory can be written to, so there is no cache: compile each time
            compiled = numba.njit(**options)(function)
        _kernels.append((compiled, signature))
        return compiled

    return decorate


@cache
def _without_overlap() -> type:
    """numba's compiler, told that arguments do not overlap."""
    from numba.core.compiler import Compiler

    class WithoutOverlap(Compiler):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, given: Any) -> None:
            flags.noalias = True
            super().__init__(typing, target, library, args, result, flags, given)

    return WithoutOverlap


def _cacheable() -> bool:
    """Whether compiled code may be kept on disk.

    The cache does not tell code that checks its bounds (NUMBA_BOUNDSCHECK=1) from code that does not, so it needs a directory of
    its own (NUMBA_CACHE_DIR): or checks are asked for and not made, or made ever after.
    """
    from numba.core import config

    return not config.BOUNDSCHECK or bool(config.CACHE_DIR)


def announce(say: Callable[[str], None]) -> None:
    """Have `say` called, once, when a kernel that is not in the cache on disk is about to be compiled.

    Who asked last is told.

    >>> announce(lambda message: None)
    """
    global _listener
    _listener = say


def warm(progress: Callable[[int, int, str], None] | None = None, processes: int = 1) -> int:
    """Compile every kernel; `progress` is called with how many parts are done, how many there are, and the last one's name.

    The compiler holds on to its one thread, so more processors help only by as many processes, which leave their work in the
    cache on disk.

    >>> warm() >= 3
    True
    """
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    if processes > 1:
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from multiprocessing import get_context

        longest_first = sorted(names, key=lambda n: -Path(__path__[0], f"{n}.py").stat().st_size)
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            tasks = {pool.submit(_compile, name): name for name in longest_first}
            for done, task in enumerate(as_completed(tasks), 1):
                task.result()
                if progress is not None:
                    progress(done, len(names), tasks[task])
        progress = None
    for done, name in enumerate(names, 1):
        _compile(name)
        if progress is not None:
            progress(done, len(names), name)
    return len(_kernels)


def together(longest: str, *others: str) -> None:
    """Compile modules of kernels that are needed together side by side, if none is on disk yet: one here, others in a process.

    What the process cannot do is compiled when it is called.

    >>> together("contract", "count")
    """
    names = (longest, *others)
    if names in _together or (os.cpu_count() or 1) < 2:
        return
    _together.add(names)
    if any(map(_on_disk, names)):
        return
    code = f"from suffice.kernels import _compile\nfor name in {others!r}: _compile(name)"
    path = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, **path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return
    _compile(longest)
    process.wait()


def _on_disk(name: str) -> bool:
    """Whether a module's kernels seem to be in the cache on disk, or there is none."""
    module = importlib.import_module(f"{__name__}.{name}").__name__
    files = [
        getattr(getattr(compiled._cache, "_cache_file", None), "_index_path", None)
        for compiled, _ in _kernels
        if compiled.py_func.__module__ == module
    ]
    return any(f is None or os.path.exists(f) for f in files)


def _compile(name: str) -> None:
    """Compile the kernels of a module."""
    module = importlib.import_module(f"{__name__}.{name}").__name__
    for compiled, signature in _kernels:
        if compiled.py_func.__module__ == module:
            compiled.compile(tuple(signature.args))  # as a call would ask for it, or the cache on disk is not found again


def _listen() -> None:
    """Hear of every compilation; numba tells of those only that the cache did not spare."""
    global _listening
    if _listening:
        return
    _listening = True
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, happening: Any) -> None:
            global _listener
            say = _listener
            if say is not None and happening.data["dispatcher"].py_func.__module__.startswith("suffice."):
                _listener = None
                say("compiling kernels (once, some seconds; `suffice warm` compiles all of them ahead) ...")

        def on_end(self, happening: Any) -> None:
            pass

    event.register("numba:compile", Listener())
