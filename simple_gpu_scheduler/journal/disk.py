"""What runs keep on disk in the directory for runs, deleting it, and the marks of runs that are kept for good.

No link is followed, and nothing of another user is deleted. It does not know which runs somebody wants to delete.
"""

import os
import stat

from simple_gpu_scheduler.base.errors import BAD_INPUT, UserError
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Callable, Collection, Iterable, Mapping, Sequence

from . import files

_KEEP = ".keep"
_LONGEST_END = 4096
_BLOCK = 512  # the unit of st_blocks, whatever the file system's is
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def names_by_run(directory: str) -> Mapping[str, Sequence[str]]:
    """The names of the files of each run; in the directory for runs alone, so without those beside `--journal FILE`."""
    found: dict[str, list[str]] = {}
    with suppress(OSError):
        for name in sorted(os.listdir(directory)):
            run, _, kind = name.partition(".")
            if kind and files.is_run_id(run):
                found.setdefault(run, []).append(name)
    return found


def size_of(directory: str, names: Iterable[str]) -> int:
    """The bytes that these take."""
    return sum(_size(os.path.join(directory, name)) for name in names)


def _size(path: str) -> int:
    with suppress(OSError):
        state = os.lstat(path)
        inside = os.scandir(path) if stat.S_ISDIR(state.st_mode) else ()
        return _BLOCK * (state.st_blocks + sum(each.stat(follow_symlinks=False).st_blocks for each in inside))
    return 0


def is_to_keep(names: Collection[str]) -> bool:
    """Whether a run with these files is marked."""
    return any(name.endswith(_KEEP) for name in names)


def keep(directory: str, run: str) -> None:
    """Mark a run, so that it is not deleted unless somebody names it. An OSError says why that failed."""
    os.close(os.open(os.path.join(directory, run + _KEEP), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))


def keep_no_longer(directory: str, run: str) -> None:
    """Remove the mark, if there is one."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, run + _KEEP))


def prune(directory: str, most: int, is_needed: Callable[[str], bool]) -> None:
    """Delete the oldest runs beyond the last `most`, but none whose journal is needed, or that may be active."""
    by_run = names_by_run(directory).items()
    journals = [run + files.SUFFIX for run, names in by_run if run + files.SUFFIX in names and not is_to_keep(names)]
    for journal in sorted(journals, reverse=True)[most:]:
        path = os.path.join(directory, journal)
        with suppress(OSError, UserError):
            if not is_needed(path):
                delete(path)


def is_finished(path: str) -> bool | None:
    """Whether nothing is left of a run, by the last line of its journal alone; None if that does not tell.

    Most runs end by deleting another: to parse a record, or to load what folds them, would cost each of them 5 ms.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST_END))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return None
    if not last.startswith(b'{"event":"run ended"') or b'"code":%d,' % BAD_INPUT in last:  # it may have been refused
        return None
    return b'"all_read":true' in last and b'"left":0' in last


def delete(path: str) -> None:
    """Delete the files of the run with this journal. A UserError says why that failed."""
    directory = os.path.dirname(path)
    try:
        with files.opened(path) as fd:
            # Locked, so that nothing resumes it meanwhile.
            if not files.lock(fd, files.SCHEDULER, if_unsure=False) or files.is_kept(fd):
                raise UserError(f"run {files.run_of(path)} may still be active")
            _delete_files(directory, files.run_of(path))
    except FileNotFoundError:  # a link to a journal elsewhere that is gone
        _delete_files(directory, files.run_of(path))


def _delete_files(directory: str, run: str) -> None:
    """The journal last, so that the rest is still listed if it cannot be deleted."""
    fd = os.open(directory, _DIRECTORY)
    try:
        journal = run + files.SUFFIX
        names = names_by_run(directory).get(run, ())
        for name in [*(each for each in names if each != journal), journal]:
            try:
                _delete_at(fd, name)
            except FileNotFoundError:
                continue
            except OSError as error:
                where = safe(os.path.join(directory, name))
                raise UserError(f"cannot delete {where} of run {run}: {error.strerror}") from None
    finally:
        os.close(fd)


def _delete_at(directory: int, name: str, *, may_be_logs: bool = True) -> None:
    state = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if state.st_uid != os.getuid():
        raise PermissionError(1, "it belongs to another user")
    if not (may_be_logs and stat.S_ISDIR(state.st_mode)):
        os.unlink(name, dir_fd=directory)
        return
    logs = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    try:
        for each in os.listdir(logs):
            _delete_at(logs, each, may_be_logs=False)
    finally:
        os.close(logs)
    os.rmdir(name, dir_fd=directory)
