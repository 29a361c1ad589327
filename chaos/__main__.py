"""``python -m chaos``: run experiments, and mend what was left broken."""

from chaos.cli import main

main()
