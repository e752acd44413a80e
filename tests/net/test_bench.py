from __future__ import annotations

from p4gen.bench.net import measure_net
from p4gen.papers.epic.spec import EpicSpec


def test_a_measurement_counts_every_hop() -> None:
    rate = measure_net(EpicSpec(lanes=8, window=8, message=16, groups=1), seed=1, size=8192)
    # 256 packets of data and a control message a rank, both ways, and an ACK a message each way.
    assert rate.packet_hops == 8 * 2 * (256 + 1 + 256 // 16 + 1)
    assert rate.per_second > 1000
