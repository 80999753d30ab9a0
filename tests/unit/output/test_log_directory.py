"""Where the output of a job goes."""

import os
from concurrent.futures import ThreadPoolExecutor
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
    open_streams = log_directory.stream_opener(log_directory.LogDirectory(str(tmp_path), (1, 2)), "a-run", said.append)
    before = descriptors(os.getpid())
    monkeypatch.setattr(os, "write", full)
    assert open_streams(Attempt(Job(1, b"true", Place(1)), 1, (), ())) == ()
    monkeypatch.undo()
    assert said
    assert descriptors(os.getpid()) == before


def test_several_threads_may_ask_at_once_whether_the_terminal_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_directory.os, "isatty", lambda _stream: True)
    logs = log_directory.LogsOnceHungUp("")
    with ThreadPoolExecutor(8) as threads:
        assert not any(any(each) for each in threads.map(lambda _: [logs.streams for _ in range(500)], range(8)))
