"""What jobs are read from: files, pipes and what can be wrong with them."""

import os
import subprocess

from simple_gpu_scheduler.inputs.reader import Batch, Reader, Source, SourceEnded
from simple_gpu_scheduler.jobfile.parse import LineParser

GIB = 2**30


def read_all(*sources: Source, by_null: bool = False) -> tuple[list[object], SourceEnded]:
    messages: list[Batch | SourceEnded] = []
    parser = LineParser(lambda: (80 * GIB,) * 4)
    Reader(list(sources), parser, messages.append, lambda: None, by_null=by_null).run()
    *batches, ended = messages
    assert isinstance(ended, SourceEnded)
    return [job for batch in batches if isinstance(batch, Batch) for job in batch.jobs], ended


def test_a_pipe_that_somebody_made_non_blocking_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with subprocess.Popen(["sh", "-c", "echo one"], stdout=writing):
        os.close(writing)
        jobs, ended = read_all(Source(reading))
    assert len(jobs) == 1
    assert not ended.problem
