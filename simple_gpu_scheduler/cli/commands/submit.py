"""`submit`: a command, or the lines of stdin, for a running scheduler.

It finds the queue that is meant, and checks that the text may be submitted; `inputs.submit` writes it.
"""

import os
import select
import sys

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import json, shlex
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.cli.declarations import Argument, Command, Option, Section, UsageError
from simple_gpu_scheduler.cli.options.which_run import run_option
from simple_gpu_scheduler.inputs.job_numbers import Numbered, Receiver, find_receiver, numbers
from simple_gpu_scheduler.inputs.submit import WholeLine, append, open_queue
from simple_gpu_scheduler.jobfile.parse import LONGEST_COMMAND, LONGEST_LINE, has_command, split_options
from simple_gpu_scheduler.jobfile.shell_comments import find_comments
from simple_gpu_scheduler.jobfile.split import Line, LineCutter
from simple_gpu_scheduler.journal import files, find

_STDIN, _CHUNK = 0, 1024 * 1024
_MOST_ERRORS_SHOWN = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_QUEUES = ("fifo", "follow")
_VARIABLE = "SGS_QUEUE"
_WAY_OUT = f"choose one with --to PATH or {_VARIABLE}"
_EXAMPLES = r"""
simple_gpu_scheduler submit -- python train.py --lr 0.1
simple_gpu_scheduler submit --to gpu.fifo 'python train.py > log.txt   #: gpus=2'
simple_hypersearch 'python train.py --lr {lr}' -p lr 0.1 0.01 | simple_gpu_scheduler submit
"""
_HELP = f"""Add COMMAND, or each line of stdin, to the queue of an active run: a named pipe, or a file that it follows.

The number of each job is printed, one per line, as soon as the run has read it. If that takes more than three seconds,
a message says that the run will number it later; it is in the queue either way.

A COMMAND of one word is a shell line and may set options after `#:`; several words reach the program unchanged. Either
all lines are written or, if one of them is wrong, none. Without --to and {_VARIABLE}, the queue is that of your newest
active run in this directory; if there is none, that of your only run elsewhere. The exit code is 2 if the queue or a
line is wrong, and 1 if writing failed or the run refused a line.

\b
--json: an object
  queue, run, jobs: an array of line, job, refused

job is the number, or null if it is not known yet; refused says why a line is no job; run is null if no active run of
yours reads the queue.
"""


class _Submission(NamedTuple):
    """What is written, and the numbers of those lines that are jobs."""

    lines: list[WholeLine]
    jobs: list[int]
    errors: list[str]


def _submit(to: str | None, run: str, quiet: bool, as_json: bool, command: tuple[str, ...]) -> int:
    _check(to, run, quiet=quiet, as_json=as_json)
    journals = [find.choose(run, find.only_active)] if run else find.all_runs()
    if to is None:
        to = os.environ.get(_VARIABLE)
    path = _queue_of(journals[0]) if run else to or _find_queue()
    if len(command) == 1:
        _refuse_file(command[0], ("--run", run) if run else ("--to", to) if to else ())
    try:
        queue = open_queue(path)  # before the user types in vain
        submission = _cut(_join(command) if command else _read_stdin())
        _refuse_errors(submission)
        receiver = None if quiet else find_receiver(path, journals)
        written = append(path, queue, submission.lines, _say, marks=receiver is not None)
    except UserError as error:
        raise _made_safe(error) from None
    if quiet:
        return 0
    found = numbers(receiver, written, len(submission.jobs)) if receiver else {}
    return _tell(path, receiver, {line: found.get(line) for line in submission.jobs}, as_json=as_json)


def _refuse_file(word: str, options: Sequence[str]) -> None:
    if not os.path.isfile(word):
        return
    from simple_gpu_scheduler.cli.hints import hint_at_submitted  # noqa: PLC0415 - most commands are not files

    if hint := hint_at_submitted(word, options):
        raise UserError(f"nothing was submitted: {safe(hint)}")


def _check(to: str | None, run: str, *, quiet: bool, as_json: bool) -> None:
    if to and run:
        raise UsageError("--to and --run exclude each other")
    if quiet and as_json:
        raise UsageError("--quiet and --json exclude each other")


def _tell(path: str, receiver: Receiver | None, jobs: Mapping[int, Numbered | None], *, as_json: bool) -> int:
    """Say what was submitted, and print the numbers; the exit code."""
    unknown = sum(each is None for each in jobs.values())
    note = ""
    if receiver and unknown:
        which = "it" if len(jobs) == 1 else f"{unknown:,} of them"
        note = f"; run {receiver.run} will number {which} when it reads the queue"
    elif receiver and find.began(receiver.journal, newest=True).get("directory") != _here():
        note = f" (run {receiver.run.rpartition('-')[2]})"  # `logs` needs it, since its default is a run of here
    _say(f"submitted {len(jobs):,} job{'s' if len(jobs) > 1 else ''} to {path}{note}")
    if as_json:
        rows = [
            {"line": line, "job": each and each.job, "refused": each.problem or None if each else None}
            for line, each in jobs.items()
        ]
        print(json.dumps({"queue": os.path.realpath(path), "run": receiver and receiver.run, "jobs": rows}))
    else:
        for each in jobs.values():
            if each and not each.problem:
                print(each.job)
    refused = [(line, each) for line, each in jobs.items() if each and each.problem]
    for line, each in refused:
        _say(f"line {line} was refused as job {each.job}: {each.problem}")
    return SOME_DID_NOT_SUCCEED if refused else 0


def _made_safe(error: UserError) -> UserError:
    return type(error)("\n".join(map(safe, str(error).split("\n"))))


def _say(text: str) -> None:
    print(safe(text), file=sys.stderr, flush=True)


def _queue_of(journal: str) -> str:
    """The queue of a run that was named."""
    run = safe(files.run_of(os.path.realpath(journal)))
    if not files.is_alive(journal):
        raise UserError(f"run {run} is not active; to run its unfinished jobs: {PROGRAM} --resume {run}")
    queues = _queues_of(journal)
    if not queues:
        raise UserError(f"run {run} reads no named pipe and follows no file, so it takes no more jobs")
    return queues[0][1]


def _find_queue() -> str:
    """The queue of the newest active run, preferably of this directory."""
    found = [queue for path in find.all_runs() for queue in _queues_of(path)]
    here = _here()
    for directory, path in found:
        if directory == here:
            return path
    paths = sorted({path for _directory, path in found})
    if not paths:
        raise UserError(
            "none of your active runs reads a named pipe or follows a file; start one, for example "
            f"`{PROGRAM} --follow gpu.fifo`, or {_WAY_OUT}"
        )
    if len(paths) > 1:
        raise UserError(
            f"there are several queues, none of them in this directory: {safe(', '.join(paths))}; {_WAY_OUT}"
        )
    return paths[0]


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _queues_of(journal: str) -> list[tuple[str, str]]:
    """The directory and the queue of an active run: inputs are read one after another, so the first counts."""
    if not files.is_alive(journal):
        return []
    # Of a run that was resumed, the last.
    began = find.began(journal, newest=True)
    paths = [each["path"] for each in began.get("inputs", ()) if each.get("kind") in _QUEUES and each.get("path")]
    return [(began.get("directory", ""), path) for path in paths[:1]]


def _join(words: Sequence[str]) -> bytes:
    """A command's words as one line for the shell; a single word is already such a line, or several."""
    if len(words) == 1:
        return os.fsencode(words[0])
    for word in words:
        if "\n" in word:
            raise UserError(
                f"nothing was submitted: {word!r} contains a newline, and a queue takes one command per line; put the "
                "command into a script and submit that"
            )
    _refuse_misplaced_options(words)
    return os.fsencode(shlex.join(words))


def _refuse_misplaced_options(words: Sequence[str]) -> None:
    """Several words are quoted, so options in one of them would be an argument of the program."""
    for at, word in enumerate(words):
        text = os.fsencode(word)
        start = next((each for each in find_comments(text) if _has_options(text[each:])), None)
        if start is None:
            continue
        line, more = word, "; several commands go to stdin, one per line"
        if start == 0:
            line, more = f"{shlex.join(words[:at])}  {' '.join(words[at:])}", ""
        raise UserError(
            f"nothing was submitted: options go inside the quotes: {PROGRAM} submit -- {shlex.quote(line)}{more}"
        )


def _has_options(comment: bytes) -> bool:
    """A word that is only `#:` may be meant for the program."""
    key, equals, _ = comment[2:].lstrip().partition(b"=")
    return comment.startswith(b"#:") and bool(equals) and key.replace(b"_", b"a").isalnum()


def _read_stdin() -> bytes:
    if os.isatty(_STDIN):
        _say("reading commands from the terminal, one per line; Ctrl-D ends the input")
    data = bytearray()
    try:
        while piece := _read_some():
            data += piece
    except OSError as error:
        raise UserError(f"nothing was submitted: reading stdin failed: {error.strerror}") from None
    return bytes(data)


def _read_some() -> bytes:
    while True:
        try:
            return os.read(_STDIN, _CHUNK)
        except BlockingIOError:  # a process that shares the pipe or terminal has made it non-blocking
            select.select([_STDIN], [], [])


def _cut(text: bytes) -> _Submission:
    """The lines of a text, checked as a scheduler would; blank lines are left out."""
    # At the start of a file it marks the encoding; in the middle of a queue it would be part of a command.
    text = text.removeprefix(_BYTE_ORDER_MARK).removesuffix(b"\n") + b"\n"
    cutter = LineCutter()
    found = cutter.feed(text)
    unfinished = cutter.finish()
    jobs: list[int] = []
    errors: list[str] = []
    for line in found:
        try:
            jobs += [line.number] if _is_job(line) else []
        except ValueError as error:
            errors.append(f"line {line.number}: {error}")
    errors += [
        f"line {line.number}: it ends in a backslash, so the next submitted line would be joined to it; remove "
        "the backslash"
        for line in unfinished
    ]
    pieces = text.split(b"\n")
    starts = [line.number - 1 for line in [*found, *unfinished]]
    parts = ((start, pieces[start:end]) for start, end in zip(starts, [*starts[1:], len(pieces) - 1], strict=True))
    lines = [WholeLine(at + 1, b"\n".join(part) + b"\n") for at, part in parts if any(map(bytes.strip, part))]
    return _Submission(lines, jobs, errors)


def _is_job(line: Line) -> bool:
    """Whether it is more than a blank or a comment. A ValueError says what is wrong with it."""
    stripped = line.text.strip()
    is_comment = stripped.startswith(b"#") and b"\n" not in stripped
    if b"\0" in line.text:
        raise ValueError("it contains a NUL byte, which no command can hold")
    if is_comment and stripped.startswith(b"#:"):
        raise ValueError("defaults would also apply to all lines submitted later; put the options after each command")
    if not stripped or is_comment:
        return False
    if line.size > LONGEST_LINE:
        raise ValueError(f"the line has {line.size:,} bytes; no command with its options is that long")
    command, _options = split_options(line.text)
    if len(command) > LONGEST_COMMAND:
        raise ValueError(f"the command has {len(command):,} bytes; the system accepts at most {LONGEST_COMMAND:,}")
    return has_command(command)


def _refuse_errors(submission: _Submission) -> None:
    errors = submission.errors[:_MOST_ERRORS_SHOWN]
    if len(submission.errors) > len(errors):
        errors.append(f"and {len(submission.errors) - len(errors)} more")
    if errors:
        raise UserError("\n  ".join(["nothing was submitted; the input has errors:", *errors]))
    if not submission.jobs:
        raise UserError("nothing to submit: the input has no commands")


submit_command = Command(
    "submit",
    callback=_submit,
    help=_HELP,
    is_for_program=True,
    argument=Argument("command"),
    sections=[
        Section(
            "Queue",
            [
                Option(
                    ["--to"],
                    metavar="PATH",
                    help=f"The named pipe or file.  [default: {_VARIABLE}, or the queue of an active run]",
                ),
                run_option("see above"),
            ],
        )
    ],
    others=[
        Option(["-q", "--quiet"], is_flag=True, help="Print nothing on success, and do not wait for numbers."),
        Option(["--json", "as_json"], is_flag=True, help="Print the numbers as JSON."),
    ],
    examples=_EXAMPLES,
)
