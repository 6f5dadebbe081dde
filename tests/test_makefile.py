"""`make train` on many kinds of machines: the Python, the packages, the run, and the last line of a failure.

Shell scripts replace each Python and the one in .venv, so nothing is installed and no network is needed.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from contract.command_line import ROOT

TOOLS = (
    "awk", "basename", "cat", "chmod", "cp", "dirname", "echo", "grep", "ls", "make", "mkdir", "realpath", "rm", "sed",
    "sh", "sort", "tail", "tr", "uname",
)  # fmt: skip
# Is of a supported version or not, and has pip, which writes down what it is asked for.
FAKE_PYTHON = """\
#!/bin/sh
case "$*" in
*sys.version_info*) exit NOT_SUPPORTED ;;
"-m venv "*)
    mkdir -p "$3/bin" "$3/lib/python/site-packages" && cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\nfor each; do echo "<$each>"; done\\n' >"$3/bin/elmo-zh" && chmod +x "$3/bin/elmo-zh" ;;
"-m pip install "*)
    shift 5
    echo "$*" >>pip.log
    if [ -n "$PIP_FAILS" ]; then echo "$PIP_FAILS" >&2; exit 1; fi
    case "$*" in *+cpu*) mkdir -p .venv/lib/python/site-packages/torch-TORCH+cpu.dist-info ;; esac ;;
esac
"""
TORCH = re.search(r"^torch==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)[1]  # type: ignore[index]


class Machine:
    def __init__(self, folder: Path) -> None:
        self.checkout, self.programs, self.home = folder / "elmo", folder / "bin", folder / "home"
        for path in (self.checkout, self.programs, self.home):
            path.mkdir()
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md"):
            shutil.copy(ROOT / name, self.checkout / name)
        for name in ("make", "configs"):
            shutil.copytree(ROOT / name, self.checkout / name)
        (self.checkout / "data" / "sample").mkdir(parents=True)
        for name in TOOLS:
            found = shutil.which(name)
            assert found, f"{name} is not installed"
            (self.programs / name).symlink_to(found)

    def install(self, name: str, *, is_supported: bool = True) -> None:
        text = FAKE_PYTHON.replace("NOT_SUPPORTED", str(int(not is_supported)))
        self.write_program(name, text.replace("TORCH", TORCH))

    def write_program(self, name: str, text: str) -> None:
        (self.programs / name).unlink(missing_ok=True)
        (self.programs / name).write_text(text, encoding="utf-8")
        (self.programs / name).chmod(0o755)

    def make(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", *words],
            cwd=self.checkout,
            env={"PATH": str(self.programs), "HOME": str(self.home), "LC_ALL": "C.UTF-8", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def refusal(self, *words: str, **environment: str) -> str:
        """Return the one line that says what is wrong; nothing was made but perhaps .venv."""
        answer = self.make(*words, **environment)
        assert answer.returncode
        assert not (self.checkout / "runs").exists()
        [line] = [line for line in answer.stderr.splitlines() if line.startswith("Error: ")]
        return line.removeprefix("Error: ")

    def pip_lines(self) -> list[str]:
        return (self.checkout / "pip.log").read_text(encoding="utf-8").splitlines()

    def pipeline(self, *words: str) -> Sequence[str]:
        answer = self.make("train", *words)
        assert answer.returncode == 0, answer.stderr
        command, *words = re.findall(r"^<(.*)>$", answer.stdout, re.MULTILINE)
        assert command == "pipeline"
        return words


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine(bare: Machine) -> Machine:
    bare.install("python3")
    return bare


def test_the_newest_supported_python_is_taken(bare: Machine) -> None:
    bare.install("python3.14", is_supported=False)
    assert "Python 3.11 to 3.14 with its modules venv and ensurepip is needed" in bare.refusal("train")
    bare.install("python3.12")
    bare.install("python3.11")
    assert "which python3.14 is not" in bare.refusal("train", "PYTHON=python3.14")
    assert "Setting up .venv with python3.12, once." in bare.make("train").stderr


def test_names_of_runs(machine: Machine) -> None:
    assert machine.pipeline() == ["data/sample", "--run", "runs/sample", "--config", "configs/tiny.toml"]
    texts, novels = machine.checkout / "my texts", machine.home / "novels"
    for folder, names in ((texts, ("news.txt.gz", "it's.txt")), (novels, ("a.txt", "b.txt"))):
        folder.mkdir()
        for name in names:
            (folder / name).write_text("今天天气很好。\n", encoding="utf-8")
    for corpus, sources, run in (
        ("my texts", ["my texts"], "my-texts"),
        ("my texts/it's.txt", ["my texts/it's.txt"], "it's"),
        (f"{novels}/*.txt", [f"{novels}/a.txt", f"{novels}/b.txt"], "novels"),
        ("-", ["-"], "stdin"),
    ):
        expected = [*sources, "--run", f"runs/{run}", "--config", "configs/small.toml"]
        assert machine.pipeline(f"CORPUS={corpus}") == expected


def test_settings_and_a_run_that_has_its_own(machine: Machine) -> None:
    run = machine.home / "run"
    run.mkdir()
    words = [f"RUN={run}", "SET=vocab.size=7 train.epochs=2", "INIT=starter", "ARGS=--set 'text.field=a b' --json"]
    expected = ["data/sample", "--run", str(run), "--config", "configs/tiny.toml", "--init", "starter"]
    expected += ["--set", "vocab.size=7", "--set", "train.epochs=2", "--set", "text.field=a b", "--json"]
    assert machine.pipeline(*words) == expected
    (run / "config.toml").touch()
    assert machine.pipeline(*words) == [*expected[:3], *expected[5:]]
