"""By what jobs are told apart where several share the GPUs: the `--fair-by` of `fair` and `round-robin`. Pure."""

from collections.abc import Callable, Mapping

from .jobs import Job


def _of_template(job: Job) -> str:
    from .templates import template_of  # noqa: PLC0415 - half a millisecond that most runs do not need

    return template_of(job.command.decode("utf-8", "surrogateescape"))


LABELS: Mapping[str, Callable[[Job], str]] = {
    "label": lambda job: job.label,
    "source": lambda job: job.place.source,
    "template": _of_template,
}
