"""The page on metrics names each one, as it is."""

import re

from simple_gpu_scheduler.metrics.families import NAMES
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "metrics.md"


def table() -> str:
    rows = [
        f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} | {each.help} |"
        for each in NAMES
    ]
    return "\n".join(["| name | kind | labels | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"


def test_the_page_has_every_metric() -> None:
    [found] = re.findall(r"<!-- metrics -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert found == table(), "print it anew: python -m tests.docs.test_metrics_page"


def test_the_page_names_no_other() -> None:
    histograms = {each.name for each in NAMES if each.kind == "histogram"}
    known = {each.name for each in NAMES} | {
        f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")
    }
    assert {*re.findall(r"\bsgs_[a-z_]+", PAGE.read_text())} <= known


if __name__ == "__main__":
    print(table(), end="")
