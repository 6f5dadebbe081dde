"""The commands that install extras of this project and its model, as they work in the current installation."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from elmo_zh.invocation import path_from_here

_CHECKOUT = Path(__file__).parents[1]


def install_line(extra: str) -> str:
    """Return the command that installs an extra of pyproject.toml.

    In a checkout the command keeps the editable installation and the pinned versions. Paths inside the current folder
    are relative.
    """
    if not all((_CHECKOUT / name).is_file() for name in ("pyproject.toml", "constraints.txt")):
        return f"{_pip()} install {shlex.quote(f'elmo-zh[{extra}]')}"
    checkout = path_from_here(_CHECKOUT)
    constraints = shlex.quote(str(path_from_here(_CHECKOUT / "constraints.txt")))
    return f"{_pip()} install -c {constraints} -e {shlex.quote(f'{checkout}[{extra}]')}"


def starter_line() -> str:
    """Return how to install the starter model, whose package is a folder of the project."""
    folder = _CHECKOUT / "data" / "starter"
    if folder.is_dir():
        return f"Install it with: {_pip()} install {shlex.quote(str(path_from_here(folder)))}"
    return (
        f"Install its package with: {_pip()} install PATH, its wheel or data/starter of the project (docs/offline.md)"
    )


def _pip() -> str:
    name = "Scripts/pip.exe" if os.name == "nt" else "bin/pip"
    pip = Path(sys.prefix) / name
    if not pip.exists():
        return f"{shlex.quote(sys.executable)} -m pip"
    found = shutil.which("pip")
    return "pip" if found and Path(found).samefile(pip) else shlex.quote(str(path_from_here(pip)))
