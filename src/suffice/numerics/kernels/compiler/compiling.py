"""A kernel: one function with two copies, compiled and interpreted, and the rule that says which of them runs.

Compiling takes seconds, once; interpreting takes a few hundred times as long as compiled code, each time. So:

- A kernel that knows how much work a call is (`work`, in steps of its inner loops) is interpreted while it is little. Both copies
  of such a kernel give the same bits (a law: `tests/laws/test_kernel_laws.py`), so it does not matter which runs, and the clock
  may decide: when interpreting has taken a while, what is on disk is loaded, and what is not is compiled in another process.
- Any other kernel is compiled when it is first called. Among these are all whose sums the compiler may reorder, as the bits of
  their copies differ.

SUFFICE_COMPILE=now compiles every kernel at its first call, =never none; =background is the default.

Interpreted, a kernel is the same source with the same bits for the same arguments. Compiled code takes logarithms and the like
from the C library, and so does `math`; but where C gives an infinity or a NaN Python raises an exception, and numpy has its own
versions, whose last digits differ. So a kernel's `math` and `np` are replaced here.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from glob import escape, glob
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from suffice.errors import SufficeError, note
from suffice.numerics.kernels.compiler.background import beside, in_background

LARGE = 500_000
"""Steps of a call up to which it may be interpreted: a quarter of a second or so."""
PATIENCE = 0.5
"""Seconds of interpreting after which it is worth while to load compiled kernels: loading takes as long."""
LONG = 1.0
"""Seconds of compiling from which on it is said."""
SECONDS = 0.0004
"""Seconds that a byte of Python takes to compile, measured on an idle machine."""

TOGETHER = (
    ("messages.run", "arrangement.arrange_parts", "parts.order_parts", "parts.find_parts"),
    ("bitmaps.count_groups", "greedy.climb_orders", "bitmaps.set_terms", "bitmaps.expand", "bitmaps.prune"),
    ("expectations.list_completions", "bucket_trees.expect", "bucket_trees.compile_shapes", "count.reduce_rows"),
)
"""Kernels that the same call needs: where one is compiled, the others are compiled beside it, in another process."""

CALLED = (
    *("bitmaps.count_groups", "bitmaps.term", "bitmaps.family_terms", "bitmaps.score_toggles"),
    *("order_mcmc.rescore", "state_normals.score_normals", "state_normals.sum_normals", "chain_lanes.place"),
)
"""Kernels that both kernels and Python call. Others that a kernel calls are compiled only as a part of it."""

MAKERS = frozenset({"empty", "zeros", "ones", "full"})
"""What makes arrays in kernels. What else would is not compiled in a kernel without one of these."""

kernels: dict[str, Kernel] = {}
"""All kernels of the modules that were imported, by module and name."""
_listener: Callable[[str], None] = note
_spent = 0.0
_compiling = 0.0


def announce(say: Callable[[str], None]) -> None:
    """Have `say` called when a kernel that takes long to compile, and is not on disk, is about to be compiled.

    Who asked last is told.

    >>> announce(lambda message: None)
    """
    global _listener
    _listener = say


def compiling_seconds() -> float:
    """For how long this process has waited, so far, for kernels that were not on disk to be compiled."""
    return _compiling


@cache
def mode() -> str:
    """When kernels are compiled, by the environment."""
    chosen = os.environ.get("SUFFICE_COMPILE", "background")
    if chosen not in ("now", "background", "never"):
        raise SufficeError(f"SUFFICE_COMPILE is now, background or never, not {chosen!r}")
    return chosen


class Kernel:
    """A function without Python's objects, its signature, and how much work a call is."""

    __slots__ = ("_copies", "_on_disk", "_options", "_places", "_plain", "_ready", "function", "name", "signature", "work")

    def __init__(self, function: Callable[..., Any], signature: Any, options: dict[str, Any], work: Any = None) -> None:
        self.function, self.signature, self._options, self.work = function, signature, options, work
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._ready: Any = None
        self._copies: dict[bool, Any] = {}
        self._plain: Any = None
        self._on_disk = False
        arguments = _arguments(function)
        self._places = [] if work is None else [arguments.index(n) for n in _arguments(work)]
        kernels[self.name] = self

    def __call__(self, *arguments: Any) -> Any:
        global _spent
        if self._ready is not None:
            return self._ready(*arguments)
        if not self._is_interpreted(arguments):
            return self.compiled(*arguments)
        start = time.perf_counter()
        result = interpret(self.in_python(), arguments)
        _spent += time.perf_counter() - start
        return result

    def __repr__(self) -> str:
        return f"kernel {self.name}"

    @property
    def exact(self) -> bool:
        """Whether both copies give the same bits."""
        return not self._options["fastmath"]

    def in_python(self) -> Any:
        """The copy that is interpreted."""
        if self._plain is None:  # calling others as the Python that they are
            self._plain = _with(self.function, "in_python", _modules())
        return self._plain

    def in_numba(self) -> Any:
        """The copy that other kernels call: compiled as a part of them, and not kept on disk, unless Python calls it, too."""
        return self._copy(linked=self.name not in CALLED)

    def whole(self) -> Any:
        """The copy that Python calls."""
        return self._copy(linked=False)

    @property
    def compiled(self) -> Any:
        """The compiled copy, here to stay; who waits for it is told."""
        global _compiling
        if self._ready is None:
            on_disk, start = self.on_disk(), time.perf_counter()
            if not (on_disk or beside().wait(self.name)):  # it may be on its way
                self._tell_others()
            self.compile()
            self._ready = self.whole()
            _compiling += 0.0 if on_disk else time.perf_counter() - start
        return self._ready

    def steps(self, arguments: tuple[Any, ...]) -> float:
        """About how many steps of its inner loops a call takes."""
        return float("inf") if self.work is None else float(self.work(*(arguments[i] for i in self._places)))

    def compile(self) -> None:
        """Compile it, unless it is on disk. The compiler makes objects by the million, and none that should be collected."""
        collects = gc.isenabled()
        gc.disable()
        try:
            if not self.on_disk():
                self._compile_called()
            self.whole().compile(self._types())
        finally:
            if collects:
                gc.enable()

    @property
    def seconds(self) -> float:
        """About how long it takes to compile, with what it calls, each once."""
        return SECONDS * sum(len(kernels[n].function.__code__.co_code) for n in self.parts())

    @property
    def allocates(self) -> bool:
        """Whether it makes arrays, or calls a kernel that does."""
        return not MAKERS.isdisjoint(self.function.__code__.co_names) or any(k.allocates for k in self.callees())

    def on_disk(self) -> bool:
        """Whether the compiled copy is in this process or on disk, or there is nothing to be waited for."""
        if not self._on_disk:
            dispatcher = self.whole()
            kept = getattr(dispatcher._cache, "_cache_file", None)
            self._on_disk = bool(dispatcher.signatures) or (kept is not None and bool(kept._load_index()))
        return self._on_disk

    def callees(self) -> list[Kernel]:
        """The kernels that it calls."""
        names = self.function.__globals__
        return [k for n in self.function.__code__.co_names if isinstance(k := names.get(n), Kernel)]

    def parts(self) -> set[str]:
        """The names of it, of the kernels that it calls, and so on."""
        return {self.name}.union(*(k.parts() for k in self.callees()))

    def _types(self) -> tuple[Any, ...]:
        """The types of the arguments, as a call would ask for them, or the cache on disk is not found again."""
        return tuple(a.in_numba() for a in self.signature)

    def _copy(self, linked: bool) -> Any:
        if linked not in self._copies:
            self._copies[linked] = _jit(_with(self.function, "in_numba", {}), self._options, linked, self.allocates)
        return self._copies[linked]

    def _compile_called(self) -> None:
        """Compile what it calls, for the types that are declared, whatever those of the call."""
        for k in self.callees():
            if k.name in CALLED:
                k.compile()
            else:
                k._compile_called()
                k.in_numba().compile(k._types())

    def _is_interpreted(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the Python runs: of little work, until the compiled copy can be had at once; if it cannot, and enough was
        interpreted, it is made in the background.

        Loading the compiler takes as long as much small work, so it is loaded for what seems to be on disk only.
        """
        if mode() != "background" or not POSSIBLE:
            return mode() == "never"
        if self.work is None or self.steps(arguments) > LARGE:
            return False
        loads = "numba" in sys.modules or (_spent > PATIENCE and _is_filed(self.name, self.function))
        if loads and self.on_disk():
            return False
        if _spent > PATIENCE:
            in_background().ask([self.name])
        return not (in_background().is_done(self.name) and self.on_disk())

    def _tell_others(self) -> None:
        """Others that will be needed are compiled beside this one; who waits for it is told."""
        for group in TOGETHER:
            if self.name in group and (os.cpu_count() or 1) > 1:
                beside().ask(n for n in group if n != self.name and not (n in kernels and kernels[n].on_disk()))
        if self.seconds > LONG:
            about = f"about {self.seconds:.0f} s, once"
            _listener(f"compiling {self.name} ({about}; `suffice warm` compiles all kernels ahead) ...")


@cache
def _is_filed(name: str, function: Callable[..., Any]) -> bool:
    """Whether there is a file for a compiled kernel in one of the places where numba keeps it, which need not be loaded for this.
    Such a file may be of an older source; one that is elsewhere is found by the process in the background."""
    code, version = function.__code__, "".join(map(str, sys.version_info[:2]))
    own, beside_it = os.environ.get("NUMBA_CACHE_DIR"), f"{escape(os.path.dirname(code.co_filename))}/__pycache__"
    of_user = f"{escape(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'))}/numba/*"
    places = [f"{escape(own)}/*"] if own else [beside_it, of_user]
    return any(glob(f"{place}/{name}-{code.co_firstlineno}.py{version}.nbi") for place in places)


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def _jit(function: Callable[..., Any], options: dict[str, Any], linked: bool, allocates: bool) -> Any:
    """The cache on disk does not tell code that checks its bounds (NUMBA_BOUNDSCHECK=1) from code that does not, so it needs a
    directory of its own (NUMBA_CACHE_DIR): or checks are asked for and not made, or made ever after."""
    import numba
    from numba.core import config

    from suffice.numerics.kernels.compiler.pipeline import compiler

    given = {**options, "pipeline_class": compiler(linked, options["pipeline_class"] == "apart", allocates)}
    try:
        return numba.njit(cache=not linked and (not config.BOUNDSCHECK or bool(config.CACHE_DIR)), **given)(function)
    except RuntimeError:  # no directory can be written to, so there is no cache: compile each time
        return numba.njit(**given)(function)


POSSIBLE = int(np.__version__.split(".")[0]) >= 2
"""Whether numbers of numpy keep their types beside Python's, as they do when compiled: not before numpy 2."""


def _as_in_c(function: Callable[[float], float], *, at: dict[float, float] | None = None, beyond: float = math.nan) -> Any:
    """A function of `math` that raises nothing: `at` has its values at poles, `beyond` what is too large."""
    poles = at or {}

    def safe(x: float) -> np.float64:
        try:
            return np.float64(function(x))
        except ValueError:
            return np.float64(poles.get(float(x), math.nan))
        except OverflowError:
            return np.float64(beyond)

    return safe


_FUNCTIONS = {
    "log": _as_in_c(math.log, at={0.0: -math.inf}),
    "log2": _as_in_c(math.log2, at={0.0: -math.inf}),
    "log1p": _as_in_c(math.log1p, at={-1.0: -math.inf}),
    "exp": _as_in_c(math.exp, beyond=math.inf),
    "sqrt": _as_in_c(math.sqrt),
}


@cache
def _modules() -> dict[str, Any]:
    """What stands for `np` and `math` in kernels."""
    atanh = _as_in_c(math.atanh, at={1.0: math.inf, -1.0: -math.inf})
    return {
        "np": SimpleNamespace(**{**vars(np), **_FUNCTIONS}),
        "math": SimpleNamespace(**{**vars(math), **_FUNCTIONS, "atanh": atanh}),
    }


def _with(function: Any, form: str, given: dict[str, Any]) -> Any:
    """A kernel's function with everything that it names in one of its forms, but for what is given."""
    names = function.__globals__
    known = {n: getattr(names[n], form)() for n in function.__code__.co_names if n in names and hasattr(names[n], form)}
    copy = FunctionType(function.__code__, {**names, **given, **known}, function.__name__, function.__defaults__)
    copy.__qualname__, copy.__doc__, copy.__module__ = function.__qualname__, function.__doc__, function.__module__
    return copy


def interpret(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The result of a kernel's Python; whole numbers have the width that they have when compiled."""
    with np.errstate(all="ignore"):
        return _native(function(*(np.int64(a) if type(a) is int else a for a in arguments)))


def _native(result: Any) -> Any:
    """Numbers as compiled code returns them."""
    if isinstance(result, tuple):
        return tuple(map(_native, result))
    return result.item() if isinstance(result, np.generic) else result
