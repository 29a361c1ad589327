"""Where pods are bound: the source thread's broken placement, and its kin."""

from __future__ import annotations

import pytest

from tests.oracles.build import History, Pod, broken, each, exercised, names

MASTER = "node-role.kubernetes.io/master:NoSchedule"
GPU_NODE = {"gpu": "yes"}
TAINT = ("placement", "bound in spite of a taint")
SELECTOR = ("placement", "bound in spite of its node selector")
TOO_MANY = ("gpu-capacity", "more GPUs bound to a node than it has")


def _thread() -> tuple[History, list[Pod], Pod]:
    """The cluster and the job of the thread: 7 workers with a GPU each, and 1 PS."""
    h = History()
    h.node("master", taints=[MASTER])
    h.node("n1", gpus=4, labels=GPU_NODE)
    h.node("n2", gpus=4, labels=GPU_NODE)
    job = h.job("mnist", "TFJob", PS=1, Worker=7)
    h.group("mnist", 8, owner=job)
    workers = [job.pod("Worker", i, gpus=1, nodeSelector=GPU_NODE) for i in range(7)]
    return h, workers, job.pod("PS", 0)


def test_the_thread_s_broken_placement() -> None:
    """One GPU worker on the tainted master that has no GPU and is not selected."""
    h, workers, ps = _thread()
    each(workers[:4], lambda pod: pod.bind("n1"))
    each(workers[4:6], lambda pod: pod.bind("n2"))
    ps.bind("n2")
    bound = workers[6].bind("master")
    master = 1

    assert broken(h) == [(*TOO_MANY, (master, bound)), (*TAINT, (master, bound))]
    capacity, placement = h.judge().violations
    assert capacity.behaviour == "S01"
    assert placement.behaviour == "S02"
    assert placement.subject == "Pod t/mnist-worker-6"
    assert "master" in placement.message


def test_the_thread_s_job_placed_well() -> None:
    h, workers, ps = _thread()
    each(workers[:4], lambda pod: pod.bind("n1"))
    each(workers[4:], lambda pod: pod.bind("n2"))
    ps.bind("n1")
    h.after(100)

    assert names(h) == set()
    assert exercised(h, "placement") == 8
    assert exercised(h, "gpu-capacity") == 7


def test_a_gpu_too_many_counts_pods_of_all_namespaces() -> None:
    h = History()
    node = h.node("n1", gpus=2).added
    other = h.pod("blocker", "elsewhere", gpus=1)
    first = other.bind("n1")
    second = h.pod("a", gpus=1).bind("n1")
    third = h.pod("b", gpus=1).bind("n1")

    assert broken(h) == [(*TOO_MANY, (node, first, second, third))]


def test_a_pod_that_ended_gives_its_gpu_back_and_one_that_only_stops_does_not() -> None:
    h = History()
    h.node("n1", gpus=1)
    a, b, c = (h.pod(name, gpus=1) for name in "abc")
    a.bind("n1")
    a.run()
    a.succeed()
    first = b.bind("n1")
    b.run()
    b.deleting()
    assert names(h) == set()

    second = c.bind("n1")

    assert broken(h) == [(*TOO_MANY, (1, first, second))]


def test_gpus_that_vanish_under_running_pods_are_not_the_scheduler_s_fault() -> None:
    h = History()
    node = h.node("n1", gpus=4)
    pods = [h.pod(f"p{i}", gpus=1) for i in range(5)]
    each(pods[:3], lambda pod: pod.bind("n1"))
    h.after(60)
    node.change(status={"allocatable": {"nvidia.com/gpu": "1"}})
    h.after(60)
    assert names(h) == set()

    pods[3].bind("n1")  # this one is

    assert names(h) == {"gpu-capacity"}


def test_a_binding_may_be_decided_on_a_view_that_is_a_little_old() -> None:
    h = History()
    node = h.node("n1", gpus=4)
    pod = h.pod("a", gpus=1)
    h.after(60)
    node.change(
        spec={"taints": [{"key": "broken", "effect": "NoSchedule"}]},
        status={"allocatable": {"nvidia.com/gpu": "0"}},
    )
    h.after(3)
    pod.bind("n1")
    assert names(h) == set()

    h.after(60)
    h.pod("b", gpus=1).bind("n1")

    assert names(h) == {"gpu-capacity", "placement"}


def test_a_pod_whose_creator_named_the_node_was_scheduled_by_nobody() -> None:
    h = History()
    h.node("n1", gpus=1, taints=["only:NoSchedule"])
    h.pod("a", gpus=2, nodeName="n1")

    assert names(h) == set()
    h.after(1)
    h.pod("b", gpus=1, tolerations=[{"operator": "Exists"}]).bind("n1")
    assert names(h) == {"gpu-capacity"}  # but it takes its room


def _node(h: History, **node: object) -> None:
    h.node("n1", labels={"zone": "a", "cores": "8"}, **node)  # type: ignore[arg-type]


def _affinity(*expressions: object, fields: object = ()) -> object:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}  # type: ignore[call-overload]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": required}


def _rule(key: str, operator: str, *values: str) -> object:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("node", "pod", "signature"),
    [
        ({"taints": ["k=v:NoSchedule"]}, {}, "bound in spite of a taint"),
        ({"taints": ["k=v:NoExecute"]}, {}, "bound in spite of a taint"),
        (
            {"taints": ["k=v:NoSchedule"]},
            {"tolerations": [{"key": "k", "operator": "Equal", "value": "w"}]},
            "bound in spite of a taint",
        ),
        (
            {"taints": ["k=v:NoSchedule"]},
            {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]},
            "bound in spite of a taint",
        ),
        ({"unschedulable": True}, {}, "bound in spite of a cordon"),
        (
            {"taints": ["node.kubernetes.io/unschedulable:NoSchedule"]},
            {},
            "bound in spite of a cordon",
        ),
        ({}, {"nodeSelector": {"zone": "b"}}, "bound in spite of its node selector"),
        (
            {},
            {"affinity": _affinity(_rule("zone", "NotIn", "a"))},
            "bound in spite of its required node affinity",
        ),
        (
            {},
            {"affinity": _affinity(_rule("zone", "DoesNotExist"))},
            "bound in spite of its required node affinity",
        ),
        (
            {},
            {"affinity": _affinity(_rule("cores", "Gt", "8"))},
            "bound in spite of its required node affinity",
        ),
        (
            {},
            {"affinity": _affinity(fields=[_rule("metadata.name", "In", "n2")])},
            "bound in spite of its required node affinity",
        ),
        (
            {},
            {"affinity": _affinity()},
            "bound in spite of its required node affinity",
        ),
    ],
)
def test_what_a_node_may_not_take(node: object, pod: object, signature: str) -> None:
    h = History()
    _node(h, **node)  # type: ignore[arg-type]
    bound = h.pod("a", **pod).bind("n1")  # type: ignore[arg-type]

    assert broken(h) == [("placement", signature, (1, bound))]


@pytest.mark.parametrize(
    ("node", "pod"),
    [
        ({"taints": ["k=v:PreferNoSchedule"]}, {}),
        (
            {"taints": ["k=v:NoSchedule"]},
            {"tolerations": [{"key": "k", "operator": "Equal", "value": "v"}]},
        ),
        ({"taints": ["k=v:NoSchedule"]}, {"tolerations": [{"key": "k", "value": "v"}]}),
        ({"taints": ["k=v:NoExecute"]}, {"tolerations": [{"operator": "Exists"}]}),
        ({"taints": ["k:NoSchedule"]}, {"tolerations": [{"key": "k", "operator": "Exists"}]}),
        ({"unschedulable": True}, {"tolerations": [{"operator": "Exists"}]}),
        ({}, {"nodeSelector": {"zone": "a"}}),
        ({}, {"affinity": _affinity(_rule("zone", "In", "a", "b"), _rule("cores", "Lt", "9"))}),
        ({}, {"affinity": _affinity(_rule("rack", "DoesNotExist"), _rule("zone", "Exists"))}),
        ({}, {"affinity": _affinity(fields=[_rule("metadata.name", "In", "n1")])}),
        ({"taints": ["k:NoSchedule"]}, {"annotations": {"kubernetes.io/config.mirror": "x"}}),
    ],
)
def test_what_a_node_may_take(node: object, pod: object) -> None:
    h = History()
    _node(h, **node)  # type: ignore[arg-type]
    h.pod("a", **pod).bind("n1")  # type: ignore[arg-type]

    assert names(h) == set()
