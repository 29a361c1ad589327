"""``python -m reports``."""

from reports.cli import main

if __name__ == "__main__":
    main()
