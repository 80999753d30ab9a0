"""A believable night: a journal and its curves, of many jobs on several GPUs, of which some waste theirs.

The same seed gives the same night. `python -m tests.support.night DIRECTORY` writes it where `report` finds it.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

BEGUN = 1_795_212_000.0
RUN = "20261120-220000-b1a5ed"
GIB = 2**30
TOTAL = 80 * GIB
# How a job uses its GPU, and how many of a hundred do so.
KINDS = {"good": 62, "loads": 14, "hangs": 6, "hot": 8, "bursts": 10}
COMMANDS = {
    "good": "python train.py --model resnet50 --lr {lr} --seed {seed}",
    "loads": "python train.py --model resnet18 --data /nfs/imagenet --workers 0 --lr {lr} --seed {seed}",
    "hangs": "python download_and_train.py --dataset laion --seed {seed}",
    "hot": "python train.py --model gpt2 --bf16 --lr {lr} --seed {seed}",
    "bursts": "python evaluate.py --checkpoint runs/{seed}.pt --every 50",
}
_SHORTEST, _LONGEST, _MOST_POINTS = 120, 1500, 600

Line = dict[str, Any]


class Night(NamedTuple):
    """The records of the journal, and of the file of samples."""

    records: list[Line]
    samples: list[Line]

    def write(self, journal: Path) -> Path:
        """Write both."""
        for path, lines in ((journal, self.records), (journal.with_suffix(".samples"), self.samples)):
            path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
            path.chmod(0o600)
        return journal


def night(jobs: int = 500, gpus: int = 8, seed: int = 1, most_points: int = _MOST_POINTS) -> Night:
    """On the last of several GPUs two jobs run at a time. Every 40th job is over within a second."""
    choice = random.Random(seed)
    names = dict.fromkeys(("program", "host", "boot", "directory"), "x")
    names |= {"program": "0.2.0", "host": "gpubox", "directory": "/home/ada/night"}
    argv = ["simple_gpu_scheduler", "--gpus", f"0-{gpus - 1}", "jobs.txt"]
    began = {"event": "run began", "at": BEGUN, "run": RUN, "version": 1, **names, "argv": argv}
    timed: list[Line] = []
    samples: list[Line] = []
    places = [(gpu, slot) for gpu in range(gpus) for slot in range(2 if gpus > 1 and gpu == gpus - 1 else 1)]
    free = dict.fromkeys(places, BEGUN + 1)
    reads = []
    for number in range(1, jobs + 1):
        kind = choice.choices([*KINDS], [*KINDS.values()])[0]
        command = COMMANDS[kind].format(lr=f"{10 ** -choice.uniform(2, 4):.5f}", seed=number)
        reads.append({"event": "job read", "at": BEGUN, "job": number, "line": number, "command": command})
        place = min(places, key=free.__getitem__)
        is_shared = place[0] == gpus - 1 and gpus > 1
        length = 0.4 if number % 40 == 0 else float(choice.randint(_SHORTEST, _LONGEST))
        start = free[place]
        free[place] = start + length + 0.2
        timed += _attempt(choice, kind, number, place, start, length, is_shared, most_points, samples)
    ended = max(free.values())
    timed.sort(key=lambda line: line["at"])  # stable: what was measured stays before the end
    over = {"event": "run ended", "at": ended, "all_read": True, "code": 1, "left": 0}
    return Night([began, *reads, *timed, over], samples)


def _attempt(
    choice: random.Random, kind: str, number: int, place: tuple[int, int], start: float, length: float,
    is_shared: bool, most_points: int, samples: list[Line],
) -> list[Line]:  # fmt: skip
    gpu, slot = str(place[0]), place[1]
    which = {"job": number, "attempt": 1}
    lines = [{"event": "job started", "at": start, **which, "gpus": [gpu], "slots": [slot]}]
    end = start + length
    if length > 1:
        curve = _curve(choice, kind, place[0], length, is_shared, most_points)
        samples.append({"event": "curve", "at": end, **which, "gpu": gpu, "began": start, **curve})
        samples.append({"event": "curve", "at": end, **which, "gpu": "cpu", "began": start, **_cpu(choice, length)})
        measured = {"gpus": [_figures(curve, gpu, kind, is_shared)], "cpu": _cpu_figures(choice, length)}
        lines.append({"event": "attempt measured", "at": end, **which, **measured})
    has_failed = number % 33 == 0
    outcome = {"outcome": "failed" if has_failed else "succeeded", "code": int(has_failed)}
    times = {"started": start, "runtime": length, "final": True}
    return [*lines, {"event": "job ended", "at": end, **which, **outcome, **times}]


def _curve(
    choice: random.Random, kind: str, gpu: int, length: float, is_shared: bool, most_points: int
) -> dict[str, list[float]]:
    width = 1.0
    while length / width > most_points:
        width *= 2
    points = max(1, int(length / width))
    level, memory = choice.uniform(86, 98), choice.uniform(8, 70 if not is_shared else 36) * GIB
    phase, breaks = choice.uniform(0, 60), choice.uniform(0.05, 0.4)
    temperature = 42.0 + gpu
    curve: dict[str, list[float]] = {"from": [], "seconds": []}
    columns = {name: [] for name in ("utilization", "memory_copy", "memory", "temperature", "power")}
    for at in range(points):
        seconds = at * width
        busy = _busy(choice, kind, level, seconds, phase, breaks * length) * (0.5 if is_shared else 1)
        target = (88 if kind == "hot" else 66) * busy / 100 + 40 * (1 - busy / 100) + gpu
        temperature += (target - temperature) * min(1.0, width / 40)
        curve["from"].append(seconds)
        curve["seconds"].append(width)
        columns["utilization"].append(round(busy))
        columns["memory_copy"].append(round(busy * 0.4))
        columns["memory"].append(int(memory * min(1.0, 0.1 + seconds / 30)))
        columns["temperature"].append(round(temperature, 1))
        columns["power"].append(round(72 + 3.1 * busy + choice.uniform(-6, 6), 1))
    return curve | columns


def _busy(choice: random.Random, kind: str, level: float, seconds: float, phase: float, breaks: float) -> float:
    if seconds < 12 or (kind == "hangs" and seconds > breaks):  # loading, and then a download that never ends
        return 0.0
    if kind == "loads":
        return max(0.0, choice.gauss(26, 14))
    if kind == "bursts":
        return level if (seconds + phase) % 60 < 24 else 0.0
    return min(100.0, max(0.0, level + choice.gauss(0, 3)))


def _figures(curve: dict[str, list[float]], gpu: str, kind: str, is_shared: bool) -> Line:
    seconds = sum(curve["seconds"])
    width = curve["seconds"][0]
    names = ("utilization", "memory_copy", "memory", "temperature", "power")
    found: Line = {
        name: {"mean": round(sum(curve[name]) / len(curve[name]), 3), "max": max(curve[name])} for name in names
    }
    busy = sorted(curve["utilization"])
    found["utilization"]["p95"] = float(busy[int(len(busy) * 0.95)])
    used = found["memory"]["max"]
    found |= {
        "gpu": gpu, "seconds": seconds, "total_memory": TOTAL, "idle": width * busy.count(0),
        "device_memory": {"mean": found["memory"]["mean"] + GIB, "max": used + GIB},
        "energy": round(sum(curve["power"]) * width, 1), "clock": {"mean": 1395.0, "max": 1410},
        "throttled": {"heat": round(seconds * 0.6)} if kind == "hot" else {},
        "traffic": {"pcie_sent": int(seconds * 2e7), "pcie_received": int(seconds * 9e8)},
    }  # fmt: skip
    if is_shared:
        of_gpu = ["clock", "device_memory", "energy", "memory_copy", "power", "temperature", "traffic"]
        found |= {"shared": seconds - 1, "of_gpu": of_gpu}
    return {name: value for name, value in found.items() if value != {} or name == "throttled"}


def _cpu(choice: random.Random, length: float) -> dict[str, list[float]]:
    steps = max(1, int(length // 10))
    return {
        "from": [10.0 * at for at in range(steps)], "seconds": [10.0] * steps,
        "cores": [round(choice.uniform(1, 6), 1) for _ in range(steps)], "memory": [int(6 * GIB)] * steps,
    }  # fmt: skip


def _cpu_figures(choice: random.Random, length: float) -> Line:
    return {
        "seconds": round(length * choice.uniform(1, 6), 2), "cores": 32, "peak_memory": int(6 * GIB),
        "read": int(length * 4e7), "written": int(length * 1e5),
    }  # fmt: skip


if __name__ == "__main__":
    night().write(Path(sys.argv[1]) / f"{RUN}.jsonl")
