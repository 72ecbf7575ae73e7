"""What a user's own type checker sees: no `Any` in an ordinary script. (Arrays of numpy have one in their shapes.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import suffice as sf

bn = sf.load("asia")
nodes, edges = bn.nodes, bn.edges
answer = bn.query("lung", given={"xray": "yes"})
how: str = answer.how
done = bn.do({"smoke": "yes"}).query("lung")
cpd = bn["lung"]
parents: tuple[str, ...] = cpd.parents
data = sf.scan("visits.csv")
rows: int = data.n_rows
found = sf.search(data, sf.BIC(), sf.HillClimb())
directions = found.directions
dag = found.dag
names = sf.networks()
penguins = sf.table("penguins").schema
"""


def test_a_script_has_no_untyped_expressions(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    root = Path(__file__).parents[1]
    (tmp_path / "script.py").write_text(SCRIPT)
    options = ["--disallow-any-expr", "--follow-imports", "silent", "--cache-dir", str(root / ".mypy_cache")]
    call = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), *options, "script.py"]
    environment = {"MYPYPATH": str(root / "src"), "PATH": "", "PYTHONPATH": ""}
    ran = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
