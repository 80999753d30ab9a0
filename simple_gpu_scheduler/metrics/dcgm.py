"""Files that tell dcgm-exporter which jobs run on which GPU: one for each GPU, named by its index, with a job per line.

They are in a directory that others may write to as well. No link is followed, and what is not ours stays as it is.
"""

import errno
import os
import stat

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import re, suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Iterable, Mapping, Sequence
from simple_gpu_scheduler.system.files import replace_file

from .runs import ActiveRun, NamesOfGpu

_NAME = r"\d+(\.\d+)?"
_OURS = rb"(?:\d{8}-\d{6}-[0-9a-f]{6}\.\d+\n)+"  # RUN.JOB
_MOST = 64 * 1024
_FOR_ALL = 0o644  # dcgm-exporter is another user


def jobs_by_gpu(runs: Iterable[ActiveRun], names_of: NamesOfGpu) -> dict[str, list[str]]:
    """The jobs on each GPU by its index, as `RUN.JOB`. MIG instances have no such index and are left out."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for job, running in sorted(run.fold.running.items()):
            for gpu in running.gpus:
                index = names_of(gpu)[0]
                if index.isdigit():
                    found.setdefault(index, []).append(f"{run.fold.run}.{job}")
    return found


class JobMap:
    """The directory. At the end, no file of ours is left."""

    def __init__(self, path: str) -> None:
        """A UserError says why it cannot be this directory."""
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            reason = "it is a symbolic link; name the directory itself" if os.path.islink(path) else error.strerror
            reason = f"{reason}; create the directory first" if error.errno == errno.ENOENT else reason
            raise UserError(f"cannot use {safe(path)} for DCGM's job map: {reason}") from None
        if not os.access(path, os.W_OK | os.X_OK):
            os.close(self._fd)
            raise UserError(f"cannot use {safe(path)} for DCGM's job map: you may not write there")
        self._path = path
        self._written: dict[str, Sequence[str]] = {}
        self._refused: set[str] = set()
        self._is_first = True

    def write(self, jobs: Mapping[str, Sequence[str]]) -> list[str]:
        """Make the files say this. Sentences tell what could not be done, each once."""
        problems, there = [], {*os.listdir(self._fd)}
        changed = {gpu for gpu in jobs if self._written.get(gpu) != jobs[gpu] or gpu not in there}
        for name in sorted(self._stale(jobs, there) | changed):
            problem = self._change(name, jobs.get(name, ()))
            if problem and name not in self._refused:
                problems.append(f"{safe(self._path)}/{name}: {problem}")
            (self._refused.add if problem else self._refused.discard)(name)
        self._is_first = False
        return problems

    def _stale(self, jobs: Mapping[str, Sequence[str]], there: Iterable[str]) -> set[str]:
        """What was written and is no longer so; at first also what an exporter left that was killed."""
        left = [name for name in there if re.fullmatch(_NAME, name)] if self._is_first else ()
        return ({*left} | self._written.keys()) - jobs.keys()

    def _change(self, name: str, jobs: Sequence[str]) -> str:
        """Write or remove one; a sentence if it is not ours or that failed."""
        try:
            if not self._is_ours(name):
                self._written.pop(name, None)
                return "it was not written by this program and is left alone" if jobs else ""
            if jobs:
                text = "".join([f"{job}\n" for job in jobs]).encode()
                replace_file(f"/proc/self/fd/{self._fd}/{name}", text, mode=_FOR_ALL)
                self._written[name] = list(jobs)
            else:
                self._written.pop(name, None)
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=self._fd)
        except OSError as error:
            return error.strerror or "it cannot be written"
        return ""

    def _is_ours(self, name: str) -> bool:
        """Whether it is absent, or a file that this user's exporter wrote."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd)
        except FileNotFoundError:
            return True
        except OSError:  # a link, or nobody's to read
            return False
        try:
            state = os.fstat(fd)
            is_plain = stat.S_ISREG(state.st_mode) and state.st_uid == os.getuid() and state.st_nlink == 1
            return is_plain and re.fullmatch(_OURS, os.read(fd, _MOST)) is not None
        finally:
            os.close(fd)

    def close(self) -> None:
        """Remove what is ours."""
        self.write({})
        os.close(self._fd)
