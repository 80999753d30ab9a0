"""Which job starts when and where, under every policy, is what it was when the golden file was recorded.

For each case the golden file has the number of starts, a SHA-256 of all of them, and the first few to read. A change
that is not meant to change decisions leaves the file as it is.
`python -m tests.unit.scheduling.test_golden_starts [TRACES]` prints it anew. All times are whole seconds, so the result
does not depend on a platform's arithmetic. tests/program/test_experiments.py tries the largest cases; four of these
replay slices of real traces, which are not part of this repository, and are skipped where the traces are missing.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.policies.learned import Weights, show_weights
from simple_gpu_scheduler.scheduling.policies.names import parse_policy
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room
from simple_gpu_scheduler.simulation.compare import Site, compare
from simple_gpu_scheduler.simulation.workloads.csv import read_csv
from simple_gpu_scheduler.simulation.workloads.jobs import WorkloadJob, arrivals
from simple_gpu_scheduler.simulation.workloads.synthetic import generate, parse_synthetic
from tests.conftest import ROOT

pytestmark = pytest.mark.unmeasured  # thousands of jobs, again and again

GOLDEN = ROOT / "tests/golden/starts.json"
TRACES = ROOT.parent / "shared/traces"
LEARNED = show_weights(Weights((-1.0, 0.25, -0.5), (0.5, -0.125, 0.25), (0.25, 0.125, -0.5)))
NAMES = (*POLICIES, "aged:0.5", "aged:10", "learned:weights")
SHOWN = 5

Golden = dict[str, object]


def summary(lines: Sequence[str]) -> Golden:
    text = "\n".join(lines).encode()
    return {"starts": len(lines), "sha256": sha256(text).hexdigest(), "first": list(lines[:SHOWN])}


def policy(name: str):
    return parse_policy(name, lambda _path: LEARNED)


# ---- Workloads as `simulate` and `tune` replay them


class Replayed(NamedTuple):
    """A workload on so many GPUs, and what is known of lengths."""

    gpus: int
    estimates: str
    synthetic: str = ""
    trace: str = ""
    rows: tuple[int, int] = (0, 0)
    fair_by: str = "label"


REPLAYED: Mapping[str, Replayed] = {
    "narrow": Replayed(8, "exact", "jobs=1500 load=0.95 users=5"),
    "wide": Replayed(8, "exact", "jobs=1500 load=0.9 gpus=1*6,2*2,4,8 users=5"),
    "wide, lengths of the past": Replayed(8, "past", "jobs=1500 load=0.9 gpus=1*6,2*2,4,8 users=7"),
    "wide, nothing known": Replayed(8, "none", "jobs=1500 load=0.8 gpus=1*6,2*2,4,8 users=3"),
    "a batch": Replayed(4, "exact", "jobs=800 gap=0.001 gpus=1*8,2,3 users=40"),
    "two thousand labels": Replayed(6, "past", "jobs=4000 load=1.1 time=10-100 gpus=1*8,2 users=2000"),
    "philly": Replayed(96, "exact", trace="philly", rows=(30_000, 33_000)),
    "philly, lengths of the past": Replayed(64, "past", trace="philly", rows=(60_000, 62_000)),
    "gaia": Replayed(240, "requested", trace="gaia", rows=(20_000, 23_000)),
    "gaia, lengths of the past": Replayed(120, "past", trace="gaia", rows=(40_000, 42_000)),
}


LARGE = [case for case, each in REPLAYED.items() if each.trace or "jobs=4000" in each.synthetic]
SMALL = [case for case in REPLAYED if case not in LARGE]


@cache
def workload_jobs(replayed: Replayed, traces: Path) -> Sequence[WorkloadJob]:
    if replayed.trace:
        begin, end = replayed.rows
        return read_csv((traces / f"{replayed.trace}.csv").read_text())[0][begin:end]
    jobs = generate(parse_synthetic(replayed.synthetic), replayed.gpus, 1)
    return [job._replace(submit=round(job.submit), length=round(job.length), priority=at % 3)
            for at, job in enumerate(jobs)]  # fmt: skip


def replay(name: str, replayed: Replayed, traces: Path = TRACES) -> Golden:
    workload, _ = arrivals(workload_jobs(replayed, traces), replayed.gpus, replayed.estimates)
    site = Site(replayed.gpus, lambda: Estimates(learns=replayed.estimates != "none"))
    [result] = compare([workload], [policy(name)], site)
    return summary([f"{job} {start:.0f}" for job, start in enumerate(result.simulated[0].starts, 1)])


# ---- Runs in which everything happens that may


class Drawn(NamedTuple):
    """Jobs by chance, on GPUs with so many places: what the jobs ask for, and what happens to them."""

    gpus: int = 4
    per_gpu: int = 1
    cpu_slots: int = 2
    delay: int = 0
    jobs: int = 400
    gap: int = 30
    memory: bool = False
    fails: bool = False
    after: bool = False
    refused: bool = False
    loses: bool = False


DRAWN: Mapping[str, Drawn] = {
    "CPU jobs, priorities and labels": Drawn(),
    "several jobs on a GPU": Drawn(per_gpu=3, gap=12),
    "memory": Drawn(per_gpu=3, gap=20, memory=True),
    "retries and dependencies": Drawn(fails=True, after=True),
    "a delay between starts": Drawn(per_gpu=2, delay=7, gap=15, fails=True),
    "others come first": Drawn(gpus=5, refused=True, gap=25),
    "others come first, several jobs on a GPU": Drawn(gpus=3, per_gpu=2, refused=True, gap=25, fails=True),
    "others come first and have the memory": Drawn(refused=True, memory=True, gap=35, delay=3),
    "all of it": Drawn(gpus=6, memory=True, fails=True, after=True, refused=True, loses=True, gap=25),
}

TOTAL = 16
OUTCOMES = [SUCCESS] * 8 + [Outcome("failed", 1), Outcome("timed out")]


class World:
    """A machine with others on it, who take GPUs and memory as a seed says."""

    def __init__(self, drawn: Drawn, name: str) -> None:
        self.drawn = drawn
        self.rng = Random(7)
        self.gpus = tuple(f"gpu{at}" for at in range(drawn.gpus))
        limits = Limits(self.gpus, drawn.per_gpu, drawn.cpu_slots, (float(TOTAL),) * drawn.gpus)
        rules = Rules(retries=1, retry_delay=20, delay=drawn.delay)
        self.subject = Scheduler(limits, policy(name).make(), rules, label=lambda job: job.label)
        self.taken_until = dict.fromkeys(self.gpus, 0)
        self.ends: list[tuple[int, int, Attempt]] = []
        self.began: dict[tuple[int, int], int] = {}
        self.lines: list[str] = []
        self.looks = 0

    def others(self, gpu: str, now: int) -> int:
        """The memory that others have there: it changes all the time, and in the end there are no others."""
        is_there = self.drawn.memory and now < 30_000
        return (now // 50 + 7 * self.gpus.index(gpu) + 3 * self.looks) % 5 if is_there else 0

    def rooms(self, now: int) -> dict[str, Room]:
        free = [gpu for gpu in self.gpus if self.taken_until[gpu] <= now]
        return {gpu: self.room(gpu, now) for gpu in free}

    def room(self, gpu: str, now: int) -> Room:
        ours = [each for each in self.subject.running if gpu in each.gpus and each.key in self.began]
        held = {each.key: (each.job.mem or 1) // (1 if now - self.began[each.key] > 20 else 2) for each in ours}
        return Room(max(0, TOTAL - self.others(gpu, now) - sum(held.values())), held)

    def take(self, attempt: Attempt, now: int) -> bool:
        """Whether no other was there first."""
        if not self.drawn.refused or not attempt.gpus or self.rng.random() < 3 / 4:
            return True
        gpu = self.rng.choice(attempt.gpus)
        self.taken_until[gpu] = now + self.rng.randrange(1, 60)
        return False

    def has_memory(self, attempt: Attempt, now: int) -> bool:
        """After another look, at which others may have more."""
        if not (self.drawn.refused and attempt.gpus and attempt.job.mem):
            return True
        self.looks += 1
        return self.subject.fits(attempt, self.rooms(now))

    def start_all(self, now: int) -> None:
        rooms = self.rooms(now)
        while choice := self.subject.next(now, rooms):
            if self.take(choice.attempt, now) and self.has_memory(choice.attempt, now):
                self.subject.start(choice, now)
                self.started(choice.attempt, now)
            else:
                rooms = self.rooms(now)

    def started(self, attempt: Attempt, now: int) -> None:
        self.began[attempt.key] = now
        gpus, slots = ",".join(attempt.gpus), ",".join(map(str, attempt.slots))
        self.lines.append(f"{attempt.job.number}.{attempt.number} {now} {gpus or '-'} {slots}")
        length = 5 + (attempt.job.number * 7919 + attempt.number * 31) % 120
        heappush(self.ends, (now + length, attempt.job.number, attempt))

    def end(self, attempt: Attempt, now: int) -> None:
        outcome = OUTCOMES[self.rng.randrange(10)] if self.drawn.fails else SUCCESS
        verdict = self.subject.end(attempt, outcome, now)
        if outcome != SUCCESS and not verdict.retries and self.rng.random() < 1 / 4:
            self.subject.try_again([attempt], [each.job for each in verdict.dropped])

    def meddle(self, number: int) -> None:
        if self.drawn.fails and number % 9 == 0:
            self.subject.cancel(self.rng.randint(1, number))
        if self.drawn.fails and number == 150:
            self.subject.add_history({"train": [40.0], "eval …": [10.0, 20.0]})
        if self.drawn.loses and number == 200:
            self.subject.lose(self.gpus[-1])
            self.taken_until[self.gpus[-1]] = sys.maxsize
        self.subject.drop_unfit()


def jobs_of(drawn: Drawn) -> Iterator[tuple[int, Job]]:
    rng, now = Random(11), 0
    for number in range(1, drawn.jobs + 1):
        now += rng.randrange(2 * drawn.gap)
        mem = rng.choice([None, None, 2, 4, 7, 12]) if drawn.memory else None
        after = (rng.randint(1, number - 1),) if drawn.after and number > 1 and rng.random() < 1 / 5 else ()
        yield (
            now,
            Job(
                number,
                rng.choice([b"train", b"eval 1", b"eval 2", b"prepare"]),
                Place(number),
                rng.choice([0, 1, 1, 1, 1, 2, drawn.gpus - 1]),
                mem,
                time=rng.choice([None, None, 5.0, 30.0, 60.0, 100.0]),
                timeout=rng.choice([None, None, 300.0]),
                retries=rng.choice([None, None, 0, 3]),
                priority=rng.randint(-1, 1),
                name=f"n{number}",
                after=after,
                label=rng.choice("abcde"),
            ),
        )


def run(name: str, drawn: Drawn) -> Golden:
    world, coming = World(drawn, name), list(jobs_of(drawn))
    now = 0
    while coming or world.ends or world.subject.waiting:
        wake = [world.subject.next_wake(now), *(each[0] for each in coming[:1]), *(each[0] for each in world.ends[:1])]
        wake += [until for until in world.taken_until.values() if until > now]
        wake += [now - now % 50 + 50] if drawn.memory else []
        now = int(min(wake))
        assert now < 10**6, "it waits for nothing"
        while world.ends and world.ends[0][0] <= now:
            world.end(heappop(world.ends)[2], now)
        while coming and coming[0][0] <= now:
            job = coming.pop(0)[1]
            world.subject.add(job, now)
            world.meddle(job.number)
        world.start_all(now)
    return summary(world.lines)


# ---- The tests


@cache
def recorded() -> Mapping[str, Mapping[str, Golden]]:
    return json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", SMALL)
def test_a_workload_is_replayed_as_it_was_recorded(case: str, name: str) -> None:
    assert replay(name, REPLAYED[case]) == recorded()[case][name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", DRAWN)
def test_a_run_goes_as_it_was_recorded(case: str, name: str) -> None:
    assert run(name, DRAWN[case]) == recorded()[case][name]


if __name__ == "__main__":
    beside = Path(sys.argv[1]) if sys.argv[1:] else TRACES
    found = {case: {name: replay(name, each, beside) for name in NAMES} for case, each in REPLAYED.items()}
    found |= {case: {name: run(name, each) for name in NAMES} for case, each in DRAWN.items()}
    print(json.dumps(found, indent=1))
