"""The options that say in which order jobs start, and what is made of them."""

from collections.abc import Callable
from typing import Any

import click

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.cli.click_extras import Parsed
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.policies.names import SHARING, Chosen, names, parse_ageing, parse_policy
from simple_gpu_scheduler.scheduling.templates import LABELS

_LARGEST = 1_000_000  # a file of weights has a few kilobytes


def policy_options() -> list[click.Parameter]:
    """Those of a run."""
    return [
        click.Option(
            ["--policy"],
            metavar="POLICY",
            default="fifo",
            shell_complete=_complete,
            help=f"Who starts first: {names()}.  [default: fifo]",
        ),
        click.Option(
            ["--ageing"],
            type=Parsed("number", parse_ageing),
            metavar="C",
            help="With --policy aged: a job is passed only by one that comes less than C times their difference in "
            "length later.  [default: 1]",
        ),
        fair_by_option("With --policy fair or round-robin: among whom GPUs are shared.  [default: label]"),
    ]


def fair_by_option(help_text: str) -> click.Option:
    """By what jobs are told apart where GPUs are shared."""
    return click.Option(["--fair-by"], type=click.Choice(list(LABELS)), help=help_text)


def take_policy(options: dict[str, Any]) -> tuple[Chosen, Callable[[Job], str]]:
    """What these options say, taken out of all options of a command: the policy, and the label of a job."""
    policy, ageing, fair_by = options.pop("policy"), options.pop("ageing"), options.pop("fair_by")
    if ageing is not None and policy != "aged":
        raise click.UsageError("--ageing goes with --policy aged")
    if fair_by is not None and policy not in SHARING:
        raise click.UsageError(f"--fair-by goes with --policy {' or '.join(SHARING)}")
    return choose_policy(policy if ageing is None else f"aged:{ageing!r}"), LABELS[fair_by or "label"]


def choose_policy(text: str) -> Chosen:
    """The policy of that name."""
    try:
        return parse_policy(text, _read)
    except ValueError as error:
        raise click.UsageError(f"--policy: {safe(str(error))}.") from None


def _complete(_context: click.Context, _param: click.Parameter, begin: str) -> list[str]:
    return [name for name in (*POLICIES, "learned:") if name.startswith(begin)]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(_LARGEST)
