"""Commands and paths as the user would type them, including install commands, so that printed next steps work."""

import re
import shlex
import shutil
import sys
from pathlib import Path

from elmo_zh.language import _

# Options of `pipeline` that are variables of `make train`; ARGS holds the others.
_VARIABLES = {"--run": "RUN", "--init": "INIT", "--config": "CONFIG", "--set": "SET"}


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


def _can_make() -> bool:
    return all(Path(name).is_file() for name in ("Makefile", "make/train.sh"))


def train_command(corpus: str = "my-texts/", *options: str) -> str:
    """Return the command that trains a model here: `make train` in a checkout, otherwise `pipeline`."""
    if not _can_make():
        run = () if "--run" in options else ("--run", f"runs/{Path(corpus).name}")
        return command("pipeline", corpus, *run, *options)
    values = {"CORPUS": [corpus]}
    for name, value in zip(options[::2], options[1::2], strict=True):
        values.setdefault(_VARIABLES[name], []).append(value)
    return " ".join(["make train", *(f"{name}={shlex.quote(' '.join(given))}" for name, given in values.items())])


def train_option(name: str, value: str = "") -> str:
    """Return an option of `pipeline` as typed, followed in a checkout by its variable for `make train`."""
    option = f"{name} {value}".rstrip()
    variable = f"{_VARIABLES[name]}={value}" if name in _VARIABLES else f"ARGS={shlex.quote(option)}"
    return (
        _("{option}, or {variable} for make train").format(option=option, variable=variable) if _can_make() else option
    )


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
    """Return a message that says how to install a package that a command needs, or "" if no extra brings it."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        return ""
    extra = _EXTRAS_OF_COMMANDS.get(command, _EXTRAS[package])
    text = _("{command} needs {package}, which is not installed. Install it with: {line}")
    return text.format(command=command or "elmo-zh", package=package, line=install_line(extra))


def install_line(extra: str) -> str:
    """Return the command that installs an extra of this package; in a checkout, editable and with pinned versions."""
    if not all((_CHECKOUT / name).is_file() for name in ("pyproject.toml", "constraints.txt")):
        return f"{_pip()} install {shlex.quote(f'elmo-zh[{extra}]')}"
    checkout = path_from_here(_CHECKOUT)
    constraints = shlex.quote(str(path_from_here(_CHECKOUT / "constraints.txt")))
    return f"{_pip()} install -c {constraints} -e {shlex.quote(f'{checkout}[{extra}]')}"


def starter_line() -> str:
    """Return a sentence that says how to install the starter model, whose package is a folder of the project."""
    folder = _CHECKOUT / "data" / "starter"
    if folder.is_dir():
        path = shlex.quote(str(path_from_here(folder)))
        return _("Install the starter with: {pip} install {path}").format(pip=_pip(), path=path)
    text = _(
        "Install the starter package with: {pip} install PATH, where PATH is its wheel or the project's folder"
        " data/starter (docs/offline.md)"
    )
    return text.format(pip=_pip())


def _pip() -> str:
    pip = Path(sys.prefix) / "bin" / "pip"
    if not pip.exists():
        return f"{shlex.quote(sys.executable)} -m pip"
    found = shutil.which("pip")
    return "pip" if found and Path(found).samefile(pip) else shlex.quote(str(path_from_here(pip)))
