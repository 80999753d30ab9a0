"""How long a start decision takes: prints our own milliseconds and NVML's, for `gpus.py`, in a process of its own."""

import os
import sys
import time

from simple_gpu_scheduler.base.jobs import SUCCESS, Job, Place
from simple_gpu_scheduler.gpus import Gpu
from simple_gpu_scheduler.gpus.discover import Wants, find_machine, open_pool
from simple_gpu_scheduler.gpus.nvml import Nvml, Reading
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.system.marks import Family, mark

STARTS = int(sys.argv[1])
in_nvml = 0.0
look = Nvml.look


def timed_look(self: Nvml, gpu: Gpu, *, utilization: bool = False, processes: bool = True) -> Reading:
    global in_nvml  # noqa: PLW0603 - a script
    began = time.perf_counter()
    reading = look(self, gpu, utilization=utilization, processes=processes)
    in_nvml += time.perf_counter() - began
    return reading


Nvml.look = timed_look  # type: ignore[method-assign]
wants = Wants()
machine = find_machine(wants, os.environ)
pool = open_pool(machine, wants, lambda _message: None, Family("run"), b"")
scheduler = Scheduler(Limits(tuple(gpu.id for gpu in machine.gpus), totals=machine.totals), POLICIES["fifo"](), Rules())
for number in range(1, STARTS + 9):
    scheduler.add(Job(number, b"true", Place(number)), 0)


def start_all() -> None:
    rooms = pool.rooms()
    while choice := scheduler.next(0, rooms):
        assert pool.take(mark(choice.attempt, b"run"), choice.attempt.gpus, 0)
        scheduler.start(choice, 0)


start_all()
in_nvml = 0.0
began = time.perf_counter()
for _ in range(STARTS):
    ended = next(iter(scheduler.running))
    pool.give_back(mark(ended, b"run"), ended.gpus)
    scheduler.end(ended, SUCCESS, 0)
    start_all()
total = time.perf_counter() - began
print((total - in_nvml) / STARTS * 1000, in_nvml / STARTS * 1000)
