"""Makes the pictures of the README: the live view and the summary from a real terminal, the report from a real browser.

The program is the real one. The GPUs are the tests' stand-in for NVML, and the jobs are `train.py` beside this file.
What would tell of the machine that draws them is replaced: the times are UTC, the host and the directory are made up.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drawing import draw
from photographing import NIGHT, PICTURES, photographs

from tests.support.night import RUN as RUN_OF_NIGHT
from tests.support.night import night
from tests.support.nvml import GIB, Gpu, StandIn, a_gpu
from tests.support.terminal import Terminal
from tests.support.until import until

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

LIVE_SIZE, SUMMARY_SIZE = (108, 22), (114, 60)  # columns and lines
HOST, DIRECTORY = "gpubox", "/home/ada/sweep"
COMMAND = """\
#!/bin/sh
exec {python} -c 'from simple_gpu_scheduler.cli.main import {program}; {program}()' "$@"
"""
# Of each GPU while a job is on it: how busy, GiB, °C, W.
BUSY = ((97, 38.2, 71, 312), (91, 61.7, 68, 287), (99, 52.4, 74, 341), (88, 24.9, 66, 259))
JOBS = """\
python train.py resnet50  #: name=resnet50
python train.py vit-b     #: name=vit-b retries=1
python train.py mixer     #: name=mixer
python train.py unet      #: name=unet
python train.py resnet18
python train.py gpt2      #: name=gpt2
python train.py resnet34
python train.py convnext  #: name=convnext
python train.py vit-s     #: name=vit-s
python train.py resnet50 --lr 0.01
python train.py vit-b --lr 0.01
python train.py mixer --lr 0.01
python train.py resnet18 --lr 0.01
python train.py resnet34 --lr 0.01
python train.py convnext --lr 0.01
python train.py vit-s --lr 0.01
"""
LIVE = "simple_gpu_scheduler --gpus 0-3 --logs logs jobs.txt"
SWEEP = (
    'simple_hypersearch "python train.py --lr {lr:.1e} --bs {bs} --drop {drop:.2f}" -p lr loguniform:1e-4:1e-1 '
    "-p bs 32 64 128 256 -p drop uniform:0:0.5 --n-samples 64 --seed 4"
)
REPORT = "simple_gpu_scheduler report --metric loss"
RUN = "simple_gpu_scheduler --gpus 0-3 --output files -q"
NEEDED = ("bash", "tmux", "gcc", "chromium", "chromedriver")


@contextmanager
def workplace() -> Iterator[tuple[Path, dict[str, str]]]:
    """A directory with the jobs' program, and an environment in which all that is written comes there."""
    with tempfile.TemporaryDirectory(prefix="pictures_") as name:
        directory = Path(name)
        (directory / "gpus").mkdir()
        shutil.copy(HERE / "train.py", directory)
        put_programs(directory / "bin")
        nvml = StandIn(directory / "nvml")
        ends = threading.Event()
        readings = threading.Thread(target=keep_showing, args=(nvml, directory / "gpus", ends))
        readings.start()
        try:
            yield directory, environment_of(directory) | nvml.environment
        finally:
            ends.set()
            readings.join()


def put_programs(directory: Path) -> None:
    """The commands that are shown, as they are called."""
    directory.mkdir()
    (directory / "python").symlink_to(sys.executable)
    for program in ("simple_gpu_scheduler", "simple_hypersearch"):
        (directory / program).write_text(COMMAND.format(python=sys.executable, program=program))
        (directory / program).chmod(0o755)


def environment_of(directory: Path) -> dict[str, str]:
    """That of a user who has just logged in on a machine with no other users."""
    return {
        "HOME": str(directory),
        "LANG": "C.UTF-8",
        "PATH": f"{directory / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "PICTURE_GPUS": str(directory / "gpus"),
        "PYTHONPATH": str(ROOT),
        "SGS_LEASE_DIR": str(directory / "leases"),
        "TERM": "xterm-256color",
        "TZ": "UTC",
        "XDG_STATE_HOME": str(directory / "state"),
    }


def keep_showing(nvml: StandIn, busy: Path, ends: threading.Event) -> None:
    """Have the stand-in show what is on the GPUs, again and again."""
    while True:
        nvml.show(readings_of({int(each.name) for each in busy.iterdir() if each.name.isdigit()}))
        if ends.wait(0.03):
            return


def readings_of(busy: set[int]) -> list[Gpu]:
    """Four GPUs, of which these are busy."""
    gpus = []
    for index, (percent, gib, temperature, watts) in enumerate(BUSY):
        reading = a_gpu(index, temperature=38, power=62_000)
        if index in busy:
            reading = reading._replace(
                utilization=percent, used=int(gib * GIB), temperature=temperature, power=watts * 1000
            )
        gpus.append(reading)
    return gpus


def is_the_moment(screen: str) -> bool:
    """Whether the live view shows what the picture is to tell: all GPUs well at work, a second try, failures."""
    at_work = re.findall(r"^\d  .* [1-9]\d %  .* epoch [2-9]/", screen, re.MULTILINE)
    texts = (
        "5 of 16 done, 2 failed, 4 running, 7 waiting, about",
        "last failures:",
        "retrying",
        "RuntimeError: mat1",
    )
    return len(at_work) == len(BUSY) and all(text in screen for text in texts)


def live() -> str:
    """The live view of some trainings."""
    with workplace() as (directory, environment):
        (directory / "jobs.txt").write_text(JOBS)
        terminal = Terminal(directory, environment, *LIVE_SIZE)
        try:
            terminal.type(LIVE)
            until(lambda: is_the_moment(terminal.screen()), seconds=60)
            return draw(terminal.screen(styled=True), LIVE_SIZE[0], "live")
        except AssertionError:
            sys.exit(
                f"the live view never showed all that is_the_moment() waits for; at last it was\n{terminal.screen()}"
            )
        finally:
            terminal.press("C-c")
            terminal.press("C-c")
            terminal.shows("\n$")
            terminal.close()


def elsewhere(journal: str) -> str:
    """A journal as if its run had been on another machine and in another directory."""
    records = [json.loads(line) for line in journal.splitlines()]
    for record in records:
        if record["event"] == "run began":
            record.update(host=HOST, directory=DIRECTORY)
    return "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)


def sweep(directory: Path, environment: dict[str, str]) -> None:
    """Run a sweep."""
    shell = ["bash", "-o", "pipefail", "-c", f"{SWEEP} | {RUN}"]
    done = subprocess.run(shell, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 1:
        sys.exit(f"the sweep ended with exit code {done.returncode}; some of its jobs were to fail:\n{done.stderr}")
    (journal,) = (directory / "state" / "simple_gpu_scheduler" / "runs").glob("*.jsonl")
    journal.write_text(elsewhere(journal.read_text()))


def summary(directory: Path, environment: dict[str, str]) -> str:
    """The report on the sweep in a terminal."""
    terminal = Terminal(directory, environment, *SUMMARY_SIZE)
    try:
        terminal.type(f"clear; {REPORT}")
        until(lambda: terminal.screen().endswith("\n$"), "the report is printed")
        lines = terminal.screen(styled=True).split("\n")[:-1]
        return draw("\n".join([f"$ {REPORT}", *lines]), SUMMARY_SIZE[0], "summary")
    finally:
        terminal.close()


def write_page(directory: Path, environment: dict[str, str]) -> Path:
    """The report on the sweep as a page."""
    page = directory / "report.html"
    argv = ["simple_gpu_scheduler", *REPORT.split()[1:], "--html", str(page)]
    subprocess.run(argv, cwd=directory, env=environment, capture_output=True, check=True)
    return page


def write(name: str, picture: bytes) -> None:
    """Put a picture beside this file, and say so."""
    (HERE / name).write_bytes(picture)
    print(f"written docs/pictures/{name} ({len(picture) / 1000:.0f} kB)")


def main() -> None:
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        sys.exit(f"the pictures need {', '.join(missing)}; on Debian: apt install tmux gcc chromium chromium-driver")
    write("live.svg", live().encode())
    with workplace() as (directory, environment):
        sweep(directory, environment)
        write("summary.svg", summary(directory, environment).encode())
        for name, picture in photographs(write_page(directory, environment), PICTURES):
            write(name, picture)
    with workplace() as (directory, environment):
        runs = directory / "state" / "simple_gpu_scheduler" / "runs"
        runs.mkdir(parents=True, mode=0o700)
        night(120, 4).write(runs / f"{RUN_OF_NIGHT}.jsonl")
        for name, picture in photographs(write_page(directory, environment), NIGHT):
            write(name, picture)


if __name__ == "__main__":
    main()
