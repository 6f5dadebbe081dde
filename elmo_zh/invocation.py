"""Commands and paths as the user types them, for next steps that work as they are printed."""

import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """Return the command that calls elmo-zh in the user's shell, such as .venv/bin/elmo-zh in a checkout."""
    here = Path(sys.argv[0])
    found = shutil.which("elmo-zh")
    if found and here.exists() and Path(found).samefile(here):
        return "elmo-zh"
    return shlex.quote(str(here)) if here.name == "elmo-zh" else f"{shlex.quote(sys.executable)} -m elmo_zh"


def typed_word(word: str) -> str:
    """Return a word as it is typed in a shell: without quotes if it has only letters, digits and Han characters."""
    return word if word.isalnum() else shlex.quote(word)


def path_from_here(path: Path) -> Path:
    """Return a path relative to the current folder if it is inside it, else as given."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def command(*words: str | Path) -> str:
    """Return a command of this program as the user types it, with quotes where they are needed."""
    return f"{program()} {shlex.join(map(str, words))}"
