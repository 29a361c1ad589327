"""A test's room: blockers in it, gangs of bare pods, and what the watch says of them.

The steps of :mod:`suites.steps` are played on it. Blockers go to the default scheduler, and where
pods of a namespace wait in a queue, through it like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from clusters import fakegpus, waiting
from clusters.cluster import Capability, Cluster
from clusters.kube import NODES, PODS, Kube, Object, Resource
from clusters.resources import is_bound
from fixtures.plugin.clusters import LABEL_RUN, SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.systems.protocols import GangScheduler, GroupState
from fixtures.workloads import quick_pods
from oracles.errors import InvariantViolation
from suites import pods
from suites.gangs import Block, Gang
from suites.pods import ADMISSION

BLOCKER = "blocker"
PRIORITY_CLASSES = Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", False)
#: name of a class in tables -> its value; blockers are ``top``, so that nobody evicts them
PRIORITIES = {"low": 10, "high": 1000, "top": 100_000}
#: scheduler -> field of its groups that names their priority; others go by their pods' priority
GROUP_PRIORITY = {"volcano": "priorityClassName"}


@dataclass
class Stage:
    """The room of one test. What is made outside of its namespace is undone by ``undo``."""

    system: SystemUnderTest
    ns: str
    expect: Expecting
    measure: Measuring
    undo: ExitStack
    #: seconds within which what has room is bound
    admission: float = ADMISSION
    gangs: dict[str, Gang] = field(default_factory=dict)
    #: which gang is meant by ``winner`` and ``loser``
    names: dict[str, str] = field(default_factory=dict)
    #: name -> uid of the pods that were bound beside those that a step took away
    kept: dict[str, str] = field(default_factory=dict)
    _made: dict[str, int] = field(default_factory=dict)
    _blockers: list[str] = field(default_factory=list)
    _classes: dict[str, str] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        """Where it is."""
        return self.system.cluster

    @property
    def kube(self) -> Kube:
        """Its API."""
        return self.cluster.kube

    @property
    def scheduler(self) -> GangScheduler:
        """The scheduler under test."""
        return self.system.scheduler

    # making --------------------------------------------------------------------------------

    def block(self, blocks: Iterable[Block]) -> None:
        """Put pods in the way, under the default scheduler, and wait until they are bound."""
        nodes = list(gpus_by_node(self.kube))
        for number, block in enumerate(blocks, len(self._blockers)):
            name = f"{BLOCKER}-{number}"
            place = None
            if block.node is not None:
                place = {"kubernetes.io/hostname": nodes[block.node]}
            pod = quick_pods(
                BLOCKER, 1, first=number, gpus=block.gpus, seconds=block.seconds,
                node_selector=place, priority_class=self._classes.get("top"),
            )[0]  # fmt: skip
            self.kube.create(pod, namespace=self.ns)
            self._blockers.append(name)
        if self._blockers:
            pods.wait_bound(
                self.kube, self.ns, len(self._blockers), labels=f"app={BLOCKER}",
                deadline=ADMISSION,
            )  # fmt: skip

    def fill(self, spare: int) -> None:
        """Take all GPUs: a pod for each node, and one for the last *spare* of the last node's.

        So ``free(1)`` gives *spare* GPUs of one node back at once.
        """
        have = gpus_by_node(self.kube)
        sizes = [(count, node) for node, count in enumerate(have.values())]
        count, last = sizes.pop()
        sizes += [(count - spare, last), (spare, last)]
        self.block(Block(size, node) for size, node in sizes if size)

    def free(self, count: int | None = None) -> None:
        """Remove the last *count* of the blockers, or all, at once."""
        keep = 0 if count is None else len(self._blockers) - count
        for name in self._blockers[keep:]:
            self.kube.delete(PODS, name, self.ns, grace=0)
        del self._blockers[keep:]

    def group(self, name: str) -> None:
        """Make a gang's group object, where the scheduler has such and does not make it itself."""
        gang = self.gangs[self.named(name)]
        if self.scheduler.group_resource() is None or self.scheduler.makes_groups:
            return
        minimum = gang.size if gang.minimum is None else gang.minimum
        fields: dict[str, object] = {}
        if gang.priority is not None and (word := GROUP_PRIORITY.get(self.scheduler.name)):
            fields[word] = self.priority_class(gang.priority)
        self.kube.create(self.scheduler.group(gang.name, self.ns, minimum, **fields))

    def pods(self, name: str, count: int | None = None) -> None:
        """Make the next *count* of a gang's pods, or all that are left."""
        gang = self.gangs[self.named(name)]
        made = self._made.get(gang.name, 0)
        end = gang.size if count is None else made + count
        for index in range(made, end):
            self.kube.create(self._pod(gang, index), namespace=self.ns)
        self._made[gang.name] = end

    def again(self, name: str, index: int) -> None:
        """Make a pod in place of one that was lost, under a name of its own, as a Job does."""
        gang = self.gangs[self.named(name)]
        self.kube.create(self._pod(gang, index, gang.size + index), namespace=self.ns)

    def _pod(self, gang: Gang, index: int, number: int | None = None) -> Object:
        pod = quick_pods(
            gang.name, 1, first=index if number is None else number, gpus=gang.asks[index],
            seconds=gang.brief.get(index, gang.seconds),
            priority_class=self.priority_class(gang.priority),
            node_selector=gang.selector,
        )[0]  # fmt: skip
        self.scheduler.join(pod, gang.name, gang.size)
        return pod

    def minimum(self, name: str, minimum: int) -> None:
        """Change a group's minimum."""
        what = self.scheduler.group_resource()
        assert what is not None
        name = self.named(name)
        body = {"spec": self.scheduler.group(name, self.ns, minimum)["spec"]}
        self.kube.patch(what, name, body, self.ns)

    def remove(self, name: str) -> None:
        """Delete a gang's pods without grace, and its group."""
        name = self.named(name)
        for pod in self.kube.find(PODS, self.ns, labels=f"app={name}"):
            self.kube.delete(PODS, pod["metadata"]["name"], self.ns, grace=0)
        if (what := self.scheduler.group_resource()) is not None:
            self.kube.delete(what, name, self.ns)

    def priorities(self, policy: str) -> None:
        """Make the priority classes; *policy*: ``Never`` or ``PreemptLowerPriority``."""
        self.cluster.require(Capability.OWN_CLUSTER)  # they belong to no namespace
        for word, value in PRIORITIES.items():
            name = f"{self.ns}-{word}"
            self.kube.create(
                {
                    "apiVersion": PRIORITY_CLASSES.api_version,
                    "kind": PRIORITY_CLASSES.kind,
                    "metadata": {"name": name, "labels": {LABEL_RUN: self.cluster.run}},
                    "value": value,
                    "preemptionPolicy": policy,
                }
            )
            self.undo.callback(self.kube.delete, PRIORITY_CLASSES, name)
            self._classes[word] = name

    def priority_class(self, word: str | None) -> str | None:
        """The name of the class that tables call *word*."""
        return None if word is None else self._classes[word]

    # looking -------------------------------------------------------------------------------

    def named(self, name: str) -> str:
        """The gang that is meant."""
        return self.names.get(name, name)

    def counts(self, found: Iterable[Object]) -> dict[str, int]:
        """How many pods of each gang are bound."""
        counts = dict.fromkeys(self.gangs, 0)
        for pod in found:
            name = pod["metadata"]["labels"].get("app")
            if name in counts and is_bound(pod):
                counts[name] += 1
        return counts

    def wait(
        self,
        what: str,
        until: Callable[[list[Object]], bool | None],
        *,
        deadline: float | None = None,
    ) -> None:
        """Wait for what the behaviour promises of the pods of the namespace."""
        with self.expect(what):
            self.kube.wait(
                PODS, lambda found: True if until(found) else None,
                namespace=self.ns, deadline=deadline or self.admission, why="pods",
            )  # fmt: skip

    def wait_counts(self, wanted: Mapping[str, int]) -> None:
        """Wait until of each of the named gangs exactly so many pods are bound."""
        wanted = {self.named(name): count for name, count in wanted.items()}

        def so(found: list[Object]) -> bool:
            counts = self.counts(found)
            return all(counts[name] == count for name, count in wanted.items())

        self.wait(f"bound: {_words(wanted)}", so)

    def hold(self, wanted: Mapping[str, int], seconds: float) -> None:
        """Hold on the watch that so many pods, and the same ones, are bound of each named gang.

        Raises:
            InvariantViolation: they were not, with the moment.
        """
        wanted = {self.named(name): count for name, count in wanted.items()}
        first: dict[str, str] = {}

        def check(found: Mapping[str, Object], after: float) -> None:
            counts = self.counts(found.values())
            moment = f"{after:.1f} s into a time of {seconds:g} s"
            for name, count in wanted.items():
                if counts[name] != count:
                    raise InvariantViolation(
                        f"gang {name}: {counts[name]} pods were bound {moment} in which {count}"
                        " had to be"
                    )
            bound = {
                pod["metadata"]["name"]: pod["metadata"]["uid"]
                for pod in found.values()
                if pod["metadata"]["labels"].get("app") in wanted and is_bound(pod)
            }
            if not first:
                first.update(bound)
            if bound != first:
                changed = sorted(dict(bound.items() ^ first.items()))
                raise InvariantViolation(f"other pods than before are bound {moment}: {changed}")

        waiting.hold(self.kube, PODS, self.ns, check, seconds=seconds)

    def read_group(self, name: str) -> GroupState | None:
        """A group's state now."""
        what = self.scheduler.group_resource()
        assert what is not None
        found = self.kube.get(what, self.named(name), self.ns)
        return None if found is None else self.scheduler.read_group(found)


def gpus_by_node(kube: Kube) -> dict[str, int]:
    """The nodes that have GPUs, in the order of their names, with how many may be used."""
    found = {node["metadata"]["name"]: fakegpus.allocatable(node) for node in kube.find(NODES)}
    return {name: found[name] for name in sorted(found) if found[name]}


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {name}" for name, count in counts.items())
