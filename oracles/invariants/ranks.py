"""Whether the processes that train together agree on who they are."""

from __future__ import annotations

from oracles import relations
from oracles.history import Event
from oracles.invariants.rule import Rule
from oracles.invariants.world import GONE

#: steps after which every rank of a process group must have told of itself: a step ends with a
#: collective of all ranks, and each tells of a step before it begins the next, so that two are
#: enough; one is added for a process that is killed while it writes
SETTLED = 3


class _World:
    __slots__ = ("first", "last", "low", "ranks", "size", "step")

    def __init__(self, size: int, seq: int) -> None:
        self.size = size
        self.first = self.last = seq
        #: rank -> (pod, process, event)
        self.ranks: dict[int, tuple[str, int, int]] = {}
        self.low: int | None = None
        self.step = 0


class Ranks(Rule):
    """E03, and E13 for the size of the world. One world is one process group (``generation``)."""

    name = "ranks"
    promise = (
        "In every process group of a job each rank from 0 to the world size less one is held by "
        "exactly one process, and all agree on the world size, which the policy allows."
    )
    source = "pytorch.org: torchrun, Definitions (RANK, WORLD_SIZE); kubeflow/community#522"
    behaviour = "E03"
    kinds = frozenset({"source:progress"}) | frozenset(relations.JOB_KINDS)

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._jobs: dict[str, dict[str, _World]] = {}
        self._names: dict[str, str] = {}

    def feed(self, event: Event) -> None:
        """Read progress lines."""
        if event.source == "watch":
            job = self.world.job
            if job is not None and self.world.changed & GONE:
                for old in self._jobs.pop(job.uid, {}).values():
                    self._whole(job.subject, old, event.mono)
                self._names.pop(job.uid, None)
            return
        line = event.object
        generation, rank, size = line.get("generation"), line.get("rank"), line.get("world")
        if generation is None or rank is None or size is None:
            return
        key = self.world.line_job
        worlds = self._jobs.setdefault(key, {})
        world = worlds.get(generation)
        if world is None:
            self._names[key] = self._subject(key)
            # a new group begins when the one before is over; one more is kept for late lines
            for name in list(worlds)[:-1]:
                self._whole(self._names[key], worlds.pop(name), event.mono)
            world = worlds[generation] = _World(size, event.seq)
            self.judged += 1
            self._allowed(key, world, event)
        self._line(self._names[key], world, event, rank, size)

    def _line(self, subject: str, world: _World, event: Event, rank: int, size: int) -> None:
        line = event.object
        world.last = event.seq
        if line.get("event") == "step":
            step = line.get("step") or 0
            world.low = step if world.low is None else min(world.low, step)
            world.step = max(world.step, step)
        pod, pid = event.uid or line.get("pod_uid", ""), line.get("pid", 0)
        known = world.ranks.get(rank)
        if known is not None and known[0] == pod and known[1] == pid and size == world.size:
            return
        if size != world.size:
            self.broke(
                subject,
                f"rank {rank} in pod {event.name} is in a world of {size}, others of the same "
                f"process group in one of {world.size}",
                "ranks disagree on the world size",
                world.first,
                event.seq,
                t=event.mono,
            )
        if not 0 <= rank < size:
            self.broke(
                subject,
                f"rank {rank} in a world of {size}",
                "a rank outside the world",
                event.seq,
                t=event.mono,
            )
        if known is not None and (known[0], known[1]) != (pod, pid):
            self.broke(
                subject,
                f"rank {rank} is held by two processes of one process group, "
                f"the later one in pod {event.name}",
                "a rank was given twice",
                known[2],
                event.seq,
                t=event.mono,
            )
        world.ranks[rank] = (pod, pid, event.seq)

    def _whole(self, subject: str, world: _World, t: float) -> None:
        if world.low is None or world.step - world.low < SETTLED:
            return
        missing = sorted(set(range(world.size)) - set(world.ranks))
        if missing:
            self.broke(
                subject,
                f"a world of {world.size} did {world.step - world.low + 1} steps, "
                f"but nothing was heard of ranks {missing[:10]}",
                "a rank is missing",
                world.first,
                world.last,
                t=t,
            )

    def _allowed(self, key: str, world: _World, event: Event) -> None:
        job = self.world.jobs.get(key)
        policy = job.elastic if job is not None else None
        if job is None or policy is None:
            return
        processes = str(policy.get("nProcPerNode") or job.spec.get("nprocPerNode") or "")
        if not processes.isdecimal():
            return
        low = int(policy.get("minReplicas") or 1) * int(processes)
        high = int(policy.get("maxReplicas") or world.size) * int(processes)
        if not low <= world.size <= high:
            self.broke(
                job.subject,
                f"a world of {world.size} ranks; the policy allows {low} to {high}",
                "a world outside the policy's bounds",
                event.seq,
                t=event.mono,
                behaviour="E13",
            )

    def _subject(self, key: str) -> str:
        job = self.world.jobs.get(key)
        return job.subject if job is not None else f"Job {key}"

    def end(self, now: float) -> None:
        """Groups that are still at work."""
        for key, worlds in self._jobs.items():
            for world in worlds.values():
                self._whole(self._names[key], world, now)
