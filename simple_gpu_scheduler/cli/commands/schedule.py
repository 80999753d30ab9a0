"""The run: `simple_gpu_scheduler < FILE`. Its options are in `cli/options`, what it does is in `run`."""

import os

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Sequence
from simple_gpu_scheduler.cli.call import read_line
from simple_gpu_scheduler.cli.commands import COMMANDS
from simple_gpu_scheduler.cli.declarations import Argument, Command, CommandLine, UsageError
from simple_gpu_scheduler.cli.options import (
    display,
    execution,
    failures,
    gpus,
    inputs,
    notifications,
    order,
    output,
    records,
    resume,
)

if TYPE_CHECKING:
    from simple_gpu_scheduler.keeper.client import KeeperClient

_EXAMPLES = r"""
simple_gpu_scheduler < gpu_commands.txt
simple_gpu_scheduler --gpus 0-3 --retries 1 --joblog jobs.tsv first.txt second.txt
mkfifo gpu.fifo; simple_gpu_scheduler --gpus 0 1 < gpu.fifo
echo 'python train.py --lr 0.1   #: gpus=2 timeout=4h' | simple_gpu_scheduler --gpus 0,1
simple_gpu_scheduler --gpus 0 1 --dry-run < gpu_commands.txt
"""

_HELP = """Run each line of FILES, or of stdin, as a shell command, with CUDA_VISIBLE_DEVICES set to a free GPU.

A GPU is free when nothing else computes on it and no other scheduler, of any user, has leased it. Until one is free,
jobs wait, and a message says why. By default, each GPU runs one job at a time.

After a command, `#:` sets options for that job only: gpus, mem, timeout, stall, idle, time, retries, priority, label,
name, after.

The exit code is 0 if every job succeeded, 1 if some did not, and 2 for bad input.

`simple_gpu_scheduler` and `sgs` are the same program.
"""

_SECTIONS = (
    *gpus.gpu_sections("simple_gpu_scheduler --gpus 0 1 2 < gpu_commands.txt", gpus.SLOTS),
    order.SECTION,
    failures.SECTION,
    inputs.SECTION,
    execution.SECTION,
    display.SECTION,
    output.SECTION,
    notifications.SECTION,
    records.SECTION,
    resume.SECTION,
)


def _complete(words: Sequence[str], incomplete: str) -> list[str]:
    """As the first word a command; where there is none, it is a file."""
    return [] if words else [name for name in COMMANDS if name.startswith(incomplete)]


def _hint_at_command_line(words: Sequence[str]) -> str:
    from simple_gpu_scheduler.cli.hints import hint_at_first  # noqa: PLC0415 - only an error needs it

    return hint_at_first(words, is_command_line=True)


def _refuse_what_is_no_file(files: Sequence[str]) -> None:
    """Refuse a mistyped command, a command line or a Python program where a file of commands was expected."""
    if files and files[0] != "-" and (files[0].endswith(".py") or not os.path.lexists(files[0])):
        from simple_gpu_scheduler.cli.hints import hint_at_first  # noqa: PLC0415 - as above

        if hint := hint_at_first(files):
            raise UsageError(hint)


def _run(line: CommandLine, keeper: "KeeperClient | None") -> int:
    from simple_gpu_scheduler.run.options import Options  # noqa: PLC0415 - 8 ms that --help needs not
    from simple_gpu_scheduler.run.setup.build import run_jobs  # noqa: PLC0415 - 20 ms that --help needs not

    typed = line.values
    _refuse_what_is_no_file(typed["files"])
    inputs.check_input(typed)
    resumed = resume.resumed_run(typed, line.typed, _read_again)
    textfile = records.take_textfile(typed)
    how = execution.take_execution(typed)
    options = Options(
        gpus.take_wants(typed),
        order.take_order(typed),
        failures.take_failures(typed),
        inputs.take_input(typed),
        how,
        display.take_display(typed),
        output.take_output(typed),
        notifications.take_notify(typed),
        records.take_records(typed, how.engine),
        resume.take_resume(typed),
        line.argv,
    )
    if not textfile:
        return run_jobs(options, keeper, resumed)
    from simple_gpu_scheduler.metrics.run_file import RunFile  # noqa: PLC0415 - few runs have such a file

    with RunFile(textfile, options.wants):
        return run_jobs(options, keeper, resumed)


def _read_again(argv: Sequence[str]) -> CommandLine:
    line = read_line(run, argv, PROGRAM)
    if isinstance(line, CommandLine):
        return line
    raise UserError(f"a run cannot be resumed that only printed its help: {argv}")


run = Command(
    "",
    callback=_run,
    is_run=True,
    has_machine_defaults=True,
    help=_HELP,
    version=f"simple_gpu_scheduler {__version__}",
    argument=Argument("files", complete=_complete),
    sections=_SECTIONS,
    commands=[(name, line) for name, (_, line) in COMMANDS.items()],
    examples=_EXAMPLES,
    hint_at=_hint_at_command_line,
)
