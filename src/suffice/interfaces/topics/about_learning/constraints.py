"""Constraints on the graph that a search finds: they add, `Forbid(("a", "b")) + MaxParents(2)`."""

from suffice.structure.constraints import (
    Adjacent,
    Candidates,
    Constraints,
    Forbid,
    MaxParents,
    NotAncestor,
    Require,
    Tiers,
    read_tiers,
)

__all__ = ["Adjacent", "Candidates", "Constraints", "Forbid", "MaxParents", "NotAncestor", "Require", "Tiers", "read_tiers"]
