"""The environment of a job: which GPUs it sees and what it is told of itself. Pure; knows no process."""

from collections.abc import Mapping

from simple_gpu_scheduler.jobs import Attempt

RUN, JOB, ATTEMPT = b"SGS_RUN", b"SGS_JOB", b"SGS_ATTEMPT"


def environment_of(attempt: Attempt, run_id: str, inherited: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What the user's environment becomes for this attempt. CUDA counts as NVML does unless the user says otherwise."""
    job = attempt.job
    environment = {b"CUDA_DEVICE_ORDER": b"PCI_BUS_ID", **inherited}
    environment[b"CUDA_VISIBLE_DEVICES"] = ",".join(attempt.gpus).encode() if attempt.gpus else b"-1"
    environment[JOB] = b"%d" % job.number
    environment[b"SGS_NAME"] = job.name.encode()
    environment[ATTEMPT] = b"%d" % attempt.number
    environment[b"SGS_SLOT"] = b"%d" % attempt.slots[0]
    environment[RUN] = run_id.encode()
    return environment
