"""What is kept of an object in a history.

Most of an object as the API server sends it is never looked at again: who set which field
(``managedFields``, often half of it), volumes, probes, image lists. It is left out while it is
decoded (:mod:`oracles.pruning`), which costs less than to decode it. So this list *is* the types
below:

=====================  ===================================================================
all kinds              metadata: :class:`Metadata`; of annotations not those in ``NOISE``
Pod                    spec: :class:`PodSpec`, containers with resources and the environment
                       that forms a job's world (``ENV``, ``ENV_PREFIXES``); status:
                       :class:`PodStatus`
Node                   spec and status without images, addresses, daemon endpoints and versions
Event                  about what, reason, message, type, count, times, who
Service                spec: selector, ports, clusterIP, type
Workload (Kueue)       spec without its pods' templates, which its pods repeat; all of the status
ConfigMap, CRD         metadata only
everything else        metadata, and spec and status as they came
=====================  ===================================================================

``apiVersion`` is kept where the kind's name does not say it all (any group but the core one);
``kind`` is in the event. An object that does not have the expected form is kept whole.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

#: annotations that repeat the object or change with every write
NOISE = ("kubectl.kubernetes.io/last-applied-configuration",)
#: names of environment variables whose values are kept
ENV = frozenset({"RANK", "WORLD_SIZE", "TF_CONFIG"})
ENV_PREFIXES = ("PET_", "MASTER_")

Maybe = Any | UnsetType


class Part(Struct, omit_defaults=True, gc=False):
    """Fields that are kept; those the server left out are left out again."""


class Metadata(Part):
    """Of every object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    generation: Maybe = UNSET
    creationTimestamp: Maybe = UNSET
    deletionTimestamp: Maybe = UNSET
    deletionGracePeriodSeconds: Maybe = UNSET
    labels: Maybe = UNSET
    annotations: dict[str, str] | UnsetType | None = UNSET
    ownerReferences: Maybe = UNSET
    finalizers: Maybe = UNSET


class EnvVar(Part):
    """A variable of a container, and where its value comes from."""

    name: str = ""
    value: Maybe = UNSET
    valueFrom: Maybe = UNSET


class Container(Part):
    """A container as it was asked for."""

    name: Maybe = UNSET
    resources: Maybe = UNSET
    env: list[EnvVar] | UnsetType | None = UNSET
    restartPolicy: Maybe = UNSET


class PodSpec(Part):
    """What says where a pod may run, and what it needs."""

    nodeName: Maybe = UNSET
    schedulerName: Maybe = UNSET
    schedulingGroup: Maybe = UNSET
    schedulingGates: Maybe = UNSET
    nodeSelector: Maybe = UNSET
    affinity: Maybe = UNSET
    tolerations: Maybe = UNSET
    priority: Maybe = UNSET
    priorityClassName: Maybe = UNSET
    preemptionPolicy: Maybe = UNSET
    restartPolicy: Maybe = UNSET
    terminationGracePeriodSeconds: Maybe = UNSET
    activeDeadlineSeconds: Maybe = UNSET
    overhead: Maybe = UNSET
    resources: Maybe = UNSET
    containers: list[Container] | UnsetType | None = UNSET
    initContainers: list[Container] | UnsetType | None = UNSET


class Condition(Part):
    """A condition of a pod or node, without the times at which nothing changed."""

    type: Maybe = UNSET
    status: Maybe = UNSET
    reason: Maybe = UNSET
    message: Maybe = UNSET
    lastTransitionTime: Maybe = UNSET


class ContainerStatus(Part):
    """What became of a container."""

    name: Maybe = UNSET
    ready: Maybe = UNSET
    started: Maybe = UNSET
    restartCount: Maybe = UNSET
    containerID: Maybe = UNSET
    state: Maybe = UNSET
    lastState: Maybe = UNSET


class PodStatus(Part):
    """All but images, resources (they repeat the spec), volumes and second addresses."""

    phase: Maybe = UNSET
    reason: Maybe = UNSET
    message: Maybe = UNSET
    conditions: list[Condition] | UnsetType | None = UNSET
    containerStatuses: list[ContainerStatus] | UnsetType | None = UNSET
    initContainerStatuses: list[ContainerStatus] | UnsetType | None = UNSET
    nominatedNodeName: Maybe = UNSET
    podIP: Maybe = UNSET
    hostIP: Maybe = UNSET
    startTime: Maybe = UNSET
    resize: Maybe = UNSET


class NodeStatus(Part):
    """What a node has, and how it is."""

    capacity: Maybe = UNSET
    allocatable: Maybe = UNSET
    conditions: list[Condition] | UnsetType | None = UNSET
    phase: Maybe = UNSET


class ServiceSpec(Part):
    """Whom a service leads to."""

    selector: Maybe = UNSET
    ports: Maybe = UNSET
    clusterIP: Maybe = UNSET
    type: Maybe = UNSET


class Pruned(Part):
    """An object without more than its metadata."""

    metadata: Metadata
    apiVersion: str | UnsetType = UNSET


class Bare(Pruned):
    """ConfigMaps (their content is somebody's), CRDs."""


class Pod(Pruned):
    """A pod."""

    spec: PodSpec | UnsetType = UNSET
    status: PodStatus | UnsetType = UNSET


class Node(Pruned):
    """A node."""

    spec: Maybe = UNSET
    status: NodeStatus | UnsetType = UNSET


class Service(Pruned):
    """A service."""

    spec: ServiceSpec | UnsetType = UNSET


class KubeEvent(Pruned):
    """An Event of the API, not one of ours."""

    involvedObject: Maybe = UNSET
    regarding: Maybe = UNSET
    reason: Maybe = UNSET
    message: Maybe = UNSET
    note: Maybe = UNSET
    type: Maybe = UNSET
    count: Maybe = UNSET
    series: Maybe = UNSET
    firstTimestamp: Maybe = UNSET
    lastTimestamp: Maybe = UNSET
    eventTime: Maybe = UNSET
    source: Maybe = UNSET
    reportingComponent: Maybe = UNSET
    action: Maybe = UNSET


class PodSet(Part):
    """Pods of one role of a Workload."""

    name: Maybe = UNSET
    count: Maybe = UNSET
    minCount: Maybe = UNSET
    topologyRequest: Maybe = UNSET


class WorkloadSpec(Part):
    """What is to be admitted, and in which order."""

    active: Maybe = UNSET
    queueName: Maybe = UNSET
    priority: Maybe = UNSET
    priorityClassName: Maybe = UNSET
    priorityClassRef: Maybe = UNSET
    podSets: list[PodSet] | UnsetType | None = UNSET


class Workload(Pruned):
    """Kueue's."""

    spec: WorkloadSpec | UnsetType = UNSET
    status: Raw | UnsetType = UNSET


class Whole(Pruned):
    """Jobs, groups, queues: few, and judged to the last field; copied as they came."""

    spec: Raw | UnsetType = UNSET
    status: Raw | UnsetType = UNSET


#: ``APIVERSION/KIND`` -> its type; all others are :class:`Whole`
TYPES: dict[str, type[Pruned]] = {
    "v1/Pod": Pod,
    "v1/Node": Node,
    "v1/Service": Service,
    "v1/Event": KubeEvent,
    "events.k8s.io/v1/Event": KubeEvent,
    "kueue.x-k8s.io/v1beta1/Workload": Workload,
    "kueue.x-k8s.io/v1beta2/Workload": Workload,
    "v1/ConfigMap": Bare,
    "apiextensions.k8s.io/v1/CustomResourceDefinition": Bare,
}
