"""Looks like a training, for the pictures: it takes its time and prints what one would print, and computes nothing.

What it prints depends on its arguments alone. While it runs, a file in $PICTURE_GPUS tells that its GPU is busy. It
does not know who draws what.
"""

import argparse
import math
import os
import random
import sys
import time
from pathlib import Path

BATCHES = 196
EPOCHS = 5
TOO_FAST, LARGE, TOO_MUCH = 0.08, 256, 0.45
# For each: the epochs, the seconds of one, and the loss that it comes down to.
MODELS = {
    "convnext": (8, 2.4, 0.22),
    "gpt2": (6, 3.0, 2.91),
    "mixer": (3, 1.4, 0.52),
    "resnet18": (5, 0.9, 0.35),
    "resnet34": (4, 1.3, 0.31),
    "resnet50": (8, 2.6, 0.24),
    "unet": (9, 1.8, 0.17),
    "vit-b": (7, 3.4, 0.38),
    "vit-s": (8, 2.2, 0.41),
}
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/sweep/train.py", line 88, in forward
    return self.head(x.flatten(1))
RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x8192 and 4096x10)"""
LOST_WORKER = "RuntimeError: DataLoader worker (pid 31337) exited unexpectedly"
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB"
# Of which model, after how many epochs, and what it says; the second attempt at vit-b goes well.
ACCIDENTS = {"gpt2": (0.5, OUT_OF_MEMORY), "unet": (1.3, TRACEBACK), "vit-b": (0.5, LOST_WORKER)}
PARTS_OF_A_BLOCK = " ▏▎▍▌▋▊▉"
BAR = 10


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Look like a training.")
    parser.add_argument("model", nargs="?", choices=MODELS, help="print progress bars, as a training of this would")
    parser.add_argument("--lr", type=float, default=0.001, help="the learning rate (default: 0.001)")
    parser.add_argument("--bs", type=int, default=64, help="the batch size (default: 64)")
    parser.add_argument("--drop", type=float, default=0.1, help="the dropout (default: 0.1)")
    return parser.parse_args()


def progress_bar(share: float) -> str:
    """As tqdm draws it: per cent, and blocks in eighths."""
    eighths = int(share * BAR * 8)
    blocks = ("█" * (eighths // 8) + PARTS_OF_A_BLOCK[eighths % 8]).ljust(BAR)[:BAR]
    return f"{share * 100:3.0f}%|{blocks}|"


def train(model: str) -> None:
    """Epochs with a bar each. Three of the models have an accident."""
    epochs, seconds, least = MODELS[model]
    accident = ACCIDENTS.get(model) if model != "vit-b" or os.environ.get("SGS_ATTEMPT") == "1" else None
    for epoch in range(1, epochs + 1):
        for batch in range(0, BATCHES + 1, 4):
            done = epoch - 1 + batch / BATCHES
            loss = least + 2.0 * math.exp(-0.35 * done)
            print(f"\repoch {epoch}/{epochs}: {progress_bar(batch / BATCHES)} loss={loss:.3f}", end="", flush=True)
            if accident and done > accident[0]:
                sys.exit(f"\n{accident[1]}")
            time.sleep(seconds * 4 / BATCHES)
        print(flush=True)


def final_loss(lr: float, bs: int, drop: float) -> float:
    """A valley in the learning rate, which larger batches move, with some noise."""
    best = -2.9 + 0.25 * math.log2(bs / 32)
    noise = random.Random(f"{lr} {bs} {drop}").gauss(0, 0.03)
    return 0.31 + 0.22 * (math.log10(lr) - best) ** 2 + 1.4 * (drop - 0.15) ** 2 + abs(noise)


def try_settings(lr: float, bs: int, drop: float) -> None:
    """A line for each epoch. What is too large for the GPU or learns too fast fails."""
    loss = final_loss(lr, bs, drop)
    seconds = 0.1 + 5.0 / bs + random.Random(f"{drop} {lr}").uniform(0, 0.3)
    for epoch in range(1, EPOCHS + 1):
        time.sleep(seconds)
        if lr > TOO_FAST:
            sys.exit(f"epoch {epoch}: the loss is nan; giving up")
        if bs >= LARGE and drop > TOO_MUCH:
            sys.exit(OUT_OF_MEMORY)
        print(f"epoch {epoch}: loss {loss + 1.9 * math.exp(-1.1 * epoch):.4f}", flush=True)
    print(f"done: loss {loss:.4f}", flush=True)


def main() -> None:
    arguments = parse_arguments()
    busy = Path(os.environ["PICTURE_GPUS"], os.environ["CUDA_VISIBLE_DEVICES"])
    busy.touch()
    try:
        if arguments.model:
            train(arguments.model)
        else:
            try_settings(arguments.lr, arguments.bs, arguments.drop)
    finally:
        busy.unlink()
        time.sleep(0.15)  # until the stand-in shows the GPU as idle, so that the next job need not wait for it


if __name__ == "__main__":
    main()
