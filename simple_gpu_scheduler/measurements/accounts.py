"""Who is charged for what a GPU did: each interval between two readings is charged to the attempts that were there.

What counts up, energy and traffic, is charged in proportion to the part of the interval: so nothing is lost or counted
twice between attempts that follow each other. A state such as the temperature holds from the reading before.
"""

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.measurement import GPU_CURVE, Curve, CurvePoint, Figures, GpuUse, Stillness
from simple_gpu_scheduler.base.values import Any, Sequence

from . import GpuSample, Meters
from .curves import GrowingCurve
from .stillness import Level

# Readings come once a second. After a longer gap, only this much of it is known.
_LONGEST = 2.5
_WINDOW = 0.25  # of which NVML's utilisation is about the mean
_TRAFFIC = ("pcie_sent", "pcie_received", "nvlink_sent", "nvlink_received")
# What belongs to the GPU as a whole when several attempts are on it.
_OF_GPU = ("memory_copy", "device_memory", "temperature", "power", "clock", "energy", "throttled", "traffic", "xids")
_P95 = 0.95
# Pieces of the curve that are written before the attempt has ended: the first after so many seconds, the next ones
# when it has become a twentieth older.
_FIRST_PIECE, _OLDER, _POINTS_OF_A_PIECE = 300.0, 0.05, 30


class Quantity:
    """The mean and the maximum of something over time."""

    __slots__ = ("area", "most", "seconds")

    def __init__(self) -> None:
        self.area = self.seconds = 0.0
        self.most: float | None = None

    def add(self, value: float | None, seconds: float) -> None:
        """It had this value for so long."""
        if value is not None:
            self.area += value * seconds
            self.seconds += seconds
            self.most = value if self.most is None else max(self.most, value)

    def figures(self, p95: float | None = None) -> Figures | None:
        """None if it was never known."""
        if self.most is None:
            return None
        return Figures(self.area / self.seconds if self.seconds else self.most, self.most, p95)


class _Account:
    """That of one attempt on one GPU."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.ended: float | None = None
        self.seconds = self.shared = self.energy = 0.0
        self.counts = self.computes = False  # how the energy was found
        self.quantities = {name: Quantity() for name in ("memory_copy", "memory", "device_memory", *_STATES)}
        self.utilization = Quantity()
        self.level = Level()
        self.seconds_at = [0.0] * 101  # of each per cent of utilisation
        self.throttled: dict[str, float] | None = None
        self.traffic: dict[str, float] = {}
        self.xids: dict[str, int] = {}
        self.total: int | None = None
        self.now: tuple[float | None, ...] = ()
        self.of_gpu: set[str] = set()
        self.curve, self.piece = GrowingCurve(), GrowingCurve(_POINTS_OF_A_PIECE)
        self.next_piece = began + _FIRST_PIECE

    @property
    def is_known(self) -> bool:
        """Whether there is a figure; of a short one, that may be the energy alone."""
        return bool(self.seconds or self.counts or self.computes)


_STATES = ("temperature", "power", "clock")


class GpuAccounts:
    """All accounts of one GPU, and its last reading."""

    def __init__(self, gpu: str) -> None:
        self.gpu = gpu
        self._last: GpuSample | None = None
        self._accounts: dict[Key, _Account] = {}

    def begin(self, key: Key, at: float) -> None:
        """An attempt is on the GPU from now on."""
        self._accounts[key] = _Account(at)

    def end(self, key: Key, at: float) -> None:
        """It has ended; what is still read is charged to it up to here."""
        if key in self._accounts:
            self._accounts[key].ended = at

    def close(self, key: Key) -> tuple[GpuUse, Curve] | None:
        """What it used, and no more is charged; None if there was never a reading."""
        account = self._accounts.pop(key, None)
        return (
            (_use(self.gpu, account), Curve(self.gpu, account.curve.points)) if account and account.is_known else None
        )

    def use(self, key: Key) -> GpuUse | None:
        """What it has used so far."""
        account = self._accounts.get(key)
        if account is None or not account.seconds:
            return None
        now = {name: value for name, value in zip(GPU_CURVE, account.now, strict=False) if value is not None}
        return _use(self.gpu, account)._replace(now=now)

    def stillness(self, key: Key) -> Stillness | None:
        """Since when it has been doing nothing new here; None if that is not known."""
        account = self._accounts.get(key)
        return account.level.stillness if account else None

    @property
    def last(self) -> GpuSample | None:
        """The last reading."""
        return self._last

    def pieces(self, now: float) -> list[tuple[Key, Curve]]:
        """What is to be written of the curves of attempts that run for long; each piece once."""
        found = []
        for key, account in self._accounts.items():
            if now >= account.next_piece:
                found.append((key, Curve(self.gpu, account.piece.points)))
                account.piece = GrowingCurve(_POINTS_OF_A_PIECE)
                account.next_piece = now + max(_FIRST_PIECE, (now - account.began) * _OLDER)
        return found

    def feed(self, sample: GpuSample) -> None:
        """Charge what happened since the last reading."""
        before, self._last = self._last, sample
        if before is None or sample.at <= before.at:
            return
        noted: dict[Key, float] = {}
        for key, account in self._accounts.items():
            since = max(before.at, account.began)
            until = sample.at if account.ended is None else min(sample.at, account.ended)
            if until > since:
                part = (until - since) / (sample.at - before.at)
                _charge(account, before.meters, sample.meters, sample.at - before.at, part)
                known = until - max(since, sample.at - _LONGEST)
                # A reading is about the time before it, which may have been another attempt's.
                is_its_own = sample.at - account.began >= _WINDOW and 2 * known >= min(sample.at - before.at, _LONGEST)
                if sample.at <= until and is_its_own:
                    noted[key] = known
        for key, known in noted.items():
            _note(self._accounts[key], key, sample, known, is_shared=len(noted) > 1)


def _charge(account: _Account, before: Meters, now: Meters, seconds: float, part: float) -> None:
    """Its part of what was counted."""
    energy = _difference(before.energy, now.energy)
    if energy is not None:
        account.counts = True
    elif now.power is not None:  # no counter, or it began anew
        energy = (now.power if before.power is None else (before.power + now.power) / 2) * seconds
        account.computes = True
    account.energy += (energy or 0.0) * part
    for name in _TRAFFIC:
        bytes_ = _difference(getattr(before, name), getattr(now, name))
        if bytes_ is not None:
            account.traffic[name] = account.traffic.get(name, 0.0) + bytes_ * part
    for xid in now.xids or ():
        account.xids[str(xid)] = account.xids.get(str(xid), 0) + 1


def _difference(before: float | None, now: float | None) -> float | None:
    """None for a counter that is not there, or that began anew."""
    return None if before is None or now is None or now < before else now - before


def _note(account: _Account, key: Key, sample: GpuSample, seconds: float, *, is_shared: bool) -> None:
    """The states in which the GPU was."""
    meters = sample.meters
    account.seconds += seconds
    utilization: float | None = meters.utilization
    memory = None if sample.held is None else sample.held.get(key, 0)
    if is_shared:
        account.shared += seconds
        account.of_gpu.update(_OF_GPU)
        if sample.shares is None:
            account.of_gpu.add("utilization")
        else:
            utilization = min(100.0, sample.shares.get(key, 0.0))
    account.level.feed(sample.at, seconds, utilization)
    if utilization is not None:
        account.utilization.add(utilization, seconds)
        account.seconds_at[round(utilization)] += seconds
    if meters.throttled is not None:
        account.throttled = account.throttled or {}
        for reason in meters.throttled:
            account.throttled[reason] = account.throttled.get(reason, 0.0) + seconds
    account.total = account.total if meters.total is None else meters.total
    values = {"memory": memory, "device_memory": meters.used}
    for name, quantity in account.quantities.items():
        quantity.add(values[name] if name in values else getattr(meters, name), seconds)
    shown_memory = memory if account.quantities["memory"].seconds else meters.used
    shown = (utilization, meters.memory_copy, shown_memory, meters.temperature, meters.power)
    point = CurvePoint(max(0.0, sample.at - seconds - account.began), seconds, shown, shown)
    account.now = shown
    account.curve.add(point)
    account.piece.add(point)


def _use(gpu: str, account: _Account) -> GpuUse:
    figures: dict[str, Any] = {name: each.figures() for name, each in account.quantities.items()}
    of_gpu = set(account.of_gpu)
    if figures["memory"] is None:  # it was never told whose it is
        figures["memory"] = figures["device_memory"]
        of_gpu.add("memory")
    has_utilization = account.utilization.most is not None
    has_energy = account.counts or account.computes
    told = {
        **figures,
        "utilization": account.utilization.figures(_percentile(account.seconds_at)),
        "energy": account.energy if has_energy else None,
        "throttled": account.throttled,
        "traffic": account.traffic or None,
        "xids": account.xids or None,
    }
    return GpuUse(
        gpu,
        account.seconds,
        utilization=told["utilization"],
        **figures,
        total_memory=account.total,
        idle=account.seconds_at[0] if has_utilization else None,
        energy=account.energy if has_energy else None,
        by_power=account.computes and not account.counts,
        throttled=account.throttled,
        traffic={name: round(count) for name, count in account.traffic.items()},
        xids=account.xids,
        shared=account.shared,
        of_gpu=tuple(sorted(name for name in of_gpu if told[name] is not None)),
    )


def _percentile(seconds_at: Sequence[float]) -> float:
    """The value that was not exceeded for 95 % of the time."""
    left = sum(seconds_at) * _P95
    for value, seconds in enumerate(seconds_at):
        left -= seconds
        if left <= 0:
            return float(value)
    return 100.0
