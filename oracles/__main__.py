"""``python -m oracles``: judge, show and compare histories."""

from oracles.cli import main

main()
