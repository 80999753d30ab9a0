"""The last number behind a name."""

import pytest

from simple_gpu_scheduler.report.metric import last_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("loss 0.5", 0.5),
        ("loss: 0.9\nepoch 2, loss: 0.5, acc 1", 0.5),
        ("loss=5e-3", 0.005),
        ("loss = -.5", -0.5),
        ('{"epoch": 3, "loss": 0.5}', 0.5),
        ("{'loss': 0.5}", 0.5),
        ("| loss | 0.5 |", 0.5),
        ("loss: tensor(0.5, device='cuda:0')", 0.5),
        ("loss: \x1b[1;36m0.5\x1b[0m", 0.5),
        ("loss 93%", 93),
        ("0/10 loss 0.9\r10/10 loss 0.5 - val_loss 0.7", 0.5),
        ("loss 0.5\nloss went down", 0.5),
        ("loss: -inf", float("-inf")),
        ("train_loss 0.5", None),
        ("val/loss 0.5", None),
        ("loss_fn 0.5", None),
        ("--loss 0.5", None),
        ("loss 10k", None),
        ("loss 1.2.3", None),
        ("loss\n0.5", None),
        ("", None),
    ],
)
def test_the_last_number_behind_a_name_counts_and_the_name_is_matched_whole(text: str, number: float | None) -> None:
    assert last_number(text, "loss") == number


def test_a_name_may_be_anything() -> None:
    assert str(last_number("val/loss = nan", "val/loss")) == "nan"
    assert last_number("a.b[0] (top 5): 3", "a.b[0] (top 5)") == 3
    assert last_number("aa: 3 a: 4 aa", "a") == 4
