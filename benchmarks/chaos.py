"""Brings about the faults that a run must survive, checks what was promised, and prints what was counted.

A broken promise is said, with the seed that shows it again, and the exit code is 1. The faults are in `faults`.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from faults import crowds, disks, flapping, followed, journals, kills, pipes
from faults.ground import Counts

Fault = Callable[[Path, random.Random], Counts]

LONG: dict[str, Fault] = {
    "kills": kills.scheduler_killed,
    "pipe-kills": pipes.scheduler_of_a_pipe_killed,
    "follower-kills": followed.follower_killed,
    "stops": kills.stopped_and_continued,
    "keeper-kills": kills.keeper_killed,
    "both-killed": kills.both_killed,
    "full-disk": disks.disk_full,
    "cut-journal": journals.journal_cut,
    "clock": journals.clock_set_back,
    "many-waiting": crowds.many_waiting,
    "many-writers": crowds.many_writers,
    "no-terminal": crowds.terminal_gone,
    "flapping": flapping.gpus_fail_and_work_again,
}
QUICK: dict[str, Fault] = LONG | {
    "kills": partial(kills.scheduler_killed, jobs=200, kills=12),
    "pipe-kills": partial(pipes.scheduler_of_a_pipe_killed, kills=12),
    "follower-kills": partial(followed.follower_killed, kills=8),
    "stops": partial(kills.stopped_and_continued, jobs=150, stops=20),
    "keeper-kills": partial(kills.keeper_killed, jobs=40, kills=3),
    "both-killed": partial(kills.both_killed, jobs=60, kills=6),
    "full-disk": partial(disks.disk_full, jobs=40),
    "cut-journal": partial(journals.journal_cut, jobs=10, step=19, real=4),
    # A look, on a machine that does other things too: the figures are the long form's.
    "many-waiting": partial(crowds.many_waiting, jobs=20_000, ready=10, answered=5),
    "many-writers": partial(crowds.many_writers, writers=200),
    "no-terminal": partial(crowds.terminal_gone, jobs=40),
    "flapping": partial(flapping.gpus_fail_and_work_again, jobs=60, kills=6),
}
_NOT_HERE = (disks.NoDiskError, journals.NoCompilerError, flapping.NoStandInError)


def main() -> int:
    parser = argparse.ArgumentParser(description="Bring about the faults that a run must survive, and count.")
    parser.add_argument("--quick", action="store_true", help="the short form, as in the tests")
    parser.add_argument("--only", choices=list(LONG), metavar="NAME", help=f"one of: {', '.join(LONG)}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="the random moments")
    arguments = parser.parse_args()
    faults = QUICK if arguments.quick else LONG
    chosen = [arguments.only] if arguments.only else list(faults)
    print(f"seed {arguments.seed}", flush=True)
    broken = [name for name in chosen if not survives(name, faults[name], arguments.seed)]
    if broken:
        print(f"BROKEN: {', '.join(broken)}; see it again with --seed {arguments.seed} --only NAME")
    return bool(broken)


def survives(name: str, fault: Fault, seed: int) -> bool:
    """Bring one about; what was left on disk is kept when a promise was broken."""
    directory = Path(tempfile.mkdtemp(prefix=f"chaos-{name}-"))
    began = time.monotonic()
    try:
        counts = fault(directory / "ground", random.Random(seed))
    except _NOT_HERE as error:
        print(f"{name}: cannot be tried here: {error}", flush=True)
        return True
    except Exception:  # noqa: BLE001 - the others are to be tried too
        traceback.print_exc()
        print(f"{name}: BROKEN; what it left is in {directory}", flush=True)
        return False
    told = ", ".join(f"{what} {count:,}" for what, count in counts.items())
    print(f"{name}: holds in {time.monotonic() - began:.0f} s: {told}", flush=True)
    shutil.rmtree(directory)
    return True


if __name__ == "__main__":
    sys.exit(main())
