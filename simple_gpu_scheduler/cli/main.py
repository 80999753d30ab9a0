"""The two programs: argv -> options -> one call -> exit code.

This file has what both need: open streams, and an error message for every way to fail.
"""

import errno
import gc
import os
import sys

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import BAD_INPUT, BUG, SOME_DID_NOT_SUCCEED, SUCCEEDED, UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import signal, suppress
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Callable, NoReturn, Sequence

if TYPE_CHECKING:
    from simple_gpu_scheduler.keeper.client import KeeperClient


# With fewer, not even a run on one GPU can start, nor Python load what it needs to say so.
_FEWEST_FILES = 16
_HYPERSEARCH = "simple_hypersearch"


def simple_gpu_scheduler() -> NoReturn:
    """The commands `simple_gpu_scheduler` and `sgs`."""

    def call() -> object:
        if sys.platform != "linux":
            raise UserError(
                "this program runs only on Linux: elsewhere it cannot find the processes that a job leaves running"
            )
        if os.sysconf("SC_OPEN_MAX") < _FEWEST_FILES:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        argv = sys.argv[1:]
        keeper = _make_keeper() if _may_run_jobs(argv) else None
        if _asks_for_completion(PROGRAM):
            from .group import main  # noqa: PLC0415 - what a command needs is loaded under the guard

            return main.main(prog_name=PROGRAM, standalone_mode=False)
        from .call import call_by_name  # noqa: PLC0415 - as above

        return call_by_name(argv, keeper)

    _exit_with(PROGRAM, call)


def _may_run_jobs(args: Sequence[str]) -> bool:
    """A quick look; when it errs, there is a keeper that has nothing to do and leaves with us."""
    if {"--dry-run", "--help", "-h", "--version"}.intersection(args):
        return False
    return not args or not args[0].isalpha() or os.path.exists(args[0])


def _make_keeper() -> "KeeperClient":
    """Create it before the rest is loaded: so both are loaded at once, and less memory is shared with the fork."""
    from simple_gpu_scheduler.keeper.client import KeeperClient  # noqa: PLC0415 - as below

    keeper = KeeperClient()
    with suppress(OSError):  # there can be no more processes; it is tried again for the first job
        keeper.create()
    return keeper


def simple_hypersearch() -> NoReturn:
    """The command `simple_hypersearch`."""

    is_open = _is_open(1)  # if stdout is closed, all output would be lost

    def call() -> object:
        if not is_open:
            raise _NoOutputError("cannot write the output: stdout is closed")
        from .call import call as call_command  # noqa: PLC0415 - as above
        from .commands.hypersearch import hypersearch  # noqa: PLC0415 - as above

        if _asks_for_completion(_HYPERSEARCH):
            from .click_extras import ClickCommand  # noqa: PLC0415 - as above

            return ClickCommand(hypersearch).main(prog_name=_HYPERSEARCH, standalone_mode=False)
        return call_command(hypersearch, sys.argv[1:], _HYPERSEARCH)

    _exit_with(_HYPERSEARCH, call)


def _asks_for_completion(program: str) -> bool:
    """Whether a shell does, in click's way."""
    return bool(os.environ.get(f"_{program}_COMPLETE".upper()))


class _NoOutputError(UserError):
    code = SOME_DID_NOT_SUCCEED


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _exit_with(name: str, call: Callable[[], object]) -> NoReturn:
    gc.disable()  # loading makes no garbage, and searching for it takes 2 ms
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until a run handles it, Ctrl-C ends us without a message
    _open_closed_streams()
    code = _code_of(name, call)
    # Finalizing the interpreter takes 4 ms, and would crash threads that still wait.
    os._exit(code)


def _code_of(name: str, call: Callable[[], object]) -> int:
    has_ended = False
    try:
        result = call()
        has_ended = True
        sys.stdout.flush()
    except UserError as error:
        from simple_gpu_scheduler.base.text import safe  # noqa: PLC0415 - else loaded before the keeper is forked

        _say("\n".join(safe(line) for line in f"{name}: {error}".split("\n")))
        return error.code
    except BrokenPipeError:  # the reader of our own output has gone: to a filter that was done, that is no failure
        return SUCCEEDED if has_ended else SOME_DID_NOT_SUCCEED
    except Exception as error:  # noqa: BLE001 - nothing passes without a sentence
        return _code_of_unexpected(name, error)
    return result if isinstance(result, int) else 0


def _code_of_unexpected(name: str, error: Exception) -> int:
    """Those that may come from anywhere; whatever is left is a bug, and its report is all that helps."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        most = os.sysconf("SC_OPEN_MAX")
        _say(f"{name}: too many open files; at most {most} are allowed here. Raise the limit with: ulimit -n 1024")
        return BAD_INPUT
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        _say(f"{name}: cannot write the output: {error.strerror}")
        return SOME_DID_NOT_SUCCEED
    if isinstance(error, FileNotFoundError) and not _has_directory():
        _say(f"{name}: the current directory was deleted; change to another one")
        return BAD_INPUT
    return _report_bug(name)


def _has_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _say(text: str) -> None:
    with suppress(OSError):  # stderr is closed or full: the exit code has to be enough
        print(text, file=sys.stderr, flush=True)


def _report_bug(name: str) -> int:
    import platform  # noqa: PLC0415 - with the next 2 ms that only a bug needs
    import traceback  # noqa: PLC0415 - see above

    _say(
        f"{traceback.format_exc()}\n{name}: this is a bug in the program, not a mistake of yours. Please report the "
        f"lines above (they may show your commands) with: {name} {__version__}, Python {platform.python_version()}, "
        f"{platform.platform()}. Running jobs continue."
    )
    return BUG


def _open_closed_streams() -> None:
    """Open what was closed (`2>&-`), so that no file of ours gets the number of a stream and then its text."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if not _is_open(fd):
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            setattr(sys, name, os.fdopen(fd, mode, closefd=False))
