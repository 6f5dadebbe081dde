"""Runs the command line: `python -m elmo_zh`."""

from elmo_zh.cli import main

if __name__ == "__main__":
    main()
