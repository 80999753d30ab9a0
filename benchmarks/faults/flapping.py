"""GPUs and a driver that fail and work again, at random moments, under a scheduler that is killed and resumed."""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .ground import NOTHING_THERE, ROOT, Counts, Ground, Popen

sys.path.append(str(ROOT))
from tests.support.nvml import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    RESET_REQUIRED,
    UNKNOWN,
    Gpu,
    StandIn,
    a_gpu,
    compiler,
)

_GPUS = [a_gpu(index) for index in range(4)]
_FUNCTIONS = ("*", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetName")
_CODES = (GPU_IS_LOST, RESET_REQUIRED, UNKNOWN)
_INIT_CODES = (DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH, UNKNOWN)
_OFTEN = 0.3
_SOME = 15
_MOMENTS = (0.3, 1.0, 3.0)  # until a kill, at most
_LONGEST = 20  # until all is well again

# COMMAND...: runs it, and notes if somebody else has a job on one of its GPUs.
_ALONE = """#!/bin/sh
fd=5
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
    eval "exec $fd>>gpu-$gpu"
    flock -n $fd || echo "gpu $gpu: $*" >> shared
    fd=$((fd + 1))
done
"$@"
"""


def gpus_fail_and_work_again(directory: Path, chance: random.Random, jobs: int = 300, kills: int = 40) -> Counts:
    """Each job succeeds exactly once, none is dropped, and no GPU is used by two at once."""
    if not compiler():
        raise NoStandInError("it needs a C compiler, for the stand-in of NVML")
    ground = Ground(directory, chance)
    nvml = StandIn(directory / "nvml")
    ground.environment |= nvml.environment
    alone = ground.write("alone", _ALONE)
    alone.chmod(0o755)
    widths = {number: chance.choice((1, 1, 1, 2)) for number in range(1, jobs + 1)}
    commands = {
        number: f"{alone} {ground.command(number, 0, 0.4, f'gpus={width}')}" for number, width in widths.items()
    }
    flapping = _Flapping(nvml, random.Random(chance.random()))
    try:
        flapping.start()
        counts = _run_killed(ground, ground.write("jobs", "".join(commands.values())), kills, flapping)
        counts += ground.check(commands)
        states = Counter(each["state"] for each in ground.history().values())
        assert states == {"succeeded": jobs}, states
        shared = directory / "shared"
        assert not shared.exists(), shared.read_text()
        assert not counts["started again"], counts
    finally:
        flapping.stop()
        ground.close()
    counts["changes of the GPUs"] = flapping.changes
    return counts


class NoStandInError(Exception):
    """The stand-in of NVML cannot be compiled here."""


class _Flapping:
    """Shows other errors again and again, until it is stopped: then everything works."""

    def __init__(self, nvml: StandIn, chance: random.Random) -> None:
        self._nvml = nvml
        self._chance = chance
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._flap, daemon=True)
        self.changes = 0

    def start(self) -> None:
        self._show()
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._nvml.show(_GPUS)

    def _flap(self) -> None:
        while not self._is_over.wait(self._chance.uniform(0.02, 0.3)):
            self._show()

    def _show(self) -> None:
        self.changes += 1
        fails = self._chance.random() < _OFTEN
        self._nvml.show([self._a_state_of(gpu) for gpu in _GPUS], init_error=self._chance.choice(_INIT_CODES) * fails)

    def _a_state_of(self, gpu: Gpu) -> Gpu:
        if self._chance.random() >= _OFTEN:
            return gpu
        return gpu._replace(errors={self._chance.choice(_FUNCTIONS): self._chance.choice(_CODES)})


def _run_killed(ground: Ground, given: Path, kills: int, flapping: _Flapping) -> Counts:
    """One run until its end; some time after the last kill, everything works."""
    counts: Counts = Counter()
    is_begun = False
    while True:
        process = ground.start("--resume") if is_begun else ground.start(stdin=given)
        if counts["kills"] < kills:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=ground.chance.uniform(0, ground.chance.choice(_MOMENTS)))
        else:
            _let_some_end(ground, process)
        if process.poll() is None and counts["kills"] < kills:
            process.kill()
            process.wait()
            counts["kills"] += 1
            is_begun = True
        elif process.poll() == 2 and is_begun and NOTHING_THERE in ground.said.splitlines()[-1]:
            is_begun = False
        else:
            flapping.stop()
            ground.finish(process, seconds=300)
            return counts


def _let_some_end(ground: Ground, process: Popen) -> None:
    until, enough = time.monotonic() + _LONGEST, ground.ended() + _SOME
    while process.poll() is None and ground.ended() < enough and time.monotonic() < until:
        time.sleep(0.05)
