"""Write the output of commands into the pages that show it, by running them: `make transcripts` (some minutes).

It trains a model on the sample in a temporary folder, then runs there every command whose output a page shows.
Durations and the last digits of figures depend on the machine, so use an idle one; tests/test_transcripts.py compares
the rest. With `make transcripts RUN=runs/sample` it takes that run, made by `make train`, and trains nothing: the
transcript of the training stays as it is.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The Chinese page on training shows the same output in Chinese, compared by tests/test_pages.py.
# In this order, since the later pages use the model that the first command of the page on training trains.
PAGES = tuple(
    ROOT / name
    for name in (
        "docs/training.md",
        "docs/bundle.md",
        "docs/zh/bundle.md",
        "docs/zh/troubleshooting.md",
    )
)
# A command with its output, as people see it on a terminal.
TRANSCRIPT = re.compile(
    r"^```console\n\$ (?P<command>[^\n]+)\n(?!\$ |```)(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL
)
# What a checkout needs for `make train`.
CHECKOUT = ("Makefile", "make", "configs", "data", "pyproject.toml", "constraints.txt")
# Starts elmo-zh with the current Python, under the name that users type.
LAUNCHER = "from elmo_zh.cli import main\n\nmain()\n"
# Lines that a page does not show: progress, and what make says of a failed command.
UNSHOWN = re.compile(r"^(\w+: +\d+% .*|make(\[\d+\])?: .*)$")
SETTING_UP = "Setting up "
TRAIN = "make train"

SENTENCE = "今天天气很好，我们去公园散步。"
REVIEWS = "编号,标题,评价,回复\n" + "7,很好的饭店,这家饭店的菜很好吃,谢谢您的评价\n" * 20


def prepare_folder(folder: Path) -> None:
    """Fill a folder like a checkout after set-up, with the texts that the pages' commands read."""
    for name in CHECKOUT:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "elmo-zh").write_text(f"#!{sys.executable}\n{LAUNCHER}", encoding="utf-8")
    (programs / "elmo-zh").chmod(0o755)
    (folder / ".venv" / ".ready").write_text("corpus explore\n", encoding="utf-8")  # nothing to install
    write_texts(folder)


def write_texts(folder: Path) -> None:
    """Write the texts that the pages' commands read."""
    (folder / "file.txt").write_text("今天天气很好。\n\n苹果很甜。\n", encoding="utf-8")
    (folder / "file.txt.hdf5").touch()
    (folder / "other.txt").write_text(f"{SENTENCE}\n", encoding="utf-8")
    (folder / "short.txt").write_text("今天天气很好。\n", encoding="utf-8")
    (folder / "old.txt").write_bytes((f"{SENTENCE}\n" * 20).encode("utf-16-le"))
    (folder / "reviews.csv").write_text(REVIEWS, encoding="utf-8")


def run_typed(command: str, folder: Path) -> str:
    """Return what a terminal shows after a command typed in `folder`, without the lines that pages leave out."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    environment.pop("ELMO_ZH_MODEL", None)
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    return as_shown(done.stdout, folder)


def as_shown(output: str, folder: Path) -> str:
    """Return an output as in a checkout: no progress, paths of the user instead of this machine's."""
    output = re.sub(r"\S+ -m elmo_zh\b", ".venv/bin/elmo-zh", output)
    output = re.sub(rf"(?<=\s){re.escape(sys.prefix)}/bin/", ".venv/bin/", output)
    output = output.replace(f"{ROOT}/", "").replace(f"{ROOT}[", ".[").replace(str(folder.resolve()), "/home/me/elmo-zh")
    return "".join(f"{line}\n" for line in output.splitlines() if not UNSHOWN.match(line))


def shorten(output: str, shown: str) -> str:
    """Cut an output where the page cuts it: after as many lines as it shows before "..."."""
    lines = shown.splitlines()
    if lines[-1] != "...":
        return output
    return "".join(f"{line}\n" for line in [*output.splitlines()[: len(lines) - 1], "..."])


def update(text: str, answer_to: Callable[[str], str | None]) -> str:
    """Return a page with its outputs replaced.

    Args:
        text: The page.
        answer_to: Returns the output of a command; None to keep the one that the page shows.
    """

    def transcript(match: re.Match[str]) -> str:
        shown, answer = match["output"], answer_to(match["command"])
        if answer is None:
            return match[0]
        # The set-up of .venv is not repeated here.
        first = shown.partition("\n")[0] + "\n" if shown.startswith(SETTING_UP) else ""
        output = first + shorten(answer, shown)
        return f"```console\n$ {match['command']}\n{output}```"

    return TRANSCRIPT.sub(transcript, text)


class Typist:
    """Types each command once in a folder and remembers the output.

    Args:
        folder: A folder that `prepare_folder` has filled.
        run: A finished run on the sample to use; None to train one.
    """

    def __init__(self, folder: Path, run: Path | None) -> None:
        self._folder = folder
        self._answers: dict[str, str | None] = {}
        if run is not None:
            shutil.copytree(run, folder / "runs" / "sample")
            (folder / "runs" / "latest").symlink_to("sample")
            self._answers[TRAIN] = None

    def answer_to(self, command: str) -> str | None:
        """Return the output of a command, or None if it is not to be run."""
        if command not in self._answers:
            print(f"$ {command}", flush=True)
            self._answers[command] = run_typed(command, self._folder)
        return self._answers[command]


def main() -> None:
    """Run the commands of all pages, each once, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="Finished run on the sample to use instead of training one.")
    run = parser.parse_args().run
    with tempfile.TemporaryDirectory() as name:
        prepare_folder(Path(name))
        typist = Typist(Path(name), run)
        for page in PAGES:
            text = update(page.read_text(encoding="utf-8"), typist.answer_to)
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
