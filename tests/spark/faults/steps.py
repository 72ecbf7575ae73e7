"""Steps that go wrong, for workers of whatever kind."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from suffice.engines import Block, Step
from suffice.errors import DataError


def parent(pid: int) -> int:
    """The process that started another one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass(frozen=True)
class FailOnce(Step[float]):
    """A sum that fails when it is first made; or its process is killed, or the executor that started this."""

    mark: str
    how: str

    def of(self, block: Block) -> float:
        try:
            Path(self.mark).touch(exist_ok=False)
        except FileExistsError:
            return float(block.columns["x"].sum())
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "kill executor":
            os.kill(parent(parent(os.getpid())), signal.SIGKILL)
            time.sleep(60)
        raise OSError("the disk was not there")


@dataclass(frozen=True)
class FailAlways(Step[float]):
    error: str

    def of(self, block: Block) -> float:
        if self.error == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise {"refusal": DataError("no such rows"), "bug": ZeroDivisionError("of a step")}[self.error]


@dataclass(frozen=True)
class Slow(Step[float]):
    """A sum that takes its time."""

    seconds: float

    def of(self, block: Block) -> float:
        time.sleep(self.seconds)
        return float(block.n_rows)
