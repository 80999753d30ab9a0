"""What happens when jobs fail or take too long."""

from simple_gpu_scheduler.base.units import parse_duration, parse_patience
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any
from simple_gpu_scheduler.cli.declarations import Option, Parsed, Section, Whole
from simple_gpu_scheduler.scheduling.halt import parse_halt

if TYPE_CHECKING:
    from simple_gpu_scheduler.run.options import FailureOptions

_DURATION = Parsed("duration", parse_duration)
_PATIENCE = Parsed("duration", parse_patience)

SECTION = Section(
    "Failures and time limits",
    (
        Option(["--timeout"], kind=_DURATION, help="Stop a job after this time: 90, 5m, 1h30m, 2d; 0: no limit."),
        Option(
            ["--stall"],
            kind=_PATIENCE,
            metavar="DURATION[:end]",
            help="Warn about a job that has printed nothing for this time while the utilisation of its GPUs did not "
            "change: 30m; 30m:end ends it.",
        ),
        Option(
            ["--idle"],
            kind=_PATIENCE,
            metavar="DURATION[:end]",
            help="Warn about a job whose GPUs have been at 0 % for this time: 15m; 15m:end ends it.",
        ),
        Option(
            ["--grace"],
            kind=_DURATION,
            default=10.0,
            help="The time between TERM and KILL when a job is stopped.  [default: 10s]",
        ),
        Option(
            ["--retries"],
            kind=Whole(0),
            metavar="N",
            default=0,
            help="Retry a failed job up to N times.  [default: 0]",
        ),
        Option(["--retry-delay"], kind=_DURATION, default=0.0, help="Delay before each retry."),
        Option(
            ["--halt"],
            kind=Parsed("rule", parse_halt),
            default="never",
            help="Give up after failures: soon,fail=3 starts no more jobs; now,fail=10% also stops the running ones.  "
            "[default: never]",
        ),
        Option(
            ["--quarantine"],
            kind=Whole(0),
            metavar="N",
            default=3,
            help="Stop using a GPU on which N jobs in a row fail within seconds while others succeed elsewhere; "
            "0: never.  [default: 3]",
        ),
    ),
)


def take_failures(typed: dict[str, Any]) -> "FailureOptions":
    """What these options say, taken out of all that was typed."""
    from simple_gpu_scheduler.run.options import FailureOptions  # noqa: PLC0415 - 8 ms that --help needs not

    return FailureOptions(**{name: typed.pop(name) for name in FailureOptions._fields})
