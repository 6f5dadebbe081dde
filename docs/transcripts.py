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
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The first command of the first page trains the model that the others use. docs/zh/training.md shows the same output in
# Chinese, and tests/test_pages.py compares its figures.
PAGES = ("docs/training.md", "docs/bundle.md", "docs/zh/bundle.md", "docs/zh/troubleshooting.md")
# A command with its output, as people see it on a terminal.
TRANSCRIPT = re.compile(
    r"^```console\n\$ (?P<command>[^\n]+)\n(?!\$ |```)(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL
)
# What a checkout needs for `make train`.
CHECKOUT = ("Makefile", "make", "configs", "data", "pyproject.toml", "constraints.txt")
# Lines that a page does not show: progress, and what make says of a failed command.
UNSHOWN = re.compile(r"^(\w+: +\d+% .*|make(\[\d+\])?: .*)$")

SENTENCE = "今天天气很好，我们去公园散步。"
REVIEWS = "编号,标题,评价,回复\n" + "7,很好的饭店,这家饭店的菜很好吃,谢谢您的评价\n" * 20


def prepare_folder(folder: Path) -> None:
    """Fill a folder like a checkout after set-up, with the texts that the pages' commands read."""
    for name in CHECKOUT:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / name)
    program = folder / ".venv" / "bin" / "elmo-zh"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\nfrom elmo_zh.cli import main\n\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    (folder / ".venv" / ".ready").write_text("corpus\nexplore\ntasks\n", encoding="utf-8")  # nothing to install
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
    print(f"$ {command}", flush=True)
    environment = {name: value for name, value in os.environ.items() if not re.match("MAKE|MFLAGS|ELMO_ZH_", name)}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "ELMO_ZH_LANG": "en"}
    shell = ["sh", "-c", f"{command} 2>&1"]
    done = subprocess.run(shell, cwd=folder, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    return as_shown(done.stdout, folder)


def as_shown(output: str, folder: Path) -> str:
    """Return an output as in a checkout: no progress, paths of the user instead of this machine's."""
    output = re.sub(r"\S+ -m elmo_zh\b", ".venv/bin/elmo-zh", output)
    output = re.sub(rf"(?<=\s){re.escape(sys.prefix)}/bin/", ".venv/bin/", output)
    output = output.replace(f"{ROOT}/", "").replace(f"{ROOT}[", ".[").replace(str(folder.resolve()), "/home/me/elmo-zh")
    return "".join(f"{line}\n" for line in output.splitlines() if not UNSHOWN.match(line))


def main() -> None:
    """Run the commands of all pages, each once, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="Finished run on the sample to use instead of training one.")
    run = parser.parse_args().run
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare_folder(folder)
        if run is not None:
            shutil.copytree(run, folder / "runs" / "sample")
            (folder / "runs" / "latest").symlink_to("sample")

        @cache
        def answer(command: str) -> str:
            return run_typed(command, folder)

        def transcript(match: re.Match[str]) -> str:
            command, shown = match["command"], match["output"].splitlines()
            if run is not None and command == "make train":
                return match[0]
            lines = answer(command).splitlines()
            # The set-up of .venv is not repeated here, and a page may cut an output at its start and its end.
            if shown[0] == "...":
                start = next(n for n, line in enumerate(lines) if line.split()[:1] == shown[1].split()[:1])
                lines = ["...", *lines[start:]]
            lines = [*(line for line in shown[:1] if line.startswith("Setting up ")), *lines]
            lines = [*lines[: len(shown) - 1], "..."] if shown[-1] == "..." else lines
            return "\n".join(["```console", f"$ {command}", *lines, "```"])

        for page in (ROOT / name for name in PAGES):
            page.write_text(TRANSCRIPT.sub(transcript, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
