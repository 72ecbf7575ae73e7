"""Every reader of files, fed with 20,000 broken files, all different: read, or refused in one short line. `make fuzz`: more."""

from __future__ import annotations

import pytest

from tests.fuzz import NAMES, fuzz, readers

INPUTS = 20_000


def test_every_reader_is_fed() -> None:
    assert set(readers()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_broken_files_are_read_or_refused(name: str) -> None:
    told = fuzz(name, INPUTS, seed=0)
    assert told["refused"] + told["read"] == INPUTS
    assert told["refused"] > INPUTS // 4
    assert told["read"] > 0
