"""What a lease file says about its holder, for people and for schedulers inside a job. Pure.

Only the lock counts; this is a note that anybody could have written. It holds pids, marks of attempts, and the name of
a job if it has one. Of what a user typed, it holds only names, never commands.
"""

from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.system.leftovers import is_hidden
from simple_gpu_scheduler.system.users import owner, user_name

from . import Holder

SIZE = 4096
_LONGEST_NAME = 40
_FOR_THE_REST = 300  # bytes of the record beside the marks; enough for any name
_MOST_SHOWN = 3


class Record(NamedTuple):
    """The process that holds a lease, the job's if there is one; and the attempts that it is held for.

    `job` and `name` are those of the process, if it is a job with a name.
    """

    pid: int = 0
    marks: tuple[bytes, ...] = ()
    job: int = 0
    name: str = ""


def encode(record: Record, pid: bytes = b"") -> bytes:
    """As two lines, which overwrite what was there; whatever remains after them means nothing.

    `pid` is a word instead of the number, which whoever writes it replaces. The second line was added later, and names
    the pid again: a program that does not know it writes only the first.
    """
    pid = pid or b"%d" % record.pid
    marks = b"".join(record.marks)
    while len(marks) >= SIZE - _FOR_THE_REST:  # of very many, the newest; each mark starts with a slash
        marks = marks[marks.index(b"/", 1) :]
    name = record.name[:_LONGEST_NAME].encode("utf-8", "replace")
    return b"sgs1 %10s %s\n%s\n" % (pid, marks, b"job %d of %s %s" % (record.job, pid, name) if name else b"")


def decode(data: bytes) -> Record:
    """Parse it; an empty record if no scheduler wrote it."""
    match = re.match(rb"sgs1 +(\d{1,10}) ([\w./-]*)\n", data[:SIZE], re.ASCII)
    if not match:
        return Record()
    marks = tuple(b"/" + mark for mark in match[2].split(b"/")[1:])
    return Record(int(match[1]), marks, *_named(data[match.end() : SIZE], match[1]))


def _named(line: bytes, pid: bytes) -> tuple[int, str]:
    match = re.match(rb'job (\d{1,9}) of %s ([^\n"]+)\n' % pid, line)
    name = match[2].decode("utf-8", "replace")[:_LONGEST_NAME] if match else ""
    return (int(match[1]), name) if match and name.isprintable() else (0, "")


def is_one_of_ours(record: Record, tree: bytes) -> bool:
    """Whether the lease is held for an attempt that a process with this `SGS_TREE` is part of."""
    around = set(tree.split(b"/")[1:])
    return any(mark[1:] in around for mark in record.marks)


def show_holder(record: Record, age: float) -> Holder:
    """`leased by bob (pid 4242, job 4 "wide" of run 5e9355) for 2 h`. The record is `age` seconds old."""
    uid = owner(record.pid) if record.pid else -1
    what = _what(record)
    if uid < 0 and not (record.pid and is_hidden(record.pid)):
        return Holder(f"leased by a process that is not visible from here{f' ({what})' if what else ''}", "unseen")
    name = user_name(uid) if uid >= 0 else "another user"
    details = f"pid {record.pid}, {what}" if what else f"pid {record.pid}"
    return Holder(f"leased by {name} ({details}) for {show_duration(max(0.0, age))}", name)


def _what(record: Record) -> str:
    """What holds it, by the newest mark."""
    marks = [match for mark in record.marks if (match := re.fullmatch(rb"/([\w-]+)(?:\.(\d+)\.\d+)?", mark))]
    if not marks:
        return ""
    run = marks[-1][1].decode()
    if re.fullmatch(r"lease-\d+-\d+", run):
        return "lease()"
    if re.fullmatch(r"run-\d+-\d+", run):
        return "simple_gpu_scheduler run"
    jobs = sorted({int(match[2]) for match in marks if match[1].decode() == run and match[2]})
    return f"{_show_jobs(jobs, record)} of run {run.rpartition('-')[2]}" if jobs else ""


def _show_jobs(jobs: list[int], record: Record) -> str:
    if len(jobs) == 1:
        return f'job {jobs[0]} "{record.name}"' if record.name and record.job == jobs[0] else f"job {jobs[0]}"
    more = f" and {len(jobs) - _MOST_SHOWN} more" if len(jobs) > _MOST_SHOWN else ""
    return f"jobs {', '.join(map(str, jobs[:_MOST_SHOWN]))}{more}"
