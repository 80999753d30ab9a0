"""Nobody waits for ever, however long others keep coming; but under two policies, of which that is said.

A stream is cut after so many jobs. Who starts when the last of it has, or later when it is longer, waits for its end.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.scheduling.policies import MAY_STARVE, POLICIES
from simple_gpu_scheduler.simulation.simulate import simulate
from tests.unit.scheduling.test_backfill import word
from tests.unit.scheduling.test_policies import DAY, Spec, arrivals, scheduler

pytestmark = pytest.mark.unmeasured  # thousands of jobs, again and again
FAIR_TO_ALL = sorted(set(POLICIES) - set(MAY_STARVE))


# Endless streams, and the job that they are to starve, which is the one named "victim".
def _stream(victim: Spec, *specs: Callable[[int], Spec]) -> Callable[[int], list[Spec]]:
    return lambda length: [victim._replace(name="victim"), *(spec(n) for spec in specs for n in range(length))]


STREAMS = {
    "short ones": _stream(Spec(5, 1000, 1000), lambda n: Spec(n * 50, 500, 500)),
    "long ones": _stream(Spec(5, 100, 100), lambda n: Spec(n * 4000, 10_000, 10_000)),
    "important ones": _stream(Spec(5, 100, 100), lambda n: Spec(n * 90, 100, 100, priority=3)),
    "unknown ones": _stream(Spec(5, 1000, 1000), lambda n: Spec(n * 90, 100, name=word(n))),
    "scouts that tell nothing new": _stream(Spec(5, 10_000), lambda n: Spec(n * 900, 1000, name=word(n))),
    "new labels": _stream(
        Spec(1500, 1000, label="mine"),
        lambda n: Spec(n * 900 + 500, 1000, label=f"n{n}"),
        lambda n: Spec(n * 200_000, 1000, label="mine"),
    ),
    "one label": _stream(Spec(5, 1000, label="mine"), lambda n: Spec(n * 900, 1000, label="theirs")),
    "cpu jobs of its own label": _stream(
        Spec(1500, 1000, label="mine"),
        lambda n: Spec(n * 100, 100, label="mine", gpus=0),
        lambda n: Spec(n * 1000, 1000, label="theirs"),
    ),
    "narrow ones beside a wide one": _stream(Spec(5, 1000, 1000, gpus=2), lambda n: Spec(n * 400, 1000, 1000)),
    "unknown ones beside a wide one": _stream(Spec(5, 1000, 1000, gpus=2), lambda n: Spec(n * 400, 1000)),
    "short ones of its label and long ones beside a wide one": _stream(
        Spec(5, 1000, 1000, "mine", gpus=2),
        lambda n: Spec(n * 1000 + 6, 1000, 1000, "mine"),
        lambda n: Spec(n * 3000, 10_000, 10_000, "theirs"),
    ),
    "ones that take longer than they say": _stream(
        Spec(10_000, 1000, 1000, gpus=2), lambda n: Spec(n * 1000, 8000, 1.0 + n % 2)
    ),
}


def start_of_victim(policy: str, stream: str, length: int) -> tuple[float, float]:
    """And the last start of all."""
    gpus = 8 if "longer than" in stream else 2 if "wide" in stream else 1
    asks_times = Spec(0, 1, 1, gpus=2)
    return start_among([asks_times, *STREAMS[stream](length)] if gpus > 1 else STREAMS[stream](length), policy, gpus)


def start_among(specs: list[Spec], policy: str, gpus: int) -> tuple[float, float]:
    """When the victim starts, and the last of all."""
    workload = arrivals(specs)
    starts = simulate(workload, scheduler(POLICIES[policy](), gpus), "01234567"[:gpus])
    return next(starts[each.job.number - 1] for each in workload if each.job.command == b"victim"), max(starts)


@pytest.mark.parametrize("stream", sorted(STREAMS))
@pytest.mark.parametrize("policy", FAIR_TO_ALL)
def test_no_job_starves_however_long_the_stream(policy: str, stream: str) -> None:
    length = 3000 if policy == "hrrn" else 1500
    start, last = start_of_victim(policy, stream, length)
    assert start < last, "all others went first"
    assert start_of_victim(policy, stream, length * 4 // 3)[0] == start


@pytest.mark.parametrize(("policy", "stream"), [("sjf", "short ones"), ("priority", "important ones")])
def test_under_two_policies_a_job_may_wait_for_ever(policy: str, stream: str) -> None:
    start, last = start_of_victim(policy, stream, 1000)
    assert start == last


class Flow(NamedTuple):
    """Jobs that come again and again."""

    gap: int
    begin: int
    like: Spec
    has_new_labels: bool
    has_new_templates: bool

    def until(self, end: float) -> list[Spec]:
        return [self._one(number, at) for number, at in enumerate(range(self.begin, int(end), self.gap))]

    def _one(self, number: int, at: int) -> Spec:
        label = f"{self.like.label}{number}" if self.has_new_labels else self.like.label
        name = word(number) if self.has_new_templates else self.like.name
        return self.like._replace(at=at, label=label, name=name)


GPUS = 3
lengths = st.integers(100, 3000).map(float)


@st.composite
def specs(draw: st.DrawFn, latest: int = 0) -> Spec:
    duration = draw(lengths)
    said = draw(st.sampled_from([None, duration, duration, duration / 2, duration * 2]))
    return Spec(
        draw(st.integers(0, latest)), duration, said, draw(st.sampled_from("ab")), draw(st.integers(1, GPUS)),
        draw(st.integers(0, 2)), draw(st.sampled_from(["train", "eval"])),
    )  # fmt: skip


flows = st.builds(Flow, st.integers(400, 1500), st.integers(0, 3000), specs(), st.booleans(), st.booleans())


@pytest.mark.parametrize("policy", FAIR_TO_ALL)
@settings(max_examples=8, deadline=None)
@given(specs(latest=400), st.lists(flows, min_size=1, max_size=3))
def test_no_job_starves_in_random_streams(policy: str, victim: Spec, streams: list[Flow]) -> None:
    def start(end: float) -> float:
        jobs = [victim._replace(name="victim"), *(spec for flow in streams for spec in flow.until(end))]
        return start_among(jobs, policy, GPUS)[0]

    # Who comes later than these passes nobody: 200 lengths of 6,000 s at most, or some turns of a day each.
    days = 15 if policy == "hrrn" else 6
    assert start(days * DAY) == start((days + 1) * DAY)
