"""What the tests share: the real program as a process, and waiting for a condition."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

from tests.support.followed import follow, queue, uses_inotify  # noqa: F401
from tests.support.nvml import StandIn
from tests.support.nvml.fixtures import compiled_library, stand_in, stand_in_of  # noqa: F401
from tests.support.processes import kill_if_alive
from tests.support.until import until

ROOT = Path(__file__).parent.parent
SCHEDULER = [sys.executable, "-m", "simple_gpu_scheduler"]
HYPERSEARCH = [sys.executable, "-c", "from simple_gpu_scheduler.cli.main import simple_hypersearch as s; s()"]


# How long a property takes says how busy the machine is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# pytest-xdist starts its workers after readline has put the size of the controller's terminal here.
for _size in ("COLUMNS", "LINES"):
    os.environ.pop(_size, None)

# What is taken from the environment before a test has its own is of no test: a run with it fails at once, where it
# would use the leases and runs of this machine's users.
os.environ |= dict.fromkeys(("SGS_LEASE_DIR", "XDG_STATE_HOME"), "/dev/null/of-no-test")

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# For programs that a test kills: coverage's data of a killed process would be a torn file.
UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


def work(action: Callable[[], object]) -> int:
    """How many lines of Python it runs: what it costs, on whatever machine and however busy that is."""
    lines = 0

    def count(_frame: object, _event: str, _arg: object) -> object:
        nonlocal lines
        lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]
    try:
        action()
    finally:
        sys.settrace(before)
    return lines


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_text(path: Path, text: str = "\n") -> Callable[[], bool]:
    """A condition: the file holds this text."""
    return lambda: path.exists() and text in path.read_text()


def needs(*programs: str) -> None:
    """Skip what cannot be tried on a machine without these; `bin/test` puts them on CI's."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")


class Program:
    """The scheduler as a user runs it, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._started: list[subprocess.Popen[bytes]] = []

    def run(self, *args: str, stdin: bytes | str = b"", **settings) -> "subprocess.CompletedProcess[bytes]":
        """Run it with this on stdin, through a pipe, until it ends."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        settings = {"cwd": self.directory, "timeout": 120, "capture_output": True} | settings
        return subprocess.run([*settings.pop("before", ()), *SCHEDULER, *args], input=data, check=False, **settings)

    def start(self, *args: str, **settings) -> "subprocess.Popen[bytes]":
        """Start it, with stdin and stderr piped."""
        pipe = subprocess.PIPE
        settings = {"cwd": self.directory, "stdin": pipe, "stdout": pipe, "stderr": pipe} | settings
        process = subprocess.Popen([*SCHEDULER, *args], **settings)
        self._started.append(process)
        return process

    def feed(self, process: "subprocess.Popen[bytes]", text: str) -> None:
        """Give it its input, whole."""
        assert process.stdin
        process.stdin.write(text.encode())
        process.stdin.close()
        process.stdin = None

    def close(self) -> None:
        """End what a failed test has left."""
        for process in self._started:
            if process.poll() is None:
                process.terminate()  # which ends its jobs too; after a KILL they would run on
            try:
                process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


@pytest.fixture(autouse=True)
def _no_test_hangs() -> Iterator[None]:
    """A test that waits for what never comes fails, and says where."""

    def too_long(_number: int, _frame: object) -> None:
        raise TimeoutError("the test has been waiting for five minutes")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(300)
    yield
    signal.alarm(0)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """pytest's own, or for a test marked `open_to_others` one that other users may enter.

    pytest closes the directories above its own to others whenever it is started, so also while a test runs.
    """
    if not request.node.get_closest_marker("open_to_others"):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="open_to_others_") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(autouse=True)
def _leases_and_runs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test shares its GPUs with no other, nor with other users of this machine; and likewise its runs."""
    for variable, directory in (("SGS_LEASE_DIR", "leases"), ("XDG_STATE_HOME", "state")):
        monkeypatch.setenv(variable, str(tmp_path / directory))
        monkeypatch.setitem(UNMEASURED, variable, str(tmp_path / directory))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture(autouse=True)
def _measures_one_of_a_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """To be measured costs a program three times what its own start and end do: of a test's programs those are that
    it starts with its first parameters. Nothing is measured of a test marked `unmeasured`: it repeats much,
    or runs lines that other tests run too.
    """
    unmeasured = request.node.get_closest_marker("unmeasured") is not None
    if unmeasured or any(request.node.callspec.indices.values() if hasattr(request.node, "callspec") else ()):
        for name in os.environ.keys() - UNMEASURED.keys():
            if name.startswith("COVERAGE"):
                monkeypatch.delenv(name)
    measuring = Coverage.current() if unmeasured else None
    if measuring:
        measuring.stop()
    yield
    if measuring:
        measuring.start()


@pytest.fixture
def idle_gpus(nvml: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Every program that the test starts finds four unused GPUs."""
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    return nvml


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """Reads a pid that a job wrote to a file, waiting for it; what is still alive at the end is killed."""
    seen: list[int] = []

    def read(name: str) -> int:
        path = tmp_path / name
        until(has_text(path), f"{name} is written")
        seen.append(int(path.read_text()))
        return seen[-1]

    yield read
    for pid in seen:
        kill_if_alive(pid)
