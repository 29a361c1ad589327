"""Probes of experiments: what the system under test promises, waited for or held.

A promise that is not kept is an AssertionError: FAIL. That nobody can say is any other error.
Probes of a steady-state hypothesis return True or False instead.
"""

from chaos.probes.cluster import (
    cluster_in_order,
    rule_acted,
)
from chaos.probes.jobs import (
    job_has,
    job_is_gone,
    job_never_has,
    replicas_are,
)
from chaos.probes.pods import (
    each_pod_once,
    group_without_pods,
    pods_bound,
    pods_running,
    pods_stay_unbound,
    same_pods,
    volume_has_room,
)
from chaos.probes.training import (
    no_sample_was_lost,
    nothing_told,
    trains,
    worker_restarts,
)

__all__ = [
    "cluster_in_order",
    "each_pod_once",
    "group_without_pods",
    "job_has",
    "job_is_gone",
    "job_never_has",
    "no_sample_was_lost",
    "nothing_told",
    "pods_bound",
    "pods_running",
    "pods_stay_unbound",
    "replicas_are",
    "rule_acted",
    "same_pods",
    "trains",
    "volume_has_room",
    "worker_restarts",
]
