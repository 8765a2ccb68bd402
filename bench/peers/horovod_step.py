"""A training step of Horovod over Gloo or MPI, against the same step without exchange.

    mpirun -n 2 .peers/horovod/bin/python bench/peers/horovod_step.py --model gpt --batch 8
    .peers/horovod/bin/horovodrun --gloo -np 2 .peers/horovod/bin/python bench/peers/horovod_step.py --model gpt --batch 8

The step without exchange is measured first, before Horovod starts the thread that polls beside every step of its own.
One thread a rank.
"""

import os

import torch
import horovod.torch as hvd

import models

args = models.arguments()
model, x, target = models.make(args)


def adamw():
    return torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)


def replicate():
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.DistributedOptimizer(adamw(), named_parameters=model.named_parameters())


def measure():
    optimizer = adamw()
    models.milliseconds(model, optimizer, x, target, args.steps)
    alone = [models.milliseconds(model, optimizer, x, target, args.steps) for _ in range(args.rounds)]

    hvd.init()
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(hvd.rank()), str(hvd.size())
    optimizer = replicate()
    models.milliseconds(model, optimizer, x, target, args.steps)
    together = [models.milliseconds(model, optimizer, x, target, args.steps) for _ in range(args.rounds)]
    models.report("horovod", args, model, together, alone)


if "BENCH_TURNS" in os.environ:
    hvd.init()
    optimizer = replicate()
    models.take_turns(lambda _: models.milliseconds(model, optimizer, x, target, args.steps))
else:
    measure()
hvd.shutdown()
