"""Which GPUs a run finds and what its jobs learn of them; and what it does without NVML, or with half of one."""

import re
import signal
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.conftest import Program, until
from tests.support.nvml import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    NO_PERMISSION,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    UNKNOWN,
    Gpu,
    StandIn,
    a_gpu,
    an_instance,
)

FOUR = [a_gpu(index) for index in range(4)]
FIRST, SECOND, THIRD, FOURTH = (gpu.uuid for gpu in FOUR)
MIGS = [an_instance(0, 0).uuid, an_instance(0, 1).uuid]
DIVIDED = [a_gpu(0, mig=True, instances=[an_instance(0, 0), an_instance(0, 1)]), a_gpu(1)]
LOST = {"*": GPU_IS_LOST}
NO_LIBRARY = "NVML was not found (libnvidia-ml.so.1, part of the NVIDIA driver)"
MISMATCH = "the NVIDIA driver and its library have different versions; after a driver update, a reboot fixes that"
NOT_CHECKED = "; use of the GPUs by others is not checked\n"


def assert_uses(program: Program, expected: str, *args: str) -> None:
    """One job gets just these GPUs when it asks for all that there are, and no job can have more."""
    count = expected.count(",") + 1
    jobs = f"echo $CUDA_VISIBLE_DEVICES #: gpus={count}\ntrue #: gpus={count + 1}\n"
    done = program.run(*args, stdin=jobs)
    assert (done.stdout.decode(), done.returncode) == (f"{expected}\n", 2), done.stderr.decode()
    assert f"gpus={count + 1}: this run has only {count} GPU" in done.stderr.decode()


def refusal(program: Program, *args: str) -> str:
    """What it says when it starts nothing."""
    done = program.run(*args, stdin="echo started\n")
    assert (done.returncode, done.stdout) == (2, b""), done.stderr.decode()
    return done.stderr.decode()


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[StandIn], StandIn]:
    """Lets programs find this NVML."""

    def use(nvml: StandIn) -> StandIn:
        for name, value in nvml.environment.items():
            monkeypatch.setenv(name, value)
        return nvml

    return use


class Patient:
    """A run that has something to wait for."""

    def __init__(self, program: Program, jobs: str, *args: str) -> None:
        self._words = program.directory / "words"
        with self._words.open("wb") as words:
            self.process = program.start(*args, stderr=words)
        program.feed(self.process, jobs)

    def says(self, pattern: str) -> None:
        """It says this on stderr, now or soon."""
        said = re.compile(pattern, re.MULTILINE)
        until(lambda: said.search(self._words.read_text()), f"it says {pattern}")

    def end(self) -> tuple[int, list[str]]:
        """Its exit code, and what its jobs printed."""
        out, _ = self.process.communicate(timeout=120)
        return self.process.returncode, out.decode().split()

    def stop(self) -> tuple[int, list[str]]:
        """The same, when it is stopped."""
        self.process.terminate()
        return self.end()


# ---- Which there are


@pytest.mark.parametrize(
    ("inherited", "expected"),
    [
        (None, "0,1,2,3"),
        ("1,2", "1,2"),
        (" 1, 3 ", "1,3"),
        (SECOND, SECOND),
        (f"{SECOND},{FOURTH}", f"{SECOND},{FOURTH}"),
        ("GPU-00000002", THIRD),
        ("GPU-00000000,GPU-00000003-11", f"{FIRST},{FOURTH}"),
        ("0,-1,2", "0"),
        ("1,1", "1"),
    ],
)
@pytest.mark.parametrize("args", [[], ["--gpus", "all"]], ids=["no --gpus", "--gpus all"])
def test_without_names_all_gpus_are_used_that_are_visible(
    program: Program,
    idle_gpus: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    inherited: str | None,
    expected: str,
    args: list[str],
) -> None:
    if inherited is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", inherited)
    assert_uses(program, expected, *args)
    assert idle_gpus.initialisations == 1


@pytest.mark.parametrize(
    ("inherited", "expected"),
    [(MIGS[1], MIGS[1]), ("MIG-00000000-0000", MIGS[0]), ("0", ",".join(MIGS)), (f"{MIGS[0]},{SECOND}", None)],
)
def test_mig_instances_are_inherited_by_their_uuids(
    program: Program, idle_gpus: StandIn, monkeypatch: pytest.MonkeyPatch, inherited: str, expected: str | None
) -> None:
    idle_gpus.show(DIVIDED)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", inherited)
    assert_uses(program, expected or inherited)


@pytest.mark.parametrize(
    ("inherited", "sentence"),
    [
        ("", "CUDA_VISIBLE_DEVICES='' is inherited and hides all GPUs; unset it, or use --gpus 0 1"),
        ("-1", "CUDA_VISIBLE_DEVICES='-1' is inherited and hides all GPUs; unset it"),
        ("NoDevFiles", "hides all GPUs"),
        ("9", f"CUDA_VISIBLE_DEVICES=9 is inherited: there is no GPU 9; there are 0 ({FOUR[0].name}, {FIRST}), 1 ("),
        ("GPU-deadbeef", "there is no GPU GPU-deadbeef; there are 0 ("),
        ("GPU-0000", f"GPU-0000 is ambiguous: {FIRST}, {SECOND}, {THIRD}, {FOURTH}; use a longer prefix; fix it"),
        ("0,GPU-00000000", f"GPU 0 ({FIRST}) is given twice"),
    ],
)
def test_what_is_inherited_and_leaves_no_gpu_is_an_error(
    program: Program, idle_gpus: StandIn, monkeypatch: pytest.MonkeyPatch, inherited: str, sentence: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", inherited)
    assert sentence in refusal(program)
    assert_uses(program, "0,1", "--gpus", "0-1")
    assert idle_gpus.initialisations == 2


def test_gpus_are_numbered_along_the_pci_bus(
    program: Program, idle_gpus: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of NVML and of the UUIDs is another one, and `00010000` is a domain behind the buses of the first."""
    buses = ["00010000:01:00.0", "00000000:C1:00.0", "00000000:09:00.0", "00000000:0A:00.0"]
    idle_gpus.show([a_gpu(index, bus=bus) for index, bus in enumerate(buses)])
    assert_uses(program, "0,1,2,3")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    assert_uses(program, f"{THIRD},{FOURTH},{SECOND},{FIRST}")
    assert_uses(program, f"{THIRD},{FIRST}", "--gpus", "0", "3")


# ---- Which are named


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["0-2"], "0,1,2"),
        (["0,2", "3"], "0,2,3"),
        ([SECOND], SECOND),
        (["GPU-00000001"], SECOND),
        (["0", "GPU-00000001"], f"{FIRST},{SECOND}"),
    ],
)
def test_gpus_are_named_by_indexes_ranges_uuids_and_their_beginnings(
    program: Program, idle_gpus: StandIn, args: list[str], expected: str
) -> None:
    assert_uses(program, expected, "--gpus", *args)
    assert idle_gpus.initialisations == 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], f"{MIGS[0]},{MIGS[1]},{SECOND}"),
        (["--gpus", "0"], ",".join(MIGS)),
        (["--gpus", "0:1"], MIGS[1]),
        (["--gpus", MIGS[0]], MIGS[0]),
        (["--gpus", "MIG-00000000-0001"], MIGS[1]),
        (["--gpus", "0:0", "1"], f"{MIGS[0]},{SECOND}"),
        (["--gpus", "1"], "1"),
    ],
)
def test_a_gpu_that_mig_divides_is_its_instances(
    program: Program, idle_gpus: StandIn, args: list[str], expected: str
) -> None:
    idle_gpus.show(DIVIDED)
    assert_uses(program, expected, *args)


@pytest.mark.parametrize(
    ("gpus", "args", "sentence"),
    [
        (FOUR[:1], ["1"], f"--gpus: there is no GPU 1; there is 0 ({FOUR[0].name}, {FIRST})\n"),
        (FOUR, ["0-7"], f"--gpus: there is no GPU 4; there are 0 ({FOUR[0].name}, {FIRST}), 1 ("),
        (FOUR, ["GPU-deadbeef"], "--gpus: there is no GPU GPU-deadbeef; there are 0 ("),
        (FOUR, ["0:1"], "--gpus: there is no GPU 0:1; there are 0 ("),
        (DIVIDED, ["0:2"], f"there is no GPU 0:2; there are 0 ({FOUR[0].name}, {FIRST}), 0:0 ("),
        (
            FOUR,
            ["GPU-0000"],
            f"--gpus: GPU-0000 is ambiguous: {FIRST}, {SECOND}, {THIRD}, {FOURTH}; use a longer prefix\n",
        ),
        (FOUR, ["1", SECOND], f"--gpus: GPU 1 ({SECOND}) is given twice"),
        (FOUR, [SECOND, "GPU-00000001"], f"--gpus: GPU 1 ({SECOND}) is given twice"),
        (DIVIDED, ["0", "0:1"], f"--gpus: GPU 0:1 ({MIGS[1]}) is given twice"),
        ([a_gpu(0, mig=True)], ["0"], "GPU 0 is in MIG mode and has no instances; create some with nvidia-smi mig"),
        ([], ["0"], "--gpus: there is no GPU 0; none was found\n"),
        ([], [], "NVML lists no GPU that jobs could use on this machine; see nvidia-smi"),
        (FOUR, ["all", "1"], "'all' means every GPU; do not name others with it"),
    ],
)
def test_a_name_that_means_no_gpu_or_too_many_is_an_error_that_lists_what_there_is(
    program: Program, idle_gpus: StandIn, gpus: Sequence[Gpu], args: list[str], sentence: str
) -> None:
    idle_gpus.show(gpus)
    assert sentence in refusal(program, *(["--gpus", *args] if args else []))
    if args == ["0-7"]:  # one of them: its run has read a pipe, and so has a journal
        assert "  refused  none  " in program.run("history").stdout.decode()
        status = program.run("status").stdout.decode()
        assert (" refused " in status, "resume it" in status) == (True, False), status


# ---- What a job learns


@pytest.mark.parametrize(
    ("order", "gpus", "expected"),
    [
        (None, FOUR, "1 PCI_BUS_ID"),
        ("PCI_BUS_ID", FOUR, "1 PCI_BUS_ID"),
        ("FASTEST_FIRST", FOUR, f"{SECOND} FASTEST_FIRST"),
        (None, [DIVIDED[1]._replace(bus="00000000:00:00.0"), DIVIDED[0]], f"{MIGS[0]} PCI_BUS_ID"),
    ],
)
def test_jobs_get_an_index_where_cuda_counts_alike_and_otherwise_a_uuid(
    program: Program,
    idle_gpus: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    order: str | None,
    gpus: Sequence[Gpu],
    expected: str,
) -> None:
    idle_gpus.show(gpus)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    if order:
        monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    done = program.run("--gpus", "1", stdin="echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER")
    assert done.stdout.decode().splitlines()[0] == expected


# ---- Without NVML


@pytest.mark.parametrize(
    ("init_error", "problem"),
    [
        (0, NO_LIBRARY),
        (NO_PERMISSION, "NVML does not work: this user may not query the NVIDIA driver"),
    ],
)
def test_without_nvml_indexes_are_believed_and_without_them_it_says_what_to_type(
    program: Program, nvml: StandIn, use: Callable[[StandIn], StandIn], init_error: int, problem: str
) -> None:
    if init_error:
        use(nvml).show(FOUR, init_error=init_error)
    so = f"{problem}, so GPUs cannot be found; say which to use, for example: --gpus 0 1\n"
    assert refusal(program) == f"simple_gpu_scheduler: {so}"
    done = program.run("--gpus", "0", "1", stdin="echo $CUDA_VISIBLE_DEVICES\n" * 5)
    assert (done.returncode, set(done.stdout.split()) <= {b"0", b"1"}) == (0, True)
    assert done.stderr.decode().count(problem + NOT_CHECKED) == 1
    assert any((program.directory / "leases").iterdir())
    silent = program.run("--gpus", "0", "--ignore-occupancy", stdin="true")
    assert (silent.returncode, problem in silent.stderr.decode()) == (0, False)


NOT_YET = [
    (LIB_RM_VERSION_MISMATCH, MISMATCH),
    (DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded"),
    (UNKNOWN, "NVML reports: Unknown Error"),
]


@pytest.mark.parametrize(("init_error", "problem"), NOT_YET)
@pytest.mark.parametrize("args", [[], ["--gpus", "0-3"]], ids=["all", "named"])
def test_a_run_waits_for_a_driver_that_does_not_work_yet(
    program: Program, idle_gpus: StandIn, init_error: int, problem: str, args: list[str]
) -> None:
    idle_gpus.show(FOUR, init_error=init_error)
    run = Patient(program, "echo $CUDA_VISIBLE_DEVICES #: gpus=4\n" + "echo one\n" * 4, *args)
    why = f"waiting: {'gpus 0,1,2,3' if args else 'all GPUs'}: {problem}"
    run.says(f"^{why}$")
    status = program.run("status").stdout.decode()
    assert f"the run is waiting for the NVIDIA driver: {problem}; until it works, the run can only be stopped" in status
    assert why in status
    idle_gpus.show(FOUR)
    assert run.end() == (0, ["0,1,2,3", *["one"] * 4])
    used = {path.name for path in (program.directory / "leases").glob("GPU*")}
    assert used >= {gpu.uuid for gpu in FOUR}, "they are leased by the names that other schedulers use"


@pytest.mark.parametrize(("how", "code"), [("INT", 130), ("TERM", 143), ("stop", 1), ("KILL", -9)])
def test_what_is_left_of_a_run_that_waits_for_the_driver_can_be_resumed(
    program: Program, idle_gpus: StandIn, how: str, code: int
) -> None:
    idle_gpus.unload()
    run = Patient(program, "echo first\necho wide #: gpus=2\necho last\n")
    run.says("^waiting: all GPUs: the NVIDIA driver is not loaded$")
    if how == "stop":
        done = program.run("stop")
        assert done.stdout.endswith(b"stopping; no new jobs, nothing is running\n"), done.stderr
    else:
        run.process.send_signal(signal.Signals[f"SIG{how}"])
    assert run.end() == (code, [])
    if how != "KILL":
        run.says("^stopped before the NVIDIA driver worked; no job was started$")
        run.says("^0 succeeded, 0 failed, 0 timed out, .* in .*; the rest of the input was not read")
    idle_gpus.show(FOUR[:2])
    resumed = program.run("--resume")
    assert (resumed.returncode, sorted(resumed.stdout.split())) == (0, [b"first", b"last", b"wide"])


def test_what_can_do_without_the_driver_does_not_wait_for_it(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.unload()
    done = program.run("--gpus", "0", "--ignore-occupancy", stdin="echo one")
    assert (done.returncode, done.stdout) == (0, b"one\n")
    for args in (["gpus"], ["--dry-run"], ["run", "true"]):
        done = program.run(*args, stdin="true")
        assert done.returncode == 2
        assert b"NVML does not work: the NVIDIA driver is not loaded, so GPUs cannot be found" in done.stderr


def test_a_mistake_that_shows_once_the_driver_works_ends_the_run(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.unload()
    run = Patient(program, "echo one\n", "--gpus", "7")
    run.says("^waiting: gpu 7: the NVIDIA driver is not loaded$")
    idle_gpus.show(FOUR)
    assert run.end() == (2, [])
    run.says("--gpus: there is no GPU 7; there are 0 ")


@pytest.mark.parametrize(("name", "is_known"), [(SECOND, True), ("GPU-00000001", False), ("0:1", False)])
def test_without_nvml_a_whole_uuid_is_believed_and_what_must_be_looked_up_is_not(
    program: Program, name: str, is_known: bool
) -> None:
    done = program.run("--gpus", name, stdin="echo $CUDA_VISIBLE_DEVICES")
    assert done.stdout.decode() == (f"{name}\n" if is_known else "")
    assert (f"--gpus: {name} cannot be looked up without NVML" in done.stderr.decode()) != is_known


@pytest.mark.parametrize("name", ["GPU-00000001", "0:1"])
def test_a_name_that_must_be_looked_up_is_so_also_when_occupancy_is_ignored(
    program: Program, idle_gpus: StandIn, name: str
) -> None:
    idle_gpus.show(DIVIDED)
    assert_uses(program, SECOND if name.startswith("GPU") else MIGS[1], "--gpus", name, "--ignore-occupancy")


# ---- With half of NVML


OLD = (
    ["nvmlDeviceGetMemoryInfo_v2"],
    ["nvmlDeviceGetComputeRunningProcesses_v2"],
    ["nvmlDeviceGetComputeRunningProcesses_v3"],
    [f"nvmlDeviceGet{name}" for name in ("MemoryInfo_v2", "MigMode", "ComputeRunningProcesses_v3")],
)


@pytest.mark.parametrize("without", OLD, ids=["no memory v2", "no processes v2", "no processes v3", "very old"])
def test_an_old_driver_does(
    program: Program,
    nvml_of: Callable[..., StandIn],
    use: Callable[[StandIn], StandIn],
    without: list[str],
) -> None:
    nvml = use(nvml_of(without=without))
    nvml.show([a_gpu(0), a_gpu(1, used=1 << 30)])
    done = program.run("run", "--no-wait", "-n", "2", "true")
    assert (done.returncode, done.stderr.decode().count("gpu 1: 1.0 GiB used by others")) == (75, 1)
    assert program.run(stdin="true").returncode == 0


@pytest.mark.parametrize("code", [NO_PERMISSION, NOT_SUPPORTED])
def test_where_processes_are_not_listed_memory_decides_and_that_is_reported_once(
    program: Program, idle_gpus: StandIn, code: int
) -> None:
    versions = ("", "_v2", "_v3")
    errors = {f"nvmlDeviceGetComputeRunningProcesses{version}": code for version in versions}
    idle_gpus.show([a_gpu(0, errors=errors), a_gpu(1, used=1 << 30, errors=errors), a_gpu(2, errors=errors)])
    done = program.run(stdin="echo $CUDA_VISIBLE_DEVICES; sleep 0.1\n" * 6)
    assert set(done.stdout.split()) == {b"0", b"2"}
    assert done.stderr.count(b"NVML does not report which processes use a GPU, so its used memory decides") == 1


@pytest.mark.parametrize("busy", [None, "MIG"])
def test_unknown_utilisation_does_not_count(program: Program, idle_gpus: StandIn, busy: str | None) -> None:
    idle_gpus.show(DIVIDED if busy else [a_gpu(0, utilization=None), a_gpu(1, utilization=50)])
    name = MIGS[0] if busy else "0"
    done = program.run("--max-utilization", "10", stdin="echo $CUDA_VISIBLE_DEVICES\n" * 3)
    assert name in done.stdout.decode().split()
    sentence = f"gpu {name}: NVML does not report its utilisation, so --max-utilization is ignored for it\n"
    assert done.stderr.decode().count(sentence) == 1


FAILING: Sequence[Mapping[str, int]] = [
    LOST,
    *({name: GPU_IS_LOST} for name in ("nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetMigMode")),
    {"nvmlDeviceGetMemoryInfo_v2": GPU_IS_LOST},
    {"nvmlDeviceGetComputeRunningProcesses_v2": GPU_IS_LOST},
]


@pytest.mark.parametrize("order", ["PCI_BUS_ID", "FASTEST_FIRST"])
@pytest.mark.parametrize("errors", FAILING, ids=",".join)
def test_while_a_gpu_is_lost_at_the_start_the_others_are_used_and_wide_jobs_wait(
    program: Program, idle_gpus: StandIn, monkeypatch: pytest.MonkeyPatch, errors: Mapping[str, int], order: str
) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    idle_gpus.show([a_gpu(0), a_gpu(1, errors=errors), a_gpu(2), a_gpu(3, errors=errors)])
    run = Patient(program, "echo $CUDA_VISIBLE_DEVICES; sleep 0.1\n" * 4 + "echo wide #: gpus=3\n")
    names = {"PCI_BUS_ID": ("1", "3"), "FASTEST_FIRST": (f"(1|{SECOND})", f"(3|{FOURTH})")}[order]
    run.says(" · ".join(f"gpu {name}: fallen off the bus; a reboot may bring it back" for name in names) + "$")
    code, out = run.stop()
    assert (code, len(out)) == (143, 4)
    assert set(out) == ({"0", "2"} if order == "PCI_BUS_ID" else {FIRST, THIRD}), "a number may mean another GPU"
    run.says("^4 succeeded, 0 failed, 0 timed out, 1 not started")
    idle_gpus.show(FOUR)
    done = program.run("--resume")
    assert (done.returncode, done.stdout) == (0, b"wide\n"), done.stderr.decode()


@pytest.mark.parametrize("code", [GPU_IS_LOST, RESET_REQUIRED, NO_PERMISSION, UNKNOWN])
@pytest.mark.parametrize("function", ["*", "nvmlDeviceGetMemoryInfo_v2"])
def test_gpus_that_do_not_work_at_the_start_are_used_once_they_work(
    program: Program, idle_gpus: StandIn, code: int, function: str
) -> None:
    idle_gpus.show([gpu._replace(errors={function: code}) for gpu in FOUR])
    run = Patient(program, "echo $CUDA_VISIBLE_DEVICES #: gpus=4\n" + "echo one\n" * 4)
    run.says(r"^waiting: gpu 0: .+ · gpu 1: .+ · gpu 2: .+ · gpu 3: ")
    assert program.run("status").stdout.count(b"gpu 3: ") == 1
    idle_gpus.show(FOUR)
    assert run.end() == (0, ["0,1,2,3", *["one"] * 4])
    used = {path.name for path in (program.directory / "leases").glob("GPU*")}
    assert used >= {gpu.uuid for gpu in FOUR}, "they are leased by the names that other schedulers use"


def test_nvml_is_initialised_again_while_a_gpu_is_lost_since_it_may_repeat_its_answer(
    program: Program, idle_gpus: StandIn
) -> None:
    idle_gpus.show([FOUR[0]])
    run = Patient(program, "touch began; until [ -e go ]; do sleep 0.01; done\necho two\n")
    until((program.directory / "began").exists, "the first runs")
    idle_gpus.show([FOUR[0]._replace(errors=LOST)], init_error=UNKNOWN)
    (program.directory / "go").touch()
    until(lambda: idle_gpus.initialisations == 2, "it asks anew, and the driver does not work either")
    idle_gpus.show([FOUR[0]])
    assert run.end() == (0, ["two"])
    assert idle_gpus.initialisations == 3


def test_a_run_that_exports_metrics_shuts_nvml_down_as_often_as_it_was_initialised(
    program: Program, idle_gpus: StandIn
) -> None:
    """NVML counts; so long as one of two initialisations is left, it may repeat what it once said."""
    idle_gpus.show([FOUR[0]._replace(errors=LOST)])
    run = Patient(program, "echo one\n", "--textfile", "run.prom")
    run.says("^waiting: gpu 0: fallen off the bus")
    until(lambda: _was_shut_down(idle_gpus), "nobody has it open for a moment")
    idle_gpus.show([FOUR[0]])
    assert run.end() == (0, ["one"])


def _was_shut_down(nvml: StandIn) -> bool:
    """Whether it was open twice, and then not at all."""
    depth = 0
    was_open_twice = False
    for call in nvml.called():
        depth += call.startswith("nvmlInit")
        depth -= call == "nvmlShutdown"
        was_open_twice = was_open_twice or depth > 1
        if was_open_twice and depth == 0:
            return True
    return False


def test_nvml_is_initialised_again_while_a_gpu_is_lost_from_the_start_too(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([FOUR[0]._replace(errors=LOST)])
    run = Patient(program, "echo one\n")
    run.says("^waiting: gpu 0: fallen off the bus")
    idle_gpus.show([FOUR[0]._replace(errors=LOST)], init_error=UNKNOWN)
    until(lambda: idle_gpus.initialisations == 2, "it asks anew, and the driver does not work either")
    idle_gpus.show([FOUR[0]])
    assert run.end() == (0, ["one"])
    assert idle_gpus.initialisations == 3


def test_a_number_is_not_used_once_it_may_mean_another_gpu(program: Program, idle_gpus: StandIn) -> None:
    """The first GPU has fallen off, and the driver was loaded again without it: its number is now the second's."""
    idle_gpus.show([FOUR[0]._replace(errors=LOST), *FOUR[1:3]])
    run = Patient(program, "echo $CUDA_VISIBLE_DEVICES #: gpus=3\n")
    run.says("^waiting: gpu 0: fallen off the bus")
    idle_gpus.show(FOUR[1:3])
    run.says("^waiting: gpu 0: it came back as another GPU; a new run can use it$")
    assert run.stop() == (143, [])


@pytest.mark.parametrize("lost", [(1,), (0, 1)], ids=["one", "all"])
@pytest.mark.parametrize("returns", [True, False], ids=["it comes back", "it does not"])
def test_jobs_wait_for_a_gpu_that_is_lost_in_mid_run_and_are_left_over(
    program: Program, idle_gpus: StandIn, lost: tuple[int, ...], returns: bool
) -> None:
    idle_gpus.show(FOUR[:2])
    job = "touch began$SGS_JOB; until [ -e go ]; do sleep 0.01; done; echo $CUDA_VISIBLE_DEVICES\n"
    run = Patient(program, job * 6 + "echo wide #: gpus=2\ntrue #: gpus=0\n")
    until(lambda: len(list(program.directory.glob("began*"))) == 2, "two jobs run")
    idle_gpus.show([gpu._replace(errors=LOST) if at in lost else gpu for at, gpu in enumerate(FOUR[:2])])
    (program.directory / "go").touch()
    why = " · ".join(f"gpu {gpu}: fallen off the bus; a reboot may bring it back" for gpu in lost)
    run.says(f"^waiting: {why}$")
    if returns:
        idle_gpus.show(FOUR[:2])
        code, out = run.end()
        assert (code, len(out), out.count("wide")) == (0, 7, 1)
        return
    done = 6 if lost == (1,) else 2
    until(lambda: f'"succeeded": {done + 1}' in program.run("status", "--json").stdout.decode(), "the others have run")
    assert program.run("stop").returncode == 0
    code, out = run.end()
    assert (code, len(out), sorted(set(out))) == (1, done, ["0", "1"])
    run.says(f"^{done + 1} succeeded, 0 failed, 0 timed out, {7 - done} not started")
    idle_gpus.show(FOUR[:2])
    resumed = program.run("--resume")
    assert (resumed.returncode, len(resumed.stdout.split())) == (0, 7 - done), resumed.stderr.decode()
