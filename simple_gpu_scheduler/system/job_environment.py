"""The environment of a job: the GPUs it sees and its own variables. Pure; knows no process."""

from collections.abc import Mapping

from simple_gpu_scheduler.base.jobs import Attempt

from .marks import TREE, mark

_OWN = (b"CUDA_VISIBLE_DEVICES", b"SGS_JOB", b"SGS_NAME", b"SGS_ATTEMPT", b"SGS_SLOT", b"SGS_RUN", TREE)


def inherited(environment: Mapping[bytes, bytes]) -> list[bytes]:
    """What a job inherits of the user's environment. CUDA numbers GPUs as NVML does unless the user says otherwise."""
    kept = {b"CUDA_DEVICE_ORDER": b"PCI_BUS_ID", **environment}
    return [b"%s=%s" % item for item in kept.items() if item[0] not in _OWN]


def own(attempt: Attempt, run_id: bytes, outer_tree: bytes) -> list[bytes]:
    """The variables of this attempt."""
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
