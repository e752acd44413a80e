"""Plans of the paper's model as files: flows of each link, and each worker's path."""

from __future__ import annotations

from typing import Any

from p4gen.plan.route.instance import Instance
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.study import JointSolved, Solved


def content(solved: Solved) -> dict[str, Any]:
    """The plans of all algorithms for one task."""
    instance = solved.instance
    return {
        "seed": solved.seed,
        "server": _server(instance),
        "aggregating": _aggregating(instance),
        "plans": {
            name: {
                "rate_bps": plan.throughput(instance),
                "fullest": plan.fullest(instance),
                "bound": plan.bound,
                "gap": plan.gap(instance),
                **_routes(instance, plan),
            }
            for name, plan in solved.plans.items()
        },
    }


def joint_content(solved: JointSolved) -> dict[str, Any]:
    """The plans of all algorithms for several tasks; ``value`` and ``bound`` are of the paper's objective, as shares of
    a link's bandwidth."""
    tasks = solved.tasks
    return {
        "seed": solved.seed,
        "servers": [_server(instance) for instance in tasks.instances],
        "jobs": [list(numbers) for numbers in tasks.jobs],
        "aggregating": _aggregating(tasks.instances[0]),
        "plans": {
            name: {
                "value": tasks.value(joint.rates),
                "bound": joint.bound,
                "gap": joint.gap(tasks),
                "tasks": [
                    {"rate_bps": rate * tasks.bandwidth, **_routes(instance, plan)}
                    for instance, plan, rate in zip(tasks.instances, joint.plans, joint.rates, strict=True)
                ],
            }
            for name, joint in solved.found.items()
        },
    }


def _server(instance: Instance) -> str:
    return f"leaf{instance.server[0]}:{instance.server[1]}"


def _aggregating(instance: Instance) -> list[str]:
    leaves = [f"leaf{number}" for number in sorted(instance.aggregating_leaves)]
    return leaves + [f"spine{number}" for number in sorted(instance.aggregating_spines)]


def _routes(instance: Instance, plan: Plan) -> dict[str, Any]:
    return {
        "problems": list(plan.problems(instance)),
        "flows": [[f"leaf{leaf}", f"spine{spine}", n] for (leaf, spine), n in sorted(plan.up.items())],
        "paths": {f"leaf{leaf}:{port}": list(path) for (leaf, port), path in plan.paths(instance).items()},
    }
