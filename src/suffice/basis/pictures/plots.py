"""Plots of numbers by matplotlib, on axes that are given or on new ones: whoever has numbers says what they are.

What tells two things apart is never colour alone: lines have styles, and points have shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np

from suffice.basis.pictures.shapes import cut
from suffice.errors import GraphError

Numbers = Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]]

INKS = ("#1d4f91", "#b35900", "#3d7a3d", "#7a3d7a", "#555555", "#8a4b00")
MARKS = ("o", "s", "^", "D", "v", "P")
STYLES: tuple[Any, ...] = ("-", (0, (7, 3)), (0, (2, 2)), (0, (7, 2, 2, 2)))
LABEL = 32
"""Letters of a label."""

MOST_LINES = 40
"""Rows of a plot with a row for each thing; more are cut, and the title says so."""


def axes_of(ax: Any, width: float = 6.4, height: float = 4.8) -> Any:
    """The axes, or new ones of so many inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise GraphError("plotting needs matplotlib: pip install suffice[plot]") from None
    return plt.figure(figsize=(width, height), layout="constrained").add_subplot() if ax is None else ax


def _with_titles(ax: Any, x: str, y: str, title: str = "") -> Any:
    letters = max(30, int(11 * ax.get_window_extent().width / ax.figure.dpi))
    ax.set_xlabel(cut(x, 2 * LABEL), parse_math=False)
    ax.set_ylabel(cut(y, 2 * LABEL), parse_math=False)
    if title:
        ax.set_title("\n".join(wrap(cut(title, 4 * letters), letters)), fontsize="medium", parse_math=False)
    return ax


def _labels(texts: Sequence[str]) -> list[str]:
    return [cut(text, LABEL).replace("$", "\\$") for text in texts]


def plot_traces(ax: Any, traces: Sequence[tuple[str, Numbers]], *, y: str, x: str = "iteration", title: str = "") -> Any:
    """What went up, a line for each start; the first one, which is the best, on top. Steps are counted from 1."""
    ax = axes_of(ax)
    for k, (label, values) in reversed(list(enumerate(traces))):
        at = np.arange(1, len(values) + 1)
        best = k == 0
        look = {"color": INKS[0] if best else "#999999", "lw": 2.0 if best else 1.0, "ls": "-" if best else STYLES[2]}
        ax.plot(at, values, label=cut(label, LABEL) if k < 2 else None, zorder=3 if best else 2, **look)
        if len(at):
            ax.plot(at[-1:], values[-1:], "o", color=look["color"], ms=5 if best else 3, zorder=4)
    if len(traces) > 1:
        ax.legend(frameon=False)
    ends = [float(t[-1]) for _, t in traces if len(t) and math.isfinite(t[-1])]
    starts = [float(t[min(len(t) - 1, len(t) // 20)]) for _, t in traces if len(t)]
    starts = [s for s in starts if math.isfinite(s)]
    if ends and starts and max(ends) > min(starts):  # the first climb of long traces would hide all that follows
        room = 0.05 * (max(ends) - min(starts))
        ax.set_ylim(min(starts) - room, max(ends) + room)
    return _with_titles(ax, x, y, title)


def plot_intervals(
    ax: Any,
    rows: Sequence[str],
    series: Sequence[tuple[str, Numbers, Numbers | None, Numbers | None]],
    *,
    x: str,
    title: str = "",
    hollow: Sequence[bool] = (),
    upright: tuple[float, str] | None = None,
) -> Any:
    """A row for each thing, in it a point with its interval for each series (name, values, low ends, high ends); hollow points
    where the rows say so, and an upright line."""
    n, m = min(len(rows), MOST_LINES), len(series)
    ax = axes_of(ax, height=max(2.0, 1.2 + 0.22 * n * max(1, min(m, 4))))
    for k, (name, values, low, high) in enumerate(series):
        at = np.arange(n) + (0.7 * (k / (m - 1) - 0.5) if m > 1 else 0.0)
        ink, own = INKS[k % len(INKS)], np.asarray(values, np.float64)[:n]
        if low is not None and high is not None:
            ends = np.asarray(low, np.float64)[:n], np.asarray(high, np.float64)[:n]
            ax.hlines(at, *ends, color=ink, lw=1.2)
        empty = np.asarray([*hollow[:n], *([False] * (n - len(hollow[:n])))], bool)
        for some, face, words in ((~empty, ink, cut(name, LABEL)), (empty, "white", None)):
            ax.plot(own[some], at[some], MARKS[k % len(MARKS)], color=ink, mfc=face, ms=5, ls="none", label=words)
    ax.set_yticks(np.arange(n), _labels(rows[:n]))
    ax.set_ylim(n - 0.5, -0.5)
    if upright is not None:
        ax.axvline(upright[0], color="#444444", ls=STYLES[1], lw=1.0, label=upright[1])
    if np.any(hollow):
        ax.plot([], [], "o", color="#444444", mfc="white", ls="none", label="no row had it")
    if m > 1 or upright is not None or np.any(hollow):
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    cut_off = f" (the first {n} of {len(rows):,})" if n < len(rows) else ""
    return _with_titles(ax, x, "", f"{title}{cut_off}")


def plot_bars(ax: Any, labels: Sequence[str], values: Numbers, low: Any, high: Any, *, x: str, y: str, title: str = "") -> Any:
    """A bar for each label, with intervals where there are some; of many the first, as the title says."""
    n = min(len(labels), MOST_LINES)
    ax = axes_of(ax, height=max(2.0, 1.2 + 0.3 * n))
    own = np.asarray(values, np.float64)[:n]
    ax.barh(np.arange(n), own, color="#5b8db8", height=0.7)
    if low is not None:
        ends = own - np.asarray(low, np.float64)[:n], np.asarray(high, np.float64)[:n] - own
        ax.errorbar(own, np.arange(n), xerr=np.clip(np.array(ends), 0.0, None), fmt="none", ecolor="black", capsize=3, lw=1.2)
    ax.set_yticks(np.arange(n), _labels(labels[:n]))
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    return _with_titles(ax, x, y, title + (f" (the first {n} of {len(labels):,})" if n < len(labels) else ""))


def plot_curves(ax: Any, at: Numbers, curves: Sequence[tuple[str, Numbers]], *, x: str, y: str, title: str = "") -> Any:
    """Functions of a number; the first one is the sum of the others, or stands alone."""
    ax = axes_of(ax)
    for k, (label, values) in enumerate(curves):
        ink = "black" if k == 0 else INKS[(k - 1) % len(INKS)]
        ax.plot(at, values, color=ink, ls=STYLES[k % len(STYLES)], lw=2.0 if k == 0 else 1.2, label=cut(label, LABEL))
    if len(curves) > 1:
        ax.legend(frameon=False)
    if all(np.min(values, initial=0.0) >= 0.0 for _, values in curves):
        ax.set_ylim(bottom=0.0)
    return _with_titles(ax, x, y, title)


def plot_gaps(ax: Any, columns: Sequence[str], patterns: Sequence[tuple[Sequence[str], float]], *, title: str = "") -> Any:
    """Which columns are missing together: a row for each pattern, as high as its share of the rows, a column for each."""
    ax = axes_of(ax, width=max(4.0, 1.5 + 0.35 * len(columns)))
    top, ticks = 0.0, []
    for missing, share in patterns:
        for i, name in enumerate(columns):
            gone = name in missing
            style = {"facecolor": "#8a4b00", "hatch": "//"} if gone else {"facecolor": "#dbe7fb"}
            ax.bar(i, share, 1.0, bottom=top, align="center", edgecolor="white", linewidth=0.5, **style)
        ticks.append((top + share / 2, share))
        top += share
    shown = [(at, share) for at, share in ticks if share >= 0.03]
    ax.set_yticks([at for at, _ in shown], [f"{100 * share:.1f} %" for _, share in shown])
    ax.set_xticks(range(len(columns)), _labels(columns), rotation=90 if len(columns) > 6 else 0)
    ax.set_ylim(max(top, 1e-9), 0.0)
    ax.set_xlim(-0.5, max(len(columns), 1) - 0.5)
    return _with_titles(ax, "hatched: missing", "share of the rows", title)


def plot_against(ax: Any, a: Numbers, b: Numbers, *, x: str, y: str, title: str = "", mark: str = "o") -> Any:
    """Shares over shares, and the diagonal, on which they agree."""
    ax = axes_of(ax, 4.8, 4.8)
    ax.plot([0.0, 1.0], [0.0, 1.0], color="#999999", ls=STYLES[1], lw=1.0)
    ax.plot(a, b, mark, color=INKS[0], ms=4, alpha=0.7)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    return _with_titles(ax, x, y, title)


def plot_reliability(ax: Any, bins: Sequence[tuple[float, float, float, float, float]], *, x: str, y: str, title: str) -> Any:
    """Bins (predicted, observed, low, high, weight): points with intervals, larger where there are more rows."""
    ax = plot_against(ax, [b[0] for b in bins], [b[1] for b in bins], x=x, y=y, title=title, mark="-")
    most = max((b[4] for b in bins), default=1.0)
    for predicted, observed, low, high, weight in bins:
        ax.vlines(predicted, low, high, color=INKS[0], lw=1.2)
        ax.plot([predicted], [observed], "o", color=INKS[0], ms=3 + 6 * math.sqrt(weight / most))
    return ax
