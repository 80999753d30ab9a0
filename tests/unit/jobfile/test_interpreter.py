"""Which files with `#!` are lists of commands."""

import pytest

from simple_gpu_scheduler.jobfile.interpreter import foreign_interpreter


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("#!/usr/bin/env python3", "python3"),
        ("#!/usr/bin/python", "/usr/bin/python"),
        ("#! /usr/bin/perl -w", "/usr/bin/perl -w"),
        ("#!/usr/bin/env -S LANG=C python3 -u", "python3 -u"),
        ("#!/data/venv/bin/python3.12\r", "/data/venv/bin/python3.12"),
        ("#!/usr/bin/env tclsh", "tclsh"),
    ],
)
def test_a_program_of_another_language_has_its_interpreter(line: str, words: str) -> None:
    assert list(foreign_interpreter(f"{line}\nimport os\n".encode())) == words.split()
    assert list(foreign_interpreter(line.encode())) == words.split()


@pytest.mark.parametrize(
    "line",
    [
        *(f"#!/bin/{shell}" for shell in ("sh", "bash", "dash", "zsh", "ksh", "fish")),
        *("#!/bin/bash -e", "#! /usr/bin/env bash", "#!/usr/bin/env -S -u ENV bash -e", "#!/opt/bin/zsh\r"),
        *("#!/usr/bin/env sgs", "#!/usr/bin/env -S simple_gpu_scheduler --gpus 0 1", "#!/usr/bin/parallel --shebang"),
        *("#!", "#!/usr/bin/env", "#! python train.py: my jobs", "# #!/usr/bin/python", "python train.py", ""),
        *(" #!/usr/bin/python", "echo one\n#!/usr/bin/python"),
    ],
)
def test_a_list_of_commands_has_none(line: str) -> None:
    assert not foreign_interpreter(f"{line}\necho one\n".encode())
