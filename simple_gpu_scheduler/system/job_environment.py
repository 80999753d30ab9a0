"""The environment of a job: the GPUs it sees, its own variables, and how Python prints. Knows no process."""

import os

from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.base.values import Collection, Mapping

from .marks import TREE, mark

_OWN = (b"CUDA_VISIBLE_DEVICES", b"SGS_JOB", b"SGS_NAME", b"SGS_ATTEMPT", b"SGS_SLOT", b"SGS_RUN", TREE)

_STDOUT = 1
_UNBUFFERED = b"PYTHONUNBUFFERED"


def inherited(environment: Mapping[bytes, bytes]) -> list[bytes]:
    """What a job inherits of the user's environment. CUDA numbers GPUs as NVML does unless the user says otherwise."""
    kept = {b"CUDA_DEVICE_ORDER": b"PCI_BUS_ID", **environment}
    return [b"%s=%s" % item for item in kept.items() if item[0] not in _OWN]


def unbuffered(environment: Mapping[bytes, bytes], redirected: Collection[int] = ()) -> list[bytes]:
    """Makes Python print each line at once where stdout is no terminal, unless the user has set the variable.

    Python would keep up to 8 KiB there: a log would stay empty for long, and forever if the job was killed.
    `redirected` are the streams of the job that go to its log.
    """
    goes_to_terminal = _STDOUT not in redirected and os.isatty(_STDOUT)
    return [] if goes_to_terminal or _UNBUFFERED in environment else [_UNBUFFERED + b"=1"]


def own(attempt: Attempt, run_id: bytes, outer_tree: bytes) -> list[bytes]:
    """The variables of this attempt; the last is the mark."""
    job = attempt.job
    return [
        b"CUDA_VISIBLE_DEVICES=" + (",".join(attempt.gpus).encode() if attempt.gpus else b"-1"),
        b"SGS_JOB=%d" % job.number,
        b"SGS_NAME=" + job.name.encode(),
        b"SGS_ATTEMPT=%d" % attempt.number,
        b"SGS_SLOT=%d" % attempt.slots[0],
        b"SGS_RUN=" + run_id,
        TREE + b"=" + outer_tree + mark(attempt, run_id),
    ]
