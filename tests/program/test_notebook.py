"""The recipe for notebooks in docs/python.md, in a real kernel: the GPU is leased between cells, and then free."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from tests.conftest import ROOT, Program, is_alive, until

pytestmark = [pytest.mark.usefixtures("idle_gpus"), pytest.mark.unmeasured]

RECIPE = (ROOT / "docs" / "python.md").read_text().partition("## In a notebook\n")[2]
LEASE, RELEASE = re.findall(r"^```python\n(.*?)^```", RECIPE, re.DOTALL | re.MULTILINE)


class Notebook:
    """A kernel of this Python, and its client, which runs cells."""

    def __init__(self, directory: Path) -> None:
        self.kernel = KernelManager(connection_file=str(directory / "kernel.json"))
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.kernel._kernel_spec = KernelSpec(argv=argv, display_name="this Python", language="python")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
        self.kernel.start_kernel(cwd=str(directory), env=environment | {"IPYTHONDIR": str(directory / "ipython")})
        self.client = self.connected()

    def connected(self) -> BlockingKernelClient:
        client = self.kernel.client()
        assert isinstance(client, BlockingKernelClient)
        client.start_channels()
        client.wait_for_ready(timeout=120)
        return client

    def run(self, cell: str) -> str:
        """What a cell shows; an error in it is one here."""
        shown: list[str] = []

        def take(message: dict[str, dict[str, dict[str, str]]]) -> None:
            content = message["content"]
            shown.extend([str(content.get("text", "")), content.get("data", {}).get("text/plain", "")])

        reply = self.client.execute_interactive(cell, timeout=120, output_hook=take)
        assert reply["content"]["status"] == "ok", reply["content"].get("evalue")
        return "".join(shown)

    def restart(self) -> None:
        """As the button of that name does."""
        self.client.stop_channels()
        self.kernel.restart_kernel()
        self.client = self.connected()

    def close(self) -> None:
        self.client.stop_channels()
        self.kernel.shutdown_kernel(now=True)
        self.kernel.cleanup_resources()
        self.kernel.context.destroy()


@pytest.fixture(name="notebook")
def kernel_of_its_own(tmp_path: Path) -> Iterator[Notebook]:
    notebook = Notebook(tmp_path)
    yield notebook
    notebook.close()


@pytest.fixture(name="leased")
def leased_gpus(program: Program) -> Callable[[], list[str]]:
    """Asks, from another process, which GPUs are leased."""

    def ask() -> list[str]:
        return [gpu["gpu"] for gpu in json.loads(program.run("gpus", "--json").stdout) if gpu["leased"]]

    return ask


def test_a_gpu_is_leased_between_the_cells_of_a_notebook(notebook: Notebook, leased: Callable[[], list[str]]) -> None:
    pid = int(notebook.run("import os; os.getpid()"))
    assert re.fullmatch(r"<lease of gpu 0 \(.*:3\)>", notebook.run(LEASE))
    assert leased() == ["0"]
    assert notebook.run("!echo $CUDA_VISIBLE_DEVICES").strip() == "0"
    assert re.fullmatch(r"<lease of gpu 0 \(.*:3\)>", notebook.run(LEASE))  # the cell is run again
    assert leased() == ["0"]
    assert notebook.run(RELEASE) == ""
    assert leased() == []
    assert notebook.run("os.environ.get('CUDA_VISIBLE_DEVICES')") == ""

    notebook.run(LEASE)
    assert leased() == ["0"]
    notebook.restart()
    assert not is_alive(pid)
    assert leased() == []

    notebook.run(LEASE)
    assert leased() == ["0"]
    os.kill(int(notebook.run("import os; os.getpid()")), signal.SIGKILL)
    until(lambda: leased() == [])


def test_a_gpu_is_free_after_the_notebook_has_shut_down(notebook: Notebook, leased: Callable[[], list[str]]) -> None:
    notebook.run(LEASE)
    assert leased() == ["0"]
    notebook.kernel.shutdown_kernel()
    assert leased() == []
