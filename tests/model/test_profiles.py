"""Action profiles and selectors of the behavioural model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from p4gen.model import ControlError, Model
from p4gen.model.entries import Action, Entry, Exact, Indirect
from p4gen.model.profiles import GroupMember
from p4gen.p4.compile import compile_file

PROGRAM = Path(__file__).parent / "selector.p4"


def frame(destination: int, source: int = 0) -> bytes:
    return destination.to_bytes(6) + source.to_bytes(6) + b"\x08\x00"


@pytest.fixture
def model() -> Model:
    model = Model(compile_file(PROGRAM).program)
    for member in range(1, 4):
        model.set_member("spread", member, Action("forward", {"port": member}))
    return model


def ports(model: Model, destination: int = 7) -> Counter[int]:
    return Counter(
        port for s in range(300) for port, _ in model.process(0, frame(destination, s * 0x9E3779B97F % 2**48))
    )


def test_a_member_is_the_entry_s_action_and_changes_with_it(model: Model) -> None:
    model.insert(Entry("t", {"d": Exact(7)}, Indirect(member=2)))
    assert ports(model) == {2: 300}
    model.set_member("spread", 2, Action("forward", {"port": 9}))
    assert ports(model) == {9: 300}
    assert model.entries("t")[0].action == Indirect(member=2)


def test_a_group_spreads_by_weight_and_leaves_out_ports_that_are_down(model: Model) -> None:
    model.set_group("spread", 1, [GroupMember(1), GroupMember(2, weight=3, watch_port=2)])
    model.insert(Entry("t", {"d": Exact(7)}, Indirect(group=1)))
    found = ports(model)
    assert set(found) == {1, 2}
    assert found[2] > 2 * found[1]
    model.set_link(2, False)
    assert ports(model) == {1: 300}
    model.set_link(2, True)
    assert ports(model) == found


def test_the_same_flow_always_takes_the_same_member(model: Model) -> None:
    model.set_group("spread", 1, [GroupMember(1), GroupMember(2), GroupMember(3)])
    model.insert(Entry("t", {"d": Exact(7)}, Indirect(group=1)))
    assert len({model.process(0, frame(7, 5))[0][0] for _ in range(20)}) == 1


def test_a_set_of_actions_of_the_entry_s_own(model: Model) -> None:
    shares = ((Action("forward", {"port": 4}), 1, None), (Action("forward", {"port": 5}), 1, 5))
    model.insert(Entry("t", {"d": Exact(7)}, Indirect(actions=shares)))
    assert set(ports(model)) == {4, 5}
    frozen, other = model.freeze(), Model(model.program)
    other.restore(frozen)
    assert other.freeze() == frozen
    assert hash(other.freeze()) == hash(frozen)
    assert other.entries("t") == model.entries("t")
    assert ports(other) == ports(model)


def test_an_empty_group_does_nothing(model: Model) -> None:
    model.set_group("spread", 1, [])
    model.insert(Entry("t", {"d": Exact(7)}, Indirect(group=1)))
    assert ports(model) == {0: 300}


def test_what_does_not_fit_is_refused(model: Model) -> None:
    for action, why in (
        (Action("forward", {"port": 1}), "name a member or group"),
        (Indirect(member=9), "there is no member 9"),
        (Indirect(group=9), "there is no group 9"),
    ):
        with pytest.raises(ControlError, match=why):
            model.insert(Entry("t", {"d": Exact(7)}, action))
    model.set_member("spread", 4, Action("forward", {"port": 1}))
    with pytest.raises(ControlError, match="full, it has room for 4 members"):
        model.set_member("spread", 5, Action("forward", {"port": 1}))
    with pytest.raises(ControlError, match="not a selector"):
        model.set_group("plain", 1, [])
    with pytest.raises(ControlError, match="there is no member 77"):
        model.set_group("spread", 1, [GroupMember(77)])
    with pytest.raises(ControlError, match="no action profile"):
        model.insert(Entry("v", {"t": Exact(7)}, Indirect(member=1)))
    assert model.entries("t") == []
