import pytest

from fixtures.workloads import order
from suites import cast


def pod(name="j-worker-1", role="worker", index="1"):
    prefix = "training.kubeflow.org/replica-"
    labels = {f"{prefix}type": role, f"{prefix}index": index}
    return {"metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (order("finish"), 0),
        (order("exit"), 1),
        (order("exit", 137, role="worker", times=1, id="once"), 137),
        (order("exit", 3, rank=1), 3),
        (order("exit", 3, rank=0), None),
        (order("finish", role="master"), None),
        (order("finish", pod="j-worker-1"), 0),
        (order("finish", pod="j-worker-0"), None),
    ],
)
def test_orders_mean_for_pods_without_containers_what_they_mean_for_real_ones(line, code):
    assert cast._obeyed(pod(), line) == code


def test_times_of_a_status_are_seconds_of_the_epoch():
    job = {"status": {"startTime": "1970-01-01T00:01:00Z"}}
    assert cast.at(job, "startTime") == 60
    assert cast.at(job, "completionTime") == 0
    assert cast.at({}, "startTime") == 0
