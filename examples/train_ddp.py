"""Trains a small transformer on several ranks, whose gradients switches add: in a lab, or on a cluster.

p4gen lab star-4 --mode III --exec 'python examples/train_ddp.py'
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import p4gen.torch  # noqa: F401 - registers the backend inc

VOCABULARY, LENGTH, WIDTH = 64, 32, 64


class Model(nn.Module):
    """Predicts the next of a row of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """The scores of each number's successor."""
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        return self.out(self.layers(self.embed(rows) + self.place, mask, is_causal=True))


options = argparse.ArgumentParser()
options.add_argument("--backend", default="inc", help="gloo: the hosts' own ring, over the same switches")
options.add_argument("--parallel", choices=("ddp", "fsdp"), default="ddp", help="fsdp: with sharded parameters")
options.add_argument("--steps", type=int, default=20)
given = options.parse_args()
torch.set_num_threads(1)
dist.init_process_group(given.backend)
torch.manual_seed(0)
model = DistributedDataParallel(Model()) if given.parallel == "ddp" else fully_shard(Model())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
numbers = torch.Generator().manual_seed(dist.get_rank())
for step in range(given.steps):
    first = torch.randint(VOCABULARY, (8, 1), generator=numbers)
    rows = (first + 3 * torch.arange(LENGTH + 1)) % VOCABULARY
    loss = nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        print(f"step {step} loss {mean.item() / dist.get_world_size():.6f}")
dist.destroy_process_group()
