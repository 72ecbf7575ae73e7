"""Kernels: compiled loops over arrays and whole numbers. They know no names, no classes, and check nothing.

A kernel declares its one signature, which says the types of its arguments: so nothing compiles twice, and `warm` can compile
everything ahead. Compiled code is cached on disk. Where a call is little work a kernel may run uncompiled (`compiling.py`); the
compiler itself is loaded when something is compiled. Kernels use each other only: a room for each kind. Start with
`counting/count`; `compiler/compiling` says what a kernel is.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from suffice.numerics.kernels.compiler import signatures as nb
from suffice.numerics.kernels.compiler.compiling import CALLED, Kernel, announce, kernels

__all__ = ["ESSENTIAL", "Kernel", "announce", "compile_kernel", "kernel", "nb", "warm"]

ESSENTIAL = ("messages", "arrangement", "parts", "count", "bitmaps", "greedy", "bucket_trees")
"""Modules of which questions, fits, searches and EM of finite networks have their kernels."""


def kernel(
    signature: Any, *, work: Callable[..., Any] | None = None, reorder: bool = False, fuse: bool = False, apart: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """A function without Python's objects, with its signature known to `warm`.

    `work` says of the arguments that it names about how many steps of inner loops a call is: if few, it may run uncompiled, with
    the same bits. `reorder` lets the compiler add up floats in another (fixed) order, which it needs for several sums at once;
    `fuse` only to round a product and a sum once. `apart` promises that what is written through one argument is not read or
    written through another: short loops spend as long on checking this as on their work.

    >>> from suffice.numerics.kernels.counting.count import count
    >>> count, count is kernels["count.count"]
    (kernel count.count, True)
    """
    if work is not None and (reorder or fuse):
        raise ValueError("sums that may be reordered have other bits when they are compiled: such kernels are never interpreted")
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"} if reorder else {"contract"} if fuse else False}
    options["pipeline_class"] = "apart" if apart else ""
    return lambda function: Kernel(function, signature, options, work)


def warm(progress: Callable[[int, int, str], None] | None = None, processes: int = 1, only: Sequence[str] | None = None) -> int:
    """Compile every kernel that Python calls, or those of some modules `only`; how many there are.

    `progress` is called with how many parts are done, how many there are, and the last one's name.

    The compiler holds on to its one thread, so more processors help only by as many processes, which leave their work in the
    cache on disk.

    >>> warm(only=["count"]) >= 1
    True
    """
    for module in _modules().values():  # all of them, for which kernels are a part of others is seen in those others
        importlib.import_module(module)
    direct = [k for k in _direct() if only is None or k.partition(".")[0] in only]
    groups: list[set[str]] = []  # that share no part, for that would be compiled by several processes
    for name in direct:
        own = kernels[name].parts()
        groups, apart = [g for g in groups if not g.isdisjoint(own)], [g for g in groups if g.isdisjoint(own)]
        groups = [*apart, own.union(*groups)]
    groups.sort(key=lambda g: -sum(len(kernels[n].function.__code__.co_code) for n in g))  # the longest first
    named = [[n for n in direct if n in g] for g in groups]
    for done, names in enumerate(_compile_groups(named, processes), 1):
        if progress is not None:
            progress(done, len(named), names[0].partition(".")[0])
    return len(direct)


def _compile_groups(groups: Sequence[Sequence[str]], processes: int) -> Iterator[Sequence[str]]:
    """The groups, each when it is compiled."""
    if processes == 1:
        for names in groups:
            _compile(names)
            yield names
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(_compile, names): names for names in groups}
        for task in as_completed(tasks):
            task.result()
            yield tasks[task]


def compile_kernel(name: str) -> None:
    """Compile one kernel, by its module and name, unless it is on disk.

    >>> compile_kernel("messages.collapse")
    """
    importlib.import_module(_modules()[name.partition(".")[0]])
    kernels[name].compile()


@cache
def _modules() -> dict[str, str]:
    """The modules that hold kernels, by their own names, and where they are."""
    rooms = [room.name for room in pkgutil.iter_modules(__path__) if room.ispkg and room.name != "compiler"]
    places = [(room, module.name) for room in rooms for module in pkgutil.iter_modules([f"{__path__[0]}/{room}"])]
    return {name: f"{__name__}.{room}.{name}" for room, name in places if name != "wide"}


def _compile(names: Sequence[str]) -> None:
    for name in names:
        compile_kernel(name)


def _direct() -> list[str]:
    """The kernels that Python calls, of the modules that were imported."""
    parts = {k.name for each in kernels.values() for k in each.callees()} - set(CALLED)
    return [n for n in kernels if n not in parts]
