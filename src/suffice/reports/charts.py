"""Small charts as SVG, which need no other package: lines that go up, and probabilities against shares.

Colours are those of the page, by classes; what tells lines apart is never colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from suffice.reports.markup import Html, element, text

WIDTH, HEIGHT, LEFT, BELOW, ROOM = 560.0, 240.0, 76.0, 40.0, 12.0
POINTS = 400
"""Points of a line; of more, about so many, first and last among them."""


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About n round numbers between two."""
    if not high > low:
        return [low]
    rough = (high - low) / n
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(lines: Sequence[tuple[str, Sequence[float]]], *, x: str, y: str, title: str) -> Html:
    """A line for each start, the first, which is the best, drawn last and heavier; the first climb of long ones is left out."""
    finite = [[v for v in values if math.isfinite(v)] for _, values in lines]
    starts = [values[min(len(values) - 1, len(values) // 20)] for values in finite if values]
    if not starts:
        return Html()
    low, high = min(starts), max(max(values) for values in finite if values)
    longest = max(len(values) for _, values in lines)
    frame = _Frame(1.0, max(2.0, float(longest)), low, high if high > low else low + 1.0)
    drawn = [
        frame.line([(i + 1.0, v) for i, v in enumerate(values) if v >= low and math.isfinite(v)], "best" if k == 0 else "other")
        for k, (_, values) in reversed(list(enumerate(lines)))
    ]
    return frame.chart(drawn, x=x, y=y, title=title)


def reliability(bins: Sequence[tuple[float, float, float, float, float]], *, title: str) -> Html:
    """Bins (predicted, observed, low, high, rows): points with their intervals; on the diagonal they agree."""
    frame = _Frame(0.0, 1.0, 0.0, 1.0, 220.0, 200.0, 40.0)
    most = max((b[4] for b in bins), default=1.0)
    parts = [frame.line([(0.0, 0.0), (1.0, 1.0)], "diagonal")]
    for predicted, observed, low, high, rows in bins:
        said = f"predicted {predicted:.3f}, observed {observed:.3f} ({low:.3f}–{high:.3f}), {rows:,.10g} rows"
        at, centre = frame.x(predicted), frame.y(observed)
        whisker = f'<path class="whisker" d="M{at:.1f} {frame.y(low):.1f}V{frame.y(high):.1f}"/>'
        point = f'<circle class="point" cx="{at:.1f}" cy="{centre:.1f}" r="{2.0 + 3.0 * math.sqrt(rows / most):.1f}"/>'
        parts.append(f"<g><title>{text(said)}</title>{whisker}{point}</g>")
    return frame.chart(parts, x="predicted", y="observed", title=title)


class _Frame:
    """The axes of a chart."""

    def __init__(
        self, x0: float, x1: float, y0: float, y1: float, width: float = WIDTH, height: float = HEIGHT, left: float = LEFT
    ) -> None:
        self.ends, self.width, self.height, self.left = (x0, x1, y0, y1), width, height, left

    def x(self, value: float) -> float:
        x0, x1, _, _ = self.ends
        return self.left + (value - x0) / (x1 - x0) * (self.width - self.left - ROOM)

    def y(self, value: float) -> float:
        _, _, y0, y1 = self.ends
        return self.height - BELOW - (value - y0) / (y1 - y0) * (self.height - BELOW - ROOM)

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> str:
        if len(points) > POINTS:
            points = [points[i * (len(points) - 1) // (POINTS - 1)] for i in range(POINTS)]
        where = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        return f'<polyline class="{kind}" points="{where}"/>'

    def chart(self, parts: Sequence[str], *, x: str, y: str, title: str) -> Html:
        x0, x1, y0, y1 = self.ends
        few = 8 if self.width > 300 else 2
        across = ticks(x0, x1, few)
        down = ticks(y0, y1, 6 if self.width > 300 else 2)
        close = y1 - y0 < 1e-3 * max(abs(y0), abs(y1))
        marks = [f'<path class="grid" d="M{self.left:.1f} {self.y(v):.1f}H{self.width - ROOM:.1f}"/>' for v in down]
        marks += [
            f'<text x="{self.left - 6:.1f}" y="{self.y(v) + 4:.1f}" text-anchor="end">{_tick(v, close)}</text>' for v in down
        ]
        marks += [
            f'<text x="{self.x(v):.1f}" y="{self.height - BELOW + 16:.1f}" text-anchor="middle">{_tick(v, False)}</text>'
            for v in across
        ]
        axis = f'<path class="axis" d="M{self.left:.1f} {ROOM:.1f}V{self.height - BELOW:.1f}H{self.width - ROOM:.1f}"/>'
        middle = (self.height - BELOW + ROOM) / 2
        names = (
            f'<text x="{(self.left + self.width - ROOM) / 2:.1f}" y="{self.height - 6:.1f}" text-anchor="middle">{text(x)}</text>'
            f'<text transform="translate(12 {middle:.1f}) rotate(-90)" text-anchor="middle">{text(y)}</text>'
        )
        inside = Html(f"{''.join(marks)}{axis}{''.join(parts)}{names}")
        box = f"0 0 {self.width:g} {self.height:g}"
        sizes = {"width": f"{self.width:g}", "height": f"{self.height:g}", "viewBox": box}
        return element("svg", element("title", title), inside, class_="chart", role="img", **sizes)


def _tick(value: float, close: bool) -> str:
    shown = f"{value:,.6g}" if abs(value) < 1e6 and not close else f"{value:,.10g}" if abs(value) < 1e9 else f"{value:.4g}"
    return shown.replace("-", "−", 1)
