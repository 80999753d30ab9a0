"""The dashboard for Grafana asks only for metrics and labels that exist."""

import json
import re
from collections.abc import Iterator

import pytest

from simple_gpu_scheduler.metrics.families import NAMES
from tests.support.dashboard import DASHBOARD, queries

BOARD = json.loads(DASHBOARD.read_text())
PANELS = BOARD["panels"]
VARIABLES = {each["name"]: each for each in BOARD["templating"]["list"]}
LABELS = {each.name: {*each.labels, "instance", "job"} for each in NAMES} | {
    f"{each.name}_{part}": {"instance", "job", "le"}
    for each in NAMES
    if each.kind == "histogram"
    for part in ("bucket", "sum", "count")
}
BY_GRAFANA = {"datasource", "__rate_interval", "__range"}


def selectors(text: str) -> Iterator[tuple[str, set[str]]]:
    """Each metric that a query names, and the labels by which it chooses its series."""
    for name, chosen in re.findall(r"\b(sgs_\w+)(?:\{([^}]*)\})?", text):
        yield name, {*re.findall(r"(\w+)\s*=", chosen)}


@pytest.mark.parametrize("text", [*queries(), *(each.get("definition", "") for each in VARIABLES.values())])
def test_each_query_asks_for_what_there_is(text: str) -> None:
    for name, labels in selectors(text):
        assert name in LABELS, text
        assert labels <= LABELS[name], text
    assert {*re.findall(r"\$\{?(\w+)", text)} <= VARIABLES.keys() | BY_GRAFANA, text


def test_names_that_do_not_exist_would_be_noticed() -> None:
    assert [*selectors('sum(sgs_gpu_states{gpu=~"$gpu",stat="x"})')] == [("sgs_gpu_states", {"gpu", "stat"})]
    assert "sgs_gpu_states" not in LABELS


def test_it_has_rows_for_gpus_queue_and_jobs_and_the_variables_to_choose() -> None:
    assert [panel["title"] for panel in PANELS if panel["type"] == "row"] == ["GPUs", "Queue", "Jobs"]
    assert [*VARIABLES] == ["datasource", "instance", "gpu", "run"]
    used = {name for text in queries() for name in re.findall(r"\$(\w+)", text)}
    assert {"instance", "gpu", "run"} <= used


def test_no_two_panels_are_at_one_place() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_each_query_of_a_panel_has_a_name_and_the_chosen_data_source() -> None:
    for panel in PANELS:
        targets = panel.get("targets", [])
        assert [each["refId"] for each in targets] == list("ABCDEFG"[: len(targets)])
        assert all(each["datasource"] == {"type": "prometheus", "uid": "${datasource}"} for each in targets)
