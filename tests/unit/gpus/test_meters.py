"""The meters of a GPU, as several threads read them."""

from types import SimpleNamespace
from typing import Any

from simple_gpu_scheduler.gpus.meters import Meter


class _Nvml(SimpleNamespace):
    """A driver that counts no traffic, and meanwhile lets another thread ask the same."""

    meanwhile: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("NVMLError_"):
            return type(name, (Exception,), {"value": 3})
        return 1 if name.startswith("NVML_") else lambda *_: 0

    def nvmlDeviceGetUtilizationRates(self, _handle: object) -> object:  # noqa: N802 - NVML's name
        return SimpleNamespace(gpu=1, memory=1)

    def nvmlDeviceGetFieldValues(self, _handle: object, asked: list[object]) -> list[object]:  # noqa: N802 - as above
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return [SimpleNamespace(nvmlReturn=0) for _ in asked]


def test_two_threads_may_learn_at_once_that_it_counts_no_traffic() -> None:
    nvml = _Nvml()
    meter = Meter(nvml, "handle")
    nvml.meanwhile = lambda: meter.read(limits=False)
    assert "pcie_sent" not in meter.read(limits=False)
    assert "pcie_sent" not in meter.read(limits=True)
