"""Numbers of the benchmark: units, the wire's limit, summaries and tables.

Pure functions; everything else in bench/ measures, this file only calculates.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Of each full-size frame of 1514 bytes (1500 MTU + 14 Ethernet header, which is
# what tc counts) TCP over IPv4 with timestamps carries 1448 bytes of payload.
FRAME_BYTES = 1514
PAYLOAD_BYTES = 1448

_SIZE_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip
_RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def _parse(text: str, units: dict[str, int], example: str) -> int:
    match = _QUANTITY.fullmatch(text.strip())
    if not match or match[2].lower() not in units:
        raise ValueError(f"{text!r} is not understood; write it like {example}")
    return round(float(match[1]) * units[match[2].lower()])


def parse_size(text: str) -> int:
    """Bytes of "1024", "48MiB", "1.5 GiB", "10MB"; ValueError if malformed."""
    return _parse(text, _SIZE_UNITS, "48MiB")


def parse_rate(text: str) -> int | None:
    """Bits per second of "300mbit" as tc writes it; None for "none" (unshaped)."""
    if text.strip().lower() == "none":
        return None
    rate = _parse(text, _RATE_UNITS, "300mbit or none")
    if rate == 0:
        raise ValueError("a rate of zero moves nothing; cut the link instead")
    return rate


def format_size(size: int) -> str:
    """The shortest exact form: 1048576 -> "1 MiB", 1000 -> "1000 B"."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def format_seconds(seconds: float) -> str:
    """Three or four significant digits in s, ms or us."""
    for scale, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e6:.4g} us"


def limit(size: int, rate: int) -> float:
    """Seconds that `size` bytes of TCP payload need on a wire of `rate` bit/s."""
    return size * 8 * FRAME_BYTES / PAYLOAD_BYTES / rate


@dataclass(frozen=True)
class Summary:
    """Repetitions of one measurement. All fields have the unit of the values."""

    median: float
    min: float
    max: float
    count: int

    @property
    def spread(self) -> float:
        """(max - min) / median: 0.1 means that the runs differ by 10 %. Of counts whose median is 0: infinite, or 0."""
        if self.median == 0:
            return float("inf") if self.max > self.min else 0.0
        return (self.max - self.min) / self.median

    def scaled(self, factor: float) -> Summary:
        """The same repetitions in another unit, or relative to a reference."""
        return Summary(self.median * factor, self.min * factor, self.max * factor, self.count)


def summarize(values: Iterable[float]) -> Summary:
    """Summary of at least one value; ValueError if there is none."""
    values = list(values)
    if not values:
        raise ValueError("no repetitions to summarize")
    return Summary(statistics.median(values), min(values), max(values), len(values))


def ratio(values: Iterable[float], reference: Iterable[float] | float) -> Summary:
    """How many times the reference: each value over the reference's median.

    The reference is one number (a limit) or repetitions of another measurement.
    """
    if not isinstance(reference, (int, float)):
        reference = statistics.median(reference)
    return summarize(values).scaled(1 / reference)


def table(
    header: Sequence[str], rows: Iterable[Sequence[object]], left: Sequence[int] = (0,)
) -> str:
    """Plain text in columns: those in `left` aligned to the left, others to the right."""
    lines = [[str(cell) for cell in line] for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def aligned(line: list[str]) -> str:
        cells = enumerate(zip(line, widths, strict=True))
        aligned = (cell.ljust(width) if i in left else cell.rjust(width) for i, (cell, width) in cells)
        return "  ".join(aligned).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([aligned(lines[0]), rule, *map(aligned, lines[1:])])
