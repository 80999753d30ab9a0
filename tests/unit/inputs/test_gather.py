"""Which inputs are held open, and from where they are read on."""

import json
import os
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.jobs import Patience
from simple_gpu_scheduler.events import JobsRead, ReadMark
from simple_gpu_scheduler.inputs.gather import is_of, mark_of, open_held
from simple_gpu_scheduler.inputs.reader import OpenInput
from simple_gpu_scheduler.journal.records import encode


def test_only_a_named_pipe_is_held_open(tmp_path: Path) -> None:
    assert is_of(os.open(os.devnull, os.O_RDONLY)).kind == "other"
    assert is_of(os.pipe()[0]).kind == "pipe"
    path = tmp_path / "fifo"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(fd, 1) == b""
    assert is_of(fd).kind == "fifo"
    fd = open_held(OpenInput(fd)).fd
    os.set_blocking(fd, False)
    with pytest.raises(BlockingIOError):
        os.read(fd, 1)


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = ReadMark(
        "q.txt", 1, 2, 300, 4, 5, {"gpus": 2, "timeout": 90.0, "idle": Patience(900.0, ends=True)}, [1, 5], 5
    )
    assert mark_of(json.loads(encode(JobsRead([], mark), 0.0))) == mark
    assert mark_of(None) is None
