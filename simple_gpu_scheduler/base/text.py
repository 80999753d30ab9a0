"""Jobs, places and outcomes as text that is safe to print on a terminal; and printing it."""

import sys
import time

from simple_gpu_scheduler.base.stdlib import re, signal
from simple_gpu_scheduler.base.values import Sequence

from .gpu_waits import Wait
from .jobs import Job, Outcome

# Control characters, and those that reverse text: a command must not move the cursor or hide its end.
# Compiled when first needed, which is later than the start.
_UNSAFE = r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
_LONGEST_SHOWN = 1000
BLOCKS = "▁▂▃▄▅▆▇█"


def show_command(command: bytes) -> str:
    """The command on one line; unprintable characters are escaped, and a very long command is cut."""
    if len(command) > _LONGEST_SHOWN:
        return safe(command[:_LONGEST_SHOWN].decode("utf-8", "backslashreplace")) + "…"
    return safe(command.decode("utf-8", "backslashreplace").strip())


def safe(text: str) -> str:
    """The text with control characters written out: `\\x1b`, `\\n`."""
    if text.isprintable():
        return text
    return re.sub(_UNSAFE, lambda match: match[0].encode("unicode_escape").decode(), text)


def visible(text: str) -> str:
    """The text with bytes that are not UTF-8 written out: `\\xff`. Many JSON parsers refuse lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def show_gpus(gpus: Sequence[str]) -> str:
    """`gpu 0`, `gpus 0,1`, `all GPUs`, or `cpu` for none."""
    if not gpus:
        return "cpu"
    return "all GPUs" if gpus[0] == "all" else f"gpu{'s' * (len(gpus) > 1)} {','.join(gpus)}"


def show_wait(gpu: str, sentence: str) -> str:
    """Why one GPU, or several for the same reason (`0,1`), are not free."""
    return f"{show_gpus(gpu.split(','))}: {sentence}"


def show_job(job: Job) -> str:
    """Which job: `job 3 (line 7)`, with its name if it has one."""
    name = f' "{job.name}"' if job.name else ""
    return f"job {job.number}{name} ({safe(str(job.place))})"


def show_outcome(outcome: Outcome) -> str:
    """How it ended: `failed with exit code 1`, `was killed by SIGKILL`, `timed out`."""
    if outcome.kind == "failed":
        # This is how a shell reports a killed command: 137 is KILL, which often means that memory ran out.
        by_signal = f" ({_signal_name(outcome.code - 128)})" if 128 < outcome.code < 160 else ""  # noqa: PLR2004
        return f"failed with exit code {outcome.code}{by_signal}"
    if outcome.kind == "killed":
        return f"was killed by {_signal_name(outcome.code)}"
    if outcome.kind == "not started":
        return f"was not started: {outcome.reason}"
    if outcome.kind == "stalled" and outcome.reason:
        return f"stalled ({outcome.reason})"
    return outcome.kind


def show_waits(waits: Sequence[Wait], override: str = "--share-with me") -> str:
    """Why GPUs are not free: `gpu 1: alice python 11.2 GiB for 2 h · gpu 2: leased by bob (pid 4242, lease()) for 3 h`.

    A way to start anyway is named only where the user has nobody to ask.
    """
    return " · ".join(
        safe(show_wait(wait.gpu, wait.sentence)) + (f" (yours; to share the GPU: {override})" if wait.is_mine else "")
        for wait in waits
    )


def show_curve(shares: Sequence[float | None]) -> str:
    """Per cent as a small curve: `▁▅█`. A blank for what is unknown."""
    last = len(BLOCKS) - 1
    return "".join(
        [" " if share is None else BLOCKS[max(0, min(last, int(share * len(BLOCKS) / 100)))] for share in shares]
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


def can_print(text: str) -> bool:
    """Whether the locale has these characters."""
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def print_text(text: str) -> None:
    """Print; characters that the locale lacks are escaped."""
    print_bytes(text.encode(sys.stdout.encoding, "backslashreplace") + b"\n")


def print_bytes(data: bytes) -> None:
    """Print as it is."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def show_moment(at: float) -> str:
    """A date and time, as a wall clock shows it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
