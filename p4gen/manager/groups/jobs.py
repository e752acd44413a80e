"""Jobs (EPIC §G): the manager chooses the hosts of a job and the trees of its groups together.

The placement of a job proposes hosts, best first. Under the ledger's lock all groups are placed below them, each beside
those before it, and recorded: so two jobs never get the same host, or the same part of a switch. If a group finds no
place, the next hosts are tried. Then all groups are installed at the same time. A job that is not active after a
restart is gone, with all its groups.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from p4gen.manager.access.tenants import Tenants, tenant_of
from p4gen.manager.api import AgentError, Code, GroupSpec, GroupState, JobSpec, JobStatus, ManagerError
from p4gen.manager.groups.lifecycle import Answers, Lifecycle, refusal
from p4gen.manager.store.ledger import LOGGER, Ledger
from p4gen.manager.store.record import Record
from p4gen.manager.store.store import StoredJob
from p4gen.plan.placement.duty import blocks_of
from p4gen.plan.placement.hosts import PLACEMENTS, Path, proposals, racks
from p4gen.plan.placement.placer import switch_of
from p4gen.plan.placement.planner import NoPlaceError, Plan, check
from p4gen.plan.placement.request import SEPARATOR

MOST_GROUPS: Final = 1024
"""Groups of a job: they are placed while nothing else is."""
MOST_CHOICES: Final = 64
"""Choices of hosts that are tried for a job."""
_NAME: Final = re.compile(rf"([A-Za-z0-9][A-Za-z0-9_.-]{{0,30}}{SEPARATOR})?[A-Za-z0-9][A-Za-z0-9_.-]{{0,30}}")
_OWN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")


class Jobs:
    """The jobs of a manager. ``check_open`` raises when the manager has ended."""

    def __init__(self, ledger: Ledger, lifecycle: Lifecycle, tenants: Tenants, check_open: Callable[[], None]) -> None:
        self._ledger, self._lifecycle, self._tenants, self._check_open = ledger, lifecycle, tenants, check_open

    def init(self, spec: JobSpec) -> JobStatus:
        """Implement ``Manager.init_job``. A switch that refuses or does not answer is avoided in another attempt."""
        _check(spec)
        ledger, lifecycle = self._ledger, self._lifecycle
        avoid: dict[str, str] = {}
        restarted: set[str] = set()
        first: ManagerError | None = None
        while True:
            try:
                with ledger.changed:
                    self._check_open()
                    if spec.name in ledger.jobs:
                        raise ManagerError(Code.EXISTS, f"there is already a job '{spec.name}'")
                    job = self._begin(spec, avoid)
            except NoPlaceError as error:
                again = lifecycle.empty(error.epochs - restarted)
                if not again:
                    raise first or error from None
                restarted |= again
                lifecycle.restart(again)
                continue
            failures = self._install(job)
            if not failures:
                LOGGER.info("job %s is active on %s", spec.name, ", ".join(job.hosts))
                return self.status(spec.name)
            first = first or refusal(failures)
            avoid |= {switch: f"switch {switch}: {error.reason}" for switch, error in failures.items()}

    def destroy(self, name: str) -> None:
        """Implement ``Manager.destroy_job``."""
        ledger, lifecycle = self._ledger, self._lifecycle
        busy: list[Record] = []
        answers: list[Answers] = []
        try:
            with ledger.changed:
                self._check_open()
                while others := [each for each in self._records(self._active(name)) if id(each) not in map(id, busy)]:
                    busy.append(
                        lifecycle.busy(others[0].spec.name, GroupState.ACTIVE, GroupState.BROKEN, GroupState.FAILED)
                    )
                job = self._active(name)
                ledger.put_job(job, GroupState.REMOVING)
                for record in busy:
                    ledger.mark_removing(record)
                    answers.append(lifecycle.uninstall(record.key, record.placed))
            for each in answers:
                lifecycle.wait(each)
            with ledger.changed:
                self._drop(job)
        finally:
            for record in busy:
                lifecycle.idle(record)

    def status(self, name: str) -> JobStatus:
        """Implement ``Manager.job``."""
        with self._ledger.changed:
            return self._status(self._get(name))

    def statuses(self) -> list[JobStatus]:
        """Implement ``Manager.jobs``."""
        with self._ledger.changed:
            return [self._status(job) for _, job in sorted(self._ledger.jobs.items())]

    # --- with the ledger's lock ---

    def _get(self, name: str) -> StoredJob:
        if name not in self._ledger.jobs:
            raise ManagerError(Code.NOT_FOUND, f"there is no job '{name}'")
        return self._ledger.jobs[name]

    def _active(self, name: str) -> StoredJob:
        job = self._get(name)
        if job.state is not GroupState.ACTIVE:
            raise ManagerError(Code.REFUSED, f"job {name} is {job.state}")
        return job

    def _records(self, job: StoredJob) -> list[Record]:
        records = self._ledger.records
        return [records[spec.name] for spec in job.spec.group_specs(job.hosts) if spec.name in records]

    def _status(self, job: StoredJob) -> JobStatus:
        return JobStatus(job.spec, job.hosts, tuple(record.status() for record in self._records(job)))

    def _drop(self, job: StoredJob) -> None:
        for record in self._records(job):
            self._ledger.drop(record)
        if job.spec.name in self._ledger.jobs:
            self._ledger.drop_job(job)

    def _begin(self, spec: JobSpec, avoid: Mapping[str, str]) -> StoredJob:
        """Record a job and what its groups get, or raise and leave nothing. Groups with a ``fallback`` are on rings if
        no hosts have room for all."""
        refused: NoPlaceError | None = None
        best: tuple[str, ...] | None = None
        for hosts in islice(self._choices(spec, avoid), MOST_CHOICES):
            best = best or hosts
            try:
                return self._reserve(spec, hosts, avoid, rings=False)
            except NoPlaceError as error:
                if error.code is Code.INVALID:
                    raise
                refused = refused or error
        assert refused is not None
        assert best is not None
        if not any(group.spec.fallback for group in spec.groups):
            raise refused
        return self._reserve(spec, best, avoid, rings=True)

    def _choices(self, spec: JobSpec, avoid: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
        """Hosts for a job, best first: of all racks, then of those whose switches have room for a group. Raises
        ``NoPlaceError`` if too few are free."""
        view, ledger, cordoned = self._ledger.fabric.view, self._ledger, self._ledger.fabric.cordoned
        topology, paths = view.topology, racks(view.topology)
        free: defaultdict[Path, list[str]] = defaultdict(list)
        roomy: defaultdict[Path, list[str]] = defaultdict(list)
        others = Counter[str]()
        used = {host for job in ledger.jobs.values() for host in job.hosts}
        used |= {host for record in ledger.records.values() for host in record.spec.ranks}
        pools = ledger.pools(placed for _, placed in ledger.live())
        rooms: dict[str, int] = {}
        for host in topology.hosts:
            if self._tenants.owner(host) != tenant_of(spec.name):
                continue
            at = switch_of(topology, host)
            why = "have jobs or groups" if host in used else avoid.get(at)
            why = why or next((f"{name} is cordoned" for name in (at, host) if name in cordoned), None)
            why = why or next((view.down[link.name] for link in topology.ports[host] if link.name in view.down), None)
            if why is not None:
                others[why if host in used else f"cannot be used: {why}"] += 1
                continue
            free[paths[host]].append(host)
            if at in view.specs and at not in rooms:
                pool, program = pools.switch(at), view.specs[at]
                slots = map(pool.slots_free, range(program.pipelines))
                rooms[at] = blocks_of(program, pool.contexts_free, slots)
            if rooms.get(at):
                roomy[paths[host]].append(host)
        count = sum(map(len, free.values()))
        if count < spec.size:
            but = "".join(f"; {number} {why}" for why, number in others.items())
            raise NoPlaceError(Code.NO_ROOM, f"job {spec.name}: {spec.size} hosts are needed; {count} are free{but}")
        tried = set()
        for some in (free, roomy):
            for hosts in map(tuple, proposals(some, spec.size, spec.placement, ledger.random)):
                if hosts not in tried:
                    tried.add(hosts)
                    yield hosts

    def _reserve(self, spec: JobSpec, hosts: tuple[str, ...], avoid: Mapping[str, str], *, rings: bool) -> StoredJob:
        """Place all groups below these hosts, and record them. Raises ``NoPlaceError`` if a group has no place."""
        ledger = self._ledger
        found: list[tuple[Record, Plan | str]] = []
        try:
            for group in spec.group_specs(hosts):
                check(group, ledger.fabric.view)
                if group.name in ledger.records:
                    raise ManagerError(Code.EXISTS, f"there is already a group '{group.name}'")
                ledger.quotas.check_group(group.name)
                record, plan = Record(group, busy=True), self._plan(group, avoid, rings=rings)
                if isinstance(plan, Plan):  # what it gets counts for the next group
                    record.home = plan.placed.first.tree if plan.leased else None
                    record.pending = None if plan.leased else plan.placed
                ledger.records[group.name] = record
                found.append((record, plan))
        except BaseException:
            for record, _ in found:
                del ledger.records[record.spec.name]
            raise
        job = StoredJob(spec, hosts)
        try:
            ledger.put_job(job, GroupState.INSTALLING)
            for record, plan in found:
                if isinstance(plan, Plan) and not plan.leased:
                    ledger.begin(record, plan.placed, plan.pools)
                else:
                    record.tried = ledger.version
                    self._lifecycle.park(record, record.spec, plan if isinstance(plan, str) else "")
        except BaseException:
            self._drop(job)
            raise
        return job

    def _plan(self, group: GroupSpec, avoid: Mapping[str, str], *, rings: bool) -> Plan | str:
        """A group's place; or why it is on a ring, if it may be."""
        try:
            return self._ledger.plan(group, avoid)
        except NoPlaceError as error:
            if rings and group.fallback and error.code is not Code.INVALID:
                return error.reason
            raise NoPlaceError(error.code, f"group {group.name}: {error.reason}", error.epochs) from None

    # --- installing ---

    def _install(self, job: StoredJob) -> dict[str, AgentError]:
        """Install all groups that have a place. Returns the failures by switch; then nothing of the job is left."""
        ledger, lifecycle = self._ledger, self._lifecycle
        with ledger.changed:
            records = self._records(job)
            begun = [(record, record.pending_key, record.pending) for record in records if record.pending is not None]
        failures: dict[str, AgentError] = {}
        done = False
        undone: list[Answers] = []
        try:
            for answers in [lifecycle.start_install(key, placed, {}) for _, key, placed in begun]:
                failures |= lifecycle.wait(answers)
            with ledger.changed:
                lost = any(record.pending_lost for record in records)
                if not failures and not lost:
                    for record, key, placed in begun:
                        ledger.activate(record, record.spec)
                        lifecycle.activate(key, placed)
                    ledger.put_job(job, GroupState.ACTIVE)
                    done = True
        finally:
            try:
                with ledger.changed:
                    if not done:
                        undone = [lifecycle.uninstall(key, placed) for _, key, placed in begun]
                        self._drop(job)
            finally:
                for record in records:
                    lifecycle.idle(record)
        for answers in undone:
            lifecycle.wait(answers)
        if not done and not failures:
            raise ManagerError(Code.UNREACHABLE, f"job {job.spec.name}: a switch was restarted meanwhile")
        return failures


def _check(spec: JobSpec) -> None:
    """Refuse requests that are invalid for every placement. Raises ``ManagerError`` with every reason."""
    problems = []
    if not _NAME.fullmatch(spec.name):
        problems.append(f"'{spec.name}' is not a name for a job: letters, digits, '_', '.', '-', 31 at most")
    if spec.size < 1:
        problems.append(f"a job of {spec.size} hosts")
    if spec.placement not in PLACEMENTS:
        problems.append(f"there is no placement '{spec.placement}'; there are {', '.join(PLACEMENTS)}")
    if len(spec.groups) > MOST_GROUPS:
        problems.append(f"{len(spec.groups):,} groups; a job has {MOST_GROUPS:,} at most")
    names = Counter(group.spec.name for group in spec.groups)
    problems += [f"{count} groups are called '{name}'" for name, count in names.items() if count > 1]
    for group in spec.groups:
        problems += [f"group {group.spec.name}: {why}" for why in _group_problems(group.spec, group.ranks, spec.size)]
    if problems:
        raise ManagerError(Code.INVALID, "\n".join(problems))


def _group_problems(spec: GroupSpec, ranks: Sequence[int], size: int) -> Iterator[str]:
    if not _OWN_NAME.fullmatch(spec.name):
        yield "its name has letters, digits, '_', '.', '-', 31 at most"
    if spec.ranks or spec.term != 1 or spec.gone:
        yield "hosts, terms, and ranks that are gone are the manager's to set"
    if spec.memories:
        yield "hosts that are not known yet offer no memory"
    if not ranks or len(set(ranks)) != len(ranks) or not all(0 <= rank < size for rank in ranks):
        yield f"its ranks are some of 0 to {size - 1}, each once"
