"""What a GPU is, in a word, and what it is called."""

import pytest

from simple_gpu_scheduler.gpus import Device, Gpu
from simple_gpu_scheduler.gpus.discover import Machine
from simple_gpu_scheduler.gpus.nvml import Reading
from simple_gpu_scheduler.gpus.survey import GpuReport
from simple_gpu_scheduler.measurements import Meters
from simple_gpu_scheduler.metrics.exporter import names_of_gpus, state_of

FREE = GpuReport(Gpu("0", "GPU-0"), "A100", Reading(), Meters(), "", "", (), "")


@pytest.mark.parametrize(
    ("changes", "is_aside", "state"),
    [
        ({}, False, "free"),
        ({}, True, "aside"),
        ({"reason": "bob python 3 GiB"}, True, "occupied"),
        ({"reason": "it needs a reset", "reading": Reading(problem="it needs a reset")}, True, "broken"),
        ({"unleasable": "its lease file is a link"}, False, "broken"),
        ({"leased": "leased by bob", "reason": "bob python 3 GiB"}, True, "leased"),
        ({"leased": "leased by bob", "is_silent": True}, True, "silent"),
    ],
)
def test_the_first_word_that_is_true_is_the_state(changes: dict[str, object], is_aside: bool, state: str) -> None:
    assert state_of(FREE._replace(**changes), is_aside=is_aside) == state


class _Nvml:
    """Only its list."""

    devices = (
        Device("0", "GPU-a"),
        Device("1", "GPU-b", has_mig=True, instances=[Device("1:0", "MIG-c")]),
        Device("2", ""),
    )


def test_a_gpu_has_one_index_whatever_a_run_calls_it() -> None:
    machine = Machine((Gpu("GPU-a", "GPU-a"),), _Nvml())  # type: ignore[arg-type]
    names = names_of_gpus(machine)
    assert names["0"] == names["GPU-a"] == ("0", "GPU-a")
    assert names["1:0"] == names["MIG-c"] == ("1:0", "MIG-c")
    assert names["2"] == ("2", "")
    assert names_of_gpus(Machine((Gpu("3"),))) == {"3": ("3", "")}
