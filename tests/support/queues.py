"""Workloads to learn from."""

from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.simulation.simulate import Arrival


def arrival(number, at, length, gpus=1):
    return Arrival(at, Job(number, b"x", Place(number), gpus=gpus, time=length), length)


@st.composite
def workloads(draw, last=99, longest=2_000_000, widths=4):
    """Times in whole seconds, the last arrival before anybody's patience ends."""
    ats = sorted(draw(st.lists(st.integers(0, last), min_size=1, max_size=30)))
    lengths = st.integers(1, 20) | st.integers(1, longest)
    return [arrival(number, at, draw(lengths), draw(st.integers(1, widths))) for number, at in enumerate(ats, start=1)]
