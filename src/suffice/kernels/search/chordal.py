"""Chordal graphs: which single edges can come or go so that every cycle of four or more nodes keeps a chord.

An edge a – b can go if it lies in one maximal clique only, so if the common neighbours of a and b are all joined. One can come if
the common neighbours of a and b part them (Giudici & Green 1999, Biometrika 86, p. 785): any other path between them would become
a cycle without a chord.
"""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.compiler import signatures as nb

_bytes = nb.uint8[:, ::1]


@kernel(nb.void(_bytes, _bytes))
def chordal_changes(near, legal):
    """Of a chordal graph near[a, b], write to `legal` whether the edge of each pair can come, or go if it is there."""
    n = len(near)
    around = np.empty((n, n), np.int32)
    degree = np.zeros(n, np.int64)
    for a in range(n):
        for b in range(n):
            if near[a, b]:
                around[a, degree[a]] = b
                degree[a] += 1
    common, todo = np.empty(n, np.int32), np.empty(n, np.int32)
    seen = np.full(n, -1, np.int64)  # the last walk that came by
    walk = 0
    for a in range(n):
        legal[a, a] = 0
        for b in range(a + 1, n):
            n_common = 0
            for k in range(degree[a]):
                v = around[a, k]
                if near[b, v]:
                    common[n_common] = v
                    n_common += 1
            possible = 1
            if near[a, b]:
                for i in range(n_common):
                    for j in range(i):
                        if not near[common[i], common[j]]:
                            possible = 0
            else:
                walk += 1
                for i in range(n_common):
                    seen[common[i]] = walk
                seen[a] = walk
                todo[0], n_todo = a, 1
                while n_todo and possible:
                    n_todo -= 1
                    v = todo[n_todo]
                    for k in range(degree[v]):
                        u = around[v, k]
                        if u == b:
                            possible = 0
                            break
                        if seen[u] != walk:
                            seen[u] = walk
                            todo[n_todo] = u
                            n_todo += 1
            legal[a, b] = legal[b, a] = possible
