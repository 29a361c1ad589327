"""Releases of training-operator with faults of their own: the suites' tests have to find them.

Each release is installed on an embedded cluster, one after the other: so the proofs are in the
order of releases. What is found there was measured in ``reports/examples/operators.md``; what was
published of it is in ``oracles/known.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.base import Fault
from chaos.faults.base import Proof as Proven
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.plugin.options import Combination
from suites.api import test_admission, test_cluster_config, test_immutable
from suites.cleanup import test_clean_pod_policy, test_time
from suites.recovery import test_lost_pods, test_operator_killed, test_restart_policy
from suites.status import test_permanent
from tests.proofs import elsewhere

pytestmark = pytest.mark.proof

Inject = Callable[[Fault], Proven]


@pytest.fixture(name="_found")
def _instead(
    request: pytest.FixtureRequest, _muster_system: Combination, release: SystemUnderTest
) -> SystemUnderTest:
    return elsewhere.stands_in(request, release)


# 1.9.3 -----------------------------------------------------------------------------------------


@elsewhere.on("1.9.3")
@pytest.mark.proves(
    "V01",
    by="training-operator 1.9.3, which takes any role",
    shows="TFJob: an unknown role: accepted",
)
def test_an_unknown_role_is_accepted(system: SystemUnderTest, ns: str) -> None:
    test_admission.test_what_is_forbidden_is_refused(system, ns, "an unknown role")


@elsewhere.on("1.9.3")
@pytest.mark.proves(
    "V02",
    by="training-operator 1.9.3, which lists evaluators in the cluster",
    shows="its cluster lists the evaluator: ",
)
def test_an_evaluator_is_listed(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    test_cluster_config.test_an_evaluator_is_no_part_of_the_training_cluster(system, ns, expect)


@elsewhere.on("1.9.3")
@pytest.mark.proves(
    "V03",
    by="training-operator 1.9.3, which lets the manager of a PyTorchJob be changed",
    shows="runPolicy.managedBy of a running PyTorchJob could be changed",
)
def test_the_manager_is_changed(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    test_immutable.test_an_immutable_field_cannot_be_changed(
        system, ns, expect, "managedBy", "PyTorchJob"
    )


# 1.7.0 -----------------------------------------------------------------------------------------


@elsewhere.on("1.7.0")
@pytest.mark.proves(
    "T07",
    by="training-operator 1.7.0, whose PyTorchJobs restart for ever",
    shows="worker, exit code 1: not Failed, but Created",
)
def test_a_permanent_exit_restarts(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    test_permanent.test_a_permanent_exit_code_fails_the_job(system, ns, expect, "PyTorchJob")


@elsewhere.on("1.7.0")
@pytest.mark.proves(
    "C01",
    by="training-operator 1.7.0, which deletes what policy None keeps",
    shows="TFJob, cleanPodPolicy None, after deadline: pods left: none",
)
def test_pods_that_stay_are_deleted(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    test_clean_pod_policy.test_the_policy_decides_which_pods_stay(system, ns, expect, "deadline")


@elsewhere.on("1.7.0")
@pytest.mark.proves(
    "C02",
    by="training-operator 1.7.0, which forgets a quiet job's deadline",
    shows="the deadline of 8 s did not fire within 12 s more",
)
def test_a_deadline_is_forgotten(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    test_time.test_a_deadline_fires_on_a_quiet_job(system, ns, expect)


@elsewhere.on("1.7.0")
@pytest.mark.proves(
    "R01",
    by="training-operator 1.7.0, whose PyTorchJobs restart after a permanent exit",
    shows="ExitCode, exit code 1, worker: expected: job failed; the job is Created",
)
def test_the_exit_code_decides_nothing(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    test_restart_policy.test_the_policy_decides_for_every_code_and_role(
        system, ns, expect, "PyTorchJob", "ExitCode"
    )


@elsewhere.on("1.7.0")
@pytest.mark.proves(
    "R08",
    by="training-operator 1.7.0, whose TFJobs fail with a pod that leaves",
    shows="chief, OnFailure: the job Failed while its pod was leaving",
)
def test_a_lost_chief_fails_the_job(
    system: SystemUnderTest, ns: str, expect: Expecting, inject: Inject, measure: Measuring
) -> None:
    test_lost_pods.test_a_pod_that_is_lost_comes_back(
        system, ns, expect, inject, measure, "TFJob", "told to leave"
    )


@elsewhere.on("1.7.0")
@pytest.mark.proves(
    "R04",
    by="training-operator 1.7.0, whose TFJobs fail with a silent node",
    shows="silent-exitcode: it Failed while its node was silent",
)
def test_a_silent_node_fails_the_job(
    system: SystemUnderTest, ns: str, expect: Expecting, inject: Inject
) -> None:
    test_lost_pods.test_a_pod_of_a_silent_node_is_told_of_and_replaced(
        system, ns, expect, inject, "TFJob"
    )


@elsewhere.on("1.7.0")
@pytest.mark.proves(
    "V01",
    by="training-operator 1.7.0, which makes pods of zero workers",
    shows="accepted with 0 workers, and ",
)
def test_zero_workers_are_some(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    test_admission.test_zero_workers_are_none(system, ns, expect, "PyTorchJob")


# 1.5.0 -----------------------------------------------------------------------------------------


@elsewhere.on("1.5.0")
@pytest.mark.proves(
    "R05",
    by="training-operator 1.5.0, killed as a worker is to be replaced",
    shows="workers that failed are not replaced: {'tfjob-",
)
def test_a_killed_operator_replaces_nobody(
    system: SystemUnderTest, ns: str, expect: Expecting, inject: Inject
) -> None:
    test_operator_killed.test_a_killed_operator_changes_nothing_about_the_end(
        system, ns, expect, inject, "as a worker is to be replaced"
    )


@elsewhere.on("1.5.0")
@pytest.mark.proves(
    "R04",
    by="training-operator 1.5.0, which counts pods of a silent node",
    shows="silent-onfailure: its worker's node is silent, and it counts it as active",
)
def test_a_silent_node_is_not_told_of(
    system: SystemUnderTest, ns: str, expect: Expecting, inject: Inject
) -> None:
    test_lost_pods.test_a_pod_of_a_silent_node_is_told_of_and_replaced(
        system, ns, expect, inject, "PyTorchJob"
    )
