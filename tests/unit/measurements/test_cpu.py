"""What the processes of an attempt used, from readings and from what the kernel says at the end."""

from simple_gpu_scheduler.base.measurement import CpuUse
from simple_gpu_scheduler.measurements.cpu import CpuAccount


def test_children_that_come_and_go_never_lower_what_was_used() -> None:
    account = CpuAccount(0.0)
    account.feed(10.0, CpuUse(8.0, 4, 100, 5, 5))
    account.feed(20.0, CpuUse(3.0, 4, 50, 9, 1))  # a child has gone that nobody waited for
    assert account.use() == CpuUse(8.0, 4, 100, 9, 5)


def test_the_end_tells_what_readings_missed_and_readings_what_the_end_does_not_know() -> None:
    account = CpuAccount(0.0)
    account.feed(10.0, CpuUse(8.0, 4, 300, 0, 0))
    assert account.use(CpuUse(9.5, None, 200, 4096, 0)) == CpuUse(9.5, 4, 300, 4096, 0)
    assert CpuAccount(0.0).use(CpuUse(0.5)) == CpuUse(0.5)


def test_the_curve_tells_how_many_cores_were_busy() -> None:
    account = CpuAccount(100.0)
    account.feed(110.0, CpuUse(20.0, 4, 300))
    account.feed(120.0, CpuUse(25.0, 4, 200))
    points = account.curve.points
    assert [(point.at, point.seconds, point.means) for point in points] == [
        (0.0, 10.0, (2.0, 300)),
        (10.0, 10.0, (0.5, 200)),
    ]
