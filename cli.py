"""Launcher for a checkout: `python cli.py COMMAND` equals `elmo-zh COMMAND`."""

from elmo_zh.cli import main

if __name__ == "__main__":
    main()
