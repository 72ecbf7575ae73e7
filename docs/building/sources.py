"""What the numbers of the site depend on beside its pages: the sources of the library."""

from __future__ import annotations

import hashlib
from pathlib import Path

import suffice


def fingerprint() -> str:
    """A word that changes with any file of the library: what cells gave before is then not taken again."""
    root = Path(suffice.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
