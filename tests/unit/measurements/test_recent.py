"""The small curve of the last minutes."""

from simple_gpu_scheduler.base.text import show_curve
from simple_gpu_scheduler.measurements.recent import BLOCKS, Recent


def test_each_block_is_a_mean_and_what_was_not_seen_is_unknown() -> None:
    recent = Recent()
    for at in range(60):
        recent.add(at, 100.0 if at < 15 else 0.0)
    recent.add(60.0, None)
    assert recent.means(59.0) == (*(None,) * (BLOCKS - 2), 50.0, 0.0)
    assert recent.means(60.0) == (*(None,) * (BLOCKS - 3), 50.0, 0.0, None)


def test_what_is_older_than_five_minutes_is_forgotten() -> None:
    recent = Recent()
    for at in range(0, 3600, 2):
        recent.add(at, at / 36)
    means = recent.means(3599.0)
    assert len(means) == BLOCKS
    assert None not in means
    assert min(mean for mean in means if mean is not None) > 90
    assert recent.means(3599.0 + 600) == (None,) * BLOCKS


def test_before_the_first_value_there_is_no_curve() -> None:
    assert Recent().means(5.0) == ()


def test_a_curve_is_shown_in_blocks_with_gaps() -> None:
    assert show_curve((0.0, 50.0, 100.0, None, 1.0, 99.0)) == "▁▅█ ▁█"
    assert show_curve(()) == ""
