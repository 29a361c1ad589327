"""A small line plot as SVG, both axes logarithmic: what grows evenly is a straight line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 320, 250
#: room for words: left, top, right, bottom
LEFT, TOP, RIGHT, BOTTOM = 52, 30, 12, 40
#: told apart by people who see colours otherwise, too (Okabe and Ito), and by their marks
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One plot.

    Attributes:
        lines: name -> points; all values are above 0.
        ticks: of the x axis.
    """

    title: str
    x: str
    lines: Mapping[str, Points]
    ticks: Sequence[float]


def svg(panels: Sequence[Panel], names: Sequence[str]) -> str:
    """*panels* side by side; *names* of all lines, in the order of the legend."""
    width, height = WIDTH * len(panels), HEIGHT + 20 * math.ceil(len(names) / 4) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({WIDTH * number} 0)">{_panel(panel, names)}</g>')
    for number, name in enumerate(names):
        x, y = LEFT + number % 4 * (width - LEFT) / 4, HEIGHT + 12 + 20 * (number // 4)
        parts.append(f'<path d="M{x:.0f} {y}h22" stroke="{_colour(number)}" stroke-width="2"/>')
        parts.append(_mark(number, x + 11, y) + _text(x + 28, y + 4, name))
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel, names: Sequence[str]) -> str:
    values = [y for points in panel.lines.values() for _, y in points]
    low, high = _decades(values)
    across = (math.log(min(panel.ticks)), math.log(max(panel.ticks)))

    def x(value: float) -> float:
        share = (math.log(value) - across[0]) / ((across[1] - across[0]) or 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, 18, panel.title, weight="bold")]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, at + 4, f"{10.0**power:g}", anchor="end"))
    for tick in panel.ticks:
        parts.append(f'<path d="M{x(tick):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/>')
        parts.append(_text(x(tick), HEIGHT - BOTTOM + 15, f"{tick:g}", anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, panel.x, anchor="middle"))
    for name, points in panel.lines.items():
        number = list(names).index(name)
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{_colour(number)}" stroke-width="2"/>'
        )
        parts += [_mark(number, x(a), y(b)) for a, b in points]
    return "".join(parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten around all *values*."""
    low = math.floor(math.log10(min(values, default=1.0)))
    return low, max(math.ceil(math.log10(max(values, default=1.0))), low + 1)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _mark(number: int, x: float, y: float) -> str:
    colour = _colour(number)
    if number % 2:
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )
