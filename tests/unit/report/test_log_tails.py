"""What is read of the ends of logs."""

import os
from pathlib import Path

import pytest

from simple_gpu_scheduler.report import log_tails
from simple_gpu_scheduler.report.log_tails import last_number


class TestLogs:
    def test_the_result_is_looked_for_further_up_where_it_does_not_stand_at_the_end(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        for size in (100, 100_000, 3_000_000):
            log.write_text("loss 0.7\nloss 0.25\n" + "x" * 98 + "\n" + ("." * 99 + "\n") * (size // 100))
            assert log_tails.read_result(str(log), "loss") == 0.25

    def test_a_name_that_is_cut_where_reading_begins_is_not_the_name(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        rest = " 0.5\n" + "." * (log_tails.TAIL - len("loss 0.5\n"))
        log.write_text("train_loss" + rest)
        assert log_tails.read_result(str(log), "loss") is None
        log.write_text("\nloss" + rest)
        assert log_tails.read_result(str(log), "loss") == 0.5

    def test_what_an_earlier_attempt_printed_does_not_count(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        head = "[simple_gpu_scheduler] command: t --loss 9\n"
        log.write_text(f"{head}loss 0.5\n{head}no number\n")
        assert log_tails.read_result(str(log), "loss") is None

    def test_what_is_no_plain_file_is_not_read(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        assert log_tails.read_result(str(tmp_path / "fifo"), "loss") is None
        assert log_tails.read_result(str(tmp_path), "loss") is None
        assert log_tails.read_result(str(tmp_path / "none"), "loss") is None

    def test_a_tail_is_short_and_all_of_them_keep_to_a_budget(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "log").write_text("".join(f"\x1b[31mline {number}\x1b[0m\n\n" for number in range(100)))
        (tmp_path / "wide").write_text("y" * 5000 + "\n" + "0 %\r50 %\r100 %\n")
        logs = [(number, str(tmp_path / ("wide" if number % 2 else "log"))) for number in range(1, 9)]
        tail = log_tails.read_tails(logs)
        assert tail[2].split("\n") == [f"line {number}" for number in range(80, 100)]
        assert len(tail[1]) == 2000
        assert tail[1].endswith("y\n100 %")
        monkeypatch.setattr(log_tails, "_IN_ALL", 2500)
        assert list(log_tails.read_tails(logs)) == [1, 2, 3]


def bytes_read() -> int:
    """By this process, as the kernel counts."""
    return int(Path("/proc/self/io").read_text().split()[1])


class TestOddLogs:
    @pytest.mark.parametrize("size", [100_000, 1 << 30])
    def test_a_log_without_a_line_in_it_takes_no_time(self, tmp_path: Path, size: int) -> None:
        with (tmp_path / "log").open("wb") as file:
            file.truncate(size)
        before = bytes_read()
        assert log_tails.read_result(str(tmp_path / "log"), "loss") is None
        assert bytes_read() - before < 20_000_000

    def test_a_name_need_not_be_utf8(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_bytes(b"loss\xff: 0.5\nloss: 1\n")
        assert log_tails.read_result(str(tmp_path / "log"), "loss\udcff") == 0.5

    def test_colours_percent_signs_and_json_within_json_do_no_harm(self, tmp_path: Path) -> None:
        for line, number in (
            (b"\x1b[31mloss\x1b[0m: \x1b[1m-1.5e-3\x1b[0m%\n", -0.0015),
            (b'{"epoch": 2, "m": {"loss": -3, "train_loss": 4}}\n', -3),
            (b"\rloss=0.9,\rloss=0.5,", 0.5),
            (b"loss 7\0\xff\n", 7),
        ):
            (tmp_path / "log").write_bytes(line)
            assert log_tails.read_result(str(tmp_path / "log"), "loss") == number


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
