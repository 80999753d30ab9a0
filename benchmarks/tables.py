"""Tables in Markdown, whether promises hold, and percentiles: what all measurements are shown with."""

import statistics


def show(title: str, header: list[str], rows: list[list[str]]) -> None:
    """A table in Markdown."""
    widths = [max(len(row[at]) for row in [header, *rows]) for at in range(len(header))]
    print(f"\n{title}\n")
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")


def verdict(*, holds: bool, promise: str) -> str:
    """Whether a promise holds."""
    return f"{'holds' if holds else 'FALLS SHORT'}: {promise}"


def percentile(values: list[float], share: int) -> float:
    """Below which so many per cent of the values lie."""
    return statistics.quantiles(values, n=100)[share - 1]
