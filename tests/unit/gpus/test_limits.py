"""What the machine file allows."""

import os

import pytest

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.gpus import Device, Gpu, Tolerance
from simple_gpu_scheduler.gpus.limits import allowed_gpus, check_jobs_per_gpu, check_tolerance
from simple_gpu_scheduler.gpus.machine_file import MachineFile, MachineLimits
from simple_gpu_scheduler.gpus.names import choose

GIB = 1 << 30
DEVICES = tuple(Device(str(n), f"GPU-{n}a") for n in range(4))
ALL = tuple(Gpu(str(n), f"GPU-{n}a") for n in range(4))


def rules(**limits) -> MachineFile:
    return MachineFile("/etc/it.toml", limits=MachineLimits(**limits))


def test_without_limits_all_is_allowed() -> None:
    check_tolerance(Tolerance(0, 80 * GIB), [0, 1, 2], ignores=True, rules=rules())
    check_jobs_per_gpu(1000, rules())
    assert allowed_gpus(ALL, DEVICES, rules(), are_named=True) == ALL
    assert rules().cap is None


@pytest.mark.parametrize(
    ("limits", "tolerance", "tolerated", "ignores", "sentence"),
    [
        ({"ignore_occupancy": False}, Tolerance(), (), True, "ignore-occupancy is not allowed"),
        (
            {"max_used_memory": GIB},
            Tolerance(0, 2 * GIB),
            (),
            False,
            "max-used-memory is at most 1.0 GiB, not 2.0 GiB",
        ),
        ({"share_with": ("me",)}, Tolerance(), (os.getuid() + 1,), False, "share-with "),
        ({"share_with": ()}, Tolerance(), (os.getuid(),), False, "share-with "),
        ({"share_with": ("no such user",)}, Tolerance(), (1,), False, "share-with: there is no user 'no such user'"),
    ],
)
def test_to_tolerate_more_of_others_than_is_allowed_is_refused(
    limits: dict[str, object], tolerance: Tolerance, tolerated: tuple[int, ...], ignores: bool, sentence: str
) -> None:
    with pytest.raises(UserError) as caught:
        check_tolerance(tolerance, tolerated, ignores=ignores, rules=rules(**limits))
    assert str(caught.value).startswith(f"/etc/it.toml, [limits]: {sentence}")


def test_what_the_limits_allow_is_not_refused() -> None:
    strict = rules(ignore_occupancy=False, max_used_memory=2 * GIB, share_with=("me",), jobs_per_gpu=2)
    check_tolerance(Tolerance(0, 2 * GIB), [os.getuid()], ignores=False, rules=strict)
    check_jobs_per_gpu(2, strict)
    with pytest.raises(UserError, match="jobs-per-gpu is at most 2, not 3"):
        check_jobs_per_gpu(3, strict)


@pytest.mark.parametrize("names", [("0", "2"), ("GPU-0", "GPU-2")])
def test_of_all_gpus_those_are_left_that_are_allowed(names: tuple[str, ...]) -> None:
    assert allowed_gpus(ALL, DEVICES, rules(gpus=names), are_named=False) == (ALL[0], ALL[2])


@pytest.mark.parametrize("named", [("1",), ("0", "3"), ("GPU-1",)])
def test_to_name_another_is_refused_however_it_is_named(named: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"it.toml, \[limits\]: GPU (1|3|GPU-1a) may not be used; allowed: 0, 2"):
        allowed_gpus(choose(named, DEVICES), DEVICES, rules(gpus=("0", "2")), are_named=True)


def test_none_left_is_refused_as_is_a_limit_that_names_none() -> None:
    with pytest.raises(UserError, match="GPU 0 may not be used"):
        allowed_gpus(ALL[:2], DEVICES, rules(gpus=("3",)), are_named=False)
    with pytest.raises(UserError, match=r"\[limits\]: gpus: there is no GPU 9"):
        allowed_gpus(ALL, DEVICES, rules(gpus=("9",)), are_named=False)


def test_without_a_list_of_gpus_only_the_same_name_is_allowed() -> None:
    assert allowed_gpus([Gpu("1")], (), rules(gpus=("0", "1")), are_named=True) == (Gpu("1"),)
    with pytest.raises(UserError, match="may not be used"):
        allowed_gpus([Gpu("GPU-1a", "GPU-1a")], (), rules(gpus=("0", "1")), are_named=True)


def test_the_cap_says_who_set_it() -> None:
    assert str(rules(gpus_per_run=3).cap) == "at most 3 at once (/etc/it.toml, gpus-per-run)"
