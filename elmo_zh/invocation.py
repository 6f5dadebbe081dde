"""Commands and paths as the user would type them, including install commands, so that printed next steps work."""

import re
import shlex
import shutil
import sys
from pathlib import Path

from elmo_zh.language import _


def program() -> str:
    """Return the command that starts elmo-zh in the user's shell, such as .venv/bin/elmo-zh in a checkout."""
    here = Path(sys.argv[0])
    found = shutil.which("elmo-zh")
    if found and here.exists() and Path(found).samefile(here):
        return "elmo-zh"
    return shlex.quote(str(here)) if here.name == "elmo-zh" else f"{shlex.quote(sys.executable)} -m elmo_zh"


def path_from_here(path: Path) -> Path:
    """Return a path relative to the current folder if it lies inside, otherwise unchanged."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def command(*words: str | Path) -> str:
    """Return a command of this program as the user would type it, with quotes where needed."""
    # shlex would quote Han characters, too.
    typed = (word if re.fullmatch(r"[\w@%+=:,./-]+", word) else shlex.quote(word) for word in map(str, words))
    return " ".join([program(), *typed])


def train_command(corpus: str = "my-texts/", run: str = "") -> str:
    """Return the command that trains a model here: `make train` in a checkout, otherwise `pipeline`."""
    if not all(Path(name).is_file() for name in ("Makefile", "make/train.sh")):
        return command("pipeline", corpus, "--run", run or f"runs/{Path(corpus).name}")
    return f"make train CORPUS={shlex.quote(corpus)}" + (f" RUN={shlex.quote(run)}" if run else "")


_CHECKOUT = Path(__file__).parents[1]
# The extra that brings each package that some command needs and the plain installation lacks.
_EXTRAS = {
    **dict.fromkeys(("torch", "gensim", "safetensors"), "train"),
    **dict.fromkeys(("scipy", "sklearn", "matplotlib"), "words"),
    "bokeh": "explore",
}
# Commands that need several of them, and the extra that brings all.
_EXTRAS_OF_COMMANDS = {"explore": "explore", "task": "tasks"}


def explain_missing(error: ImportError, command: str) -> str:
    """Return a message that says how to install a package that a command needs, or "" if no extra includes it."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        return ""
    extra = _EXTRAS_OF_COMMANDS.get(command, _EXTRAS[package])
    return needs(command or "elmo-zh", package, extra)


def needs(what: str, package: str, extra: str) -> str:
    """Return a message that says how to install a package that a command, a setting or a format needs."""
    return not_installed(what, package, install_line(extra))


def not_installed(what: str, package: str, line: str) -> str:
    """Return a message that says that something needs a package, which the command `line` installs."""
    message = _("{what} needs {package}, which is not installed. Install it with: {line}")
    return message.format(what=what, package=package, line=line)


def install_line(extra: str) -> str:
    """Return the command that installs an extra of this package; in a checkout, editable and with pinned versions."""
    if not all((_CHECKOUT / name).is_file() for name in ("pyproject.toml", "constraints.txt")):
        return f"{_pip()} install {shlex.quote(f'elmo-zh[{extra}]')}"
    checkout = path_from_here(_CHECKOUT)
    constraints = shlex.quote(str(path_from_here(_CHECKOUT / "constraints.txt")))
    return f"{_pip()} install -c {constraints} -e {shlex.quote(f'{checkout}[{extra}]')}"


def starter_line() -> str:
    """Return the command that installs the starter model: from its folder in a checkout, otherwise from a wheel."""
    folder = _CHECKOUT / "data" / "starter"
    path = shlex.quote(str(path_from_here(folder))) if folder.is_dir() else "elmo_zh_starter-*.whl"
    return f"{_pip()} install {path}"


def _pip() -> str:
    pip = Path(sys.prefix) / "bin" / "pip"
    if not pip.exists():
        return f"{shlex.quote(sys.executable)} -m pip"
    found = shutil.which("pip")
    return "pip" if found and Path(found).samefile(pip) else shlex.quote(str(path_from_here(pip)))
