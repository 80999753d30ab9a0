"""The order in which jobs start."""

from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.units import parse_duration
from simple_gpu_scheduler.base.values import Any, Sequence
from simple_gpu_scheduler.cli.declarations import OneOf, Option, Parsed, Section, UsageError
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.policies.names import (
    LEARNED,
    SHARING,
    Chosen,
    OrderOptions,
    names,
    parse_ageing,
    parse_policy,
)
from simple_gpu_scheduler.scheduling.templates import LABELS

_LARGEST = 1_000_000  # a file of weights has a few kilobytes


def _complete(_words: Sequence[str], incomplete: str) -> list[str]:
    return [name for name in (*POLICIES, f"{LEARNED}:") if name.startswith(incomplete)]


def fair_by_option(help_text: str) -> Option:
    """By what jobs are told apart where GPUs are shared; also for commands that simulate."""
    return Option(["--fair-by"], kind=OneOf(list(LABELS)), help=help_text)


SECTION = Section(
    "Order",
    (
        Option(
            ["--policy"],
            metavar="POLICY",
            default="fifo",
            complete=_complete,
            help=f"Which job starts first: {names()}.  [default: fifo]",
        ),
        Option(
            ["--ageing"],
            kind=Parsed("number", parse_ageing),
            metavar="C",
            help="With --policy aged: a shorter job may overtake a longer one only if it arrives within C times the "
            "difference of their lengths.  [default: 1]",
        ),
        fair_by_option(
            "With --policy fair or round-robin: share the GPUs among labels, input files (source) or kinds of commands "
            "(template).  [default: label]"
        ),
        Option(["--delay"], kind=Parsed("duration", parse_duration), default=0.0, help="Pause between starts."),
    ),
)


def take_order(typed: dict[str, Any]) -> OrderOptions:
    """What these options say, taken out of all that was typed."""
    policy, ageing, fair_by = typed.pop("policy"), typed.pop("ageing"), typed.pop("fair_by")
    if ageing is not None and policy != "aged":
        raise UsageError("--ageing requires --policy aged")
    if fair_by is not None and policy not in SHARING:
        raise UsageError(f"--fair-by requires --policy {' or '.join(SHARING)}")
    chosen = choose_policy(policy if ageing is None else f"aged:{ageing!r}")
    return OrderOptions(chosen, LABELS[fair_by or "label"], typed.pop("delay"))


def choose_policy(text: str) -> Chosen:
    """The policy of that name."""
    try:
        return parse_policy(text, _read)
    except ValueError as error:
        raise UsageError(f"--policy: {safe(str(error))}.") from None


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(_LARGEST)
