"""How the objects of a training job name each other: facts of the products, no judgement.

Every function reads an object as the API server gives it (or a pruned copy) and never fails on a
missing field: an object that does not say something does not have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

Object = Mapping[str, Any]

GPU = "nvidia.com/gpu"

#: kind of a job -> field of its spec with the replica specs (training-operator 1.8.1,
#: pkg/apis/kubeflow.org/v1/*_types.go). Rules that read conditions, counts, times, policies or
#: replicas are about these kinds; what holds of TrainJobs, too, says so
JOB_KINDS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "MXJob": "mxReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}
#: Kubeflow Trainer's (v2.0.0, pkg/apis/trainer/v1alpha1): it tells of conditions, and of no counts,
#: times or replicas
TRAIN_JOB = "TrainJob"
#: whatever a user submits to an operator
ALL_JOBS = frozenset(JOB_KINDS) | {TRAIN_JOB}
#: what stands between a TrainJob and its pods, each owned by the one before
BETWEEN = ("JobSet", "Job")
#: conditions that say that a TrainJob has ended
TRAIN_JOB_ENDS = ("Complete", "Failed")
#: what Kueue makes of a gang: one for a job, or for a group of pods
WORKLOAD = "Workload"
#: kinds of group objects; those of scheduler-plugins, Volcano, kube-batch and Kubernetes itself
#: share the first name
GROUP_KINDS = frozenset({"PodGroup", WORKLOAD})
#: what an operator makes for a job, besides pods and groups
CHILD_KINDS = frozenset(
    {"Service", "HorizontalPodAutoscaler", "ConfigMap", "ServiceAccount", "Role", "RoleBinding"}
)

#: labels of a job's pods (pkg/apis/kubeflow.org/v1/common_types.go)
JOB_NAME = "training.kubeflow.org/job-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"

#: label by which a pod joins a group of scheduler-plugins (apis/scheduling/v1alpha1/types.go)
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
#: annotation by which a pod joins a group of Volcano or kube-batch
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
#: labels by which a pod or job names its Kueue queue and, for pod groups, its group, which is the
#: name of its Workload (pkg/controller/jobs/pod/constants of 0.17.0). Kueue admits Workloads, and
#: pods are let go by their scheduling gates: :mod:`oracles.invariants.gang`
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"

#: a scheduler that does not read groups of label or annotation. A job whose pods ask for it by
#: name still gets a group object from the operator, and nobody promised anything about it.
PLAIN_SCHEDULER = "default-scheduler"

#: phases in which a pod holds no room any more
TERMINAL = frozenset({"Succeeded", "Failed"})

#: labels of the pods of products whose absence stops the clock of what they promise
CONTROLLERS: tuple[tuple[str, str, str], ...] = (
    # label, value, role
    ("control-plane", "kubeflow-training-operator", "operator"),  # overlays/standalone of 1.8.1
    ("app.kubernetes.io/name", "trainer", "operator"),  # overlays/manager of Trainer 2.0.0
    ("component", "scheduler", "scheduler"),  # scheduler-plugins' chart and manifests
    ("component", "kube-scheduler", "kube-scheduler"),  # kubeadm's static pod
    ("app", "volcano-scheduler", "scheduler"),  # installer/ of Volcano
    ("app.kubernetes.io/name", "kueue", "kueue"),  # config/default of Kueue
)


class Owner(NamedTuple):
    """The controlling owner of an object."""

    kind: str
    name: str
    uid: str


def owner(obj: Object) -> Owner | None:
    """Who controls it (or, where nobody does, its first owner)."""
    references = (obj.get("metadata") or {}).get("ownerReferences")
    if not references:
        return None
    chosen = references[0]
    for reference in references:
        if reference.get("controller"):
            chosen = reference
            break
    return Owner(chosen.get("kind", ""), chosen.get("name", ""), chosen.get("uid", ""))


def true_conditions(obj: Object) -> frozenset[str]:
    """Types of the conditions in its status that are True."""
    return frozenset(
        str(condition.get("type", ""))
        for condition in (obj.get("status") or {}).get("conditions") or ()
        if condition.get("status") == "True"
    )


def replica(labels: Mapping[str, str]) -> tuple[str, int]:
    """Replica type in lower case and index of a job's pod; ``("", -1)`` of any other pod."""
    kind = labels.get(REPLICA_TYPE, "")
    try:
        return kind.lower(), int(labels.get(REPLICA_INDEX, "-1"))
    except ValueError:
        return kind.lower(), -1


def group_name(pod: Object) -> str:
    """The group that a gang scheduler will see the pod in; "" for none.

    The group is an object of the pod's namespace: a PodGroup, or Kueue's Workload of a group of
    pods. Pods of a job that Kueue admits do not name its Workload; the job owns both.
    """
    spec = pod.get("spec") or {}
    native = spec.get("schedulingGroup")
    if native:
        # Kubernetes 1.36, scheduling.k8s.io/v1alpha2: read by the default scheduler too
        return str(native.get("podGroupName") or "")
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if spec.get("schedulerName", PLAIN_SCHEDULER) != PLAIN_SCHEDULER:
        if COSCHEDULING_GROUP in labels:
            return str(labels[COSCHEDULING_GROUP])
        annotations = metadata.get("annotations") or {}
        if VOLCANO_GROUP in annotations:
            return str(annotations[VOLCANO_GROUP])
    # whatever binds the pod, Kueue lets it go before
    return str(labels.get(KUEUE_GROUP, ""))


def minimum(group: Object) -> int:
    """The number of pods that a group's gang is admitted with; 0 when it names none.

    ``spec.minMember`` of scheduler-plugins, Volcano and kube-batch;
    ``spec.schedulingPolicy.gang.minCount`` of Kubernetes' own; all pods of Kueue's Workload.
    """
    spec = group.get("spec") or {}
    found = spec.get("minMember")
    if found is None:
        gang = (spec.get("schedulingPolicy") or {}).get("gang") or {}
        found = gang.get("minCount")
    if found is None:
        sets = spec.get("podSets")
        found = sum(int(each.get("count", 1)) for each in sets) if isinstance(sets, list) else 0
    return int(found or 0)


def admitted(workload: Object) -> bool:
    """Whether Kueue has admitted a Workload, so that all of its pods are let go."""
    return any(
        condition.get("type") == "Admitted" and condition.get("status") == "True"
        for condition in (workload.get("status") or {}).get("conditions") or ()
    )


def gpus(pod: Object) -> int:
    """GPUs that a pod holds while it is bound.

    As the scheduler counts them: the sum of its containers' requests (and of init containers that
    go on running), or one init container's where that is more. An extended resource's request is
    its limit when only that is given.
    """
    spec = pod.get("spec") or {}
    running = sum(_gpus_of(c) for c in spec.get("containers") or ())
    peak = 0
    for container in spec.get("initContainers") or ():
        own = _gpus_of(container)
        if container.get("restartPolicy") == "Always":
            running += own
        else:
            peak = max(peak, own)
    return max(running, peak)


def _gpus_of(container: Object) -> int:
    resources = container.get("resources")
    if not resources:
        return 0
    asked = resources.get("requests") or {}
    value = asked.get(GPU)
    if value is None:
        value = (resources.get("limits") or {}).get(GPU)
    return quantity(value) if value is not None else 0


_SUFFIXES = {
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip


def quantity(value: object) -> int:
    """A Kubernetes quantity as a whole number, rounded down; 0 for what is none."""
    text = str(value)
    if text.isdecimal():
        return int(text)
    try:
        for suffix in (text[-2:], text[-1:]):
            if suffix in _SUFFIXES:
                return int(Fraction(text[: -len(suffix)]) * _SUFFIXES[suffix])
        if text.endswith("m"):
            return int(Fraction(text[:-1]) / 1000)
        return int(Fraction(text))
    except (ValueError, ZeroDivisionError):
        return 0


def selector(text: str) -> frozenset[tuple[str, str]]:
    """An equality selector (``a=b,c=d``) as pairs.

    Raises:
        ValueError: it uses another operator, which no operator of ours writes.
    """
    pairs = set()
    for part in text.split(","):
        key, sign, value = part.partition("=")
        if not sign or not key or key.endswith("!") or value.startswith("="):
            raise ValueError(f"not an equality selector: {text!r}")
        pairs.add((key.strip(), value.strip()))
    return frozenset(pairs)


def controller_role(labels: Mapping[str, str]) -> str:
    """Role in CONTROLLERS of a pod of a product whose promises are judged; "" of any other pod.

    The cluster's own scheduler has a role of its own: a gang scheduler beside it can be away while
    it is there.
    """
    for label, value, role in CONTROLLERS:
        if labels.get(label) == value:
            return role
    return ""
