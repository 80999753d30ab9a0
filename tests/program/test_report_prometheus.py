"""`report --prometheus`: figures and curves from a real Prometheus with recorded series."""

import base64
import http.server
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Program, needs, until
from tests.program.test_report import as_json, ask, refusal
from tests.support.prometheus import Recorded, RecordedPrometheus
from tests.support.report import START, began, ended, measured, over, read, started, use_of_gpu

MIB, GIB = 2**20, 2**30
HOST = "gpubox"
UUID = {"0": "GPU-aaaaaaaa-0000-0000-0000-000000000000", "1": "GPU-bbbbbbbb-0000-0000-0000-000000000000"}
LONG = 1500
Recording = Callable[..., RecordedPrometheus]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    needs("prometheus", "promtool")
    running: list[RecordedPrometheus] = []

    def start(series: list[Recorded]) -> RecordedPrometheus:
        running.append(RecordedPrometheus(tmp_path_factory.mktemp("prometheus"), series))
        return running[-1]

    yield start
    for each in running:
        each.close()


def times(interval: float = 15, start: float = START - 600, seconds: float = LONG + 1200) -> list[float]:
    """Of readings, that come at any part of a second."""
    return [start + 0.313 + at * interval for at in range(int(seconds / interval))]


def of_dcgm(number: str, busy: Callable[[float], float], host: str = HOST, **more: str) -> list[Recorded]:
    labels = {"gpu": number, "UUID": UUID[number], "Hostname": host, "instance": f"{host}:9400", **more}
    values: dict[str, Callable[[float], float]] = {
        "DCGM_FI_DEV_GPU_UTIL": lambda at: busy(at - START),
        "DCGM_FI_DEV_MEM_COPY_UTIL": lambda _at: 20,
        "DCGM_FI_DEV_FB_USED": lambda _at: 10 * 1024,
        "DCGM_FI_DEV_FB_FREE": lambda _at: 70 * 1024,
        "DCGM_FI_DEV_GPU_TEMP": lambda _at: 61,
        "DCGM_FI_DEV_POWER_USAGE": lambda _at: 250,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": lambda at: 300_000 * (at - START + 10_000),
    }
    return [Recorded(name, labels, [(at, value(at)) for at in times()]) for name, value in values.items()]


def of_ours(number: str, busy: Callable[[float], float], host: str = HOST, **more: str) -> list[Recorded]:
    labels = {"gpu": number, "uuid": UUID[number], "instance": f"{host}:9836", **more}
    values: dict[str, Callable[[float], float]] = {
        "sgs_gpu_utilization_ratio": lambda at: busy(at - START) / 100,
        "sgs_gpu_memory_copy_ratio": lambda _at: 0.2,
        "sgs_gpu_memory_used_bytes": lambda _at: 10 * GIB,
        "sgs_gpu_memory_total_bytes": lambda _at: 80 * GIB,
        "sgs_gpu_temperature_celsius": lambda _at: 61,
        "sgs_gpu_power_watts": lambda _at: 250,
        "sgs_gpu_energy_joules_total": lambda at: 300 * (at - START + 10_000),
    }
    return [Recorded(name, labels, [(at, value(at)) for at in times()]) for name, value in values.items()]


def half(at: float) -> float:
    """Job 1 works all the time, and job 2 not at all."""
    return 80 if at < 600 else 0


SERIES = [
    *of_dcgm("0", half, "gpubox.example.org"), *of_dcgm("1", lambda _at: 50, "gpubox.example.org"),
    *of_dcgm("0", lambda _at: 7, "other", UUID="GPU-cccccccc"), *of_dcgm("1", lambda _at: 7, "other", UUID="GPU-d"),
    *of_ours("0", half, "mine"), *of_ours("1", lambda _at: 50, "mine"),
    *of_dcgm("0", half, "both"), *of_ours("1", lambda _at: 50, "both"),
]  # fmt: skip
EXPORTERS = pytest.mark.parametrize("host", ["gpubox", "mine", "both"], ids=["dcgm-exporter", "our own", "both"])


@pytest.fixture(scope="module")
def prometheus(record: Recording) -> RecordedPrometheus:
    return record(SERIES)


def a_run(directory: Path, host: str = HOST, names: tuple[str, str] = ("0", "1"), *more: dict[str, Any]) -> str:
    """Jobs 1 and 2 one after the other on the first GPU, 3 and 4 together on the second. Job 5 is over at once."""
    first, second = (names[0],), (names[1],)
    records = [
        began(host=host), *(read(number) for number in range(1, 6)),
        started(0, 1, gpus=first), started(0, 3, gpus=second), started(100, 4, gpus=second),
        *more,
        ended(300, 3, runtime=300), ended(400, 4, runtime=300), ended(600, 1, runtime=600),
        started(600, 2, gpus=first), ended(1200, 2, runtime=600),
        started(1205, 5, gpus=first), ended(1206, 5), over(1210),
    ]  # fmt: skip
    path = directory / "run.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    path.chmod(0o600)
    return str(path)


def figures(report: dict[str, Any], job: int) -> dict[str, Any]:
    [gpu] = report["jobs"][job - 1]["attempts"][0]["measured"]["gpus"]
    return dict(gpu)


def reported(url: str, *args: str, cwd: Path) -> dict[str, Any]:
    done = ask(*args, "--prometheus", url, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@EXPORTERS
def test_the_figures_are_those_that_were_recorded(host: str, prometheus: RecordedPrometheus, tmp_path: Path) -> None:
    report = reported(prometheus.url, a_run(tmp_path, host), cwd=tmp_path)
    one = figures(report, 1)
    assert one["gpu"] == "0"
    assert one["seconds"] == pytest.approx(600, abs=16)
    assert one["utilization"] == pytest.approx({"mean": 80, "max": 80, "p95": 80})
    assert one["memory_copy"] == pytest.approx({"mean": 20, "max": 20})
    assert one["memory"] == one["device_memory"] == {"mean": 10 * GIB, "max": 10 * GIB}
    assert one["total_memory"] == 80 * GIB
    assert (one["temperature"]["max"], one["power"]["mean"], one["idle"]) == (61, 250, 0)
    assert one["energy"] == pytest.approx(300 * 600, rel=0.001)  # by the counter, and not by the power
    assert (one["of_gpu"], "shared" in one, "by_power" in one) == (["memory"], False, False)
    two = figures(report, 2)
    assert (two["utilization"]["mean"], two["energy"]) == (0, pytest.approx(300 * 600, rel=0.001))
    assert two["idle"] == two["seconds"] == pytest.approx(600, abs=16)


@EXPORTERS
def test_jobs_that_shared_a_gpu_have_the_figures_of_the_gpu(
    host: str, prometheus: RecordedPrometheus, tmp_path: Path
) -> None:
    report = reported(prometheus.url, a_run(tmp_path, host), cwd=tmp_path)
    three = figures(report, 3)
    assert three["shared"] == pytest.approx(200, abs=16)
    assert {"utilization", "memory", "energy", "power", "temperature"} <= {*three["of_gpu"]}
    [_, second] = report["gpus"]
    assert second["measured"]["utilization"] == pytest.approx(50)
    assert second["measured"]["energy"] == pytest.approx(250 * 400, rel=0.05)  # of the lane, and not twice


def test_a_job_that_was_over_before_a_reading_has_none(prometheus: RecordedPrometheus, tmp_path: Path) -> None:
    done = ask(a_run(tmp_path), "--prometheus", prometheus.url, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, f"{prometheus.url} has readings of 4 of the 5 attempts\n")
    assert "GPU USE" in done.stdout
    assert reported(prometheus.url, a_run(tmp_path), cwd=tmp_path)["jobs"][4]["measured"] is None


def test_gpus_are_found_by_their_uuid_on_whatever_host(prometheus: RecordedPrometheus, tmp_path: Path) -> None:
    report = reported(prometheus.url, a_run(tmp_path, "renamed", (UUID["0"], UUID["1"])), cwd=tmp_path)
    assert figures(report, 1)["utilization"]["mean"] == pytest.approx(80)
    assert [lane["gpu"] for lane in report["lanes"]] == [UUID["0"], UUID["1"]]
    assert max(each or 0 for each in report["lanes"][0]["utilization"]) == pytest.approx(80)


def test_one_job_is_asked_for_alone(prometheus: RecordedPrometheus, tmp_path: Path) -> None:
    report = reported(prometheus.url, a_run(tmp_path), "--job", "3", cwd=tmp_path)
    assert [job["job"] for job in report["jobs"]] == [3]
    assert report["jobs"][0]["measured"]["gpus"][0]["shared"] == pytest.approx(200, abs=16)  # with one not asked for


def test_it_wins_over_what_the_run_measured_itself(prometheus: RecordedPrometheus, tmp_path: Path) -> None:
    own = measured(600, 1, use_of_gpu("0", 600, 33), use_of_gpu("7", 600, 44), seconds=5.0)
    journal = a_run(tmp_path, HOST, ("0", "1"), own)
    assert as_json(journal, cwd=tmp_path)["jobs"][0]["attempts"][0]["measured"]["gpus"][0]["utilization"]["mean"] == 33
    attempt = reported(prometheus.url, journal, cwd=tmp_path)["jobs"][0]["attempts"][0]["measured"]
    assert [gpu["utilization"]["mean"] for gpu in attempt["gpus"]] == [pytest.approx(80), 44]
    assert attempt["cpu"] == {"seconds": 5.0}


def test_maxima_within_a_step_are_found_in_a_long_run(record: Recording, tmp_path: Path) -> None:
    long = 24 * 3600.0  # so that a step is 8 seconds, of which each has several readings
    busy = [(at, 100.0 if abs(at - START - 5000) < 1 else 10.0) for at in times(2, START, long)]
    labels = {"gpu": "0", "UUID": UUID["0"], "Hostname": HOST, "instance": "x:9400"}
    server = record([Recorded("DCGM_FI_DEV_GPU_UTIL", labels, busy)])
    journal = tmp_path / "long.jsonl"
    lines = [began(host=HOST), read(1), started(0, 1), ended(long, 1, runtime=long), over(long)]
    journal.write_text("".join(json.dumps(each) + "\n" for each in lines))
    journal.chmod(0o600)
    gpu = figures(reported(server.url, str(journal), cwd=tmp_path), 1)
    assert gpu["utilization"]["max"] == 100
    assert gpu["utilization"]["mean"] == pytest.approx(10, abs=0.01)
    assert not {"energy", "memory", "power", "of_gpu"} & gpu.keys()


def test_a_run_of_days_is_asked_for_in_several_pieces(record: Recording, tmp_path: Path) -> None:
    days = 50 * 3600.0  # more points than Prometheus gives at once
    labels = {"gpu": "0", "UUID": UUID["0"], "Hostname": HOST, "instance": "x:9400"}
    at = times(60, START - 120, days + 240)
    counter = [(each, 200_000 * (each - START + 10_000)) for each in at]
    server = record([
        Recorded("DCGM_FI_DEV_GPU_UTIL", labels, [(each, 30.0) for each in at]),
        Recorded("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, counter),
    ])  # fmt: skip
    journal = tmp_path / "days.jsonl"
    lines = [began(host=HOST), read(1), started(0, 1), ended(days, 1, runtime=days), over(days)]
    journal.write_text("".join(json.dumps(each) + "\n" for each in lines))
    journal.chmod(0o600)
    gpu = figures(reported(server.url, str(journal), cwd=tmp_path), 1)
    assert gpu["seconds"] == pytest.approx(days, abs=61)
    assert gpu["utilization"]["mean"] == 30
    assert gpu["energy"] == pytest.approx(200 * days, rel=1e-4)


def test_a_running_job_has_figures_until_now(record: Recording, program: Program) -> None:
    now = time.time()
    host = os.uname().nodename
    labels = {"gpu": "0", "UUID": UUID["0"], "Hostname": host, "instance": "x:9400"}
    readings = [(at, 64.0) for at in times(0.5, now - 60, 900)]
    server = record([Recorded("DCGM_FI_DEV_GPU_UTIL", labels, readings)])
    process = program.start("--gpus", "0", "--no-samples")
    program.feed(process, "until [ -e go ]; do sleep 0.1; done\n")

    def is_measured() -> bool:
        done = ask("--prometheus", server.url, "--json", cwd=program.directory)
        if done.returncode:
            return False
        [attempt] = json.loads(done.stdout)["jobs"][0]["attempts"]
        assert attempt["ended"] is None
        [gpu] = attempt["measured"]["gpus"]
        assert gpu["utilization"]["mean"] == pytest.approx(64)
        return bool(gpu["seconds"] > 1)

    until(is_measured)
    (program.directory / "go").touch()
    assert process.wait(timeout=120) == 0


class TestWithASelector:
    def test_a_machine_with_another_name_is_chosen(self, prometheus: RecordedPrometheus, tmp_path: Path) -> None:
        journal = a_run(tmp_path, "renamed")
        said = refusal(journal, "--prometheus", prometheus.url, "--html", "new.html", cwd=tmp_path)
        assert f"{prometheus.url} has no series of GPU 0 of renamed, 1 of renamed; it has those of " in said
        assert 'Hostname="gpubox.example.org"' in said
        assert "--selector 'instance=" in said
        assert not (tmp_path / "new.html").exists()
        for selector in ('{Hostname="gpubox.example.org"}', "instance=~'gpubox.*:9400',"):
            report = reported(prometheus.url, journal, "--selector", selector, cwd=tmp_path)
            assert figures(report, 1)["utilization"]["mean"] == pytest.approx(80)

    def test_several_machines_are_not_guessed_among(self, prometheus: RecordedPrometheus, tmp_path: Path) -> None:
        how = ["--prometheus", prometheus.url, "--selector", 'instance=~".+:9400"']
        assert " has no series with " in refusal(a_run(tmp_path, "renamed"), *how, cwd=tmp_path)

    def test_two_clusters_with_a_host_of_this_name(self, record: Recording, tmp_path: Path) -> None:
        clusters = [
            *of_dcgm("0", lambda _at: 11, cluster="a"), *of_dcgm("1", lambda _at: 11, cluster="a"),
            *of_dcgm("0", lambda _at: 22, "gpubox.b.org", cluster="b", UUID="GPU-e"),
        ]  # fmt: skip
        server = record(clusters)
        journal = a_run(tmp_path)
        said = refusal(journal, "--prometheus", server.url, cwd=tmp_path)
        assert "gpu 0 of gpubox may be any of these: " in said
        assert 'Hostname="gpubox.b.org"' in said
        assert "choose with --selector" in said
        done = ask(journal, "--prometheus", server.url, "--selector", 'cluster="b"', "--json", cwd=tmp_path)
        assert f"{server.url} has no series of GPU 1 of gpubox\n" in done.stderr
        assert figures(json.loads(done.stdout), 1)["utilization"]["mean"] == pytest.approx(22)

    @pytest.mark.parametrize(
        ("selector", "said"),
        [
            ("job=dcgm", "the value after job has no quotes"),
            ('up{job="a"}', "is no label matcher"),
            ("", "it has no label matcher"),
            ('job="a"} or up{job="b"', "is no label matcher"),
            ('__name__="up"', "select by other labels"),
        ],
    )
    def test_a_wrong_one_is_refused(self, selector: str, said: str, tmp_path: Path) -> None:
        got = refusal(a_run(tmp_path), "--prometheus", "http://127.0.0.1:1", "--selector", selector, cwd=tmp_path)
        assert got.startswith("simple_gpu_scheduler report: the value of --selector is wrong: ")
        assert said in got

    def test_alone_it_is_refused(self, tmp_path: Path) -> None:
        done = ask("--selector", 'job="a"', cwd=tmp_path)
        assert done.returncode == 2
        assert "add --prometheus URL" in done.stderr


class Web(http.server.ThreadingHTTPServer):
    """Answers all requests with one answer."""

    def __init__(self, status: int, body: str, **headers: str) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status, self.body, self.headers = status, body.encode(), headers
        self.asked: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class Answer(http.server.BaseHTTPRequestHandler):
    server: Web

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[Callable[..., Web]]:
    servers: list[Web] = []

    def start(status: int, body: str, **headers: str) -> Web:
        servers.append(Web(status, body, **headers))
        return servers[-1]

    yield start
    for each in servers:
        each.close()


class TestWhatGoesWrong:
    @pytest.mark.parametrize(
        ("status", "body", "headers", "said"),
        [
            (200, "<html>hello</html>", {}, "does not answer as a Prometheus does; give the address of its web page"),
            (200, '{"a": 1}', {}, "does not answer as a Prometheus does;"),
            (200, '{"status": "success", "data": {"result": 1}}', {}, "does not answer as a Prometheus does;"),
            (404, "404 page not found\n", {}, "does not answer as a Prometheus does (HTTP 404);"),
            (401, "", {}, "https://USER:PASSWORD@HOST"),
            (302, "", {"Location": "https://login.example.org/"}, "sends elsewhere, to https://login.example.org/;"),
            (422, '{"status": "error", "error": "too much\\u001b[31m"}', {}, "refused the query: too much\\x1b[31m"),
        ],
    )
    def test_an_answer_of_something_else(
        self, status: int, body: str, headers: dict[str, str], said: str, web: Callable[..., Web], tmp_path: Path
    ) -> None:
        server = web(status, body, **headers)
        got = refusal(a_run(tmp_path), "--prometheus", server.url, cwd=tmp_path)
        assert got.startswith(f"simple_gpu_scheduler report: {server.url} ")
        assert said in got
        assert len(server.asked) == 1

    def test_what_prometheus_itself_finds_wrong_is_shown(self, prometheus: RecordedPrometheus, tmp_path: Path) -> None:
        how = ["--prometheus", prometheus.url, "--selector", 'gpu=~"("']
        got = refusal(a_run(tmp_path), *how, cwd=tmp_path)
        assert f"{prometheus.url} refused the query: " in got
        assert "missing closing )" in got

    def test_nobody_is_there(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url = f"http://ada:secret@127.0.0.1:{port}/"
        got = refusal(a_run(tmp_path), "--prometheus", url, "--html", "new.html", cwd=tmp_path)
        assert f"cannot ask http://127.0.0.1:{port}: Connection refused; is it the address of a Prometheus" in got
        assert "secret" not in got
        assert not (tmp_path / "new.html").exists()

    def test_user_and_password_are_sent_and_no_proxy_sees_them(
        self, web: Callable[..., Web], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy, server = web(200, "{}"), web(200, '{"status": "success", "data": []}')
        monkeypatch.setenv("http_proxy", proxy.url)
        url = server.url.replace("//", "//ada:se%2Fcret@") + "/metrics/"
        got = refusal(a_run(tmp_path), "--prometheus", url, cwd=tmp_path)
        assert f"{server.url}/metrics has no series of GPUs at the time of the run: neither DCGM_FI_DEV_GPU_UTIL" in got
        assert server.asked == [("/metrics/api/v1/series", "Basic " + base64.b64encode(b"ada:se/cret").decode())]
        assert proxy.asked == []

    @pytest.mark.parametrize(
        "url", ["localhost:9090", "http://", "http://x/graph?g0=1", "http://a b", "http://a:x", ""]
    )
    def test_what_is_no_address(self, url: str, tmp_path: Path) -> None:
        assert "the value of --prometheus is wrong: " in refusal(a_run(tmp_path), "--prometheus", url, cwd=tmp_path)

    def test_a_run_without_gpus(self, tmp_path: Path) -> None:
        journal = tmp_path / "cpu.jsonl"
        lines = [began(), read(1), started(0, 1, gpus=()), ended(9, 1), over(9)]
        journal.write_text("".join(json.dumps(each) + "\n" for each in lines))
        journal.chmod(0o600)
        got = refusal(str(journal), "--prometheus", "http://127.0.0.1:1", cwd=tmp_path)
        assert "run r has had no GPU yet, so there is nothing to ask a Prometheus for" in got

    def test_a_time_without_readings(self, record: Recording, tmp_path: Path) -> None:
        labels = {"gpu": "0", "Hostname": HOST, "instance": "x:1"}
        between = [(START + 1202, 5.0)]  # jobs 2 and 5
        server = record([Recorded("DCGM_FI_DEV_GPU_UTIL", labels, between)])
        got = refusal(a_run(tmp_path), "--prometheus", server.url, cwd=tmp_path)
        assert "has series of these GPUs, but no reading while an attempt ran" in got
