"""The gate: is a run as it has to be? See ``reports.gate.judge``."""
