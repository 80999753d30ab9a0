"""A named pipe with writers that keep writing, whose reader is killed again and again."""

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .ground import NOTHING_THERE, ON_CPU, SCHEDULER, Counts, Ground, Popen, until
from .kills import kill_at_random


class _Writers:
    """Threads that keep writing numbered commands to a pipe, until they are asked to stop."""

    def __init__(self, ground: Ground, path: Path) -> None:
        self.accepted: list[int] = []
        self.refused: list[int] = []  # may have been written anyway, where `submit` cannot know
        self._last = 0
        self._ground = ground
        self._path = path
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep_on, args=(way,), daemon=True)
            for way in (self._write, self._write, self._submit)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Only while the pipe has a reader: otherwise a writer that waits to open it keeps waiting."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a writer hangs though there is a reader"

    def _keep_on(self, way: object) -> None:
        while not self._is_over.is_set():
            with self._lock:
                self._last = number = self._last + 1
                line = self._ground.command(number, options="gpus=0")
            is_taken = way(line)  # type: ignore[operator]
            (self.accepted if is_taken else self.refused).append(number)
            time.sleep(0.01)

    def _write(self, line: str) -> bool:
        fd = os.open(self._path, os.O_WRONLY)
        try:
            return os.write(fd, line.encode()) == len(line)
        except BrokenPipeError:
            return False
        finally:
            os.close(fd)

    def _submit(self, line: str) -> bool:
        done = subprocess.run(
            [*SCHEDULER, "submit", "-q", "--to", str(self._path)],
            input=line.encode(),
            cwd=self._ground.directory,
            env=self._ground.environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done.returncode == 0


def scheduler_of_a_pipe_killed(directory: Path, chance: random.Random, kills: int = 200) -> Counts:
    """The same with a named pipe and writers that keep writing: what was accepted is run, and run once."""
    ground = Ground(directory, chance)
    path = directory / "queue"
    os.mkfifo(path)
    writers = _Writers(ground, path)
    writers.start()
    counts: Counts = Counter()
    is_begun = False
    try:
        while counts["kills"] < kills:
            process = ground.start("--resume") if is_begun else ground.start(*ON_CPU, "--follow", str(path))
            code = kill_at_random(process, chance, 100)
            if code == -signal.SIGKILL:
                counts["kills"] += 1
                is_begun = True
            else:
                assert code == 2, f"exit code {code}: {ground.said[-2000:]}"
                assert NOTHING_THERE in ground.said.splitlines()[-1], ground.said[-2000:]
                is_begun = False
        process = _last_reader(ground, path)
        writers.stop()
        accepted, refused = writers.accepted, writers.refused
        _wait_for(ground, accepted)
        process.kill()
        process.wait()
        ground.finish(ground.start("--resume", "--no-follow"), seconds=60)
        counts += ground.check(accepted, refused)
    finally:
        ground.close()
    counts["accepted"], counts["refused writes"] = len(accepted), len(refused)
    return counts


def _last_reader(ground: Ground, path: Path) -> Popen:
    """One that is not killed; of a new run if none had started."""
    for args in (["--resume"], [*ON_CPU, "--follow", str(path)]):
        process = ground.start(*args)
        until(lambda: process.poll() is not None or ground.has_begun(process.pid), "it reads")  # noqa: B023
        if process.poll() is None:
            return process
    raise AssertionError(f"no scheduler reads the pipe: {ground.said[-2000:]}")


def _wait_for(ground: Ground, numbers: list[int]) -> None:
    """Until these have run; or long enough for `check` to say which have not."""
    with suppress(AssertionError):
        until(lambda: all(ground.has_ended(each) for each in numbers), "what was accepted has run", 20)
