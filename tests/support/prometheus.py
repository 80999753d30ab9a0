"""A real Prometheus with series that were recorded: from an OpenMetrics file, without a target to scrape."""

import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import kill_if_alive
from tests.support.until import until


class Recorded(NamedTuple):
    """One series: its name, labels, and (time, value)."""

    name: str
    labels: Mapping[str, str]
    values: Iterable[tuple[float, float]]


def open_metrics(series: Iterable[Recorded]) -> str:
    """The text of OpenMetrics; all series of a name stand together."""
    by_name: dict[str, list[str]] = {}
    for each in series:
        labels = ",".join(f'{name}="{value}"' for name, value in each.labels.items())
        lines = by_name.setdefault(each.name, [])
        lines += [f"{each.name}{{{labels}}} {value} {at:.3f}" for at, value in each.values]
    return "".join(f"# TYPE {name} unknown\n" + "\n".join(lines) + "\n" for name, lines in by_name.items()) + "# EOF\n"


class RecordedPrometheus:
    """It runs, and has these series."""

    def __init__(self, directory: Path, series: Iterable[Recorded]) -> None:
        recorded, data, config = directory / "series.txt", directory / "data", directory / "prometheus.yml"
        recorded.write_text(open_metrics(series))
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(recorded), str(data)],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        config.write_text("global: {scrape_interval: 1h}\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = (directory / "log").open("wb")
        self._process = subprocess.Popen(
            [
                "prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}", "--log.level=warn",
                f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
            ],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )  # fmt: skip
        try:
            until(self._is_ready, (directory / "log").read_text())
        except BaseException:
            self.close()
            raise

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, "it has ended"
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=60) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def close(self) -> None:
        kill_if_alive(self._process.pid)
        self._process.wait(timeout=120)
        self._log.close()
