"""The options of `simulate` and `tune` that say which workload to simulate, and on how many GPUs."""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.cli.declarations import Argument, OneOf, Option, Parsed, Section, UsageError, Whole
from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.templates import LABELS
from simple_gpu_scheduler.simulation.compare import Site
from simple_gpu_scheduler.simulation.scenario import (
    HISTORY,
    Scenario,
    Workloads,
    generate_workloads,
    read_workloads,
    to_scenario,
)
from simple_gpu_scheduler.simulation.workloads.jobs import ESTIMATES
from simple_gpu_scheduler.simulation.workloads.synthetic import Synthetic, parse_synthetic

from .order import fair_by_option

_DEFAULT = "jobs=1000"
_GPUS = 8
TRACE = Argument("trace", "[TRACE]", is_many=False)
_MOST_GPUS = 100_000


def _parse_gpus(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_GPUS:
        raise ValueError(f"'{text}' is not a number of GPUs; for a simulation, write how many: 1 to {_MOST_GPUS:,}")
    return int(text)


SECTION = Section(
    "Workload",
    (
        Option(
            ["--gpus"],
            kind=Parsed("number", _parse_gpus),
            metavar="N",
            help="How many GPUs to simulate.  [default: as many as the past runs used, else 8]",
        ),
        Option(
            ["--synthetic"],
            kind=Parsed("words", parse_synthetic),
            metavar="WORDS",
            help='Generate a workload: "jobs=1000 gap=25 time=10-1000 gpus=1,2 users=5"; instead of gap, '
            "load=0.9 sets the average load.",
        ),
        Option(["--seed"], kind=Whole(0), default=1, metavar="N", help="The random seed.  [default: 1]"),
        Option(
            ["--repeat"],
            kind=Whole(1, 100_000),
            default=1,
            metavar="N",
            help="Generate N workloads of --synthetic, each with a different seed.  [default: 1]",
        ),
        Option(
            ["--estimates"],
            kind=OneOf(ESTIMATES),
            help="What is known of the jobs' lengths: exact; requested: what users asked for; past: how long "
            "similar jobs took before; none.  [default: past for past runs, requested for a trace that has it, "
            "else exact]",
        ),
        fair_by_option(
            "With fair or round-robin, share the GPUs among these; in a trace, a label is a user.  [default: label]"
        ),
    ),
)


def take_scenario(options: dict[str, Any]) -> Scenario:
    """What these options say; they are taken out of all options of a command."""
    trace, synthetic, gpus = options.pop("trace"), options.pop("synthetic"), options.pop("gpus")
    seed, repeat = options.pop("seed"), options.pop("repeat")
    estimates, fair_by = options.pop("estimates"), options.pop("fair_by") or "label"
    if trace is not None and synthetic is not None:
        hint = "quote the words of --synthetic" if "=" in trace else "choose one"
        raise UsageError(f"TRACE and --synthetic are two workloads; {hint}")
    if trace is None and synthetic is None:
        raise UsageError(
            f"say what to simulate: a trace file, a run, {HISTORY} for all your runs, or --synthetic '{_DEFAULT}'"
        )
    if synthetic is None and repeat > 1:
        raise UsageError("--repeat requires --synthetic: a recorded workload is always the same")
    try:
        workloads = read_workloads(trace) if synthetic is None else _generate(synthetic, gpus or _GPUS, seed, repeat)
        known = estimates or workloads.estimates
        learns = known != "none"
        site = Site(gpus or workloads.gpus or _GPUS, lambda: Estimates(learns=learns), LABELS[fair_by])
        return to_scenario(workloads, site, known)._replace(fair_by=fair_by)
    except MemoryError:
        raise UserError(f"{safe(trace or '--synthetic')} does not fit into the memory of this machine") from None


def _generate(synthetic: Synthetic, gpus: int, seed: int, repeat: int) -> Workloads:
    try:
        return generate_workloads(synthetic, gpus, seed, repeat)
    except ValueError as error:
        raise UsageError(f"--synthetic: {error}") from None
