"""What the machine file allows: options that are refused, and GPUs that are left out. Pure, except for user names."""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.base.values import Collection, Sequence
from simple_gpu_scheduler.system.users import user_id, user_name

from . import Device, Gpu, Tolerance
from .machine_file import MachineFile
from .names import choose, choose_unlisted


def check_tolerance(tolerance: Tolerance, tolerated: Collection[int], *, ignores: bool, rules: MachineFile) -> None:
    """Refuse to tolerate more of others on a GPU than the machine file allows."""
    limits = rules.limits
    if ignores and not limits.ignore_occupancy:
        raise _refusal(rules, "ignore-occupancy is not allowed")
    if limits.max_used_memory is not None and tolerance.max_used_memory > limits.max_used_memory:
        most, asked = show_size(limits.max_used_memory), show_size(tolerance.max_used_memory)
        raise _refusal(rules, f"max-used-memory is at most {most}, not {asked}")
    if limits.share_with is not None:
        allowed = {_uid(name, rules) for name in limits.share_with}
        for uid in tolerated:
            if uid not in allowed:
                raise _refusal(rules, f"share-with {user_name(uid)} is not allowed")


def check_jobs_per_gpu(jobs: int, rules: MachineFile) -> None:
    """Refuse to share a GPU among more jobs than the machine file allows."""
    most = rules.limits.jobs_per_gpu
    if most is not None and jobs > most:
        raise _refusal(rules, f"jobs-per-gpu is at most {most}, not {jobs}")


def allowed_gpus(
    gpus: Sequence[Gpu], devices: Sequence[Device], rules: MachineFile, *, are_named: bool
) -> tuple[Gpu, ...]:
    """Those of the GPUs that may be used; an error if the user named another, or if none is left."""
    names = rules.limits.gpus
    if names is None:
        return tuple(gpus)
    try:
        allowed = {gpu.lease_name for gpu in (choose(names, devices) if devices else choose_unlisted(names))}
    except ValueError as error:
        raise _refusal(rules, f"gpus: {error}") from None
    left = tuple(gpu for gpu in gpus if gpu.lease_name in allowed)
    if not left or (are_named and len(left) < len(gpus)):
        refused = next(gpu.id for gpu in gpus if gpu not in left)
        raise _refusal(rules, f"GPU {refused} may not be used; allowed: {', '.join(names)}")
    return left


def _uid(name: str, rules: MachineFile) -> int:
    try:
        return user_id(name)
    except ValueError as error:
        raise _refusal(rules, f"share-with: {error}") from None


def _refusal(rules: MachineFile, what: str) -> UserError:
    return UserError(f"{rules.path}, [limits]: {what}")
