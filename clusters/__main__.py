"""``python -m clusters``: make, look at and remove clusters."""

from clusters.cli import main

main()
