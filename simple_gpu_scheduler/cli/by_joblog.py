"""`--joblog FILE --resume`, as GNU parallel has it: which jobs the log speaks of, and what to say of them."""

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.joblog_resume import SkippingParser, read_joblog
from simple_gpu_scheduler.lines import LineParser

from .options import Options


def skipping(parser: LineParser, options: Options) -> SkippingParser:
    """The parser that leaves out what is in the log. To be made before the sink opens it."""
    path = options.joblog or ""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise UserError(f"cannot read the job log {path}: {error.strerror}") from None
    try:
        log = read_joblog(data)
    except ValueError as error:
        raise UserError(f"{path} is no job log: {error}; name the one that the run wrote for --joblog") from None
    return SkippingParser(parser, log.rows, resume_failed=options.resume_failed)


def sentence(parser: SkippingParser, path: str) -> str:
    """What was left out, when all of the input was read."""
    failed = f", {parser.failed} did not (--resume-failed tries them again)" if parser.failed else ""
    text = f"not run again, by the job log {path}: {parser.succeeded} succeeded{failed}"
    if parser.first_differing:
        text += (
            f"; {parser.differing} of them had another command there, the first at {parser.first_differing.place}: "
            "jobs are told by their numbers, so the input must be the same"
        )
    return text
