"""The run: its options, as click shows and checks them. What is done with them is `assembly`'s."""

import os
import re
from typing import Any

import click

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.units import parse_duration
from simple_gpu_scheduler.cli.click_extras import Command, OptionalValue, Parsed, version_option
from simple_gpu_scheduler.cli.options.gpus import NAMES, WHEN_FREE, gpu_options, take_wants
from simple_gpu_scheduler.cli.options.policy import policy_options, take_policy
from simple_gpu_scheduler.notify.message import parse_occasions
from simple_gpu_scheduler.scheduling.halt import parse_halt

_DURATION = Parsed("duration", parse_duration)
_EXAMPLE = "simple_gpu_scheduler --gpus 0 1 2 < gpu_commands.txt"

_SECTIONS = (
    ("Where jobs run", (*NAMES, "jobs_per_gpu", "cpu_slots")),
    ("When a GPU counts as free", WHEN_FREE),
    ("In which order", ("policy", "ageing", "fair_by", "delay")),
    ("When jobs fail or hang", ("timeout", "grace", "retries", "retry_delay", "halt", "quarantine")),
    ("How commands are read and run", ("null", "follow", "no_follow", "shell", "chdir")),
    ("What is shown", ("progress", "quiet", "verbose", "dry_run", "engine")),
    ("Where the jobs' output goes", ("output", "logs", "logs_failed_only")),
    ("Who is told", ("notify", "notify_on")),
    ("What is remembered", ("joblog", "resume", "resume_failed", "journal", "no_journal", "keep_runs")),
)

_EXAMPLES = r"""
simple_gpu_scheduler < gpu_commands.txt
simple_gpu_scheduler --gpus 0-3 --retries 1 --joblog jobs.tsv first.txt second.txt
mkfifo gpu.fifo; simple_gpu_scheduler --gpus 0 1 < gpu.fifo
echo 'python train.py --lr 0.1   #: gpus=2 timeout=4h' | simple_gpu_scheduler --gpus 0,1
simple_gpu_scheduler --gpus 0 1 --dry-run < gpu_commands.txt
"""

_HELP = """Run each line of FILES, or of stdin, as a shell command with CUDA_VISIBLE_DEVICES set to a GPU of its own.

A GPU is used when nobody else computes on it and no other scheduler of any user has leased it; until then jobs wait,
and a line says for whom. One job runs on a GPU at a time. Behind a command, `#:` gives options to it alone: gpus, mem,
timeout, time, retries, priority, label, name, after. The exit code is 0 when every job succeeded, 1 when some did not,
2 for bad input.

Commands stand beside this, each with its own --help: `simple_gpu_scheduler run -- COMMAND` waits for a GPU and runs
one command on it, `gpus` shows what is on each GPU, `submit` adds jobs to a queue, `status`, `logs`,
`wait`, `history` and `report` tell of runs, `stop`, `pause`, `continue`, `cancel` and `retry` act on them, `simulate`
and `tune` tell which --policy serves best.
"""


def looks_like_run(word: str) -> bool:
    """Whether a word behind `--resume` names a run: by its id, or the begin of one, not by a file's name."""
    if os.path.exists(word):
        return word.endswith(".jsonl")
    return bool(re.fullmatch(r"\d{4,8}(-\d{0,6}(-[0-9a-f]{0,6})?)?|[0-9a-f]{3,6}", word)) or word.endswith(".jsonl")


def _option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, **settings)


def _options() -> list[click.Parameter]:
    return [
        *gpu_options(_EXAMPLE),
        *_options_of_jobs(),
        *_options_of_inputs(),
        *_options_of_output(),
        *_options_of_memory(),
        version_option(f"simple_gpu_scheduler {__version__}"),
        click.Argument(["files"], nargs=-1),
    ]


def _options_of_jobs() -> list[click.Parameter]:
    """How jobs start, fail and are tried again."""
    return [
        _option(
            "--jobs-per-gpu",
            type=click.IntRange(1, 1000),
            metavar="N",
            default=1,
            help="How many jobs share a GPU.  [default: 1]",
        ),
        _option(
            "--cpu-slots",
            type=click.IntRange(1, 100_000),
            metavar="N",
            help="How many jobs with gpus=0 run at a time.  [default: the number of cores]",
        ),
        *policy_options(),
        _option("--delay", type=_DURATION, default=0.0, help="Wait this long between two starts."),
        _option("--timeout", type=_DURATION, help="End a job that takes longer: 90, 5m, 1h30m, 2d; 0: none."),
        _option(
            "--grace", type=_DURATION, default=10.0, help="How long a job has between TERM and KILL.  [default: 10s]"
        ),
        _option(
            "--retries",
            type=click.IntRange(0),
            metavar="N",
            default=0,
            help="Try a job that fails so many times again.",
        ),
        _option("--retry-delay", type=_DURATION, default=0.0, help="Wait this long before that."),
        _option(
            "--halt",
            type=Parsed("rule", parse_halt),
            default="never",
            help="Give up after failures: soon,fail=3 starts nothing more, now,fail=10% also ends what runs.  "
            "[default: never]",
        ),
        _option(
            "--quarantine",
            type=click.IntRange(0),
            metavar="N",
            default=3,
            help="Set a GPU aside on which N jobs in a row fail within seconds while others succeed elsewhere; "
            "0: never.  [default: 3]",
        ),
    ]


def _options_of_inputs() -> list[click.Parameter]:
    """What is read, and how it is run."""
    return [
        _option("-0", "--null", is_flag=True, help="Jobs end in NUL, not newline, and may have several lines."),
        _option("--follow", metavar="PATH", help="Read a named pipe, made if it is not there, or a file that grows."),
        _option("--no-follow", is_flag=True, help="End with the last writer of a named pipe; else it is held open."),
        _option("--shell", default="/bin/sh", metavar="PATH", help="The shell that runs commands.  [default: /bin/sh]"),
        _option("--chdir", metavar="DIR", help="Run the jobs in this directory."),
        _option("--dry-run", is_flag=True, help="Print what would run where, and run nothing."),
        _option(
            "--engine",
            type=click.Choice(("local", "simulated")),
            default="local",
            help="simulated: run nothing and let no time pass: what `sleep N` in a command, or else time=, says is how "
            "long it takes.  [default: local]",
        ),
    ]


def _options_of_output() -> list[click.Parameter]:
    """What is shown, and where jobs print."""
    return [
        _option("-q", "--quiet", is_flag=True, help="Print failures only."),
        _option("-v", "--verbose", is_flag=True, help="Print successes too, and more of each job."),
    ]


def _options_of_memory() -> list[click.Parameter]:
    """What is remembered."""
    return [
        _option("--joblog", metavar="FILE", help="Write a row for each job, in GNU parallel's columns."),
        _option(
            "--progress",
            type=click.Choice(("live", "plain", "none")),
            help="A view of all GPUs that stays in its place, a line for each start, or neither.  "
            "[default: live on a terminal to which no job prints, else plain]",
        ),
        _option(
            "--output",
            type=click.Choice(("inherit", "group", "tag", "files")),
            help="Jobs print where this program does; each job's output whole when it has ended; line by line with the "
            "job's name or number; or to files only.  [default: inherit; files with --logs, --logs-failed-only and the "
            "live view]",
        ),
        _option(
            "--logs",
            metavar="DIR",
            help="Keep what each job prints in a file of its own there.  [default: beside the journal]",
        ),
        _option("--logs-failed-only", is_flag=True, help="Delete the file of a job that succeeds in the end."),
        _option(
            "--notify",
            metavar="CMD",
            help="Run this shell command to tell somebody, with a summary in its environment and as JSON on its stdin.",
        ),
        _option(
            "--notify-on",
            type=Parsed("WORDS", parse_occasions),
            multiple=True,
            help="When: at the end of the run, when a job fails, or when each ends; several with commas.  "
            "[default: end]",
        ),
        OptionalValue(
            ["--resume"],
            takes=looks_like_run,
            metavar="[RUN]",
            help="Go on with a run that did not finish: what succeeded is not run again.  [default: the newest here]",
        ),
        _option("--resume-failed", is_flag=True, help="The same, and try again what failed."),
        _option("--journal", metavar="FILE", help="Keep the run's journal there.  [default: with your other runs]"),
        _option("--no-journal", is_flag=True, help="Keep none: nothing can be resumed or looked at from outside."),
        _option(
            "--keep-runs",
            type=click.IntRange(1),
            metavar="N",
            envvar="SGS_KEEP_RUNS",
            default=200,
            help="Keep the journals of so many runs.  [default: 200]",
        ),
    ]


def _run(**options: Any) -> int:
    from simple_gpu_scheduler.cli.resumed_options import resumed_run  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.run.options import Options  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.run.setup.build import run_jobs  # noqa: PLC0415 - `--help` and mistakes need none of it

    if options["quiet"] and options["verbose"]:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    context = click.get_current_context()
    resumed = resumed_run(context, options)
    if options["notify_on"] and not options["notify"]:
        raise click.UsageError("--notify-on requires --notify.")
    cores = len(os.sched_getaffinity(0))
    if options["engine"] != "local" and options["journal"]:
        raise click.UsageError("--journal records real runs, but --engine simulated runs nothing.")
    wants = take_wants(options)
    options["policy"], options["label"] = take_policy(options)
    values = options | {"cpu_slots": options["cpu_slots"] or cores, "argv": context.meta["argv"]}
    return run_jobs(Options(wants, **values), context.obj, resumed)


run = Command("", params=_options(), callback=_run, help=_HELP, sections=_SECTIONS, examples=_EXAMPLES)
