"""The simulator: the published experiment, real traces, its speed and a decision's, and simpy doing the same.

Waits are of simulated seconds and the same on each machine. Speed is in CPU time of this process, so that others on the
machine count little. It knows nothing of how traces are made: they lie beside the repository, or are left out.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from peers import ROOT
from tables import percentile, show, verdict

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt
from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.policies.learned import Learned
from simple_gpu_scheduler.scheduling.policies.names import Chosen
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room, Rooms
from simple_gpu_scheduler.simulation import measures
from simple_gpu_scheduler.simulation.compare import Site, compare, replay
from simple_gpu_scheduler.simulation.learn.lessons import Lessons
from simple_gpu_scheduler.simulation.learn.search import BUDGET, learn
from simple_gpu_scheduler.simulation.significance import Standing, standing
from simple_gpu_scheduler.simulation.simulate import Workload
from simple_gpu_scheduler.simulation.workloads.csv import read_csv
from simple_gpu_scheduler.simulation.workloads.jobs import WorkloadJob, arrivals
from simple_gpu_scheduler.simulation.workloads.synthetic import Synthetic, generate

TRACES = ROOT.parent / "shared/traces"
PUBLISHED = Synthetic(jobs=20, gap=25.0, time=(10.0, 1000.0))
# Of each policy: the mean wait over many queues, and that of the one queue in the publication.
EXPECTED = {"fifo": (686, 564), "sjf": (334, 252), "aged": (367, 289)}
TRIED = ("fifo", "aged", "hrrn", "sjf", "lpt", "fair")
MIXED = "1*6,2*2,4,8"
WIDTHS = {"1": ((1, 1),), MIXED: ((1, 6), (2, 2), (4, 1), (8, 1))}
# Seconds for a million jobs.
LIMITS = {("fifo", "1"): 10, ("aged", "1"): 10, ("sjf", "1"): 10, ("hrrn", MIXED): 20}
SERVERS = 64


def measure(*, quick: bool) -> None:
    """All of it."""
    published(200_000 if quick else BUDGET)
    for name, gpus, estimates in (("philly", 512, "past"), ("gaia", 1000, "requested")):
        replayed(name, gpus, estimates, 20_000 if quick else None)
    speed(50_000 if quick else 1_000_000, 1 if quick else 2)
    decisions(100_000 if quick else 1_000_000, 1000 if quick else 10_000)
    beside_simpy(10_000 if quick else 100_000, 1 if quick else 2)


def workload_of(synthetic: Synthetic, gpus: int, seed: int) -> Workload:
    return arrivals(generate(synthetic, gpus, seed), gpus, "exact")[0]


def published(budget: int) -> None:
    queues = [workload_of(PUBLISHED, 2, seed) for seed in range(1, 2001)]
    others = [workload_of(PUBLISHED, 2, seed) for seed in range(10_001, 13_001)]
    weights = learn(Lessons(others[1000:], others[:1000]), Site(2), 1, budget=budget)
    policies = [Chosen(name, POLICIES[name]) for name in ("fifo", "sjf", "aged", "hrrn")]
    policies.append(Chosen("learned", lambda: Learned(weights)))
    results = compare(queues, policies, Site(2))
    waits = {result.policy: [statistics.fmean(each.waits()) for each in result.simulated] for result in results}
    rows = []
    for name, means in waits.items():
        beside = standing(means, waits["sjf"], [1] * len(means))
        low, middle = percentile(means, 25), percentile(means, 50)
        percent = f"{beside.percent:+.3f} % ± {beside.percent_error:.3f} %"
        said = published_verdict(name, beside, low, middle)
        rows.append([name, f"{beside.wait:.1f}", f"{low:.0f}", f"{middle:.0f}", percent, said])
    title = (
        "The published experiment, 2,000 queues of 20 jobs on 2 GPUs: the mean wait, until a job first runs, which "
        f"the publication calls response (learned from other queues, {budget:,} simulated jobs)"
    )
    show(title, ["policy", "mean s", "25 % of queues", "50 %", "beside sjf", "promise"], rows)


def published_verdict(name: str, beside: Standing, low: float, middle: float) -> str:
    if name == "learned":
        no_worse = beside.difference <= 2 * beside.error and beside.percent < 0.1
        return verdict(holds=no_worse, promise="not surely longer than sjf's, nor by 0.1 %")
    if name not in EXPECTED:
        return ""
    mean, single = EXPECTED[name]
    holds = abs(beside.wait / mean - 1) <= 0.03 and low <= single <= middle
    return verdict(holds=holds, promise=f"{mean} within 3 %; the single queue's {single} between 25 % and 50 %")


def replayed(name: str, gpus: int, estimates: str, most: int | None) -> None:
    """On so many GPUs that the load is high but below 1; with exact lengths, and with other estimates."""
    path = TRACES / f"{name}.csv"
    if not path.is_file():
        print(f"\n{name} is not replayed: there is no {name}.csv in shared/traces beside the repository.")
        return
    jobs = read_csv(path.read_text())[0][:most]
    found = under(TRIED, jobs, gpus, "exact")
    found["fifo, strict order"] = strict = under(["fifo"], jobs, gpus, "none")["fifo"]
    load = sum(job.length * job.gpus for job in jobs) / (gpus * (jobs[-1].submit - jobs[0].submit))
    title = f"{name}, {len(jobs):,} jobs on {gpus:,} GPUs, load {load:.2f}, lengths"
    show_replayed(f"{title} exact", found)
    fifo, sjf, hrrn = (found[each].wait for each in ("fifo", "sjf", "hrrn"))
    print(
        f"\nThe traps: with strict order, where no job passes a wide one, the mean wait is "
        f"{strict.wait.mean / fifo.mean:.1f} times that of fifo; with pure sjf a job waits {hours(sjf.max)} h, "
        f"while with hrrn no job waits longer than {hours(hrrn.max)} h."
    )
    show_replayed(f"{title} {estimates}", under(TRIED, jobs, gpus, estimates))


def under(names: Sequence[str], jobs: Sequence[WorkloadJob], gpus: int, estimates: str) -> dict[str, measures.Measures]:
    workload = arrivals(jobs, gpus, estimates)[0]
    site = Site(gpus, lambda: Estimates(learns=estimates != "none"))
    results = compare([workload], [Chosen(name, POLICIES[name]) for name in names], site)
    return {each.policy: measures.measure(each.simulated, gpus) for each in results}


def show_replayed(title: str, found: Mapping[str, measures.Measures]) -> None:
    rows = []
    for name, each in found.items():
        no_longer = each.wait.mean <= found["fifo"].wait.mean
        said = verdict(holds=no_longer, promise="its mean is no longer than fifo's") if name == "hrrn" else ""
        waits = [*map(hours, (each.wait.mean, each.wait.p99, each.wait.max))]
        rows.append([name, *waits, f"{each.slowdown.mean:,.1f}", f"{each.utilisation:.1%}", said])
    show(title, ["policy", "mean wait h", "p99 h", "max h", "mean slowdown", "used", "promise"], rows)


def hours(seconds: float) -> str:
    return f"{seconds / 3600:,.2f}"


def cpu_seconds(act: Callable[[], object]) -> float:
    """As `simulate` does it: without looking for garbage meanwhile."""
    gc.collect()
    gc.freeze()
    gc.disable()
    began = time.process_time()
    act()
    took = time.process_time() - began
    gc.enable()
    gc.unfreeze()
    return took


def speed(jobs: int, rounds: int) -> None:
    rows = []
    for shown, widths in WIDTHS.items():
        workload = workload_of(Synthetic(jobs=jobs, load=0.95, gpus=widths), SERVERS, 1)
        for name in ("fifo", "aged", "sjf", "hrrn"):
            act = partial(replay, workload, Chosen(name, POLICIES[name]), Site(SERVERS))
            took = min(cpu_seconds(act) for _ in range(rounds))
            limit = LIMITS.get((name, shown), 0) * jobs / 1_000_000
            said = verdict(holds=took < limit, promise=f"under {limit:g} s") if limit else ""
            rows.append([name, shown, f"{took:.2f}", f"{jobs / took:,.0f}", said])
    title = f"Speed: {jobs:,} jobs on {SERVERS} GPUs at load 0.95 (CPU time, the quicker of {rounds})"
    show(title, ["policy", "widths", "s", "jobs/s", "promise"], rows)


def decisions(jobs: int, ends: int) -> None:
    """All come within a day, and are from ten seconds to a week long."""
    rows = []
    for shown, widths in WIDTHS.items():
        synthetic = Synthetic(jobs=jobs, gap=86_400 / jobs, time=(10.0, 604_800.0), gpus=widths, users=20)
        workload = workload_of(synthetic, SERVERS, 1)
        for name in POLICIES:
            took = [each * 1e6 for each in plans(workload, name, ends)]
            middle = statistics.median(took)
            said = verdict(holds=middle < 20, promise="a median under 20 µs")
            rows.append([name, shown, f"{middle:.1f}", f"{percentile(took, 99):.1f}", said])
    title = (
        f"A decision with {jobs:,} jobs waiting, of 10 s to a week and with 20 labels, after one has ended on "
        f"{SERVERS} busy GPUs ({ends:,} times)"
    )
    show(title, ["policy", "widths", "median µs", "p99 µs", "promise"], rows)


def plans(workload: Workload, name: str, ends: int) -> list[float]:
    gpus = tuple(map(str, range(SERVERS)))
    rooms = dict.fromkeys(gpus, Room())
    scheduler = Scheduler(Limits(gpus), POLICIES[name](), label=lambda job: job.label)
    gc.disable()
    for arrival in workload:
        scheduler.add(arrival.job, arrival.at)
    now = workload[-1].at
    running = [(now + workload[number - 1].length, number, each) for number, each in start_all(scheduler, now, rooms)]
    heapify(running)
    took = []
    for _ in range(ends):
        now, _, attempt = heappop(running)
        scheduler.end(attempt, SUCCESS, now)
        began = time.perf_counter()
        started = start_all(scheduler, now, rooms)
        took.append(time.perf_counter() - began)
        for number, each in started:
            heappush(running, (now + workload[number - 1].length, number, each))
    gc.enable()
    return took


def start_all(scheduler: Scheduler, now: float, rooms: Rooms) -> list[tuple[int, Attempt]]:
    started = []
    while choice := scheduler.next(now, rooms):
        scheduler.start(choice, now)
        started.append((choice.waiting.number, choice.attempt))
    return started


def beside_simpy(jobs: int, rounds: int) -> None:
    sys.path += map(str, (ROOT / "benchmarks/.peers/lib").glob("python3*/site-packages"))
    try:
        import simpy  # noqa: F401, PLC0415 - it may not be there
    except ImportError:
        print("\nsimpy is not installed, so nothing is beside us here (bin/bench --install-peers installs it).")
        return
    workload = workload_of(Synthetic(jobs=jobs, load=0.95), SERVERS, 1)
    rows = []
    for name in ("fifo", "sjf"):
        we = partial(replay, workload, Chosen(name, POLICIES[name]), Site(SERVERS))
        they = partial(in_simpy, workload, by_length=name == "sjf")
        same = all(abs(a - b) < 1e-3 for a, b in zip(we(), they(), strict=True))
        took: dict[partial[Sequence[float]], list[float]] = {we: [], they: []}
        for act in (we, they, they, we) * rounds:
            took[act].append(cpu_seconds(act))
        ours, theirs = statistics.median(took[we]), statistics.median(took[they])
        said = verdict(holds=ours <= theirs and same, promise="at least as quick, with the same starts")
        rows.append([name, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", said])
    title = f"simpy with the same {jobs:,} jobs on {SERVERS} servers, a process a job (CPU time, in turn, the median)"
    show(title, ["policy", "our s", "simpy's s", "of simpy", "promise"], rows)


def in_simpy(workload: Workload, *, by_length: bool) -> Sequence[float]:
    import simpy  # noqa: PLC0415 - as above

    world = simpy.Environment()
    servers = simpy.PriorityResource(world, SERVERS) if by_length else simpy.Resource(world, SERVERS)
    starts = [0.0] * len(workload)

    def job(at: int, length: float) -> Iterator[Any]:
        with servers.request(length) if by_length else servers.request() as turn:
            yield turn
            starts[at] = world.now
            yield world.timeout(length)

    def source() -> Iterator[Any]:
        for at, arrival in enumerate(workload):
            yield world.timeout(arrival.at - world.now)
            world.process(job(at, arrival.length))

    world.process(source())
    world.run()
    return starts
