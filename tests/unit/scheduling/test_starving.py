"""No job waits forever, however long others keep coming, except under the two policies documented to allow it.

A stream is cut after a number of jobs. A job that starts only after the last of it, and later for a longer one, waits
for its end.
"""

from collections.abc import Callable

import pytest

from simple_gpu_scheduler.scheduling.policies import MAY_STARVE, POLICIES
from simple_gpu_scheduler.simulation.simulate import simulate
from tests.unit.scheduling.test_backfill import word
from tests.unit.scheduling.test_policies import Spec, arrivals, scheduler

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


# How long a stream has to be for the victim to have its turn within it, where that takes long.
LATEST_TURNS = {("hrrn", "short ones"): 3000, ("hrrn", "unknown ones"): 1500, ("lpt", "unknown ones"): 1000}


def start_of_victim(policy: str, stream: str, length: int) -> tuple[float, float]:
    """And the last start of all."""
    gpus = 8 if "longer than" in stream else 2 if "wide" in stream else 1
    asks_lengths = Spec(0, 1, 1, gpus=2)
    return start_among([asks_lengths, *STREAMS[stream](length)] if gpus > 1 else STREAMS[stream](length), policy, gpus)


def start_among(specs: list[Spec], policy: str, gpus: int) -> tuple[float, float]:
    """When the victim starts, and the last of all."""
    workload = arrivals(specs)
    starts = simulate(workload, scheduler(POLICIES[policy](), gpus), "01234567"[:gpus])
    return next(starts[each.job.number - 1] for each in workload if each.job.command == b"victim"), max(starts)


@pytest.mark.parametrize("stream", sorted(STREAMS))
@pytest.mark.parametrize("policy", FAIR_TO_ALL)
def test_no_job_starves_however_long_the_stream(policy: str, stream: str) -> None:
    length = LATEST_TURNS.get((policy, stream), 400)
    start, last = start_of_victim(policy, stream, length)
    assert start < last, "all others went first"
    assert start_of_victim(policy, stream, length * 4 // 3)[0] == start


@pytest.mark.parametrize(("policy", "stream"), [("sjf", "short ones"), ("priority", "important ones")])
def test_under_two_policies_a_job_may_wait_for_ever(policy: str, stream: str) -> None:
    start, last = start_of_victim(policy, stream, 1000)
    assert start == last
