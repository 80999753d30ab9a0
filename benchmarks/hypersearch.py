"""simple_hypersearch beside its older self and GNU parallel: lines a second, and memory of long sweeps."""

import statistics
import subprocess
import time
from collections.abc import Callable, Mapping

from peers import OLD, PARALLEL, ROOT, clean_environment, peak_while_running, peers
from tables import show, verdict

OURS, OURS_IN_ORDER, OLD_ONE = "simple_hypersearch", "simple_hypersearch --sampling-mode grid", "s-h 0.1.4"
_COMMAND = str(ROOT / "bin/simple_hypersearch")
_OLD_COMMAND = str(ROOT / "benchmarks/.peers/bin/simple_hypersearch")
_PATTERN = "python3 train.py --lr {lr} --bs {bs}"


def measure(*, quick: bool) -> None:
    """All of it."""
    installed = peers()
    speed(200 if quick else 1000, 1 if quick else 5, old=OLD in installed, parallel=PARALLEL in installed)
    memory(300_000 if quick else 4_000_000)


def seconds(argv: list[str], stdin: str = "") -> float:
    """How long a program takes."""
    began = time.perf_counter()
    nowhere = subprocess.DEVNULL
    subprocess.run(argv, input=stdin, text=True, stdout=nowhere, stderr=nowhere, env=clean_environment(), check=True)
    return time.perf_counter() - began


def medians(argvs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """So many times each, in turn."""
    samples: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, take in argvs.items():
            samples.setdefault(name, []).append(take())
    return {name: statistics.median(times) for name, times in samples.items()}


def speed(size: int, rounds: int, *, old: bool, parallel: bool) -> None:
    values = [str(number) for number in range(size)]
    words = ["-p", "lr", *values, "-p", "bs", *values]
    few = values[:4]  # GNU parallel is asked for a part: more would take minutes
    lines = dict.fromkeys((OURS, OURS_IN_ORDER, OLD_ONE), size**2) | {PARALLEL: size * len(few)}
    takes = {
        OURS: lambda: seconds([_COMMAND, _PATTERN, *words]),
        OURS_IN_ORDER: lambda: seconds([_COMMAND, _PATTERN, *words, "--sampling-mode", "grid"]),
    }
    if old:
        takes[OLD_ONE] = lambda: seconds([_OLD_COMMAND, _PATTERN, *words])
    if parallel:
        argv = ["parallel", "--dry-run", "python3 train.py --lr {1} --bs {2}", ":::", *values, ":::", *few]
        takes[PARALLEL] = lambda: seconds(argv)
    rates = {name: lines[name] / took for name, took in medians(takes, rounds).items()}
    base = rates.get(OLD_ONE)
    rows = []
    for name, rate in rates.items():
        said = verdict(holds=rate >= 500_000, promise="500,000 lines a second") if name == OURS else ""
        rows.append([name, f"{rate:,.0f}", f"{rate / base:.2f}" if base else "-", said])
    show(
        f"A grid of {size} times {size}, shuffled, start-up included (median of {rounds})",
        ["program", "lines/s", "of 0.1.4", "promise"],
        rows,
    )


def memory(lines: int) -> None:
    grid = [_COMMAND, _PATTERN, "-p", "lr", f"range:1:{lines // 1000}", "-p", "bs", "range:1:1000"]
    rows = []
    for name, argv in {"shuffled": grid, "with --where": [*grid, "--where", "lr != bs"]}.items():
        early, late = peak_while_running(argv, None, 1e9, early_for=0.3)
        holds = late < 60 and late < early * 1.1
        rows.append([name, f"{early:.1f}", f"{late:.1f}", verdict(holds=holds, promise="under 60 MB and flat")])
    show(
        f"Peak memory of a sweep with {lines:,} lines: after 0.3 s and at the end",
        ["sweep", "MB, early", "MB, late", "promise"],
        rows,
    )
