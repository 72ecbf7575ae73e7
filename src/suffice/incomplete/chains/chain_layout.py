"""How sequences are passed over: all unknown variables as one joint state, or factor by factor where that is cheaper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from suffice.engines.engine import Block
from suffice.incomplete.chains.chain_factors import FactorPlan, plan_of
from suffice.incomplete.chains.chain_rows import ChainRows
from suffice.incomplete.chains.factored_rows import FactoredRows
from suffice.incomplete.chains.step_layout import StepLayout


@dataclass(frozen=True, eq=False)
class ChainLayout(StepLayout):
    """A template's nodes as steps of sequences need them, and how blocks of whole sequences are reduced."""

    @cached_property
    def plan(self) -> FactorPlan | None:
        """How unknown variables are passed on factor by factor, where that is cheaper than all of them as one state."""
        return plan_of(self)

    def rows(self, block: Block) -> ChainRows | FactoredRows:
        """A block of whole sequences, reduced."""
        return ChainRows.of(self, block) if self.plan is None else FactoredRows.of(self.plan, block)
