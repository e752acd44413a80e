"""nccl-tests' table: what doc/PERFORMANCE.md of nccl-tests says, worked out by hand."""

from __future__ import annotations

import pytest

from p4gen.errors import InputError
from p4gen.experiments.nccltests import BandwidthTable
from p4gen.families import load_spec
from p4gen.host.transport.clock import SECOND

INT32 = load_spec()
GB = 10**9


@pytest.mark.parametrize(
    ("collective", "bus", "count", "redop", "root"),
    [
        ("allreduce", 1.75, GB // 4, "sum", "-1"),
        ("reducescatter", 0.875, GB // 32, "sum", "-1"),
        ("allgather", 0.875, GB // 32, "none", "-1"),
        ("alltoall", 0.875, GB // 32, "none", "-1"),
        ("broadcast", 1.0, GB // 4, "none", "3"),
        ("reduce", 1.0, GB // 4, "sum", "3"),
    ],
)
def test_a_gigabyte_in_half_a_second_by_eight_ranks(
    collective: str, bus: float, count: int, redop: str, root: str
) -> None:
    table = BandwidthTable(INT32, collective, 8, 3)
    cells = table.add(GB, SECOND / 2, 0).split()
    assert cells == [str(GB), str(count), "int32", redop, root, "500000.00", "2.0000", f"{2 * bus:.4f}", "0"]
    (row,) = table.rows
    assert (row.us, row.algbw, row.busbw) == pytest.approx((500_000, 2.0, 2 * bus))
    assert table.ending == ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {2 * bus:.4f}"]


def test_a_barrier_has_a_time_and_no_bandwidth() -> None:
    table = BandwidthTable(INT32, "barrier", 8, 0)
    assert table.sizes(1024, 4096, 2) == [0]
    assert table.add(0, SECOND, 0).split() == ["0", "0", "int32", "none", "-1", "1000000.00", "N/A", "N/A", "0"]
    assert table.ending == ["# Out of bounds values : 0 OK"]
    assert table.average is None


@pytest.mark.parametrize(
    ("fields", "collective", "ranks", "wanted", "sizes"),
    [
        ({}, "allreduce", 4, (8, 64, 2), [8, 16, 32, 64]),
        ({}, "allreduce", 3, (1001, 30_030, 10), [1000, 10_008]),
        ({}, "broadcast", 3, (5, 5, 2), [4]),
        # Parts of a multiple of 16 bytes: 8 and 24 leave none of three ranks any, 72 leaves each 16.
        ({}, "allgather", 3, (8, 1000, 3), [48, 192, 624]),
        ({}, "reducescatter", 8, (1000, 1000, 2), [896]),
        ({}, "alltoall", 5, (1 << 20, 1 << 20, 2), [1_048_560]),
        ({"mode": "I", "dtype": "float16", "fold": "ordered"}, "allreduce", 3, (7, 7, 2), [6]),
        ({"mode": "multiwrite"}, "allgather", 4, (1024, 10_000, 3), [8192]),
        ({"mode": "multiwrite", "payload": 64}, "allgather", 4, (1000, 1000, 2), [768]),
        ({"mode": "scin", "dtype": "mxint8"}, "allreduce", 4, (1000, 1000, 2), [960]),
        ({"mode": "themis"}, "alltoall", 8, (1000, 1000, 2), [896]),
    ],
)
def test_sizes_are_rounded_down(
    fields: dict[str, object], collective: str, ranks: int, wanted: tuple[int, int, int], sizes: list[int]
) -> None:
    assert BandwidthTable(load_spec(None, fields), collective, ranks, 0).sizes(*wanted) == sizes


def test_what_has_no_table() -> None:
    with pytest.raises(InputError, match="reducescatter by 8 ranks takes 128 bytes at least"):
        BandwidthTable(INT32, "reducescatter", 8, 0).sizes(1, 127, 2)
    with pytest.raises(InputError, match="'dispatch' has no bus bandwidth"):
        BandwidthTable(INT32, "dispatch", 8, 0)


@pytest.mark.parametrize(
    ("fields", "names", "elements"),
    [
        ({"op": "dynamic"}, ("int32", "sum"), 256),
        ({"op": "max", "dtype": "uint32"}, ("uint32", "max"), 256),
        ({"mode": "III", "dtype": "float32", "fold": "ordered"}, ("float", "sum"), 256),
        ({"mode": "scin", "dtype": "mxint8"}, ("mxint8", "sum"), 512),
    ],
)
def test_types_and_operations_have_nccl_tests_names(
    fields: dict[str, object], names: tuple[str, str], elements: int
) -> None:
    table = BandwidthTable(load_spec(None, fields), "allreduce", 4, 0)
    assert table.add(1024, SECOND, 0).split()[1:4] == [str(elements), *names]


def test_wrong_results_are_counted_and_the_average_is_of_all_rows() -> None:
    table = BandwidthTable(INT32, "allreduce", 2, 0)
    table.add(GB, SECOND, 0)
    table.add(3 * GB, SECOND, 2)
    assert table.ending == ["# Out of bounds values : 2 FAILED", "# Avg bus bandwidth    : 2.0000"]
    report = table.to_dict()
    assert (report["average_busbw"], [row["wrong"] for row in report["rows"]]) == (2.0, [0, 2])


def test_columns_stand_below_their_names() -> None:
    table = BandwidthTable(INT32, "allreduce", 8, 0)
    _, names, units = table.heading
    row = table.add(12_345_676, 123_456_789, 0)
    ends = [len(names[: names.index(name)]) + len(name) for name in names[1:].split()]
    assert [row[:end].split()[-1] for end in ends] == row.split()
    assert units.split() == ["#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)"]
    slow = table.add(4, 10 * SECOND, 0)
    assert slow.split()[6:8] == ["0.000000", "0.000000"]
