"""Start-up, throughput, the gap on a slot and memory, beside the peers, interleaved in one run.

Absolute times are this machine's; what carries over are the ratios, and the last column says whether they are what we
promise. `--quick` is for a look, not for a claim.
"""

import argparse
import itertools
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import gpus
import hypersearch
import journal
import output
import samples as sampling
import simulate
import start_up
from peers import NQ, OLD, OURS, PARALLEL, ROOT, TASK_SPOOLER, XARGS, Peer, peak_while_running, peers, run
from tables import percentile, show, verdict

Samples = dict[str, list[float]]

# By the number of slots: how many times the jobs per second of xargs are promised, with the journal.
SHARES_OF_XARGS = {2: 0.85, 4: 0.95, 8: 1.00}
PARTS = ("start-up", "throughput", "gap", "memory", "journal", "output", "gpus", "samples", "hypersearch", "simulate")


def seconds(peer: Peer, slots: int, stdin: Path) -> float:
    """How long it takes for all lines of a file."""
    began = time.perf_counter()
    run(peer, slots, stdin)
    return time.perf_counter() - began


def interleaved(chosen: Iterable[Peer], slots: int, stdin: Path, rounds: int) -> Samples:
    """So many times each, in turn, so that whatever else the machine does hits all alike."""
    samples: Samples = {}
    for _ in range(rounds):
        for peer in chosen:
            samples.setdefault(peer.name, []).append(seconds(peer, slots, stdin))
    return samples


def ratio(value: float, base: float | None) -> str:
    return f"{value / base:.2f}" if base else "-"


def throughput(installed: dict[str, Peer], directory: Path, jobs: int, rounds: int) -> None:
    many = directory / "many"
    rows = []
    for slots in SHARES_OF_XARGS:
        many.write_text("true\n" * jobs)
        quick = [peer for name, peer in installed.items() if name not in (NQ, TASK_SPOOLER)]
        samples = interleaved(quick, slots, many, rounds)
        rates = {name: jobs / statistics.median(times) for name, times in samples.items()}
        few = max(20, jobs // 10)
        many.write_text("true\n" * few)
        slow = [peer for name, peer in installed.items() if name in (NQ, TASK_SPOOLER) and (name != NQ or slots == 2)]
        for name, times in interleaved(slow, slots, many, 1).items():
            rates[name] = few / min(times)
        rows += [
            [str(slots), name, f"{rate:,.0f}", ratio(rate, rates[XARGS]), ratio(rate, rates.get(PARALLEL)), said]
            for name, rate in rates.items()
            for said in [throughput_verdict(rates, slots) if name == OURS else ""]
        ]
    show(
        f"Throughput: {jobs} times `true`, start-up included (median of {rounds}; nq has one slot)",
        ["slots", "program", "jobs/s", "of xargs", "of GNU parallel", "promise"],
        rows,
    )


def throughput_verdict(rates: dict[str, float], slots: int) -> str:
    ours, share = rates[OURS], SHARES_OF_XARGS[slots]
    holds = ours >= share * rates[XARGS] and ours >= 4 * rates.get(PARALLEL, 0) and ours >= rates.get(OLD, 0)
    return verdict(holds=holds, promise=f"{share:.2f} of xargs, 4 times GNU parallel, not behind 0.1.4")


def gap(installed: dict[str, Peer], directory: Path, jobs: int, rounds: int) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        print("\nThe gap on a slot is not measured: it needs a C compiler (cc).")
        return
    stamp = directory / "stamp"
    subprocess.run([compiler, "-O2", "-o", stamp, ROOT / "benchmarks/stamp.c"], check=True)
    gaps: Samples = {}
    for number in range(rounds):
        for name, peer in installed.items():
            if not peer.slot_variable:
                continue
            out, lines = directory / f"stamps-{number}-{name}".replace(" ", "-"), directory / "stamps"
            lines.write_text(f'{stamp} "${peer.slot_variable}" {out}\n' * jobs)
            run(peer, 2, lines)
            gaps.setdefault(name, []).extend(gaps_in(out.read_text()))
    points = {name: (percentile(found, 50), percentile(found, 99)) for name, found in gaps.items()}
    base = points[XARGS]
    rows = []
    for name, (middle, high) in points.items():
        holds = middle <= base[0] + 1 and high <= base[1] + 5
        said = verdict(holds=holds, promise="p50 within 1 ms and p99 within 5 ms of xargs's") if name == OURS else ""
        rows.append([name, f"{middle:.2f}", f"{high:.2f}", said])
    show(
        f"Gap: from a job's end to the next one's start on its slot, 2 slots, {jobs} jobs of 10 ms, {rounds} rounds",
        ["program", "p50 ms", "p99 ms", "promise"],
        rows,
    )


def gaps_in(stamps: str) -> list[float]:
    """Milliseconds between the jobs of each slot."""
    by_slot: dict[str, list[tuple[int, int]]] = {}
    for line in stamps.splitlines():
        slot, begin, end = line.split()
        by_slot.setdefault(slot, []).append((int(begin), int(end)))
    found = []
    for runs in by_slot.values():
        runs.sort()
        found += [(later[0] - earlier[1]) / 1e6 for earlier, later in itertools.pairwise(runs)]
    return found


def memory(installed: dict[str, Peer], directory: Path, lines: int, stay: float) -> None:
    million = directory / "million"
    million.write_text("true some --arguments 0.1\n" * lines)
    rows = []
    for name in (OURS, XARGS, PARALLEL, OLD):
        if name in installed:
            early, late = peak_while_running(installed[name].argv(4), million, stay)
            holds = late < 60 and late < early * 1.1
            said = verdict(holds=holds, promise="under 60 MB and flat") if name == OURS else ""
            rows.append([f"{name}, running them", f"{early:.1f}", f"{late:.1f}", said])
    early, late = peak_while_running([*installed[OURS].argv(4), "--dry-run"], million, 1e9)
    said = verdict(holds=late < 60 and late < early * 1.1, promise="under 60 MB and flat")
    rows.append([f"{OURS} --dry-run, all of them", f"{early:.1f}", f"{late:.1f}", said])
    show(
        f"Peak memory when fed {lines:,} lines: after the first second and after {stay:.0f} s or the end",
        ["program", "MB, early", "MB, late", "promise"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the scheduler beside its peers (bin/bench --install-peers).")
    parser.add_argument("--quick", action="store_true", help="small numbers: a look, not a claim")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--simulate", action="store_const", dest="only", const="simulate", help="--only simulate")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="measure each part so many times in a row")
    arguments = parser.parse_args()
    quick = arguments.quick
    installed = peers()
    missing = [name for name in (XARGS, PARALLEL, OLD, TASK_SPOOLER, NQ) if name not in installed]
    print(f"Beside: {', '.join(name for name in installed if name != OURS)}.")
    if missing:
        print(f"Not installed: {', '.join(missing)} (bin/bench --install-peers installs them).")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        parts: dict[str, Callable[[], object]] = {
            "start-up": lambda: start_up.measure(installed, 3 if quick else 31),
            "throughput": lambda: throughput(installed, directory, 200 if quick else 2000, 1 if quick else 7),
            "gap": lambda: gap(installed, directory, 50 if quick else 400, 1 if quick else 3),
            "memory": lambda: memory(installed, directory, 20_000 if quick else 1_000_000, 3 if quick else 15),
            "journal": lambda: journal.measure(quick=quick),
            "output": lambda: output.measure(quick=quick),
            "gpus": lambda: gpus.measure(quick=quick),
            "samples": lambda: sampling.measure(quick=quick),
            "hypersearch": lambda: hypersearch.measure(quick=quick),
            # Whole it takes as long as all the others.
            "simulate": lambda: simulate.measure(quick=quick or arguments.only is None),
        }
        for part, measure in parts.items():
            if arguments.only in (None, part):
                for _ in range(arguments.times):
                    measure()


if __name__ == "__main__":
    main()
