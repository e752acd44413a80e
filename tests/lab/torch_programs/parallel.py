"""A rank that trains with tensor parallelism and with sharded parameters, beside one model without either."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import p4gen.torch  # noqa: F401


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def losses(trained: nn.Module) -> list[float]:
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    rows = torch.randn(16, 8, generator=torch.Generator().manual_seed(1))
    found = []
    for _ in range(4):
        loss = trained(rows).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


dist.init_process_group("inc")
right = losses(model())
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
sharded = model()
fully_shard(sharded, mesh=mesh)
kinds = {
    "tensor": parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}),
    "fully_shard": sharded,
    "FullyShardedDataParallel": FullyShardedDataParallel(model(), device_id=torch.device("cpu")),
}
for name, trained in kinds.items():
    found = losses(trained)
    assert torch.allclose(torch.tensor(found), torch.tensor(right), rtol=1e-5), (name, found, right)
    print(f"{name}: right at rank {dist.get_rank()}")
dist.destroy_process_group()
