from clusters.kube import Object
from suites.status.test_restarting import Life


def version(*true: str, active: int) -> Object:
    return {
        "status": {
            "conditions": [{"type": name, "status": "True"} for name in true],
            "replicaStatuses": {"Worker": {"active": active}},
        }
    }


def test_a_worker_is_replaced_when_it_was_counted_out_and_in_again() -> None:
    life = Life()
    for one in (version("Created", active=0), version("Running", active=1)):
        life.see(one)
    assert not life.restarted  # it has only come up
    life.see(version("Restarting", active=0))
    assert not life.restarted
    life.see(version("Running", active=1))
    assert life.restarted
    assert life.seen == ["Running", "Restarting", "Running"]


def test_a_leader_that_runs_before_its_worker_is_no_restart() -> None:
    life = Life()
    for one in (version("Created", active=0), version("Running", active=0)):
        life.see(one)
    life.see(version("Running", active=1))
    assert not life.restarted
    life.see(version("Restarting", active=0))
    life.see(version("Running", active=1))
    assert life.restarted


def test_a_restart_that_is_not_told_shows() -> None:
    life = Life()
    for one in (
        version("Running", active=1),
        version("Running", active=0),
        version("Running", active=1),
    ):
        life.see(one)
    assert life.restarted
    assert life.seen == ["Running"]


def test_two_that_exclude_each_other_show() -> None:
    life = Life()
    life.see(version("Running", "Restarting", active=0))
    assert life.both == "Running and Restarting were both true"
