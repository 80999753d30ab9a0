"""The shell and the directory of the jobs: checking both, and entering the directory."""

import errno
import os

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.run.options import ExecutionOptions


def check(execution: ExecutionOptions) -> ExecutionOptions:
    """The same options, with the full path of the shell. A UserError says what is wrong with one of them."""
    execution = execution._replace(shell=_find_shell(execution.shell))
    directory = execution.chdir
    if directory and not (os.path.isdir(directory) and os.access(directory, os.X_OK)):
        why = errno.ENOENT
        if os.path.exists(directory):
            why = errno.EACCES if os.path.isdir(directory) else errno.ENOTDIR
        raise UserError(f"--chdir {directory}: {os.strerror(why)}")
    return execution


def _find_shell(shell: str) -> str:
    directories = [""] if "/" in shell else os.get_exec_path()
    for path in (os.path.join(directory, shell) for directory in directories):
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return os.path.abspath(path)
    raise UserError(f"--shell {shell}: no such program, or not executable")


def enter(directory: str | None) -> None:
    """Change to the jobs' directory, since posix_spawn cannot set it for the jobs alone."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except OSError as error:
        raise UserError(f"--chdir {directory}: {error.strerror}") from None
