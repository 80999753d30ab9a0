"""What a scheduler and its keeper say to each other, as values, and how that is written.

Each message has a number, and says up to which of the other side's messages everything has been done and recorded: what
is not, a keeper keeps for whoever comes next. It is written as fields without NULs. How messages travel, and how open
files do, is up to `connection`.
"""

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.values import Any, Mapping, NamedTuple
from simple_gpu_scheduler.system.processes import Used


class Serve(NamedTuple):
    """To the keeper, first: what it serves. Its files: the directory of the jobs, and the journal if there is one.

    `scheduler` is the pid of the one that it serves.
    """

    scheduler: int = 0
    run_id: bytes = b""
    grace: bytes = b"10.0"  # seconds for what an attempt leaves behind


class Start(NamedTuple):
    """To the keeper: start an attempt, unless it is under way.

    Its files: one for each of the digits in `streams`, which becomes that stream of the program; then the leases that
    it inherits. `signatures` has the name of each lease and what to write there, with `PID` for the program's.
    """

    attempt: bytes = b""
    argv: tuple[bytes, ...] = ()
    environment: tuple[bytes, ...] = ()  # beside what all have
    streams: bytes = b""
    signatures: tuple[bytes, ...] = ()


class Stop(NamedTuple):
    """To the keeper: ask an attempt and what it left behind to end, or with `force` kill it."""

    attempt: bytes = b""
    force: int = 0


class Recorded(NamedTuple):
    """To the keeper: nothing but the number up to which everything was recorded, which each message has."""


class TakeIn(NamedTuple):
    """To the keeper: copy a pipe to a file; see `Intake`. Its files: the pipe, the file and a connection.

    When the last writer of a pipe that `is_named` has gone, another may come. With `holds` its other end is held open
    while there is none, and a line that the last one did not end gets its end, so that the next does not continue it.
    """

    granted: int = 0  # how long the file may become for now
    is_named: int = 0
    holds: int = 0
    by_null: int = 0  # whether its lines end in NUL


class Finish(NamedTuple):
    """To the keeper: all attempts are over and recorded."""


class Ready(NamedTuple):
    """From the keeper, first: it works."""


class MainExited(NamedTuple):
    """From the keeper: the main process has ended; what it left behind is being ended."""

    attempt: bytes = b""


class AttemptEnded(NamedTuple):
    """From the keeper: nothing of the attempt is left, or it could not be started, for the reason with this `errno`.

    `was_told`: it had been signalled before its main process ended. `swept` counts the processes that it left behind
    and that were ended, `beyond_us` has the pids of those that this user may not end, and `server` is the terminal
    multiplexer among them, such as tmux. `used` is what it used (`written_use`), unless it ended at once.
    """

    attempt: bytes = b""
    status: int = 0  # as `wait` gives it
    errno: int = 0
    was_told: int = 0
    swept: int = 0
    beyond_us: bytes = b""
    server: bytes = b""
    used: bytes = b""


class Obeyed(NamedTuple):
    """From the keeper: it has done what `Stop` said."""

    attempt: bytes = b""


class BeyondUs(NamedTuple):
    """From the keeper: this user may not signal the attempt."""

    attempt: bytes = b""


Message = Serve | Start | Stop | Recorded | TakeIn | Finish | Ready | MainExited | AttemptEnded | Obeyed | BeyondUs

# Names stay, and are only added to: the two sides may be of different versions one day.
_TYPES: Mapping[bytes, type[Any]] = {kind.__name__.encode(): kind for kind in Message.__args__}
PID = b"\1pid"  # a signature has no other control character but the newline


class Letter(NamedTuple):
    """A message, its number, and the last number of the other side of which all was recorded."""

    number: int
    recorded: int
    message: Message


def name_of(key: Key) -> bytes:
    """An attempt as messages call it."""
    return b"%d.%d" % key


def key_of(name: bytes) -> Key:
    """The attempt that messages call so."""
    job, attempt = name.split(b".")
    return int(job), int(attempt)


def written_use(used: Used) -> bytes:
    """What an attempt used, as a field: microseconds of CPU time, and bytes of memory, read and written."""
    return b"%d %d %d %d" % (used.seconds * 1e6, used.memory, used.read, used.written)


def use_of(field: bytes) -> Used:
    """What was written so."""
    microseconds, memory, read, written = map(int, field.split())
    return Used(microseconds / 1e6, memory, read, written)


def encode(letter: Letter) -> bytes:
    """As it is written."""
    number, recorded, message = letter
    fields = [b"%d" % number, b"%d" % recorded, type(message).__name__.encode()]
    for value in message:
        if isinstance(value, tuple):
            fields.append(b"%d" % len(value))
            fields += value
        else:
            fields.append(value if isinstance(value, bytes) else b"%d" % value)
    return b"\0".join(fields)


def decode(data: bytes) -> Letter:
    """As it was meant. Fields that it does not have keep their defaults, and those that we do not know are ignored."""
    number, recorded, kind, *fields = data.split(b"\0")
    type_ = _TYPES[kind]
    values: list[object] = []
    at = 0
    for default in type_._field_defaults.values():
        if at == len(fields):
            break
        field, at = fields[at], at + 1
        if isinstance(default, tuple):
            at += int(field)
            values.append(tuple(fields[at - int(field) : at]))
        else:
            values.append(field if isinstance(default, bytes) else int(field))
    return Letter(int(number), int(recorded), type_(*values))
