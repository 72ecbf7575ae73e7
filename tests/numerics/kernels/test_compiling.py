"""What a new user waits for: little work compiles nothing, and what is compiled in the background leaves nothing behind."""

from __future__ import annotations

import ast
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import suffice.numerics.kernels as package
from suffice.errors import SufficeError
from suffice.numerics.kernels.compiler import compiling
from suffice.numerics.kernels.compiler import signatures as nb
from suffice.numerics.kernels.compiler.background import Helper
from tests.syntax import nodes_of, tree_of

ASIA = "import suffice as sf; bn = sf.load('asia'); rows = bn.sample(2_000, seed=1)"
LITTLE = {
    "query": "print(bn.query('lung', {'xray': 'yes'}).probs.tolist())",
    "marginals": "print(bn.marginals({'xray': 'yes'})['lung'].probs.tolist())",
    "search": "print(sf.search(rows).dag)",
    "fit": "print(sf.fit(bn.dag, rows)['lung'].probs.tolist())",
    "em": "print(sf.em(bn.dag, rows.drop_columns(['either']), hidden=[bn.variables['either']], max_iter=2).log_likelihood)",
    "PC": "print(sf.search(rows, method=sf.PC()).cpdag)",
    "predict": "print(bn.predict(rows.slice(0, 50).drop_columns(['lung']), 'lung').to_pylist()[:5])",
}


def printed(code: str, cache: Path, mode: str) -> str:
    """What some lines print in a process of their own, with its own cache of compiled kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "SUFFICE_COMPILE": mode}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True).stdout


def test_little_work_compiles_nothing(tmp_path: Path) -> None:
    """Nor is the compiler loaded. The result is the compiled one, bit for bit."""
    settings = "from suffice.numerics.kernels.compiler import compiling; compiling.PATIENCE = 1e9"  # a busy machine is slow
    work = "\n".join(f"{line}\nprint('{what}: numba', 'numba' in sys.modules)" for what, line in LITTLE.items())
    told = printed(f"{settings}\nimport sys\n{ASIA}\n{work}", tmp_path, "background")
    assert not list(tmp_path.rglob("*.nb?"))
    names = {}
    exec(ASIA, names)
    for what, line in LITTLE.items():
        result, _, told = told.partition(f"{what}: numba False\n")
        exec(line.replace("print(", "found = str("), names)
        assert names["found"] == result.removesuffix("\n"), what
    assert not told


def test_nothing_is_ever_compiled_where_that_is_asked_for(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np; from suffice.numerics.kernels.inference.messages import collapse\n"
        "print(collapse(np.array([2, 2]), np.array([1, 2]), 2, np.zeros(12, np.int64)), 'numba' in sys.modules)"
    )
    assert printed(code, tmp_path, "never") == "2 False\n"


def test_the_environment_says_when_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling.mode.cache_clear()
    monkeypatch.setenv("SUFFICE_COMPILE", "later")
    with pytest.raises(SufficeError, match="SUFFICE_COMPILE is now, background or never, not 'later'"):
        compiling.mode()
    monkeypatch.undo()
    compiling.mode.cache_clear()


def test_the_seconds_of_compiling_are_those_of_kernels_that_were_not_on_disk(tmp_path: Path) -> None:
    code = (
        "from suffice.numerics.kernels.compiler.compiling import compiling_seconds\n"
        "from suffice.numerics.kernels.counting.count import rehash\n"
        "rehash.compiled\n"
        "print(compiling_seconds() > 0)"
    )
    assert [printed(code, tmp_path, "now") for _ in range(2)] == ["True\n", "False\n"]


BACKGROUND = """
import time, numpy as np
from suffice.numerics.kernels.compiler import compiling
from suffice.numerics.kernels.compiler import signatures as nb
from suffice.numerics.kernels.counting.count import rehash
compiling.PATIENCE = 0.0
keys, waited = np.arange(5, dtype=np.uint64) << np.uint64(20), time.monotonic()
while rehash._ready is None and time.monotonic() - waited < 300:
    slots = np.full(16, -1)
    rehash(5, keys, slots)
    time.sleep(0.01)
print(rehash._ready is not None, sorted(slots.tolist())[-5:])
"""


def test_what_was_compiled_in_the_background_is_taken_over(tmp_path: Path) -> None:
    assert printed(BACKGROUND, tmp_path, "background") == "True [0, 1, 2, 3, 4]\n"
    assert list(tmp_path.rglob("*rehash*.nbc"))


ON_DISK = """
import sys, numpy as np
from suffice.numerics.kernels.compiler import compiling
from suffice.numerics.kernels.counting.count import rehash
asked, compiling._spent = [], {spent}
compiling.in_background().ask = asked.extend
rehash(5, np.arange(5, dtype=np.uint64) << np.uint64(20), np.full(16, -1))
print(rehash._ready is not None, asked, "numba" in sys.modules)
"""


@pytest.mark.skipif(not compiling.POSSIBLE, reason="before numpy 2 nothing is interpreted")
def test_what_is_on_disk_is_loaded_without_asking_another_process(tmp_path: Path) -> None:
    late = ON_DISK.format(spent="1e9")
    assert printed(late, tmp_path, "background") == "False ['count.rehash'] False\n"
    printed("from suffice.numerics.kernels import compile_kernel; compile_kernel('count.rehash')", tmp_path, "now")
    assert printed(late, tmp_path, "background") == "True [] True\n"
    assert printed(ON_DISK.format(spent="0.0"), tmp_path, "background") == "False [] False\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_other_process_ends_with_this_one(end: signal.Signals | None, tmp_path: Path) -> None:
    code = (
        "import sys; from suffice.numerics.kernels.compiler.background import in_background\n"
        "in_background().ask(['messages.run']); print(in_background()._process.pid, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, text=True, **pipes) as process:
        other = int(process.stdout.readline())
        if end is not None:
            process.send_signal(end)
        process.stdin.close()
        process.wait()
    waited = time.monotonic()
    while runs(other):
        assert time.monotonic() - waited < 60
        time.sleep(0.05)


def runs(process: int) -> bool:
    """Whether a process runs: one that ended may still be listed where nobody waits for it."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_helper_that_cannot_start_is_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    helper = Helper(0)
    helper.ask(["messages.collapse"])
    assert helper.is_done("messages.collapse")
    assert helper.wait("messages.collapse")
    assert not helper.wait("messages.contract")


def test_a_long_compilation_is_said(tmp_path: Path) -> None:
    code = (
        "import suffice.numerics.kernels as k; from suffice.numerics.kernels.inference.messages import collapse\n"
        "from suffice.numerics.kernels.compiler import compiling\n"
        "k.announce(print); compiling.LONG = 0.0; collapse.compiled; collapse.compiled"
    )
    said = printed(code, tmp_path, "background")
    assert said.startswith("compiling messages.collapse (about ")
    assert said.count("compiling") == 1


def test_kernels_that_kernels_and_python_call_are_known() -> None:
    """Where one is not in `CALLED`, `warm` leaves it out, and who calls it first waits for it."""
    folder = Path(package.__path__[0])
    for path in folder.glob("[!_]*/[!_]*.py"):
        importlib.import_module(f"suffice.numerics.kernels.{path.parent.name}.{path.stem}")
    used = {n for path in folder.parents[1].rglob("*.py") for n in named(path)}
    parts = {k.name for each in compiling.kernels.values() for k in each.callees()}
    assert used & parts == set(compiling.CALLED)


def named(path: Path) -> Iterator[str]:
    """The kernels that a module names, but in the bodies of its own kernels."""
    tree = tree_of(path)
    own = {
        n.partition(".")[2]: n
        for n in compiling.kernels
        if path.parent.parent.name == "kernels" and n.startswith(f"{path.stem}.")
    }
    whence = [
        n for n in nodes_of(path) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("suffice.numerics.kernels")
    ]
    names = own | {a.asname or a.name: f"{str(n.module).rpartition('.')[2]}.{a.name}" for n in whence for a in n.names}
    kernels = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in own]
    inside = {id(n) for each in kernels for n in ast.walk(each)}
    for node in (n for n in nodes_of(path) if id(n) not in inside):
        if isinstance(node, ast.Name):
            yield names.get(node.id, "")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{names.get(node.value.id, '').rpartition('.')[2]}.{node.attr}"


def test_a_name_has_one_kind_of_number_in_a_kernel() -> None:
    """The compiler does not tell assignments of one name apart, so both would be floats, unlike in Python."""
    from numba.core.errors import NumbaError

    def halves(n: int) -> float:
        x = 0.0
        k = n
        for i in range(n):
            x += k // 2
            k = i / 2.0
        return x + k

    one = compiling.Kernel(halves, nb.float64(nb.int64), {"nogil": True, "fastmath": False, "pipeline_class": ""})
    del compiling.kernels[one.name]
    with pytest.raises(NumbaError, match="n stands for whole numbers and for others in one kernel"):
        one.compile()


def test_functions_that_are_no_kernels_compile_after_kernels() -> None:
    """numba's own functions are linked into kernels, and stay what they are for others."""
    import numba
    import numpy as np

    package.compile_kernel("count.rehash")

    @numba.njit
    def largest(n: int) -> float:
        found = np.zeros(n)
        for i in range(n):
            found[i] = min(i**2, 5)
        return found.max() + np.linspace(0.0, 1.0, n)[-1]

    assert largest(4) == 6.0
