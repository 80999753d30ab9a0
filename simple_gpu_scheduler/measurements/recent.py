"""The last minutes of one value, for a small curve beside it. Pure."""

from simple_gpu_scheduler.base.stdlib import deque

MINUTES, BLOCKS = 5, 10
_EACH = MINUTES * 60 / BLOCKS


class Recent:
    """Takes values as they are seen, and gives the mean of each half minute of the last five minutes."""

    def __init__(self) -> None:
        self._blocks: deque[tuple[int, float, int]] = deque(maxlen=BLOCKS)  # which one, the sum, of how many

    def add(self, at: float, value: float | None) -> None:
        """A value; None if it is not known."""
        if value is None:
            return
        number = int(at // _EACH)
        if self._blocks and self._blocks[-1][0] == number:
            _, sum_, count = self._blocks.pop()
            self._blocks.append((number, sum_ + value, count + 1))
        else:
            self._blocks.append((number, value, 1))

    def means(self, now: float) -> tuple[float | None, ...]:
        """The oldest first; None where nothing was seen. Empty before the first value."""
        if not self._blocks:
            return ()
        last = int(now // _EACH)
        known = {number: sum_ / count for number, sum_, count in self._blocks}
        return tuple([known.get(number) for number in range(last - BLOCKS + 1, last + 1)])
