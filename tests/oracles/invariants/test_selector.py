"""The selector of the scale subresource, and the bounds of elastic jobs."""

from __future__ import annotations

from tests.oracles.build import History, Job, Pod, broken, each, exercised, names

RULE = "scale-selector"
POLICY = {"minReplicas": 1, "maxReplicas": 3, "maxRestarts": 3}


def _elastic(n: int = 2) -> tuple[History, Job, list[Pod]]:
    h = History()
    job = h.job(Worker=n, elastic=POLICY)
    pods = [job.pod("Worker", i) for i in range(n)]
    each(pods, lambda pod: pod.run())
    job.says("Created", "Running", counts={"Worker": (n, 0, 0)}, selector=job.selector, start=0)
    return h, job, pods


def test_a_selector_that_misses_workers_is_told() -> None:
    h, job, pods = _elastic()
    wrong = job.says("Created", "Running", counts={"Worker": (2, 0, 0)}, selector="job-name=train")

    assert broken(h) == [(RULE, "the selector misses a worker", (pod.added, wrong)) for pod in pods]


def test_a_foreign_pod_that_the_selector_matches_is_told() -> None:
    h, job, _ = _elastic()
    told = h.seq
    foreign = h.pod("stranger", labels=job.labels("Worker", 7)).added
    elsewhere = h.pod("stranger", "other", labels=job.labels("Worker", 7)).added

    assert broken(h) == [(RULE, "the selector matches a foreign pod", (told, foreign))]
    assert elsewhere > foreign


def test_a_foreign_pod_that_was_there_before_is_told() -> None:
    h = History()
    job = h.job(Worker=1, elastic=POLICY)
    foreign = h.pod("stranger", labels={"app": "x"}).added
    job.pod("Worker", 0, labels={"app": "x"})
    told = job.says("Created", counts={"Worker": (0, 0, 0)}, selector="app=x", start=0)

    assert broken(h) == [(RULE, "the selector matches a foreign pod", (foreign, told))]


def test_workers_without_a_selector_are_told() -> None:
    h = History()
    job = h.job(Worker=1, elastic=POLICY)
    pod = job.pod("Worker", 0).added
    h.after(12)

    assert broken(h) == [(RULE, "workers without a selector", (pod,))]


def test_a_worker_that_loses_its_label_is_told() -> None:
    h, job, pods = _elastic()
    told = h.seq
    changed = pods[1].change(labels={"training.kubeflow.org/replica-type": "worker"})

    assert broken(h) == [(RULE, "the selector misses a worker", (pods[1].added, told, changed))]
    assert job.kind == "PyTorchJob"


def test_a_selector_that_cannot_be_read_is_told() -> None:
    h, job, _ = _elastic()
    told = job.says("Created", counts={"Worker": (2, 0, 0)}, selector="a in (b)")

    assert broken(h) == [(RULE, "the selector cannot be read", (told,))]


def test_jobs_that_select_their_own_workers_are_fine() -> None:
    h, _, _ = _elastic()
    other = h.job("other", Worker=1, elastic=POLICY)
    pod = other.pod("Worker", 0)
    pod.run()
    other.says("Created", counts={"Worker": (1, 0, 0)}, selector=other.selector, start=0)
    plain = h.job("plain", "TFJob", Worker=1, PS=1)  # has no scale subresource
    each([plain.pod("Worker", 0), plain.pod("PS", 0)], lambda pod: pod.bind("n1"))
    h.after(100)

    assert names(h) == set()
    assert exercised(h, RULE) == 3


def test_a_selector_that_comes_a_moment_later_is_fine() -> None:
    h = History()
    job = h.job(Worker=1, elastic=POLICY)
    job.pod("Worker", 0).run()
    h.after(5)
    job.says("Created", counts={"Worker": (1, 0, 0)}, selector=job.selector, start=0)
    h.after(100)

    assert names(h) == set()


# bounds


def test_a_number_outside_the_policy_that_was_accepted_is_told() -> None:
    h, job, _ = _elastic()
    seq = job.change(spec={"pytorchReplicaSpecs": {"Worker": {"replicas": 4}}})
    job.change(spec={"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}})
    again = job.change(spec={"pytorchReplicaSpecs": {"Worker": {"replicas": 0}}})
    text = "a number of workers outside the policy's bounds was accepted"

    assert broken(h) == [("replica-bounds", text, (s,)) for s in (seq, again)]


def test_workers_above_the_maximum_and_above_what_was_asked_for_are_told() -> None:
    h, job, _ = _elastic()
    extra = job.pod("Worker", 2)
    first = extra.added
    h.after(20)
    last = extra.deleting()
    assert broken(h) == [("replica-bounds", "more workers than asked for", (first, last))]

    # the event after which there were too many, though not more than the maximum yet
    first = each([2, 3], lambda i: job.pod("Worker", i).added)[0]
    h.after(20)

    assert broken(h)[1:] == [("replica-bounds", "more workers than the maximum", (first,))]


def test_scaling_within_the_bounds_is_fine() -> None:
    h, job, pods = _elastic()
    job.change(spec={"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}})
    third = job.pod("Worker", 2)
    third.run()
    counts = {"Worker": (3, 0, 0)}
    job.says("Created", "Running", counts=counts, selector=job.selector)
    h.after(60)
    job.change(spec={"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}})
    h.after(2)
    each([pods[1], third], lambda pod: pod.deleting())
    h.after(30)
    each([pods[1], third], lambda pod: pod.gone())
    job.says("Created", "Running", counts={"Worker": (1, 0, 0)}, selector=job.selector)
    h.after(100)

    assert names(h) == set()
    assert exercised(h, "replica-bounds") > 3


def test_a_replaced_worker_is_not_one_too_many() -> None:
    h, job, pods = _elastic()
    pods[1].deleting()
    job.pod("Worker", 1).run()
    h.after(60)

    assert names(h) == set()
