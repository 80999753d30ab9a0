"""What a resumed run starts from: its remaining jobs, and a parser that leaves out what it already had."""

from simple_gpu_scheduler.jobfile.parse import LineParser
from simple_gpu_scheduler.joblog import resume as joblog
from simple_gpu_scheduler.joblog.resume import SkippingParser
from simple_gpu_scheduler.resume import unfinished_jobs
from simple_gpu_scheduler.resume.find import Resumed
from simple_gpu_scheduler.resume.unfinished_jobs import Matcher, Resumption
from simple_gpu_scheduler.run.options import Options


def what_is_left(resumed: Resumed, *, failed_too: bool) -> Resumption:
    """The remaining jobs of the run."""
    return unfinished_jobs.what_is_left(resumed.state, resumed.alive(), failed_too=failed_too)


def matching(parser: LineParser, resumed: Resumed) -> Matcher:
    """The parser that leaves out what the run already had."""
    return Matcher(parser, resumed.state)


def skipping(parser: LineParser, options: Options) -> SkippingParser:
    """The parser that leaves out the jobs in the job log."""
    return joblog.skipping(parser, options.records.joblog or "", resume_failed=options.resume.failed_too)


def left_out(parser: SkippingParser, options: Options) -> str:
    """What to say about the skipped jobs at the end."""
    return joblog.sentence(parser, options.records.joblog or "")
