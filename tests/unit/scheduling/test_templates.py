"""Templates: the jobs of a sweep share one, and what makes another command of it stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.scheduling.templates import template_of


@pytest.mark.parametrize(
    ("command", "template"),
    [
        ("python train.py --lr 0.1 --seed 3", "python train.py --lr … --seed …"),
        ("python train.py --lr=1e-3 -b 32 lr=.5", "python train.py --lr=… -b … lr=…"),
        ("LR=0.1 python x.py -3 +5 --x=-0.1", "LR=… python x.py … … --x=…"),
        ('python x.py --name \'a b\' --to "c \\" d"', "python x.py --name … --to …"),
        ("echo 'it'\"'\"'s'", "echo …"),
        ("cp results/lr-0.3.json out/run_12.log", "cp results/lr-….json out/run_….log"),
        ("head -5 cuda:0 10k 128x128 2024-01-02 9f3a2b", "head … cuda:… … … …-…-… …"),
        ("a  b\n c 1", "a b c …"),
    ],
)
def test_numbers_and_quoted_values_are_left_open(command: str, template: str) -> None:
    assert template_of(command) == template


@pytest.mark.parametrize(
    "command",
    [
        "python3.11 train.py model=resnet50 v1.2.3 a12b3",
        "python train.py > log 2>&1",
        "sh -c $1 $2",
        "python train.py --opt adam",
        "echo it's",
    ],
)
def test_names_stay(command: str) -> None:
    assert template_of(command) == command


def test_the_way_a_number_is_written_makes_no_other_template() -> None:
    assert len({template_of(f"t --lr {lr}") for lr in ("1", "1.", "0.1", ".1", "-1", "+1", "1e-3", "1E5", "-.5")}) == 1


def test_of_a_long_command_the_start_counts() -> None:
    assert template_of("a" * 5000) == template_of("a" * 5001)
    assert template_of("a" * 5000) != template_of("a" * 1000)


@given(st.text(alphabet="ab1.-+'\"\\ =$>&e", max_size=40))
def test_a_template_has_no_blanks_to_spare_and_is_no_longer(command: str) -> None:
    template = template_of(command)
    assert template == " ".join(template.split())
    assert len(template) <= len(command)


@pytest.mark.parametrize("piece", ["'", '"\\', "1", "1.", "1e", "\"'", "'a", '\\"', "1<"])
def test_no_command_takes_for_ever(piece: str) -> None:
    template_of(piece * 2000)
