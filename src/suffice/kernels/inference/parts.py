"""The part of a network that a question depends on, found row by row; each different part is kept once.

A part is written into `parts` as: how many variables, how many of them are asked for, how many factors; the variables, those
asked for first; the factors; and room for an order of elimination, which `kernels.elimination` fills.
"""

import numpy as np

from suffice.kernels import kernel, nb

_ints = nb.int64[::1]

UNSEEN, HINTED = -1, -2
"""Codes of what was not observed; of the second there is likelihood evidence."""


@kernel(
    nb.int64(nb.int64, nb.int64, _ints, _ints, nb.int32[:, ::1], *[_ints] * 11, nb.int64, _ints),
    work=lambda first, last, scopes, own: (last - first) * (2 * len(scopes) + 4 * len(own)),
)
def find_parts(
    first, last, targets, seeds, seen, scope_start, scopes, child, own, backwards, touch_start, touches, work, parts, part_at,
    slots, room, part_of
):  # fmt: skip
    """Which part p(targets | the row's cells) depends on, for the rows from `first` on; the row before which room ran out.

    Left out are barren variables (not asked for, and nothing observed at or below them) and what observed ones cut off from the
    targets and from the factors `seeds` (unless these are barren, too). Factors that are no distributions are never barren.

    `part_at[0]` is the number of parts so far and `part_at[1 + i]` where the i-th begins, one more where the next would;
    `slots` finds parts by a hash (−1: empty). `room` is how many numbers the programs of new parts may take, by a rough guess.
    """
    n, n_factors, n_targets = len(own), len(child), len(targets)
    needed, number, taken = work[:n], work[n : 2 * n], work[2 * n : 2 * n + n_factors]
    for r in range(first, last):
        # A row that shows the same cells as the one before has the same part.
        alike = r > first
        for v in range(n):
            if alike and min(seen[r, v], 0) != min(seen[r - 1, v], 0):
                alike = False
        if alike:
            part_of[r] = part_of[r - 1]
            continue
        at = part_at[1 + part_at[0]]
        if (
            at + 3 + 2 * n + n_factors > len(parts)
            or 2 * part_at[0] + 2 > len(slots)
            or part_at[0] + 3 > len(part_at)
            or room < 0
        ):
            return r
        # Needed are what is asked for, what is observed, factors that are no distributions, and all ancestors of these.
        for v in range(n):
            needed[v] = 0 if seen[r, v] == UNSEEN else 1
            number[v] = -1
        for f in range(n_factors):
            taken[f] = 0
            if child[f] < 0:
                for i in range(scope_start[f], scope_start[f + 1]):
                    needed[scopes[i]] = 1
        m, k = 0, 0
        for i in range(n_targets):
            v = targets[i]
            needed[v] = 1
            number[v] = m
            parts[at + 3 + m] = v
            m += 1
        for i in range(n):
            v = backwards[i]
            if needed[v] and own[v] >= 0:
                for j in range(scope_start[own[v]], scope_start[own[v] + 1]):
                    needed[scopes[j]] = 1
        # The factors are listed behind room for all variables, and moved down afterwards.
        done, everything = -1, at + 3 + n
        while done < m:
            a, b = 0, len(seeds)
            if done >= 0:
                a, b = touch_start[parts[at + 3 + done]], touch_start[parts[at + 3 + done] + 1]
            for t in range(a, b):
                f = touches[t] if done >= 0 else seeds[t]
                if taken[f] or (child[f] >= 0 and not needed[child[f]]):
                    continue
                taken[f] = 1
                parts[everything + k] = f
                k += 1
                for i in range(scope_start[f], scope_start[f + 1]):
                    v = scopes[i]
                    if seen[r, v] < 0 and number[v] < 0:
                        number[v] = m
                        parts[at + 3 + m] = v
                        m += 1
            done += 1
        parts[at], parts[at + 1], parts[at + 2] = m, n_targets, k
        for i in range(k):
            parts[at + 3 + m + i] = parts[everything + i]
        # The part is looked for by its hash, and kept if it is a new one.
        length = 3 + m + k
        key = np.uint64(1469598103934665603)
        for i in range(length):
            key = (key ^ np.uint64(parts[at + i])) * np.uint64(1099511628211)
        slot = np.int64((key >> np.uint64(20)) % np.uint64(len(slots)))
        found = np.int64(-1)
        while slots[slot] >= 0 and found < 0:
            where = part_at[1 + slots[slot]]
            same = True
            for i in range(length):
                if parts[where + i] != parts[at + i]:
                    same = False
                    break
            if same:
                found = slots[slot]
            slot = (slot + 1) % len(slots)
        if found < 0:
            found = part_at[0]
            slots[slot] = found
            part_at[0] += 1
            part_at[1 + part_at[0]] = at + length + m
            room -= 32 * k + 4 * m
        part_of[r] = found
    return last
