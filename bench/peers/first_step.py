"""The first steps of the digits network of examples/digits.toml in PyTorch, for scripts/bench-start: reads the data,
makes the model data parallel over Gloo, trains two steps, and says on stdout when the first is done."""

import csv
import gzip
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
with gzip.open(os.path.join(os.path.dirname(__file__), "../../data/digits.csv.gz"), "rt") as lines:
    rows = [row for row in csv.reader(lines) if row[0].isdigit()]
data = torch.tensor([[float(value) for value in row] for row in rows])
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(1)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.2),
                  nn.Linear(128, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(2):
    batch = data[torch.randperm(len(data))[:64]][rank::size]
    optimizer.zero_grad()
    F.cross_entropy(model(batch[:, :64]), batch[:, 64].long()).backward()
    optimizer.step()
    if step == 0 and rank == 0:
        print("first step", flush=True)
dist.barrier()
# PyTorch aborts now and then when the process group and the interpreter are taken down ("terminate called without an
# active exception").
os._exit(0)
