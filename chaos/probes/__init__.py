"""Probes of experiments: what the system under test promises, waited for or held.

A promise that is not kept is an AssertionError: FAIL. That nobody can say is any other error.
Probes of a steady-state hypothesis return True or False instead.
"""

from chaos.probes.cluster import (
    cluster_in_order,
    node_is_heard,
    rule_acted,
)
from chaos.probes.held import (
    group_without_pods,
    one_gang_whole,
    pod_stays_away,
    pods_stay_bound,
    pods_stay_unbound,
)
from chaos.probes.jobs import (
    job_has,
    job_has_not,
    job_is_gone,
    job_never_has,
    replicas_are,
)
from chaos.probes.made import (
    each_pod_once,
    made_before_fault,
)
from chaos.probes.pods import (
    pod_is_gone,
    pods_bound,
    pods_run_again,
    pods_running,
    pods_succeed,
    same_pods,
    volume_has_room,
)
from chaos.probes.training import (
    ended_in_rendezvous,
    no_sample_was_lost,
    nothing_told,
    trains,
    worker_restarts,
)

__all__ = [
    "cluster_in_order",
    "each_pod_once",
    "ended_in_rendezvous",
    "group_without_pods",
    "job_has",
    "job_has_not",
    "job_is_gone",
    "job_never_has",
    "made_before_fault",
    "no_sample_was_lost",
    "node_is_heard",
    "nothing_told",
    "one_gang_whole",
    "pod_is_gone",
    "pod_stays_away",
    "pods_bound",
    "pods_run_again",
    "pods_running",
    "pods_stay_bound",
    "pods_stay_unbound",
    "pods_succeed",
    "replicas_are",
    "rule_acted",
    "same_pods",
    "trains",
    "volume_has_room",
    "worker_restarts",
]
