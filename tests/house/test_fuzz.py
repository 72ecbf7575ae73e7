"""Every reader of files, fed with 20,000 broken files: they are read, or refused in one short line. `make fuzz` does more."""

from __future__ import annotations

import pytest

from tests.fuzz import NAMES, fuzz, readers

INPUTS = 20_000
PARTS = 4
"""A reader's inputs are several tests, which run beside each other."""


def test_every_reader_is_fed() -> None:
    assert set(readers()) == set(NAMES)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", NAMES)
def test_broken_files_are_read_or_refused(name: str, part: int) -> None:
    told = fuzz(name, INPUTS // PARTS, part)
    assert told["refused"] > INPUTS // PARTS // 4
    assert told["read"] > 0
