"""A rank that makes every call of ``torch.distributed`` that p4gen's backend has, and compares results."""

import warnings

import pytest
import torch
import torch.distributed as dist

import p4gen.torch

warnings.simplefilter("ignore")  # newer names for the same calls
dist.init_process_group("inc")
rank, size = dist.get_rank(), dist.get_world_size()
world = dist.group.WORLD
assert isinstance(world, p4gen.torch.IncGroup)
every = [torch.arange(12.0).reshape(3, 4) * (r + 1) for r in range(size)]
total = torch.stack(every).sum(0)

# Reductions: exact, quantised, gathered; synchronous and not.
for kind in (torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64, torch.uint8):
    mine = every[rank].clone().to(kind)
    work = dist.all_reduce(mine, async_op=True)
    work.wait()
    assert work.is_completed()
    assert torch.equal(mine, total.to(kind)), kind
before = world.counts.gathered
largest = every[rank].clone()
dist.all_reduce(largest, dist.ReduceOp.MAX)
assert torch.equal(largest, every[-1])
assert world.counts.gathered == before + 1
mean = every[rank].clone()
dist.all_reduce(mean, dist.ReduceOp.AVG)
assert torch.allclose(mean, total / size)
at_root = every[rank].clone()
dist.reduce(at_root, 1)
assert torch.equal(at_root, total if rank == 1 else every[rank])
part = torch.empty(3)
dist.reduce_scatter_tensor(part, every[rank].flatten()[: 3 * size])
assert torch.equal(part, total.flatten()[3 * rank : 3 * rank + 3])
dist.reduce_scatter(part, list(every[rank].flatten()[: 3 * size].split(3)))
assert torch.equal(part, total.flatten()[3 * rank : 3 * rank + 3])
transposed = every[rank].clone().t()
dist.all_reduce(transposed)
assert torch.equal(transposed, total.t())
not_finite = torch.tensor([1.0, float("nan") if rank == 1 else 1.0])
dist.all_reduce(not_finite)
assert not_finite[1].isnan(), not_finite  # and what shares its exponent
with pytest.raises(p4gen.InputError, match="inc has SUM, AVG, MIN and MAX"):
    dist.all_reduce(every[rank].clone(), dist.ReduceOp.PRODUCT)

# Copies, of any type.
rooms = [torch.empty(2, 2, dtype=torch.bfloat16) for _ in range(size)]
dist.all_gather(rooms, torch.full((2, 2), rank, dtype=torch.bfloat16))
assert [int(room[1, 1]) for room in rooms] == list(range(size))
whole = torch.empty(3 * size, dtype=torch.bool)
dist.all_gather_into_tensor(whole, torch.full((3,), rank % 2 == 1))
assert whole.tolist() == [r % 2 == 1 for r in range(size) for _ in range(3)]
sent = torch.full((5,), rank, dtype=torch.complex64)
dist.broadcast(sent, 2)
assert (sent == 2).all()
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": r} for r in range(size)]
dist.barrier()

# Over connections between ranks.
rows = torch.empty(size, dtype=torch.int64)
dist.all_to_all_single(rows, torch.arange(size) + 10 * rank)
assert rows.tolist() == [rank + 10 * r for r in range(size)]
uneven = torch.empty(size * (rank + 1), 2)
dist.all_to_all_single(
    uneven, torch.full((sum(range(1, size + 1)), 2), float(rank)), [rank + 1] * size, list(range(1, size + 1))
)
assert uneven[:, 1].tolist() == [float(r) for r in range(size) for _ in range(rank + 1)]
gathered = [torch.empty(2) for _ in range(size)] if rank == 0 else None
dist.gather(torch.full((2,), float(rank)), gathered, 0)
assert gathered is None or [int(part[0]) for part in gathered] == list(range(size))
scattered = torch.empty(2)
dist.scatter(scattered, [torch.full((2,), float(r)) for r in range(size)] if rank == 2 else None, 2)
assert (scattered == rank).all()
received = torch.empty(3)
works = dist.batch_isend_irecv(
    [
        dist.P2POp(dist.isend, torch.full((3,), float(rank)), (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size),
    ]
)
for work in works:
    work.wait()
assert (received == (rank - 1) % size).all()

# Groups of some ranks, and of one.
pair = dist.new_group([0, 2])
alone = [dist.new_group([r]) for r in range(size)][rank]
if rank in (0, 2):
    two = every[rank].clone()
    dist.all_reduce(two, group=pair)
    assert torch.equal(two, every[0] + every[2])
one = every[rank].clone()
dist.all_reduce(one, group=alone)
assert torch.equal(one, every[rank])
print(f"right at rank {rank}")
dist.destroy_process_group()
