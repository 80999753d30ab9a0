"""What is counted from one look at the GPUs to the next."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.metrics.gpu_counters import GpuCounters, GpuLook

IDLE = GpuLook("0", "GPU-0", "bob", 0, (), ())


def test_time_counts_as_idle_while_a_gpu_stays_leased_and_its_utilisation_is_0() -> None:
    counters = GpuCounters()
    looks = [IDLE, IDLE, IDLE._replace(utilization=50), IDLE, IDLE._replace(user=""), IDLE, IDLE._replace(user="eve")]
    for at, look in enumerate(looks):
        counters.feed(float(at), [look])
    assert counters.idle_leased == {("0", "GPU-0", "bob"): 2.0, ("0", "GPU-0", "eve"): 0.0}


def test_nothing_is_known_of_a_long_gap_or_of_what_is_not_told() -> None:
    counters = GpuCounters()
    for at, look in [(0.0, IDLE), (10.5, IDLE), (11.5, IDLE._replace(utilization=None, throttled=None))]:
        counters.feed(at, [look])
    assert counters.idle_leased == {("0", "GPU-0", "bob"): 0.0}
    assert set(counters.throttled.values()) == {0.0}


def test_throttling_and_errors_are_counted_for_each_gpu() -> None:
    counters = GpuCounters()
    hot = GpuLook("1", "GPU-1", throttled=("heat",), xids=(79, 31))
    counters.feed(0.0, [IDLE, hot._replace(xids=())])
    counters.feed(2.0, [IDLE, hot])
    counters.feed(3.0, [IDLE, hot._replace(throttled=(), xids=(31,))])
    assert {series: seconds for series, seconds in counters.throttled.items() if seconds} == {
        ("1", "GPU-1", "heat"): 2.0
    }
    assert ("0", "GPU-0", "power") in counters.throttled, "so that a rate can be computed from the first time on"
    assert counters.xids == {("1", "GPU-1", "79"): 1, ("1", "GPU-1", "31"): 2}


LOOKS = st.builds(
    GpuLook,
    st.sampled_from("01"),
    user=st.sampled_from(["", "bob", "eve"]),
    utilization=st.sampled_from([None, 0, 7]),
    throttled=st.sampled_from([None, (), ("heat",), ("heat", "power")]),
    xids=st.sampled_from([(), (31,)]),
)


@given(st.lists(st.tuples(st.floats(-5, 20), st.lists(LOOKS, max_size=2, unique_by=lambda look: look.gpu))))
def test_no_counter_ever_goes_backwards(steps: list[tuple[float, list[GpuLook]]]) -> None:
    counters, at = GpuCounters(), 0.0
    before: dict = {}
    for pause, looks in steps:
        at += pause
        counters.feed(at, looks)
        now = {**counters.idle_leased, **counters.throttled, **counters.xids}
        assert all(now.get(series, -1) >= value for series, value in before.items())
        before = now
