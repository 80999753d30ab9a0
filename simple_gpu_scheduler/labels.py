"""By what jobs are told apart where several share the GPUs: the `--fair-by` of `fair` and `round-robin`. Pure."""

from collections.abc import Callable, Mapping

from .jobs import Job


def template_of_job(job: Job) -> str:
    """What its command has in common with others of its kind."""
    from .templates import template_of  # noqa: PLC0415 - half a millisecond that most runs do not need

    return template_of(job.command.decode("utf-8", "surrogateescape"))


LABELS: Mapping[str, Callable[[Job], str]] = {
    "label": lambda job: job.label,
    "source": lambda job: job.place.source,
    "template": template_of_job,
}
