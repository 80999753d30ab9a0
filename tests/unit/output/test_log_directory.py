"""Where the output of a job goes."""

import os
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.output import log_directory


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_a_header_that_cannot_be_written_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_fd: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    said: list[object] = []
    open_streams = log_directory.stream_opener(str(tmp_path), "a-run", (1, 2), said.append)
    before = descriptors(os.getpid())
    monkeypatch.setattr(os, "write", full)
    assert open_streams(Attempt(Job(1, b"true", Place(1)), 1, (), ())) == ()
    monkeypatch.undo()
    assert said
    assert descriptors(os.getpid()) == before
