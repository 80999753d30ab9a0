"""The result of `tune`, as sentences and as JSON. Pure."""

from collections.abc import Mapping, Sequence

from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.scheduling.policies.names import SHARING
from simple_gpu_scheduler.simulation.learn.lessons import Exam

from .scenario import Scenario
from .text import to_json as policy_to_json
from .tune import BASE, FEW_PARTS, Candidate, Tuned


def advice(tuned: Tuned, fair_by: str) -> list[str]:
    """The best policy, its gain and its price, and how sure that is."""
    base, best, least = tuned.candidates[0], tuned.best, tuned.least
    if not base.measures.wait.max:
        return ["No job would have waited under any policy, so there is nothing to choose."]
    if best is base:
        lines = [
            f"Best: --policy {BASE}, the default. No starvation-free policy shortens the mean wait by 1 % or more."
        ]
    elif tuned.parts < FEW_PARTS:
        lines = ["Confidence: none; with so few jobs, the difference may be chance.", *_gain(best, base, fair_by)]
    else:
        lines = [*_gain(best, base, fair_by), _sureness(tuned)]
    if least is not best:
        wait = least.measures.wait
        lines.append(
            f"{least.policy} would have waited {show_duration(wait.mean)} on average, but under it a job may wait "
            f"forever: the longest wait here is {show_duration(wait.max)}."
        )
    return lines


def _gain(best: Candidate, base: Candidate, fair_by: str) -> list[str]:
    mine, others = best.measures.wait, base.measures.wait
    gain = (
        f"Best: --policy {_typed(best.policy, fair_by)}. The mean wait would have been {show_duration(mine.mean)} "
        f"instead of {show_duration(others.mean)} under {BASE} ({best.standing.percent:+.0f} %)."
    )
    price = (
        f"Cost: the longest wait is {show_duration(mine.max)} ({BASE}: {show_duration(others.max)}); one job "
        f"in a hundred waits {show_duration(mine.p99)} or more ({BASE}: {show_duration(others.p99)})."
    )
    return [gain, price]


def _sureness(tuned: Tuned) -> str:
    best, parts = tuned.best, tuned.parts
    said = "significantly" if tuned.is_sure else "not significantly"
    return (
        f"Confidence: {said} better than {BASE} ({best.standing.percent:+.1f} % ± {best.standing.percent_error:.1f} "
        f"%); better in {best.wins} of {parts} parts."
    )


def _typed(policy: str, fair_by: str) -> str:
    name, _, knob = policy.partition(":")
    if knob:
        return f"{name} --ageing {knob}"
    return f"{name} --fair-by {fair_by}" if name in SHARING and fair_by != "label" else name


def to_json(scenario: Scenario, tuned: Tuned, exams: Sequence[Exam]) -> Mapping[str, object]:
    """All of it."""
    return {
        "trace": scenario.name,
        "jobs": sum(map(len, scenario.workloads)),
        "gpus": scenario.site.gpus,
        "estimates": scenario.estimates,
        "remarks": scenario.remarks,
        "parts": tuned.parts,
        "best": tuned.best.policy,
        "is_sure": tuned.is_sure,
        "policies": [_candidate(each) for each in tuned.candidates],
        **({"learned": [_exam(each) for each in exams]} if exams else {}),
    }


def _candidate(each: Candidate) -> Mapping[str, object]:
    error = each.standing.error
    return {
        **policy_to_json(each.policy, each.measures),
        "difference": each.standing.difference,
        "error": None if error == float("inf") else error,
        "wins": each.wins,
        "may_starve": each.may_starve,
    }


def _exam(exam: Exam) -> Mapping[str, object]:
    error = exam.standing.error
    return {
        "exam": exam.name,
        "policy": exam.other,
        "wait": exam.standing.wait,
        "difference": exam.standing.difference,
        "error": None if error == float("inf") else error,
    }
