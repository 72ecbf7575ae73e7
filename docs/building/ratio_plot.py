"""How many times as long other programs take, drawn: a row for each, a dot for each piece of work, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

WIDTH, ROW, TOP, LETTER = 500, 24, 8, 6


def ratio_plot(ratios: list[tuple[str, float, str]]) -> Iterator[str]:
    """Lines of an SVG of (program, ratio, work); none where there is nothing to compare."""
    if not ratios:
        return
    names = sorted({name for name, _, _ in ratios}, key=str.casefold)
    least = min(0, math.floor(min(math.log10(r) for _, r, _ in ratios)))
    most = max(1, math.ceil(max(math.log10(r) for _, r, _ in ratios)))
    bottom, left = TOP + ROW * len(names), 16 + LETTER * max(map(len, names))

    def across(ratio: float) -> float:
        return left + (WIDTH - left - 24) * (math.log10(ratio) - least) / (most - least)

    words = "How many times as long as Suffice other programs take, a dot for each piece of work; the tables have the numbers"
    yield f'<svg class="ratios" viewBox="0 0 {WIDTH} {bottom + 40}" role="img" aria-label="{words}">'
    for power in range(least, most + 1):
        x = across(10.0**power)
        yield f'<line class="{"same" if power == 0 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:,g}×</text>'
    for row, name in enumerate(names):
        y = TOP + ROW * (row + 0.5)
        yield f'<text x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        for peer, ratio, work in ratios:
            if peer == name:
                told = escape(f"{work}: {ratio:,.4g}×")
                yield f'<circle cx="{across(ratio):.1f}" cy="{y:.1f}" r="5"><title>{told}</title></circle>'
    yield f'<text x="{left}" y="{bottom + 34}">times as long as Suffice; left of the bold line they are faster</text>'
    yield "</svg>"
