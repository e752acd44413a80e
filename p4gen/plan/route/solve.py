"""SJST: one task's best routing as an integer program (ARO §III), solved by HiGHS.

With one task the rate is the bandwidth over K, the most flows on a link: so K is minimised, and nothing is quadratic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from p4gen.errors import FailedError
from p4gen.plan.route.direct import direct
from p4gen.plan.route.flows import Allowed, Group, add_flows
from p4gen.plan.route.instance import Instance
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.program import Program


def route(
    instance: Instance,
    *,
    allowed: Allowed | None = None,
    at_most: int | None = None,
    limit: float = 60.0,
    algorithm: str = "aro",
) -> Plan | None:
    """The best plan over what is ``allowed`` (everything), with at most ``at_most`` flows on a link; None if there is
    none, or none was found within ``limit`` seconds. Its bound is that of the restricted problem.

    Spines that do not aggregate and enter the same pipeline of the server's leaf are interchangeable. The program has
    one for all of them, with as many links: its flows can always be divided equally.
    """
    began = time.monotonic()
    allowed = allowed or Allowed.everything(instance)
    program = Program()
    own = len(instance.by_leaf.get(instance.server[0], ()))
    most = at_most or max(sum(instance.sends.values()) + own, instance.fabric.pipelines)
    fullest = program.column(1, most, 1.0, whole=True)
    flows = add_flows(program, instance, allowed, most=at_most)
    for (_, group), column in flows.up.items():
        program.at_most([(column, 1.0), (fullest, -float(len(group)))])
    for group, leaving in flows.down.items():
        program.at_most([*((column, 1.0) for column in leaving), (fullest, -float(len(group)))])
    program.at_most([*((column, 1.0) for column in flows.last), (fullest, -1.0)], -flows.own)
    found = program.minimise(limit)
    if found is None:
        return None
    flows_up = divided({place: int(found.values[column]) for place, column in flows.up.items()})
    return Plan(algorithm, flows_up, found.bound, time.monotonic() - began)


def divided(flows: Mapping[tuple[int, Group], int]) -> dict[tuple[int, int], int]:
    """Flows from leaves to groups of spines, dealt to the spines of each group in turn. No spine gets more than an
    equal part of the group's flows, or of those of one leaf."""
    found: Counter[tuple[int, int]] = Counter()
    turn: Counter[Group] = Counter()
    for (leaf, group), count in sorted(flows.items()):
        for _ in range(count):
            found[leaf, group[turn[group] % len(group)]] += 1
            turn[group] += 1
    return dict(found)


def optimum(instance: Instance, limit: float = 60.0) -> Plan:
    """ARO: the best plan of all, without a solver. If the server's leaf does not aggregate, a solver is needed; then it
    raises ``FailedError`` if no plan was found within ``limit`` seconds."""
    if instance.server[0] in instance.aggregating_leaves:
        return direct(instance)
    return solve_raw(instance, limit)


def solve_raw(instance: Instance, limit: float = 60.0) -> Plan:
    """ARO-RAW: the best plan of all by the integer program. Raises ``FailedError`` if none was found within ``limit``
    seconds."""
    plan = route(instance, limit=limit, algorithm="aro-raw")
    if plan is None:
        raise FailedError(f"no plan was found within {limit:g} s")
    return plan
