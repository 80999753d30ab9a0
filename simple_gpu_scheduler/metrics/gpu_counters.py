"""What is counted up from one look at the GPUs to the next, and is not counted by the GPUs themselves.

It is given looks, and does not know where they come from. Pure.
"""

from simple_gpu_scheduler.base.values import NamedTuple, Sequence
from simple_gpu_scheduler.gpus.meters import throttled

_EVERY_BIT = (1 << 64) - 1
REASONS = throttled(_EVERY_BIT)
_LONGEST = 10.0  # seconds that a look speaks for; about longer gaps nothing is known
GpuSeries = tuple[str, str, str]  # the GPU, its UUID, and a user, reason or error


class GpuLook(NamedTuple):
    """What a look saw of one GPU: who has leased it (empty: nobody), and what its meters show that is counted up."""

    gpu: str
    uuid: str
    user: str = ""
    utilization: int | None = None
    throttled: tuple[str, ...] | None = None
    xids: tuple[int, ...] = ()


class GpuCounters:
    """Seconds and errors, by GPU."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._before: dict[str, GpuLook] = {}
        self.idle_leased: dict[GpuSeries, float] = {}
        self.throttled: dict[GpuSeries, float] = {}
        self.xids: dict[GpuSeries, int] = {}

    def feed(self, at: float, looks: Sequence[GpuLook]) -> None:
        """What was seen at this time, of the GPUs that answered."""
        seconds = max(0.0, at - self._at)
        for look in looks:
            before = self._before.get(look.uuid or look.gpu)
            self._charge(look, before, seconds if before and seconds <= _LONGEST else 0.0)
        self._at = at
        self._before = {look.uuid or look.gpu: look for look in looks}

    def _charge(self, look: GpuLook, before: GpuLook | None, seconds: float) -> None:
        if look.user:
            is_idle = look.utilization == 0 and before is not None and before.user == look.user
            _add(self.idle_leased, (look.gpu, look.uuid, look.user), seconds if is_idle else 0.0)
        for reason in REASONS if look.throttled is not None else ():
            is_throttled = reason in (look.throttled or ())
            _add(self.throttled, (look.gpu, look.uuid, reason), seconds if is_throttled else 0.0)
        for xid in look.xids:
            series = (look.gpu, look.uuid, str(xid))
            self.xids[series] = self.xids.get(series, 0) + 1


def _add(counter: dict[GpuSeries, float], series: GpuSeries, seconds: float) -> None:
    counter[series] = counter.get(series, 0.0) + seconds
