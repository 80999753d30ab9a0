"""A followed file that programs write to, edit and replace, while its reader is killed again and again."""

import json
import random
import signal
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from .ground import ON_CPU, Counts, Ground, until
from .kills import kill_at_random

_LONGEST_FILE = 40


class _Hands:
    """A thread that changes the file, as people and programs do. Each line is written once and then left or removed.

    It removes only lines that have run. It moves a file away only if all of it has run, or if the journal has it and it
    has only grown since: what was never read cannot be found.
    """

    def __init__(self, ground: Ground, path: Path, chance: random.Random) -> None:
        self.written: list[int] = []
        self.counts: Counts = Counter()
        self._ground, self._path, self._chance = ground, path, chance
        self._rotations = 0
        self._is_over = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._keep_on, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.error:
            raise self.error

    def _keep_on(self) -> None:
        ways: list[tuple[str, Callable[[], object]]] = [
            ("appended", self._append),
            ("appended", self._append),
            ("appended in halves", self._append_halves),
            ("submitted", self._submit),
            ("replaced", self._replace),
            ("rewritten", self._rewrite),
            ("rotated", self._rotate),
        ]
        try:
            while not self._is_over.is_set():
                name, way = self._chance.choice(ways)
                self.counts[name] += way() is not False
                time.sleep(self._chance.choice([0, 0.005, 0.05, 0.3]))
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.error = error

    def _line(self) -> str:
        number = len(self.written) + 1
        self.written.append(number)
        return self._ground.command(number, options="gpus=0")

    def _append(self) -> None:
        with self._path.open("a") as file:
            file.write("".join(self._line() for _ in range(self._chance.randint(1, 3))))

    def _append_halves(self) -> None:
        line = self._line()
        at = self._chance.randrange(len(line))
        for part in (line[:at], line[at:]):
            with self._path.open("a") as file:
                file.write(part)
            time.sleep(0.003)

    def _submit(self) -> None:
        done = self._ground.ask("submit", "-q", "--to", str(self._path), "--", self._line().rstrip("\n"))
        assert done.returncode == 0, done.stderr

    def _edited(self) -> list[str]:
        """The lines of the file without some that have run, some of the others moved, and with some new ones."""
        lines = self._path.read_text().splitlines(keepends=True)
        most = self._chance.choice([0, 3, _LONGEST_FILE])
        done = [line for line in lines if self._has_run(line)]
        gone = set(self._chance.sample(done, min(most, len(done))))
        lines = [line for line in lines if line not in gone]
        if self._chance.random() < 0.3:
            self._chance.shuffle(lines)
        for _ in range(self._chance.randint(0, 2)):
            lines.insert(self._chance.randint(0, len(lines)), self._line())
        return lines

    def _has_run(self, line: str) -> bool:
        return bool(self._ground.entries(int(line.split()[1])))

    def _replace(self) -> None:
        new = self._path.with_name(".new")
        new.write_text("".join(self._edited()))
        new.rename(self._path)

    def _rewrite(self) -> None:
        text = "".join(self._edited())
        with self._path.open("w", buffering=1) as file:
            for at in range(0, len(text), 200):
                file.write(text[at : at + 200])
                file.flush()
                time.sleep(self._chance.choice([0, 0.002]))

    def _rotate(self) -> bool:
        lines = self._path.read_text().splitlines()
        if not (all(map(self._has_run, lines)) or self._is_recorded()):
            return False
        self._rotations += 1
        name = self._chance.choice([f"q.txt.{self._rotations}", f"q.txt.{9999 - self._rotations:04}", "old.txt"])
        self._path.rename(self._path.with_name(name))
        with self._path.open("a") as file:
            file.write(self._line())
        return True

    def _is_recorded(self) -> bool:
        """Whether the journal has this file, and it still starts with what was read of it."""
        journals = sorted(self._ground.runs.glob("*.jsonl"))
        lines = journals[-1].read_bytes().splitlines() if journals else []
        marks = [json.loads(line) for line in lines if b'"read up to"' in line and line.endswith(b"}")]
        if not marks or marks[-1]["inode"] != self._path.stat().st_ino:
            return False
        start = self._path.read_bytes()[: marks[-1]["offset"]]
        return bool(zlib.crc32(start) == marks[-1]["crc"])


def follower_killed(directory: Path, chance: random.Random, kills: int = 60) -> Counts:
    """Whatever is done to the file, and whenever its follower is killed: each line runs, and runs once."""
    ground = Ground(directory, chance)
    path = directory / "q.txt"
    path.touch()
    hands = _Hands(ground, path, random.Random(chance.random()))
    follow = (*ON_CPU, "--follow", str(path))
    hands.start()
    counts: Counts = Counter()
    try:
        while counts["kills"] < kills:
            is_begun = any(b"read up to" in path.read_bytes() for path in ground.runs.glob("*.jsonl"))
            process = ground.start(*(("--resume",) if is_begun and chance.random() < 0.5 else follow))
            code = kill_at_random(process, chance, chance.choice([100, 400, 3000]))
            assert code == -signal.SIGKILL, f"exit code {code}: {ground.said[-2000:]}"
            counts["kills"] += 1
        process = ground.start(*follow)
        time.sleep(chance.uniform(0, 2))
        hands.stop()
        until(lambda: all(map(ground.has_ended, hands.written)) or process.poll() is not None, "all lines have run", 60)
        process.terminate()
        ground.finish(process, 128 + signal.SIGTERM)
        counts += ground.check(hands.written)
    finally:
        ground.close()
    return counts + hands.counts
