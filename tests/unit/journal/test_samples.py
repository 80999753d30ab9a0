"""RUN.samples: curves that come back, whatever happened to the end of the file."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.base.measurement import CPU, Curve, CurvePoint
from simple_gpu_scheduler.events import CurvesDrawn, JobsRead
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.journal.samples import DrawnCurve, curves_in, encode_curves, read_curves
from simple_gpu_scheduler.journal.sink import Samples

ATTEMPT = Attempt(Job(3, b"train", Place(1)), 1, ("0",), (0,))
BEGAN = 1_795_173_000.0
POINTS = [
    CurvePoint(0.0, 1.0, (50, 10, 2**30, 60, 250.5), (50, 10, 2**30, 60, 250.5)),
    CurvePoint(1.0, 2.0, (75.5, None, 2**31, 61, 260), (80, None, 2**31, 62, 270)),
]


def drawn(*curves: Curve, began_at: float = BEGAN) -> CurvesDrawn:
    return CurvesDrawn(ATTEMPT, began_at, curves)


def shifted(points: list[CurvePoint], by: float = BEGAN) -> list[CurvePoint]:
    return [point._replace(at=point.at + by) for point in points]


def read(data: bytes) -> dict[tuple[int, int], list[DrawnCurve]]:
    return curves_in(read_records(data).records)


def test_curves_come_back() -> None:
    cpu = Curve(CPU, [CurvePoint(0.0, 10.0, (1.5, 2**20), (1.5, 2**20))])
    data = encode_curves(drawn(Curve("0", POINTS), cpu))
    assert read(data) == {(3, 1): [DrawnCurve("0", shifted(POINTS)), DrawnCurve(CPU, shifted(list(cpu.points)))]}


def test_what_was_never_told_is_absent() -> None:
    data = encode_curves(
        drawn(Curve("0", [CurvePoint(0.0, 1.0, (5, None, None, None, None), (5, None, None, None, None))]))
    )
    assert b"memory" not in data
    assert b"_max" not in data


def test_a_later_line_replaces_the_curve_from_its_own_beginning_on() -> None:
    def point(at: float, value: int) -> CurvePoint:
        return CurvePoint(at, 1.0, (value,) * 5, (value,) * 5)

    first = [point(0.0, 1), point(1.0, 1), point(2.0, 1)]
    after_a_kill = [point(5.0, 2)]
    data = encode_curves(drawn(Curve("0", first))) + encode_curves(drawn(Curve("0", after_a_kill)))
    assert [p.means[0] for p in read(data)[3, 1][0].points] == [1, 1, 1, 2]
    whole = encode_curves(drawn(Curve("0", [point(0.0, 3)])))
    assert [p.means[0] for p in read(data + whole)[3, 1][0].points] == [3]


@given(st.integers(0, 400))
def test_a_torn_end_costs_only_the_torn_line(cut: int) -> None:
    one = encode_curves(drawn(Curve("0", POINTS)))
    other = encode_curves(drawn(Curve("1", POINTS)))
    torn = one + other[: min(cut, len(other) - 1)]
    assert read(torn) == {(3, 1): [DrawnCurve("0", shifted(POINTS))]}
    again = read(torn + b"\n" + other)
    assert again[3, 1][-1] == DrawnCurve("1", shifted(POINTS))


@given(st.binary(max_size=300))
def test_nothing_in_the_file_raises(rubbish: bytes) -> None:
    read(rubbish + b"\n" + encode_curves(drawn(Curve("0", POINTS))))


@pytest.mark.parametrize(
    "change",
    [
        (b'"job":3', b'"job":"3"'),
        (b'"began":', b'"began":null,"x":'),
        (b'"from":[0.0,1.0]', b'"from":[0.0]'),
        (b'"from":[0.0,1.0]', b'"from":[]'),
        (b'"seconds":[', b'"seconds":["x",'),
        (b'"power":[', b'"power":5,"x":['),
        (b'"gpu":"0"', b'"gpu":0'),
        (b'"gpu":"0"', b'"gpu":"\\ud800"'),
        (b"75.5", b"1e999"),
    ],
)
def test_a_line_whose_fields_are_wrong_is_skipped(change: tuple[bytes, bytes]) -> None:
    line = encode_curves(drawn(Curve("0", POINTS)))
    assert change[0] in line
    assert read(line.replace(*change)) == {}


class TestTheSink:
    def test_it_makes_the_file_for_the_first_curve_for_its_owner_alone(self, tmp_path: Path) -> None:
        journal = tmp_path / "run.jsonl"
        sink = Samples(str(journal))
        sink.take(JobsRead(()))
        assert not (tmp_path / "run.samples").exists()
        sink.take(drawn(Curve("0", POINTS)))
        sink.close()
        assert (tmp_path / "run.samples").stat().st_mode & 0o777 == 0o600
        assert read_curves(str(journal)) == {(3, 1): [DrawnCurve("0", shifted(POINTS))]}

    def test_it_continues_a_file_that_a_kill_has_torn(self, tmp_path: Path) -> None:
        line = encode_curves(drawn(Curve("0", POINTS)))
        (tmp_path / "run.samples").write_bytes(line + line[:40])
        sink = Samples(str(tmp_path / "run.jsonl"))
        sink.take(drawn(Curve("1", POINTS)))
        sink.close()
        assert [curve.gpu for curve in read_curves(str(tmp_path / "run.jsonl"))[3, 1]] == ["0", "1"]

    def test_it_follows_no_link(self, tmp_path: Path) -> None:
        (tmp_path / "theirs").write_bytes(b"")
        os.symlink(tmp_path / "theirs", tmp_path / "run.samples")
        with pytest.raises(OSError, match="symbolic links"):
            Samples(str(tmp_path / "run.jsonl")).take(drawn(Curve("0", POINTS)))


def test_a_run_without_curves_has_none(tmp_path: Path) -> None:
    assert read_curves(str(tmp_path / "run.jsonl")) == {}
