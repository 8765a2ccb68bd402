"""A training step of PyTorch's DistributedDataParallel over Gloo, against the same step without exchange.

    build/yoke launch -n 2 -- .peers/torch/bin/python bench/peers/ddp_step.py --model gpt --batch 8

Both are measured on all ranks at once, in turns. One thread a rank. scripts/bench-step runs it beside yoke.
"""

import functools
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import models

args = models.arguments()
dist.init_process_group("gloo")


@functools.cache
def contender(name):
    """Made when it is first asked for: the other one would count where memory is measured."""
    model, x, target = models.make(args)
    if name == "step":
        model = DistributedDataParallel(model)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False), x, target


def measure():
    times = {"alone": [], "step": []}
    for turn in range(args.rounds + 1):
        for name in times:
            dist.barrier()
            taken = models.milliseconds(*contender(name), args.steps)
            if turn > 0:  # the first one warms up
                times[name].append(taken)
    models.report("pytorch_ddp_gloo", args, contender("alone")[0], times["step"], times["alone"])


def work(line):
    if line == "memory":
        return models.proportional_set_mib()
    return models.milliseconds(*contender(line), args.steps)


if "BENCH_TURNS" in os.environ:
    models.take_turns(work)
else:
    measure()
dist.destroy_process_group()
