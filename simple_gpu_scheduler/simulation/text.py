"""What was simulated, as lines for people. Pure."""

from collections.abc import Mapping, Sequence

from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.units import show_in_one_unit
from simple_gpu_scheduler.display.table import aligned

from .measures import Measures
from .scenario import Scenario

_KNOWN = {
    "exact": "known exactly",
    "requested": "as requested by users",
    "past": "estimated from earlier jobs of the same kind",
    "none": "unknown",
}
_COLUMNS = ("mean", "p50", "p90", "p99", "max", "mean", "p50", "p99", "mean", "p99", "MAKESPAN", "USED", "FAIR")
_WIDTHS = (11, *[8] * 8, 8, 6, 8, 7, 4)
_SIDES = "<" + ">" * len(_COLUMNS)
_MANY = 1000  # above it, tenths do not matter
_GROUPS = (("WAIT", 5), ("RESPONSE", 3), ("SLOWDOWN", 2))


def introduction(scenario: Scenario) -> list[str]:
    """What was simulated."""
    count = sum(map(len, scenario.workloads))
    jobs = f"{count:,} job{'' if count == 1 else 's'}"
    several = f" in {len(scenario.workloads):,} workloads" if len(scenario.workloads) > 1 else ""
    work = sum(each.length * each.job.gpus for workload in scenario.workloads for each in workload)
    span = sum(workload[-1].at - workload[0].at for workload in scenario.workloads)
    load = f", load {work / span / scenario.site.gpus:.2f}" if span * _MANY > work else ""  # otherwise all came at once
    gpus = f"{scenario.site.gpus:,} GPU{'' if scenario.site.gpus == 1 else 's'}"
    head = f"{safe(scenario.name)}: {jobs}{several} on {gpus}{load}; job lengths {_KNOWN[scenario.estimates]}"
    return [head, *map(safe, scenario.remarks)]


def heading() -> list[str]:
    """The lines above the rows."""
    groups = ["", *(cell for name, width in _GROUPS for cell in (name, *[""] * (width - 1))), "", "", ""]
    return _aligned(groups, ["POLICY", *_COLUMNS])


def row(policy: str, measures: Measures) -> str:
    """The result of a policy."""
    wait, response, slowdown = measures.wait, measures.response, measures.slowdown
    cells = [
        *map(show_in_one_unit, (*wait, response.mean, response.p50, response.p99)),
        *(f"{value:,.1f}" if value < _MANY else f"{value:,.0f}" for value in (slowdown.mean, slowdown.p99)),
        show_in_one_unit(measures.makespan),
        f"{100 * measures.utilisation:.1f} %",
        f"{measures.fairness:.2f}",
    ]
    return _aligned([safe(policy), *cells])[0]


def _aligned(*rows: Sequence[str]) -> list[str]:
    return aligned(rows, _SIDES, widths=_WIDTHS, between=" ")


def to_json(policy: str, measures: Measures) -> Mapping[str, object]:
    """The result of a policy."""
    spreads = {name: getattr(measures, name)._asdict() for name in ("wait", "response", "slowdown")}
    return {"policy": policy, **measures._asdict(), **spreads}
