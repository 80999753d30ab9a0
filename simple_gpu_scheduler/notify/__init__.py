"""Notifications when a run or a job has ended."""

from simple_gpu_scheduler.base.values import Literal, NamedTuple, get_args

Trigger = Literal["end", "fail", "each"]
TRIGGERS: tuple[Trigger, ...] = get_args(Trigger)


class NotifyOptions(NamedTuple):
    """The section "Notifications" of --help: the command, if any, and when it is run."""

    command: str = ""
    on: frozenset[Trigger] = frozenset()


def parse_triggers(text: str) -> frozenset[Trigger]:
    """`end,fail` as a set; a ValueError names an unknown word."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in TRIGGERS:
            raise ValueError(f"'{word}' is not one of {', '.join(TRIGGERS)}; write one, or several separated by commas")
    return frozenset(trigger for trigger in TRIGGERS if trigger in words)
