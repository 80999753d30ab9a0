"""`--engine simulated`: whole command lines with thousands of jobs in moments, and the same starts as elsewhere."""

import os
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.simulation.simulate import Arrival, simulate
from tests.conftest import UNMEASURED, Program, until

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

SIMULATED = ("--engine", "simulated", "--joblog", "log", "--gpus")
# How long, how wide, whose. Found by trying: the policies differ on it, and a machine that takes up to 75 ms longer for
# each job changes no order.
SIDE_BY_SIDE = (
    (0.4, 2, "b"), (0.25, 2, "a"), (0.35, 1, "a"), (0.2, 1, "a"), (0.25, 1, "a"),
    (0.15, 1, "a"), (0.25, 1, "a"), (0.5, 1, "a"), (0.5, 2, "b"), (0.3, 2, "a"),
)  # fmt: skip
SHARPEST = ("fifo", "sjf", "hrrn", "aged", "lpt", "fair", "round-robin")


class Row(NamedTuple):
    """Of a joblog; `start` is counted from the first."""

    number: int
    start: float
    took: float
    code: int
    killed_by: int
    command: str


def log_of(program: Program) -> list[Row]:
    lines = [line.split("\t") for line in (program.directory / "log").read_text().splitlines()[1:]]
    first = min(float(cells[2]) for cells in lines)
    return [
        Row(int(number), round(float(start) - first, 2), float(took), int(code), int(killed_by), command)
        for number, _, start, took, _, _, code, killed_by, command in lines
    ]


def many(count: int, line: str = "sleep {}") -> str:
    return "".join(f"{line.format(number, number % 3)}\n" for number in range(1, count + 1))


def summary(done) -> str:
    return done.stderr.decode().splitlines()[-1]


def started(stderr: str) -> list[str]:
    return re.findall(r"^Processing command `(.*?)`", stderr, re.MULTILINE)


def test_how_long_a_job_takes_and_how_it_ends_is_read_from_its_command(program: Program) -> None:
    lines = {
        "sleep 5": (5, 0), "sleep 1.5m": (90, 0), "sleep 2; sleep 3": (5, 0), "(sleep 2)": (2, 0),
        "./sleep 7": (0, 0), "nosleep 7": (0, 0), "true": (0, 0), "sleep 3; exit 4": (3, 4), "sleep 3 && false": (3, 1),
        "sleep 3; exit 0": (3, 0), "exit 256": (0, 0),
        "sleep 1 2": (3, 0), "sleep .5": (0.5, 0), "sleep 4 2>/dev/null": (4, 0), "sleep 6 # 7": (6, 0),
        "exit 1 # why": (0, 1), "sleep 0.30000000000000004": (0.3, 0), f"sleep {'1' * 90_000}x": (0, 0),
    }  # fmt: skip
    done = program.run(*SIMULATED, "0", stdin="\n".join([*lines, "train #: time=9"]))
    assert done.returncode == 1
    found = {row.command: (row.took, row.code) for row in log_of(program)}
    assert {command: found[command] for command in lines} == lines
    assert next(took for command, (took, _) in found.items() if command.startswith("train")) == 9


@pytest.mark.parametrize("policy", POLICIES)
def test_under_each_policy_thousands_of_jobs_run_once_each_also_beside_wide_ones(program: Program, policy: str) -> None:
    text = many(1000, "sleep {} #: label=l{}") + "sleep 7 #: gpus=2\n" + many(1000) + "sleep 8 #: gpus=2\n"
    done = program.run(*SIMULATED, "0", "1", "--policy", policy, stdin=text, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]
    assert summary(done).startswith("2002 succeeded, 0 failed")
    assert sorted(row.number for row in log_of(program)) == [*range(1, 2003)]
    # Two GPUs are hardly ever both idle: it takes about as long as the work, and never less.
    work = 2 * sum(range(1, 1001)) + 2 * (7 + 8)
    end = max(row.start + row.took for row in log_of(program))
    assert work / 2 - 1 <= end <= work / 2 * 1.1


def test_retries_and_time_outs_take_the_time_that_they_would(program: Program) -> None:
    text = many(1500, ": {}; sleep 20; exit 3") + many(1500, "sleep 500 # {}")
    done = program.run(
        *SIMULATED, "0", "--retries", "2", "--retry-delay", "100000", "--timeout", "1m", "-v", stdin=text, timeout=120
    )  # fmt: skip
    assert summary(done).startswith("0 succeeded, 1500 failed, 1500 timed out")
    assert len(started(done.stderr.decode())) == 3 * 3000
    assert max(row.start for row in log_of(program)) >= 1500 * 80  # the last attempts come behind two delays


def test_after_and_what_is_dropped_with_a_job_that_failed(program: Program) -> None:
    chain = many(1, "sleep 1 #: name=n{}") + "".join(f"sleep 1 #: name=n{n} after=n{n - 1}\n" for n in range(2, 801))
    broken = "false #: name=b1\n" + "".join(f"sleep 1 #: name=b{n} after=b{n - 1}\n" for n in range(2, 801))
    done = program.run(*SIMULATED, *"0123", stdin=chain + broken)
    assert summary(done).startswith("800 succeeded, 1 failed, 0 timed out, 799 not started in 13 min 20 s")
    assert [row.start for row in log_of(program) if row.command.startswith("sleep")] == [*range(800)]


@pytest.mark.parametrize(
    ("rule", "end"),
    [
        ("soon,fail=1", "1 succeeded, 1 failed, 0 timed out, 2000 not started in 1 min 40 s"),
        ("now,fail=1", "0 succeeded, 1 failed, 0 timed out, 2000 not started, 1 interrupted in 5.0 s"),
    ],
)
def test_halt_gives_up_after_the_first_failure(program: Program, rule: str, end: str) -> None:
    text = "sleep 5; false\nsleep 100\n" + many(2000)
    (program.directory / "jobs").write_text(text)
    done = program.run(*SIMULATED, "0", "1", "--policy", "aged", "--ageing", "0", "--halt", rule, "jobs")
    assert done.returncode == 1
    assert summary(done).startswith(end)
    assert len(started(done.stderr.decode())) == 2


def test_delay_is_kept_by_its_own_time(program: Program) -> None:
    program.run(*SIMULATED, *"0123", "--delay", "10", stdin=many(300, "sleep 1 # {}"))
    assert [row.start for row in sorted(log_of(program))] == [10 * at for at in range(300)]


def test_thousands_of_failures_set_no_gpu_aside_when_they_fail_everywhere(program: Program) -> None:
    done = program.run(*SIMULATED, "0", "1", stdin=many(3000, ": {}; exit 1"))
    assert summary(done).startswith("0 succeeded, 3000 failed, 0 timed out, 0 not started")


def test_it_leaves_no_run_behind_and_none_can_be_resumed(program: Program, tmp_path: Path) -> None:
    program.run(*SIMULATED, "0", stdin=many(5))
    assert not [*tmp_path.glob("state/**/*.jsonl")]
    done = program.run("--engine", "simulated", "--resume")
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)


def test_its_joblog_is_neither_resumed_nor_put_in_place_of_a_real_one(program: Program) -> None:
    assert program.run(*SIMULATED, "0", stdin="sleep 5\n").returncode == 0
    assert program.run(*SIMULATED, "0", stdin="sleep 6\n").returncode == 0  # its own it replaces
    done = program.run("--joblog", "log", "--resume", "--gpus", "0", stdin="echo ran\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"was written by --engine simulated, which runs nothing" in done.stderr
    assert program.run("--joblog", "log", "--gpus", "0", stdin="true\n").returncode == 0
    done = program.run(*SIMULATED, "0", stdin="sleep 5\n")
    assert done.returncode == 2
    assert b"lists jobs that really ran" in done.stderr
    assert log_of(program)[0].command == "true"


def test_a_journal_is_refused_since_nothing_is_run(program: Program) -> None:
    done = program.run("--engine", "simulated", "--journal", "j.jsonl", "--gpus", "0", stdin="sleep 1\n")
    assert done.returncode == 2
    assert b"runs nothing" in done.stderr


def test_time_stands_still_while_a_slow_pipe_may_bring_more(program: Program) -> None:
    with open(program.directory / "err", "wb") as stderr:
        process = program.start(*SIMULATED, "0", "--policy", "sjf", stderr=stderr)
    assert process.stdin
    for line in ("sleep 1000", "sleep 500", "sleep 100", "sleep 10"):
        process.stdin.write(f"{line} #: time={line[6:]}\n".encode())
        process.stdin.flush()
        until(lambda: b"sleep 1000" in (program.directory / "err").read_bytes())
    process.stdin.close()
    process.stdin = None
    assert process.wait(30) == 0
    assert [(row.start, row.took) for row in log_of(program)] == [(0, 1000), (1000, 10), (1010, 100), (1110, 500)]


def test_a_pipe_held_open_by_others_stops_time_only_for_a_moment(program: Program) -> None:
    os.mkfifo(program.directory / "queue")
    holder = os.open(program.directory / "queue", os.O_RDWR)
    try:
        process = program.start(*SIMULATED, "0", "--quiet", "queue", env=UNMEASURED)
        os.write(holder, many(1500, "sleep 9 # {}").encode())
        log = program.directory / "log"
        until(lambda: log.exists() and log.read_bytes().count(b"\n") == 1501, "1,500 simulated jobs end")
        os.write(holder, b"sleep 5; false\n")
        until(lambda: log.read_bytes().count(b"\n") == 1502, "what comes later runs too")
        process.send_signal(signal.SIGINT)
        until(lambda: process.poll() is not None, "it ends")
    finally:
        os.close(holder)
    assert [row.took for row in log_of(program)] == [9.0] * 1500 + [5.0]


def test_a_signal_ends_it_though_its_stdin_is_held_open(program: Program) -> None:
    process = program.start(*SIMULATED, "0", env=UNMEASURED)
    assert process.stdin
    assert process.stderr
    process.stdin.write(b"sleep 1000\nsleep 2000\n")
    process.stdin.flush()
    while b"Processing" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGTERM)
    until(lambda: process.poll() is not None, "it ends")
    assert process.returncode == 128 + signal.SIGTERM
    assert b"0 succeeded, 0 failed, 0 timed out, 1 not started, 1 interrupted" in process.stderr.read()


def real_orders_of(
    policies: Sequence[str], scale: float, make_directory: Callable[[str], Path]
) -> dict[str, list[int]]:
    """The numbers of the jobs as the real program has started them, by policy; all at the same time, for speed."""
    text = "".join(
        f": {number}; sleep {length * scale} #: time={length * scale} gpus={width} label={label}\n"
        for number, (length, width, label) in enumerate(SIDE_BY_SIDE, 1)
    )
    running = []
    for policy in policies:
        program = Program(make_directory(policy))
        own = {"SGS_LEASE_DIR": str(program.directory / "leases"), "XDG_STATE_HOME": str(program.directory)}
        process = program.start("--gpus", "0", "1", "--policy", policy, env={**os.environ, **own})
        program.feed(process, text)
        running.append((program, process))
    orders = {}
    for policy, (program, process) in zip(policies, running, strict=True):
        _, stderr = process.communicate(timeout=250)
        orders[policy] = [int(command.split()[1].rstrip(";")) for command in started(stderr.decode())]
        program.close()
    return orders


@pytest.fixture(scope="module")
def real_orders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """Where the machine was too busy for so short sleeps, of longer ones."""
    orders: dict[str, list[int]] = {}
    for scale in (1, 5, 20):
        missing = [policy for policy in SHARPEST if policy not in orders or not is_as_told(policy, orders[policy])]
        orders |= real_orders_of(missing, scale, tmp_path_factory.mktemp)
    return orders


def is_as_told(policy: str, order: list[int]) -> bool:
    """Whether the simulator tells that jobs start in this order."""
    jobs = [
        Job(number, b"", Place(number), gpus=width, time=length, label=label)
        for number, (length, width, label) in enumerate(SIDE_BY_SIDE, 1)
    ]
    workload = [Arrival(0.0, each, each.time or 0) for each in jobs]
    scheduler = Scheduler(Limits(("0", "1")), POLICIES[policy](), label=lambda each: each.label)
    starts = simulate(workload, scheduler, ("0", "1"))
    return sorted(order) == [each.number for each in jobs] and [starts[number - 1] for number in order] == sorted(
        starts
    )


@pytest.mark.parametrize("policy", SHARPEST)
def test_real_sleeps_start_in_the_order_that_the_simulator_tells(
    real_orders: dict[str, list[int]], policy: str
) -> None:
    assert is_as_told(policy, real_orders[policy])


def test_these_jobs_tell_the_policies_apart(real_orders: dict[str, list[int]]) -> None:
    assert len(set(map(tuple, real_orders.values()))) >= 5
