"""Engines: everything that depends on where attempts run. The table of them; `protocol` says what an engine does."""

from simple_gpu_scheduler.base.values import TYPE_CHECKING, Mapping, NamedTuple

if TYPE_CHECKING:  # the table is read for --help too
    from .protocol import Setting, World


class EngineEntry(NamedTuple):
    """A row of the table: the help of `--engine NAME`, and the module whose `build` creates the engine."""

    help: str
    module: str
    runs_nothing: bool = False


ENGINES: Mapping[str, EngineEntry] = {
    "local": EngineEntry("run jobs on the GPUs of this machine", "local"),
    "simulated": EngineEntry(
        "run nothing, in simulated time: a job takes as long as its `sleep N` or, without one, its time= says",
        "simulated",
        runs_nothing=True,
    ),
}


def build(name: str, setting: "Setting") -> "World":
    """The engine of that name, with its inbox and its clock."""
    module = ENGINES[name].module
    world: World = __import__(f"{__name__}.{module}", fromlist=[module]).build(setting)
    return world
