"""The laws of chains by enumeration once more, with the unknown variables passed on factor by factor however few they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from suffice.incomplete.chains import factored_rows
from tests.laws.test_chain_laws import (  # noqa: F401
    test_a_column_that_is_not_there_is_missing_everywhere,
    test_following_is_filtering,
    test_forecasts_are_enumeration,
    test_ln_p_filter_and_smoother_are_enumeration,
    test_paths_are_enumeration,
    test_the_best_path_is_the_network_s_most_probable,
    test_the_e_step_is_enumeration,
    test_threads_give_the_same_bits,
    test_what_shows_nothing_adds_nothing,
)

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")


@pytest.fixture(autouse=True, scope="module")
def factor_by_factor() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factored_rows, "FIXED", 1)
        patch.setattr(factored_rows, "DEARER", 0)
        yield
