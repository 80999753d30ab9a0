"""Several jobs on a GPU, the memory that they declare, jobs without a GPU, and GPUs that are at fault."""

import re

import pytest

from tests.conftest import Program, until
from tests.support.nvml import GIB, Process, StandIn, a_gpu

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

# Each notes its start and its end, and waits for its own go.
NOTED = "echo $$ > pid$SGS_JOB; touch on$SGS_JOB; until [ -e go$SGS_JOB ]; do sleep 0.01; done; rm on$SGS_JOB"


class Shared:
    """A run of jobs that end when the test says so."""

    def __init__(self, program: Program, needs: list[str], *args: str) -> None:
        self.directory = program.directory
        self.words = program.directory / "words"
        with self.words.open("wb") as words:
            self.process = program.start(*args, stderr=words)
        program.feed(self.process, "".join(f"{NOTED} #: {need}\n" if need else f"{NOTED}\n" for need in needs))

    def on(self) -> set[int]:
        return {int(path.name[2:]) for path in self.directory.glob("on*")}

    def runs(self, *jobs: int) -> None:
        until(lambda: self.on() == set(jobs), f"just these run: {jobs}, not {self.on()}")

    def end(self, *jobs: int) -> None:
        for job in jobs:
            (self.directory / f"go{job}").touch()

    def pid(self, job: int) -> int:
        return int((self.directory / f"pid{job}").read_text())


def looks(nvml: StandIn) -> int:
    return nvml.calls("nvmlDeviceGetMemoryInfo_v2")


def has_looked_more(nvml: StandIn, times: int = 3) -> None:
    seen = looks(nvml)
    until(lambda: looks(nvml) >= seen + times, "the GPUs were looked at again")


def wait_for_start(shared: Shared, count: int) -> None:
    until(lambda: len(shared.on()) == count, f"{count} run")


# ---- Memory


@pytest.mark.parametrize(
    ("needs", "args", "together"),
    [
        (["", "", ""], [], {1}),
        (["mem=10G", "mem=10G"], [], {1}),
        (["", "", ""], ["--jobs-per-gpu", "2"], {1, 2}),
        (["mem=40G", "mem=40G", "mem=1G"], ["--jobs-per-gpu", "3"], {1, 2}),
        (["mem=30G", "mem=30G", "mem=30G"], ["--jobs-per-gpu", "3"], {1, 2}),
        (["mem=50G", "mem=50G"], ["--jobs-per-gpu", "2"], {1}),
        (["mem=80G", "mem=1G", ""], ["--jobs-per-gpu", "3"], {1}),
        (["mem=50G", "mem=50G", "mem=50G"], ["--jobs-per-gpu", "2", "--ignore-occupancy"], {1}),
    ],
)
def test_jobs_share_a_gpu_in_order_while_what_they_declared_fits(
    program: Program, idle_gpus: StandIn, needs: list[str], args: list[str], together: set[int]
) -> None:
    idle_gpus.show([a_gpu(0)])
    shared = Shared(program, needs, *args)
    wait_for_start(shared, len(together))
    assert shared.on() == together
    shared.end(*range(1, len(needs) + 1))
    assert shared.process.wait(60) == 0


def test_the_first_job_that_waits_for_memory_is_never_passed_by_those_behind_it(
    program: Program, idle_gpus: StandIn
) -> None:
    idle_gpus.show([a_gpu(0)])
    done = program.run("--jobs-per-gpu", "3", stdin="echo $SGS_JOB; sleep 0.05 #: mem=50G\n" * 12)
    assert (done.returncode, done.stdout.split()) == (0, [b"%d" % number for number in range(1, 13)])


def test_declared_memory_counts_until_the_job_holds_more_and_what_it_holds_counts_then(
    program: Program, idle_gpus: StandIn
) -> None:
    """Of 80: declared 30, so 40 more fit, and 45 do not when the first holds 40."""
    idle_gpus.show([a_gpu(0)])
    shared = Shared(program, ["mem=30G", "mem=10G", "mem=45G"], "--jobs-per-gpu", "2")
    shared.runs(1, 2)

    def show(first: int, second: int, other: int = 0) -> None:
        processes = [Process(shared.pid(1), first * GIB), Process(shared.pid(2), second * GIB)]
        idle_gpus.show([a_gpu(0, used=(first + second + other) * GIB, processes=processes)])

    show(40, 0)
    shared.end(2)
    shared.runs(1)
    idle_gpus.show([a_gpu(0, used=40 * GIB, processes=[Process(shared.pid(1), 40 * GIB)])])
    has_looked_more(idle_gpus)
    assert shared.on() == {1}
    # It holds less than it declared: only that counts which it declared, and not both.
    idle_gpus.show([a_gpu(0, used=20 * GIB, processes=[Process(shared.pid(1), 20 * GIB)])])
    shared.runs(1, 3)
    shared.end(1, 3)
    assert shared.process.wait(60) == 0


def test_what_others_use_counts_as_well(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, used=30 * GIB)])
    needs = ["mem=40G", "mem=20G"]
    shared = Shared(program, needs, "--jobs-per-gpu", "2", "--max-used-memory", "40G")
    wait_for_start(shared, 1)
    has_looked_more(idle_gpus)
    assert shared.on() == {1}
    idle_gpus.show([a_gpu(0, used=5 * GIB)])
    shared.runs(1, 2)
    shared.end(1, 2)
    assert shared.process.wait(60) == 0


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("mem=81G", "mem= asks for 81.0 GiB, but the largest GPU has 80.0 GiB"),
        ("mem=41G gpus=2", "mem= asks for 41.0 GiB, but only 1 of the GPUs has that much"),
    ],
)
def test_more_memory_than_any_gpu_has_is_refused_before_anything_starts(
    program: Program, idle_gpus: StandIn, option: str, problem: str
) -> None:
    idle_gpus.show([a_gpu(0), a_gpu(1, total=40 * GIB)])
    (program.directory / "jobs").write_text(f"echo started\necho big #: {option}\n")
    done = program.run("--jobs-per-gpu", "2", "jobs")
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"nothing was started; the input has errors:\n  line 2 of jobs: {problem}\n" in done.stderr.decode()


def test_a_job_goes_where_its_memory_fits(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, total=16 * GIB), a_gpu(1)])
    done = program.run(stdin="echo $CUDA_VISIBLE_DEVICES #: mem=20G\n" * 5)
    assert done.stdout.split() == [b"1"] * 5


def test_jobs_without_a_gpu_run_beside_those_that_wait_for_one(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, used=GIB)])
    jobs = "touch gpu\n" + "echo $CUDA_VISIBLE_DEVICES; touch cpu$SGS_JOB #: gpus=0\n" * 20
    process = program.start("-q")
    program.feed(process, jobs)
    until(lambda: len(list(program.directory.glob("cpu*"))) == 20, "the CPU jobs ran")
    assert not (program.directory / "gpu").exists()
    idle_gpus.show([a_gpu(0)])
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out.split()) == (0, [b"-1"] * 20)


# ---- GPUs at fault

BAD_GPU = "[ $CUDA_VISIBLE_DEVICES != 1 ] && sleep 0.1\n"


def aside(program: Program, jobs: str, *args: str, gpus: str = "0-1") -> tuple[int, str]:
    done = program.run("--gpus", gpus, "--ignore-occupancy", *args, stdin=jobs)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("args", [[], ["--halt", "soon,fail=4"], ["--retries", "1"], ["--jobs-per-gpu", "2"]], ids=str)
@pytest.mark.parametrize("gpus", ["0-1", "0-3"])
def test_a_gpu_on_which_all_fails_is_set_aside_once_and_its_jobs_are_tried_elsewhere(
    program: Program, args: list[str], gpus: str
) -> None:
    code, said = aside(program, BAD_GPU * 20, *args, gpus=gpus)
    assert code == 0, said
    line = r"gpu 1 is set aside: \d jobs in a row failed there within seconds while others succeed elsewhere"
    late = said.count("gpu 1 is set aside: what was still running there failed too")
    assert len(re.findall(line, said)) == said.count("set aside") - late == 1
    assert late <= ("--jobs-per-gpu" in args)
    assert "20 succeeded, 0 failed, 0 timed out, 0 not started" in said
    assert len(re.findall(r"` on gpu 1\n", said)) <= 6


def test_the_jobs_that_are_tried_elsewhere_are_named_and_so_is_how_many_failed(program: Program) -> None:
    _, said = aside(program, BAD_GPU * 12, "--quarantine", "2")
    assert "gpu 1 is set aside: 2 jobs in a row failed there" in said
    assert "; jobs 2, 3 are retried elsewhere\n" in said


def test_jobs_after_one_that_is_tried_elsewhere_run_too(program: Program) -> None:
    jobs = "sleep 0.3\n" + "".join(f"[ $CUDA_VISIBLE_DEVICES != 1 ] #: name=j{n}\n" for n in range(3))
    jobs += "".join(f"touch after{n} #: after=j{n} gpus=0\n" for n in range(3))
    jobs += "touch last #: after=j0,j1,j2 gpus=0\n"
    code, said = aside(program, jobs)
    assert (code, said.count("8 succeeded, 0 failed, 0 timed out, 0 not started")) == (0, 1)
    assert all((program.directory / name).exists() for name in ("after0", "after1", "after2", "last"))


@pytest.mark.parametrize(
    ("jobs", "args"),
    [
        ("false\n" * 30, []),
        (BAD_GPU * 12, ["--quarantine", "0"]),
        ("false\ntrue\n" * 20, []),
        ("sleep 0.01; [ $(($SGS_JOB % 3)) = 0 ]\n" * 40, []),
    ],
    ids=["all jobs fail everywhere", "not wanted", "every other fails", "most fail"],
)
def test_no_gpu_is_lost_to_jobs_that_fail_for_themselves(program: Program, jobs: str, args: list[str]) -> None:
    code, said = aside(program, jobs, *args)
    assert code == 1
    late = said.count("is set aside: what was still running there failed too")
    assert said.count("is set aside") - late == said.count("is back in use")
    assert jobs != "false\n" * 30 or "aside" not in said
    assert jobs != BAD_GPU * 12 or "aside" not in said


def test_a_gpu_that_was_set_aside_for_bad_jobs_is_used_again_and_wide_jobs_wait_for_that(program: Program) -> None:
    code, said = aside(program, "sleep 0.5\nfalse\nfalse\nfalse\ntouch wide #: gpus=2\n")
    assert code == 1
    assert "gpu 1 is set aside: 3 jobs in a row" in said
    assert "gpu 1 is back in use: no job that failed there succeeded elsewhere\n" in said
    assert len(re.findall(r"^job \d \(line \d\) failed", said, re.MULTILINE)) == 6  # elsewhere once, and no more
    assert (program.directory / "wide").exists(), said


def test_a_run_that_a_gpu_at_fault_brings_to_its_halt_ends(program: Program) -> None:
    code, said = aside(program, BAD_GPU * 8, "--halt", "soon,fail=2")
    assert (code, "--halt: 2 jobs did not succeed" in said, "aside" in said) == (1, True, False)


def test_the_holder_of_a_shared_gpu_is_known_when_the_job_that_came_last_is_over(program: Program) -> None:
    shared = Shared(program, ["", ""], "--gpus", "0", "--jobs-per-gpu", "2", "--ignore-occupancy")
    shared.runs(1, 2)
    shared.end(2)
    shared.runs(1)

    def holder() -> str:
        waiting = program.run("run", "--gpus", "0", "--ignore-occupancy", "--no-wait", "--", "true")
        return waiting.stderr.decode()

    until(lambda: f"pid {shared.process.pid}" in holder(), "the scheduler is named")
    shared.end(1)
    assert shared.process.wait(timeout=120) == 0
