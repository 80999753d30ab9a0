"""`metrics`: metrics for Prometheus, printed once, served, or written to files again and again."""

from simple_gpu_scheduler.base.units import parse_duration
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.cli.declarations import Command, Option, Parsed, Section, UsageError, Whole
from simple_gpu_scheduler.cli.options.gpus import gpu_sections, take_wants

_OUTLETS = ("port", "address", "unix", "textfile", "every", "dcgm_job_map")
_SHORTEST = 1.0
_EXAMPLES = r"""
simple_gpu_scheduler metrics | grep sgs_gpu_state
simple_gpu_scheduler metrics --port 9836
simple_gpu_scheduler metrics --unix ~/.sgs-metrics.sock
simple_gpu_scheduler metrics --textfile /var/lib/node_exporter/sgs.prom
"""
_HELP = """Print or serve metrics for Prometheus: the GPUs of this machine, and your active runs and their jobs.

Without --port, --unix, --textfile or --dcgm-job-map, they are printed once. With any of these, which may be combined,
the program runs until Ctrl-C or SIGTERM.

Every user of this machine can connect to a port, even to one on 127.0.0.1, and read the names and labels of your jobs;
only you can connect to a Unix socket. Commands are never shown.
"""


def _every(text: str) -> float:
    seconds = parse_duration(text)
    if seconds < _SHORTEST:
        raise ValueError(f"{text!r} is less than 1s")
    return seconds


_SECTION = Section(
    "Output (default: print once)",
    (
        Option(
            ["--port"],
            kind=Whole(0, 65535),
            metavar="N",
            help="Serve http://127.0.0.1:N/metrics; 0 chooses a free port and prints it.",
        ),
        Option(["--address"], metavar="ADDRESS", help="The address that --port listens on.  [default: 127.0.0.1]"),
        Option(["--unix"], metavar="PATH", help="Serve /metrics on a Unix socket that only you can connect to."),
        Option(
            ["--textfile"],
            metavar="FILE.prom",
            help="Keep FILE.prom up to date, for node_exporter's textfile collector.",
        ),
        Option(
            ["--every"],
            kind=Parsed("duration", _every),
            metavar="TIME",
            help="How often to write FILE.prom.  [default: 15s]",
        ),
        Option(
            ["--dcgm-job-map"],
            metavar="DIR",
            help="Keep dcgm-exporter's job mapping files in DIR, so that its metrics have the label hpc_job.",
        ),
    ),
)


def _metrics(**typed: Any) -> int:
    from simple_gpu_scheduler.metrics.service import MetricOutlets, give_to, print_once  # noqa: PLC0415 - not for --help

    given = {name: value for name in _OUTLETS if (value := typed.pop(name)) is not None}
    empty = next((name for name, value in given.items() if value == ""), None)
    if empty:
        raise UsageError(f"--{empty.replace('_', '-')} is empty; is a shell variable unset?")
    if "address" in given and "port" not in given:
        raise UsageError("--address is for --port; add --port N.")
    if "every" in given and "textfile" not in given:
        raise UsageError("--every is for --textfile; add --textfile FILE.prom.")
    outlets, wants = MetricOutlets(**given), take_wants(typed)
    if not outlets.are_none:
        return give_to(outlets, wants)
    print_once(wants)
    return 0


metrics_command = Command(
    "metrics",
    callback=_metrics,
    has_machine_defaults=True,
    help=_HELP,
    sections=(_SECTION, *gpu_sections("simple_gpu_scheduler metrics --gpus 0 1")),
    examples=_EXAMPLES,
)
