"""The queries that we publish: of the dashboard, and of the page on metrics."""

import json
import re

from tests.conftest import ROOT

DASHBOARD = ROOT / "examples" / "grafana.json"
_PAGE = ROOT / "docs" / "metrics.md"
_BY_GRAFANA = {"$__rate_interval": "1m", "$__range": "1h"}


def queries() -> list[str]:
    """Those of the dashboard, as Grafana gets them."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def queries_for_prometheus() -> list[str]:
    """All, with everything chosen."""
    filled = []
    for text in queries():
        for variable, value in _BY_GRAFANA.items():
            text = text.replace(variable, value)  # noqa: PLW2901 - filled in step by step
        filled.append(re.sub(r"\$\w+", ".*", text))
    [rows] = re.findall(r"\| question \| query \|\n\|[- |]*\n(.*?)\n\n", _PAGE.read_text(), re.DOTALL)
    return [*filled, *(text.replace("\\|", "|") for text in re.findall(r"\| `(.*)` \|", rows))]
