"""A small but real training run: a network with one hidden layer learns to tell two spirals apart. No dependencies.

It stands in for any training script: it reads its settings from the command line, prints its progress and its result,
and writes the result where --output says. It uses no GPU, and prints the one it was given.
"""

import argparse
import json
import math
import os
import random
from pathlib import Path

Point = tuple[float, float, float]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learn to tell two spirals apart.")
    parser.add_argument("--lr", type=float, default=0.1, help="the learning rate (default: 0.1)")
    parser.add_argument("--hidden", type=int, default=16, help="the size of the hidden layer (default: 16)")
    parser.add_argument("--epochs", type=int, default=80, help="how many passes over the data (default: 80)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of data and weights (default: 0)")
    parser.add_argument("--output", type=Path, help="write settings and result to this JSON file")
    return parser.parse_args()


def two_spirals(points: int, turns: float, rng: random.Random) -> list[Point]:
    """Points (x, y, label) on two spirals that wind around each other, with some noise."""
    data = []
    for index in range(points):
        label = index % 2
        radius = 0.1 + 0.9 * index / points
        angle = turns * 2 * math.pi * radius + math.pi * label
        noise = rng.gauss(0, 0.02), rng.gauss(0, 0.02)
        data.append((radius * math.cos(angle) + noise[0], radius * math.sin(angle) + noise[1], float(label)))
    return data


class Network:
    """x, y -> tanh(hidden units) -> sigmoid, trained by gradient descent on one point at a time."""

    def __init__(self, hidden: int, rng: random.Random) -> None:
        self.units = [[rng.gauss(0, 2), rng.gauss(0, 2), rng.gauss(0, 1), rng.gauss(0, 0.5)] for _ in range(hidden)]
        self.bias = 0.0

    def predict(self, x: float, y: float) -> tuple[float, list[float]]:
        """The probability of label 1, and what the hidden units say."""
        activations = [math.tanh(wx * x + wy * y + bias) for wx, wy, bias, _ in self.units]
        total = self.bias + sum(unit[3] * a for unit, a in zip(self.units, activations, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), activations

    def learn(self, point: Point, lr: float) -> None:
        """One step down the gradient of the log loss."""
        x, y, label = point
        probability, activations = self.predict(x, y)
        error = probability - label
        self.bias -= lr * error
        for unit, a in zip(self.units, activations, strict=True):
            slope = error * unit[3] * (1 - a * a)
            unit[0] -= lr * slope * x
            unit[1] -= lr * slope * y
            unit[2] -= lr * slope
            unit[3] -= lr * error * a

    def loss(self, data: list[Point]) -> float:
        """The mean log loss."""
        total = 0.0
        for x, y, label in data:
            probability = self.predict(x, y)[0]
            total -= math.log(max(1e-9, probability if label else 1 - probability))
        return total / len(data)

    def accuracy(self, data: list[Point]) -> float:
        """The share of points on the right side."""
        return sum((self.predict(x, y)[0] > 1 / 2) == bool(label) for x, y, label in data) / len(data)


def main() -> None:
    arguments = parse_arguments()
    rng = random.Random(arguments.seed)
    training, test = two_spirals(400, 1.75, rng), two_spirals(200, 1.75, rng)
    network = Network(arguments.hidden, rng)
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
    for epoch in range(1, arguments.epochs + 1):
        rng.shuffle(training)
        for point in training:
            network.learn(point, arguments.lr)
        if epoch % 20 == 0:
            print(f"lr={arguments.lr:g} gpu={gpu} epoch {epoch}: loss {network.loss(training):.3f}")
    result = {"lr": arguments.lr, "loss": network.loss(test), "accuracy": network.accuracy(test)}
    print(f"lr={arguments.lr:g} done: test accuracy {result['accuracy']:.2f}")
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
