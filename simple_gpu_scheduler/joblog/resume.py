"""A job log -> the jobs not to run again, and a parser that skips them, by the rules of GNU parallel. Pure.

A row is a job that has ended. Only numbers count: with `--resume` a job that has a row is not run again, with
`--resume-failed` one that has a row of success anywhere. It knows nothing of files, or of what is run.
"""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import Any, Iterable, NamedTuple, Sequence
from simple_gpu_scheduler.events import ReadMark
from simple_gpu_scheduler.jobfile.parse import LineParser, Refusal, split_options

HEADER = b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"
_COLUMNS = HEADER.count(b"\t") + 1
_UNKNOWN = -1
# The host in the log of a simulation.
SIMULATED = b"simulated"

# Of a torn row only the number may be left. Two rows that ran into one show by fields that are not numbers.
_ROW = re.compile(rb"(\d{1,18})\t(?:[^\t]*\t[^\t]+\t[^\t]+\t-?\d+\t-?\d+\t(-?\d{1,9})\t(-?\d{1,9})\t(.*))?", re.DOTALL)


class LogRow(NamedTuple):
    """An ended job. In a torn row the codes are -1, and the command is cut or missing."""

    number: int
    exit_code: int = _UNKNOWN
    signal: int = _UNKNOWN
    command: bytes = b""
    is_whole: bool = False

    @property
    def is_success(self) -> bool:
        """Whether it succeeded; a row torn before its codes does not say so."""
        return self.exit_code == 0 and self.signal == 0


class Log(NamedTuple):
    """A parsed job log. `unreadable` counts the lines that are not rows."""

    rows: Sequence[LogRow]
    unreadable: int


def read_joblog(data: bytes) -> Log:
    """Parse all rows. A ValueError says that it is not a job log, or one of a simulation."""
    if is_simulated(data):
        raise ValueError("it was written by --engine simulated, which runs nothing")
    lines = _without_header(data).split(b"\n")
    torn = lines.pop()
    rows = [_row(line, is_whole=True) for line in lines]
    if torn:
        rows.append(_row(torn, is_whole=False))
    found = [row for row in rows if row]
    return Log(found, len(rows) - len(found))


def is_simulated(data: bytes) -> bool:
    """Whether what it tells of never ran."""
    return data[len(HEADER) :].partition(b"\n")[0].split(b"\t")[1:2] == [SIMULATED]


def _without_header(data: bytes) -> bytes:
    if data.startswith(HEADER):
        return data[len(HEADER) :]
    if HEADER.startswith(data):  # also an empty file: its writer got no further
        return b""
    raise ValueError("it does not start with the header of a job log (Seq Host Starttime ...)")


def _row(line: bytes, *, is_whole: bool) -> LogRow | None:
    match = _ROW.match(line)
    if not match:
        return None
    number, exit_code, signal, command = match.groups()
    if command is None:
        return LogRow(int(number))
    return LogRow(int(number), int(exit_code), int(signal), command, is_whole)


def continuation(data: bytes) -> tuple[int, bytes]:
    """How to resume a job log: how many of its bytes stay, and what to write before the next row.

    A torn row gets its missing columns, since GNU parallel refuses a log with an incomplete row, and appends to an
    unfinished one. A torn number is unknown.
    """
    if not _without_header(data):
        return (len(data), b"") if data == HEADER else (0, HEADER)
    size = data.rfind(b"\n") + 1
    torn = data[size:]
    columns = torn.count(b"\t")
    if not torn or not columns:
        return size, b""
    if columns >= _COLUMNS - 1:
        return len(data), b"?\n" if torn.endswith(b"\t") else b"\n"
    return data.rfind(b"\t") + 1, b"-1\t" * (_COLUMNS - 1 - columns) + b"?\n"


def skipped(rows: Iterable[LogRow], *, resume_failed: bool) -> frozenset[int]:
    """The numbers of the jobs that are not run again."""
    return frozenset(row.number for row in rows if row.is_success or not resume_failed)


def differs(row: LogRow, job: Job) -> bool:
    """Whether the row has another command than the job. GNU parallel does not check, and includes options."""
    if not row.is_whole or row.command == b"?":
        return False
    logged = row.command.replace(b"\0", b"\n").rstrip()
    command = job.command.rstrip()
    return logged != command and _without_options(logged) != command


def _without_options(command: bytes) -> bytes:
    try:
        return split_options(command)[0].rstrip()
    except ValueError:
        return command


class SkippingParser:
    """A `LineParser` that skips the jobs of a log.

    GNU parallel gives numbers to comments too, and to blank lines unless told `-r`. A log that has rows of such lines
    is its, and then jobs get the numbers that they have there.
    """

    def __init__(self, parser: LineParser, rows: Sequence[LogRow], *, resume_failed: bool) -> None:
        self._parser = parser
        self._rows = {row.number: row for row in rows}
        self._skipped = skipped(rows, resume_failed=resume_failed)
        self._succeeded = skipped(rows, resume_failed=True)
        commands = [row.command.lstrip() for row in rows if row.is_whole]
        self._counts_blanks = b"" in commands
        self._counts_comments = any(command.startswith(b"#") and b"\0" not in command for command in commands)
        self._ahead = 0  # how many lines took a number there and take none here
        self._numbers: dict[int, int] = {}
        self.succeeded = self.failed = self.differing = 0
        self.first_differing: Job | None = None

    @property
    def stay_failed(self) -> frozenset[int]:
        """The numbers of jobs that failed and are not run again. Jobs that depend on them must not start."""
        return self._skipped - self._succeeded

    @property
    def defaults(self) -> dict[str, Any]:
        """See `LineParser`."""
        return self._parser.defaults

    def begin(self, name: str, mark: ReadMark | None = None, *, all_new: bool = False) -> None:  # noqa: ARG002
        """See `LineParser`."""
        self._parser.begin(name, mark)

    def parse(self, line: int, text: bytes, size: int) -> Job | Refusal | None:
        """See `LineParser`; nothing for a job that is left out. A job waits no more for one that has succeeded."""
        parsed = self._parser.parse(line, text, size)
        if parsed is None:
            self._ahead += self._counts_comments if text.strip() else self._counts_blanks
            return None
        number = parsed.number + self._ahead
        if isinstance(parsed, Refusal):
            return parsed._replace(number=number)
        if parsed.name:
            self._numbers[parsed.number] = number
        job = parsed._replace(number=number, after=self._waited_for(parsed))
        if number not in self._skipped:
            return job
        self._skip(job)
        return None

    def _waited_for(self, job: Job) -> tuple[int, ...]:
        numbers = (self._numbers[number] for number in job.after)
        return tuple(number for number in numbers if number not in self._succeeded)

    def _skip(self, job: Job) -> None:
        if job.number in self._succeeded:
            self.succeeded += 1
        else:
            self.failed += 1
        if differs(self._rows[job.number], job):
            self.differing += 1
            self.first_differing = self.first_differing or job


def skipping(parser: LineParser, path: str, *, resume_failed: bool) -> SkippingParser:
    """The parser that skips what is in the log. Create it before the sink opens the log."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise UserError(f"cannot read the job log {path}: {error.strerror}") from None
    try:
        log = read_joblog(data)
    except ValueError as error:
        raise UserError(f"{path} is not a job log: {error}; give the one that the run wrote with --joblog") from None
    return SkippingParser(parser, log.rows, resume_failed=resume_failed)


def sentence(parser: SkippingParser, path: str) -> str:
    """What was skipped, once all of the input was read."""
    failed = f", {parser.failed} did not (to retry: --resume-failed)" if parser.failed else ""
    text = f"skipped, since they are in the job log {path}: {parser.succeeded} succeeded{failed}"
    if parser.first_differing:
        text += (
            f"; {parser.differing} of them had another command there, the first at {parser.first_differing.place}: "
            "jobs are matched by number, so the input must be the same"
        )
    return text
