"""When a GPU was waited for."""

from simple_gpu_scheduler.report.text import show
from tests.support.report import began, built, over, waited


def test_waits_are_summed_by_whom_they_were_for() -> None:
    alice, bob = "alice python 11.2 GiB for 2 h", "leased by bob (pid 4242, train.py)"
    eve = 'leased by eve (pid 7, job 4 "wide" of run 5e9355) for 2 h'
    later = {"gpu0": "alice python 300 MiB for 2 h 4 min", "gpu1": "leased by bob (pid 99, train.py)"}
    later["gpu2"] = "leased by eve (pid 8, jobs 5, 6 of run 5e9355) for 3 min"
    report = built(began(), waited(0, gpu0=alice, gpu1=bob, gpu2=eve), waited(60, **later), over(180))
    lines = show(report, None)
    assert lines[lines.index("WAITED  GPU  FOR") + 1 :] == [
        " 3 min  0    alice python",
        " 3 min  1    leased by bob (train.py)",
        " 3 min  2    leased by eve (run 5e9355)",
    ]
