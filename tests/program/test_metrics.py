"""`metrics`: what a real run and a stand-in for NVML make of it, read by Prometheus' own programs."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser as open_parser
from prometheus_client.parser import text_string_to_metric_families

from simple_gpu_scheduler.metrics.families import NAMES
from simple_gpu_scheduler.metrics.textfile import TextFile
from tests.conftest import Program, needs, until
from tests.support.dashboard import queries_for_prometheus
from tests.support.nvml import GIB, GPU_IS_LOST, Ramp, StandIn, a_gpu, an_instance

OPEN = "application/openmetrics-text; version=1.0.0"
SERVICE_UNAVAILABLE = 503
HOLD = "until [ -e go ]; do sleep 0.05; done"
Samples = dict[str, list[tuple[dict[str, str], float]]]


def samples(text: bytes | str, parse: Callable = text_string_to_metric_families) -> Samples:
    found: Samples = {}
    for family in parse(text if isinstance(text, str) else text.decode()):
        for each in family.samples:
            found.setdefault(each.name, []).append((each.labels, each.value))
    return found


def value(found: Samples, name: str, /, **labels: str) -> float:
    [one] = [value for has, value in found.get(name, ()) if labels.items() <= has.items()]
    return one


def once(program: Program, *args: str) -> Samples:
    done = program.run("metrics", *args)
    assert (done.returncode, done.stderr) == (0, b"")
    return samples(done.stdout)


class Exporting:
    """`metrics` while it serves."""

    def __init__(self, program: Program, *args: str) -> None:
        self.process = program.start("metrics", *args, stdin=subprocess.DEVNULL)
        assert self.process.stderr
        self.said = ""
        while args[0] in ("--port", "--unix") and "serving " not in self.said:
            line = self.process.stderr.readline().decode()
            assert line, f"it has ended: {self.said}"
            self.said += line
        self.url = self.said.rpartition("serving ")[2].strip()

    def get(self, accept: str = "", path: str = "", method: str = "GET") -> tuple[int, str, bytes]:
        url = self.url.removesuffix("/metrics") + path if path else self.url
        request = urllib.request.Request(url, headers={"Accept": accept} if accept else {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read()

    def samples(self) -> Samples:
        return samples(self.get()[2])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        assert self.process.stderr
        err = self.process.stderr.read().decode()
        return self.process.wait(timeout=120), err


@pytest.fixture
def running(idle_gpus: StandIn, program: Program) -> Program:
    """A run with two jobs on two GPUs, and one that waits for both."""
    idle_gpus.show([a_gpu(0, utilization=93, used=3 * GIB), a_gpu(1)])
    program.feed(
        program.start("-q", "--gpus", "0", "1", "--ignore-occupancy"),
        f'{HOLD} #: name=big label=vision\n{HOLD}; exit 3\ntrue "a secret" #: gpus=2\n',
    )
    until(lambda: b"2 running" in program.run("status").stdout, "both run")
    return program


def test_it_prints_gpus_runs_and_jobs_once_and_no_command(running: Program) -> None:
    until(lambda: "sgs_job_gpu_utilization_ratio" in once(running), "the run has measured its jobs")
    done = running.run("metrics")
    found = samples(done.stdout)
    assert b"secret" not in done.stdout
    assert HOLD.encode() not in done.stdout
    assert value(found, "sgs_gpu_utilization_ratio", gpu="0", uuid=a_gpu(0).uuid) == 0.93
    assert value(found, "sgs_gpu_memory_used_bytes", gpu="0") == 3 * GIB
    assert value(found, "sgs_gpu_power_limit_watts", gpu="1") == 400
    assert value(found, "sgs_gpu_info", gpu="1", name="NVIDIA A100-SXM4-80GB", driver="570.86.15") == 1
    assert value(found, "sgs_gpu_state", gpu="0", state="leased") == 1
    assert value(found, "sgs_lease_info", gpu="0", user="root") == 1
    [run] = {labels["run"] for labels, _ in found["sgs_run_up"]}
    assert value(found, "sgs_jobs", run=run, state="running") == 2
    assert value(found, "sgs_jobs", run=run, state="waiting") == 1
    assert value(found, "sgs_job_info", run=run, job="1", name="big", label="vision", attempt="1") == 1
    [on_first] = [labels["job"] for labels, _ in found["sgs_job_gpu_info"] if labels["gpu"] == "0"]
    assert value(found, "sgs_job_gpu_utilization_ratio", job=on_first, gpu="0") == 0.93
    assert value(found, "sgs_job_gpu_memory_peak_bytes", job=on_first, gpu="0") >= 0
    assert value(found, "sgs_jobs_ended_total", outcome="succeeded") == 0
    assert value(found, "sgs_job_wait_seconds_count") == 2


def test_series_of_jobs_end_with_them_and_totals_stay_when_runs_are_deleted(running: Program) -> None:
    exporting = Exporting(running, "--port", "0")
    assert "sgs_job_info" in exporting.samples()
    (running.directory / "go").touch()
    until(lambda: "sgs_run_up" not in exporting.samples(), "the run has ended")

    def totals() -> tuple[float, ...]:
        found = exporting.samples()
        assert "sgs_job_info" not in found
        assert "sgs_jobs" not in found
        outcomes = [value(found, "sgs_jobs_ended_total", outcome=each) for each in ("succeeded", "failed")]
        return (*outcomes, value(found, "sgs_job_run_seconds_count"), value(found, "sgs_jobs_gpu_seconds_total"))

    before = totals()
    assert before[:3] == (2, 1, 3)
    assert running.run("clean", "--all").returncode == 0
    assert running.run("history", "--json").stdout == b"[]\n"
    assert totals() == before
    assert running.run(stdin="true\n").returncode == 0
    until(lambda: totals()[0] == 3, "the next is counted too")


def test_openmetrics_is_for_those_who_accept_it(running: Program) -> None:
    exporting = Exporting(running, "--port", "0")
    assert exporting.url.startswith("http://127.0.0.1:")
    status, kind, text = exporting.get()
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    status, kind, open_text = exporting.get(f"{OPEN},text/plain;q=0.5")
    assert (status, kind) == (200, f"{OPEN}; charset=utf-8")
    assert open_text.endswith(b"# EOF\n")
    assert samples(open_text, open_parser.text_string_to_metric_families).keys() == samples(text).keys()


@pytest.mark.usefixtures("idle_gpus")
@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "body"),
    [
        ("HEAD", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", b""),
        ("GET", "/metrics?x=1", 200, "text/plain; version=0.0.4; charset=utf-8", None),
        ("GET", "/", 200, "text/html; charset=utf-8", None),
        ("GET", "/other", 404, "text/plain", b"not found; the metrics are at /metrics\n"),
        ("POST", "/metrics", 405, "text/plain", b"Method Not Allowed\n"),
        ("DELETE", "/", 405, "text/plain", b"Method Not Allowed\n"),
    ],
)
def test_only_the_page_and_its_index_are_there(
    program: Program, method: str, path: str, status: int, kind: str, body: bytes | None
) -> None:
    answered = Exporting(program, "--port", "0").get(path=path, method=method)
    assert answered[:2] == (status, kind)
    assert body is None or answered[2] == body


@pytest.mark.usefixtures("idle_gpus")
def test_requests_that_are_none_and_clients_that_stay_silent_harm_nobody(program: Program) -> None:
    exporting = Exporting(program, "--port", "0")
    port = int(re.findall(r":(\d+)/", exporting.url)[0])
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    for data in (
        b"\x00\xff\n\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"X" * 100_000,
        b"GET /metrics HTTP/1.1\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port)) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                client.settimeout(60)
                client.recv(100)
            except OSError:
                pass
    assert exporting.get()[0] == 200
    for client in idle:
        client.close()
    assert exporting.end() == (143, "")


@pytest.mark.usefixtures("idle_gpus")
def test_a_unix_socket_is_for_this_user_alone_and_is_removed_at_the_end(program: Program) -> None:
    path = program.directory / ("a" * 90) / "metrics.sock"
    path.parent.mkdir()
    exporting = Exporting(program, "--unix", str(path))
    assert (exporting.said, path.stat().st_mode & 0o777) == (f"serving {path}\n", 0o600)
    done = program.run("metrics", "--unix", str(path))
    assert done.returncode == 2
    assert b"another program listens there; choose another name" in done.stderr
    fd = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"/proc/self/fd/{fd}/{path.name}")
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        with client.makefile("rb") as answer:
            text = answer.read()
    os.close(fd)
    assert b"\r\n\r\n# HELP sgs_build_info" in text
    assert exporting.end(signal.SIGINT) == (130, "")
    assert not path.exists()


@pytest.mark.usefixtures("idle_gpus")
@pytest.mark.unmeasured
def test_a_socket_that_a_killed_exporter_left_is_replaced(program: Program) -> None:
    path = program.directory / "metrics.sock"
    killed = Exporting(program, "--unix", str(path))
    assert killed.end(signal.SIGKILL)[0] == -signal.SIGKILL
    assert path.is_socket()
    assert Exporting(program, "--unix", str(path)).end() == (143, "")
    assert not path.exists()


def test_wrong_options_are_sentences_before_anything_starts(idle_gpus: StandIn, program: Program) -> None:
    (program.directory / "mine").write_text("text")
    (program.directory / "mine.prom").write_text("text")
    (program.directory / "link").symlink_to(".")
    (program.directory / "link.prom").symlink_to("mine")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for args, sentence in [
            (
                ["--port", port],
                f"cannot listen on port {port} of 127.0.0.1: Address already in use; choose another port",
            ),
            (
                ["--port", "0", "--address", "192.0.2.1"],
                "cannot listen on port 0 of 192.0.2.1: Cannot assign requested address; is it",
            ),
            (["--address", "::1"], "--address is for --port; add --port N"),
            (["--every", "5s"], "--every is for --textfile; add --textfile FILE.prom"),
            (["--textfile", "a.prom", "--every", "10ms"], "'10ms' is not"),
            (["--textfile", "a.prom", "--every", "0.5s"], "'0.5s' is less than 1s"),
            (["--unix", ""], "--unix is empty; is a shell variable unset?"),
            (["--unix", "mine"], "cannot create a socket at mine: something else has this name"),
            (["--unix", "missing/socket"], "cannot create a socket at missing/socket: No such file"),
            (["--textfile", "sgs.txt"], "sgs.txt does not end in .prom, so node_exporter would ignore it; rename it"),
            (["--textfile", "mine.prom"], "mine.prom is not a file of such metrics and is not overwritten"),
            (["--textfile", "link.prom"], "cannot write link.prom: it is not a regular file"),
            (
                ["--textfile", "missing/a.prom"],
                "/missing/a.prom: No such file or directory; create the directory first",
            ),
            (
                ["--dcgm-job-map", "missing"],
                "cannot use missing for DCGM's job map: No such file or directory; create the directory first",
            ),
            (["--dcgm-job-map", "mine"], "cannot use mine for DCGM's job map: Not a directory"),
            (["--dcgm-job-map", "link"], "cannot use link for DCGM's job map: it is a symbolic link"),
            (["--gpus", "7"], "there is no GPU 7"),
        ]:
            done = program.run("metrics", *args)
            told = done.stderr.decode()
            assert (done.returncode, done.stdout) == (2, b""), told
            assert sentence in told, args
            assert "serving" not in told
    assert (program.directory / "mine").read_text() == "text"
    assert sorted(path.name for path in program.directory.glob("*.prom")) == ["link.prom", "mine.prom"]
    assert idle_gpus.initialisations <= 3, "the driver is asked only if the rest is right"


def test_what_a_gpu_does_not_say_is_absent(idle_gpus: StandIn, program: Program) -> None:
    nothing = dict.fromkeys(("utilization", "temperature", "power", "power_limit"))
    idle_gpus.show([a_gpu(0, **nothing), a_gpu(1, errors={"*": GPU_IS_LOST}), a_gpu(2, used=9 * GIB)])
    found = once(program)
    assert {labels["gpu"] for labels, _ in found["sgs_gpu_temperature_celsius"]} == {"2"}
    assert {labels["gpu"] for labels, _ in found["sgs_gpu_memory_used_bytes"]} == {"0", "2"}
    states = {labels["gpu"]: labels["state"] for labels, value in found["sgs_gpu_state"] if value}
    assert states == {"0": "free", "1": "broken", "2": "occupied"}
    assert "sgs_lease_info" not in found


def test_what_a_gpu_counts_is_a_counter_and_units_are_base_units(idle_gpus: StandIn, program: Program) -> None:
    counts = {"energy": Ramp(5_000, 2_000, time.time()), "pcie_tx_bytes": 7, "nvlink_rx_kib": 3}
    hot = a_gpu(0, **counts, clock=1410, memory_clock=1593, memory_utilization=40, throttle=0x40, xids={79: 0})
    idle_gpus.show([hot])
    exporting = Exporting(program, "--port", "0")
    found = exporting.samples()
    first = value(found, "sgs_gpu_energy_joules_total", gpu="0")
    assert first >= 5
    assert value(found, "sgs_gpu_pcie_sent_bytes_total", gpu="0") == 7
    assert value(found, "sgs_gpu_nvlink_received_bytes_total", gpu="0") == 3 * 1024
    assert value(found, "sgs_gpu_sm_clock_hertz", gpu="0") == 1_410_000_000
    assert value(found, "sgs_gpu_memory_clock_hertz", gpu="0") == 1_593_000_000
    assert value(found, "sgs_gpu_memory_copy_ratio", gpu="0") == 0.4
    until(lambda: value(exporting.samples(), "sgs_gpu_energy_joules_total", gpu="0") > first, "it grows")
    throttled = "sgs_gpu_throttled_seconds_total"
    until(lambda: value(exporting.samples(), throttled, gpu="0", reason="heat") > 1, "it is throttled")
    assert value(exporting.samples(), throttled, gpu="0", reason="power") == 0
    assert "sgs_gpu_xid_errors_total" not in exporting.samples()
    idle_gpus.show([hot._replace(xids={79: 2})])
    until(lambda: "sgs_gpu_xid_errors_total" in exporting.samples(), "the errors are told")
    assert value(exporting.samples(), "sgs_gpu_xid_errors_total", gpu="0", xid="79") == 2


def test_mig_instances_have_their_own_names(idle_gpus: StandIn, program: Program) -> None:
    instances = [an_instance(0, 0), an_instance(0, 1, used=GIB)]
    idle_gpus.show([a_gpu(0, mig=True, instances=instances), a_gpu(1)])
    found = once(program)
    assert value(found, "sgs_gpu_memory_used_bytes", gpu="0:1", uuid=instances[1].uuid) == GIB
    assert {labels["gpu"] for labels, _ in found["sgs_gpu_info"]} == {"0:0", "0:1", "1"}


def test_without_a_driver_runs_are_exported_alone(program: Program) -> None:
    program.feed(program.start("-q", "--gpus", "0"), f"{HOLD}\n")
    until(lambda: b"1 running" in program.run("status").stdout, "it runs")
    done = program.run("metrics")
    assert done.returncode == 0
    assert b"NVML was not found" in done.stderr
    assert b"; only runs are exported" in done.stderr
    found = samples(done.stdout)
    assert (value(found, "sgs_nvml_up"), value(found, "sgs_job_gpu_info", job="1", gpu="0")) == (0, 1)
    assert "sgs_gpu_state" not in found
    found = samples(program.run("metrics", "--gpus", "0").stdout)
    assert value(found, "sgs_gpu_state", gpu="0", state="leased") == 1
    (program.directory / "go").touch()


def test_a_driver_that_comes_later_is_found(idle_gpus: StandIn, program: Program) -> None:
    idle_gpus.unload()
    exporting = Exporting(program, "--port", "0")
    assert exporting.said.startswith("NVML does not work: the NVIDIA driver is not loaded; only runs are exported\n")
    assert value(exporting.samples(), "sgs_nvml_up") == 0
    idle_gpus.show([a_gpu(0)])
    until(lambda: "sgs_gpu_state" in exporting.samples(), "the GPU is found")
    assert value(exporting.samples(), "sgs_nvml_up") == 1


def test_a_driver_that_hangs_holds_up_no_scrape(idle_gpus: StandIn, program: Program) -> None:
    exporting = Exporting(program, "--port", "0")
    assert value(exporting.samples(), "sgs_gpu_state", gpu="0", state="free") == 1
    idle_gpus.show([a_gpu(0, hangs=["*"]), a_gpu(1)])
    until(lambda: value(exporting.samples(), "sgs_gpu_state", gpu="0", state="silent") == 1, "it is said")
    found = exporting.samples()
    assert {labels["gpu"] for labels, _ in found["sgs_gpu_memory_used_bytes"]} == {"1"}
    stamps = {labels["gpu"]: at for labels, at in found["sgs_sample_timestamp_seconds"]}
    assert stamps["0"] < stamps["1"], "how long ago it answered"
    assert exporting.end() == (143, "")


def test_a_suspended_run_holds_up_no_scrape(running: Program) -> None:
    exporting = Exporting(running, "--port", "0")
    scheduler = running._started[0]
    scheduler.send_signal(signal.SIGSTOP)
    try:
        found = exporting.samples()
        until(lambda: value(exporting.samples(), "sgs_run_up") == 0, "that is said")
        found = exporting.samples()
    finally:
        scheduler.send_signal(signal.SIGCONT)
    assert "sgs_jobs" not in found
    assert {labels["job"] for labels, _ in found["sgs_job_gpu_info"]} == {"1", "2"}
    until(lambda: value(exporting.samples(), "sgs_run_up") == 1, "it answers again")


def test_time_on_a_leased_gpu_that_does_nothing_is_counted(running: Program) -> None:
    exporting = Exporting(running, "--port", "0")
    idle = "sgs_gpu_idle_leased_seconds_total"
    until(lambda: value(exporting.samples(), idle, gpu="1", user="root") >= 2, "it grows")
    assert value(exporting.samples(), idle, gpu="0", user="root") == 0


def test_the_text_file_is_replaced_again_and_again_and_removed_at_the_end(running: Program) -> None:
    path = running.directory / "sgs.prom"
    exporting = Exporting(running, "--textfile", str(path), "--every", "1s")
    until(path.exists, "it is written")
    first = path.stat()
    assert first.st_mode & 0o777 == 0o644
    assert "sgs_job_info" in samples(path.read_text())
    until(lambda: path.stat().st_ino != first.st_ino, "it is replaced")
    (running.directory / "go").touch()
    until(lambda: "sgs_job_info" not in samples(path.read_text()), "it is up to date")
    assert exporting.end(signal.SIGINT) == (130, "")
    assert sorted(each.name for each in running.directory.glob("*.prom*")) == []


def test_a_run_writes_the_file_as_long_as_it_lasts(idle_gpus: StandIn, program: Program) -> None:
    idle_gpus.show([a_gpu(0, utilization=50)])
    path = program.directory / "sgs.prom"
    run = program.start("-q", "--textfile", "sgs.prom")
    program.feed(run, f"{HOLD}; exit 3\n")
    until(path.exists, "it is written at once")
    until(lambda: "sgs_job_info" in samples(path.read_text()), "the run is in it")
    found = samples(path.read_text())
    assert value(found, "sgs_gpu_utilization_ratio", gpu="0") == 0.5
    assert value(found, "sgs_run_up") == 1
    assert path.stat().st_mode & 0o777 == 0o644
    (program.directory / "go").touch()
    out, err = run.communicate(timeout=120)
    assert (run.returncode, out, err.count(b"\n")) == (1, b"", 1), err
    assert [*program.directory.glob("*.prom*")] == []


def test_a_file_that_two_write_stays_until_the_last_has_ended(idle_gpus: StandIn, program: Program) -> None:
    idle_gpus.show([a_gpu(0), a_gpu(1)])
    path = program.directory / "sgs.prom"
    runs = {}
    for go, gpu in (("first", "0"), ("second", "1")):
        runs[go] = program.start("-q", "--textfile", "sgs.prom", "--gpus", gpu)
        program.feed(runs[go], f"until [ -e {go} ]; do sleep 0.05; done\n")
    until(lambda: path.exists() and len(samples(path.read_text()).get("sgs_job_info", ())) == 2, "both are in it")
    exporting = Exporting(program, "--textfile", "sgs.prom", "--every", "1h")
    kept = os.open(path, os.O_RDONLY)
    until(lambda: not os.path.samestat(os.fstat(kept), path.stat()), "the exporter has written it too")
    os.close(kept)
    for go, run in runs.items():
        (program.directory / go).touch()
        assert run.wait(timeout=120) == 0
        assert path.exists(), f"others write it when the {go} ends"
    assert exporting.end()[0] == 143
    assert [*program.directory.glob("*.prom*")] == []


@pytest.mark.parametrize("last", ["writer", "other"])
def test_whoever_writes_the_file_last_the_last_to_end_removes_it(tmp_path: Path, last: str) -> None:
    path = tmp_path / "sgs.prom"
    files = {"writer": TextFile(str(path)), "other": TextFile(str(path))}
    elsewhere = TextFile(str(tmp_path / "another.prom"))
    elsewhere.write(b"# HELP sgs_ else\n")
    for name in ("writer", "other", "writer"):
        files[name].write(b"# HELP sgs_ \n")
    files.pop("other" if last == "writer" else "writer").close()
    assert path.exists()
    files.pop(last).close()
    assert [each.name for each in tmp_path.iterdir()] == ["another.prom"], "not even a lock is left"


@pytest.mark.parametrize("args", [[], ["--textfile", "other.prom"]])
def test_a_resumed_run_writes_its_file_again_or_another_where_it_is_resumed(
    idle_gpus: StandIn, program: Program, args: list[str]
) -> None:
    idle_gpus.show([a_gpu(0)])
    run = program.start("-q", "--textfile", "sgs.prom")
    program.feed(run, f"{HOLD}\n")
    until(lambda: b"1 running" in program.run("status").stdout, "it runs")
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=120) == 143
    elsewhere = program.directory / "elsewhere"
    elsewhere.mkdir()
    path = elsewhere / "other.prom" if args else program.directory / "sgs.prom"
    assert not (program.directory / "sgs.prom").exists()
    [run_id] = [row["run"] for row in json.loads(program.run("history", "--json").stdout)]
    resumed = program.start("-q", "--resume", run_id, *args, stdin=subprocess.DEVNULL, cwd=elsewhere)
    until(path.exists, "it is written again")
    (program.directory / "go").touch()
    assert resumed.wait(timeout=120) == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--textfile", "sgs.txt"], "sgs.txt does not end in .prom"),
        (["--textfile", "missing/sgs.prom"], "missing/sgs.prom: No such file or directory"),
        (["--textfile", ""], "--textfile is empty"),
        (["--textfile", "sgs.prom", "--no-journal"], "leave out --no-journal, --dry-run and --engine"),
        (["--textfile", "sgs.prom", "--dry-run"], "leave out --no-journal, --dry-run and --engine"),
    ],
)
@pytest.mark.usefixtures("idle_gpus")
def test_a_run_with_a_file_that_cannot_be_starts_nothing(program: Program, args: list[str], sentence: str) -> None:
    done = program.run(*args, stdin="touch started\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert sentence in done.stderr.decode()
    assert not (program.directory / "started").exists()
    assert [*program.directory.glob("*.prom*")] == []


def test_the_job_map_of_dcgm_has_a_file_for_each_gpu_with_jobs(idle_gpus: StandIn, program: Program) -> None:
    idle_gpus.show([a_gpu(0), a_gpu(1), a_gpu(2)])
    directory, secret = program.directory / "map", program.directory / "secret"
    directory.mkdir()
    secret.write_text("secret\n")
    (directory / "7").write_text("slurm-12\n")
    (directory / "2").symlink_to(secret)
    (directory / "5").write_text("20261118-180219-2b4a4e.3\n")  # of an exporter that was killed
    (directory / "README").write_text("20261118-180219-2b4a4e.3\n")
    exporting = Exporting(program, "--dcgm-job-map", str(directory))
    holds = [program.start("-q", "--jobs-per-gpu", "2", "--gpus", gpu) for gpu in "02"]
    program.feed(holds[0], f"{HOLD}\n{HOLD}\n")
    program.feed(holds[1], "until [ -e on ]; do sleep 0.05; done\n")
    until(lambda: (directory / "0").exists() and len((directory / "0").read_text().split()) == 2, "two share GPU 0")
    jobs = (directory / "0").read_text()
    assert re.fullmatch(r"(\d{8}-\d{6}-[0-9a-f]{6}\.[12]\n){2}", jobs), jobs
    assert (directory / "0").stat().st_mode & 0o777 == 0o644
    (program.directory / "go").touch()
    until(lambda: not (directory / "0").exists(), "their file is removed")
    assert b"1 running" in program.run("status").stdout
    (program.directory / "on").touch()
    code, said = exporting.end()
    assert code == 143
    assert said.count("/map/2: it was not written by this program and is left alone") == 1
    assert (secret.read_text(), (directory / "2").is_symlink()) == ("secret\n", True)
    assert (directory / "7").read_text() == "slurm-12\n"
    assert sorted(path.name for path in directory.iterdir()) == ["2", "7", "README"]


def test_promtool_finds_nothing_to_say(running: Program) -> None:
    needs("promtool")
    text = running.run("metrics").stdout
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


class Prometheus:
    """A real one, that scrapes one target each second."""

    def __init__(self, directory: Path, target: str) -> None:
        directory.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
            f"scrape_configs: [{{job_name: sgs, honor_labels: true, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        self.url = f"http://127.0.0.1:{port}"
        self._log = (directory / "log").open("wb")
        self.process = subprocess.Popen(
            [
                "prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
            ],
            stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        url = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                told = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            with error:
                if error.code != SERVICE_UNAVAILABLE:
                    raise AssertionError(f"{expression}: {error.read()!r}") from None
            return []
        except (urllib.error.URLError, ConnectionError):  # it is starting
            return []
        return [(each["metric"], float(each["value"][1])) for each in told]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=120)
        self._log.close()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[[str], Prometheus]]:
    needs("prometheus")
    started: list[Prometheus] = []

    def start(target: str) -> Prometheus:
        started.append(Prometheus(tmp_path / "prometheus", target))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_a_real_prometheus_scrapes_it_and_answers(running: Program, prometheus: Callable[[str], Prometheus]) -> None:
    exporting = Exporting(running, "--port", "0")
    server = prometheus(urllib.parse.urlsplit(exporting.url).netloc)
    until(lambda: server.query("up") and server.query("up")[0][1] == 1, "it has scraped")
    [joined] = [text for text in queries_for_prometheus() if text.startswith("sgs_job_gpu_info *")]
    until(lambda: len(server.query(joined)) == 2, "each GPU has its job")
    assert sorted(each for _, each in server.query(joined)) == [0, 0.93]
    rate = 'rate(sgs_gpu_idle_leased_seconds_total{gpu="1"}[10s])'
    until(lambda: server.query(rate) and server.query(rate)[0][1] > 0.5, "a counter that grows")
    published = queries_for_prometheus()
    empty = [text for text in published if not server.query(text)]
    assert len(empty) < len(published) / 3, empty
    (running.directory / "go").touch()
    until(lambda: not server.query("sgs_job_info"), "series of jobs end with them")
    ended = {"succeeded": 2, "failed": 1}
    until(lambda: {each["outcome"]: count for each, count in server.query("sgs_jobs_ended_total > 0")} == ended)
    names = {each["__name__"] for each, _ in server.query('{__name__=~"sgs_.*"}')}
    known = {name.name for name in NAMES}
    histograms = {name.name for name in NAMES if name.kind == "histogram"}
    assert names <= known | {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}


def test_jobs_that_share_a_gpu_each_have_its_utilization(
    idle_gpus: StandIn, program: Program, prometheus: Callable[[str], Prometheus]
) -> None:
    idle_gpus.show([a_gpu(0, utilization=93), a_gpu(1)])
    run = program.start("-q", "--gpus", "0", "--jobs-per-gpu", "2")
    program.feed(run, f"{HOLD}\n{HOLD}\n")
    until(lambda: b"2 running" in program.run("status").stdout, "both run")
    exporting = Exporting(program, "--port", "0")
    server = prometheus(urllib.parse.urlsplit(exporting.url).netloc)
    until(lambda: len(server.query("sgs_job_gpu_info")) == 2, "it has scraped")
    [joined] = [text for text in queries_for_prometheus() if text.startswith("sgs_job_gpu_info *")]
    assert sorted((each["job"], share) for each, share in server.query(joined)) == [("1", 0.93), ("2", 0.93)]
