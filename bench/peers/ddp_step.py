"""A training step of PyTorch's DistributedDataParallel over Gloo, against the same step without exchange.

    build/yoke launch -n 2 -- .peers/torch/bin/python bench/peers/ddp_step.py --model gpt --batch 8

Both are measured on all ranks at once, in turns. One thread a rank.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import models

args = models.arguments()
plain, x, target = models.make(args)
replicated, _, _ = models.make(args)
dist.init_process_group("gloo")
replicated = DistributedDataParallel(replicated)
optimizers = {m: torch.optim.AdamW(m.parameters(), lr=1e-4, foreach=False) for m in (plain, replicated)}

times = {plain: [], replicated: []}
for turn in range(args.rounds + 1):
    for model in (plain, replicated):
        dist.barrier()
        taken = models.milliseconds(model, optimizers[model], x, target, args.steps)
        if turn > 0:  # the first one warms up
            times[model].append(taken)
models.report("pytorch_ddp_gloo", args, plain, times[replicated], times[plain])
dist.destroy_process_group()
