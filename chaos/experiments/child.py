"""``python -m chaos.experiments.child FOLDER``: run ``experiment.json`` there with chaostoolkit.

It is started by :mod:`chaos.experiments.running`; its journal is ``journal.json``.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from chaos.experiments.running import JOURNAL
from chaos.session import VARIABLE

#: what a failed activity leaves in a journal is enough; rollbacks are done whatever happened
SETTINGS = {"runtime": {"rollbacks": {"strategy": "always"}}}


def main(folder: Path) -> int:
    """0 when there is a journal, whatever it says."""
    from chaoslib.exceptions import ChaosException
    from chaoslib.experiment import ensure_experiment_is_valid, run_experiment

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    for chatty in ("urllib3", "kubernetes"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    experiment = json.loads((folder / "experiment.json").read_text())
    try:
        ensure_experiment_is_valid(experiment)
        journal = run_experiment(experiment, settings=SETTINGS)
    except ChaosException as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    partial = folder / f".{JOURNAL}.partial"
    partial.write_text(json.dumps(journal, default=str, indent=1))
    partial.replace(folder / JOURNAL)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python -m chaos.experiments.child FOLDER (with {VARIABLE} set)")
    sys.exit(main(Path(sys.argv[1])))
