"""Iterative proportional fitting along a tree of cliques, all tables in one array.

A program is rows of numbers, gone through in every cycle:

    0, first cell of a table, cells, places, first cell of a margin, its cells, –, –, –              fit the table to the margin
    1, first cell of a table, cells, places, first cell of a separator, its cells, other table, its cells, its places
                                                                                       tell another table what became of it

`place[places + i]` is the cell of the margin or separator that cell i of the table falls into.
"""

import numpy as np

from suffice.kernels import kernel, nb

_ints, _floats = nb.int64[::1], nb.float64[::1]


@kernel(nb.float64(nb.int64[:, ::1], _ints, _floats, _floats, _floats, _floats, _floats))
def ipf_cycle(program, place, tables, target, logs, separators, work):
    """Go through the program once; the largest difference between a table's margin and what it should be.

    `logs` gets ln of what each cell of a margin was multiplied by, added up; `work` has room for one margin.
    """
    worst = 0.0
    for o in range(len(program)):
        first, cells, at, margin, n = program[o, 1], program[o, 2], program[o, 3], program[o, 4], program[o, 5]
        for j in range(n):
            work[j] = 0.0
        for i in range(cells):
            work[place[at + i]] += tables[first + i]
        if program[o, 0] == 0:
            for j in range(n):
                worst = max(worst, abs(work[j] - target[margin + j]))
                work[j] = target[margin + j] / work[j] if work[j] > 0.0 else 0.0
                logs[margin + j] += np.log(work[j]) if work[j] > 0.0 else -np.inf
        else:
            for j in range(n):
                now = work[j]
                work[j] = now / separators[margin + j] if separators[margin + j] > 0.0 else 0.0
                separators[margin + j] = now
            first, cells, at = program[o, 6], program[o, 7], program[o, 8]
        for i in range(cells):
            tables[first + i] *= work[place[at + i]]
    return worst
