"""The fixtures of the stand-in for NVML.

The functions have names of their own, so that a file which imports them may use the fixtures' names for its arguments.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import StandIn, a_gpu, compiler, library


@pytest.fixture(scope="session", name="nvml_library")
def compiled_library() -> Path:
    """The directory with the compiled library; without a compiler, what needs it is skipped."""
    if compiler() is None:
        pytest.skip("the stand-in for NVML is compiled, and there is no gcc and no cc")
    return library()


@pytest.fixture(name="nvml_of")
def stand_in_of(nvml_library: Path) -> Iterator[Callable[..., StandIn]]:  # noqa: ARG001
    """Makes an NVML of some driver, with what StandIn takes beside the directory; it shows no GPU yet."""
    # pytest's own directories are closed to the other users that a test may run programs as.
    with tempfile.TemporaryDirectory(prefix="nvml_state_") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield lambda **settings: StandIn(Path(tempfile.mkdtemp(dir=directory)), **settings)


@pytest.fixture(name="nvml")
def stand_in(nvml_of: Callable[..., StandIn]) -> StandIn:
    """An NVML that shows four idle GPUs of 80 GiB."""
    nvml = nvml_of()
    nvml.show([a_gpu(index) for index in range(4)])
    return nvml
