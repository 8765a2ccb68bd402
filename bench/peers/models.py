"""The networks of yoke/model in PyTorch, of the same shapes, and the clock of one training step."""

import argparse
import json
import os
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, length, width, depth, heads):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def cnn(channels, classes=10):
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1, bias=False), nn.BatchNorm2d(2 * channels), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * channels * 7 * 7, classes),
    )


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["gpt", "cnn"], required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples a rank")
    parser.add_argument("--steps", type=int, default=10, help="of a round")
    parser.add_argument("--rounds", type=int, default=7, help="each with and without the exchange")
    parser.add_argument("--vocabulary", type=int, default=96)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--channels", type=int, default=32)
    return parser.parse_args()


def make(args):
    """A model and one batch of made-up data: the time of a step does not depend on the numbers."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if args.model == "gpt":
        model = Gpt(args.vocabulary, args.length, args.width, args.depth, args.heads)
        x = torch.randint(args.vocabulary, (args.batch, args.length))
        return model, x, torch.randint(args.vocabulary, (args.batch, args.length)).flatten()
    return cnn(args.channels), torch.randn(args.batch, 1, 28, 28), torch.randint(10, (args.batch,))


def milliseconds(model, optimizer, x, target, steps):
    """The median time of a step: forward, backward with what exchange the model does in it, update."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        output = model(x)
        F.cross_entropy(output.reshape(-1, output.shape[-1]), target).backward()
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def take_turns(work):
    """Does what the lines of a pipe say, for a program that lets several contenders alternate (bench/team.h)."""
    rank = os.environ.get("RANK") or os.environ["HOROVOD_RANK"]
    pipe = os.path.join(os.environ["BENCH_TURNS"], rank)
    with open(pipe + ".in") as lines, open(pipe + ".out", "w", buffering=1) as answers:
        print(os.getpid(), file=answers)
        for line in iter(lines.readline, "end\n"):
            print(work(line.strip()), file=answers)


def proportional_set_mib():
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def report(peer, args, model, with_exchange, without):
    """One line of JSON by rank 0; `ms` and `alone_ms` hold the median of each round."""
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps({
            "peer": peer, "model": args.model, "ranks": int(os.environ.get("WORLD_SIZE", "1")), "batch": args.batch,
            "parameters": sum(p.numel() for p in model.parameters()),
            "ms": with_exchange, "alone_ms": without,
            "median_ms": statistics.median(with_exchange), "median_alone_ms": statistics.median(without),
        }), flush=True)
