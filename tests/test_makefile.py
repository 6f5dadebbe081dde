"""`make train` on many kinds of machines: the Python, the packages, the run, and the last line of a failure.

Shell scripts replace each Python and the one in .venv, so nothing is installed and no network is needed.
"""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from contract.command_line import ROOT

TOOLS = (
    "awk", "basename", "cat", "chmod", "cp", "df", "dirname", "echo", "grep", "make", "mkdir", "realpath", "rm", "sed",
    "sh", "sort", "tail", "touch", "tr", "uname",
)  # fmt: skip
# Knows its version, perhaps venv, and pip, which writes down what it is asked for.
FAKE_PYTHON = """\
#!/bin/sh
case "$*" in
*sys.version_info*) echo VERSION ;;
*ensurepip*) exit HAS_VENV ;;
"-m venv "*)
    mkdir -p "$3/bin" "$3/lib/python/site-packages" && cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\nfor each; do echo "<$each>"; done\\n' >"$3/bin/elmo-zh" && chmod +x "$3/bin/elmo-zh" ;;
"-m pip --version") ;;
"-m pip install "*)
    shift 5
    echo "$*" >>pip.log
    if [ -n "$PIP_FAILS" ]; then echo "$PIP_FAILS" >&2; exit 1; fi
    case "$*" in *+cpu*) mkdir -p .venv/lib/python/site-packages/torch-TORCH+cpu.dist-info ;;
    *) [ -e .venv/lib/python/site-packages/torch-*+cpu.dist-info ] ||
        mkdir -p .venv/lib/python/site-packages/torch-TORCH.dist-info ;;
    esac ;;
esac
"""
TORCH = re.search(r"^torch==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)[1]  # type: ignore[index]
TEXT = "今天天气很好。\n"


class Machine:
    def __init__(self, folder: Path) -> None:
        self.checkout, self.programs, self.home = folder / "elmo", folder / "bin", folder / "home"
        for path in (self.checkout, self.programs, self.home):
            path.mkdir()
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md"):
            shutil.copy(ROOT / name, self.checkout / name)
        for name in ("make", "configs"):
            shutil.copytree(ROOT / name, self.checkout / name)
        for name in TOOLS:
            found = shutil.which(name)
            assert found, f"{name} is not installed"
            (self.programs / name).symlink_to(found)

    def install(self, name: str, version: str, *, has_venv: bool = True) -> None:
        text = FAKE_PYTHON.replace("VERSION", version).replace("HAS_VENV", str(int(not has_venv)))
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
    bare.install("python3", "3.13")
    return bare


def test_the_newest_supported_python_with_venv_is_taken(bare: Machine) -> None:
    bare.install("python3.15", "3.15")
    bare.install("python3.14", "3.14", has_venv=False)
    bare.install("python3.12", "3.12")
    bare.install("python3.11", "3.11")
    bare.install("python3", "3.15")
    answer = bare.make("train")
    assert answer.stderr.startswith(
        "python3.14 has no venv module, so python3.12 is used.\nSetting up .venv with python3.12 (Python 3.12), once."
    )


def test_no_python_that_will_do(bare: Machine) -> None:
    assert "no Python was found" in bare.refusal("train")
    bare.install("python3", "3.15")
    assert "only Python 3.15 was found" in bare.refusal("train")
    assert "python3 is 3.15" in bare.refusal("train", "PYTHON=python3")
    assert "PYTHON=nope" in bare.refusal("train", "PYTHON=nope")


def test_the_supported_pythons_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    script = (ROOT / "make" / "set-up.sh").read_text(encoding="utf-8")
    [listed] = re.findall(r"^SUPPORTED='(.*)'$", script, re.MULTILINE)
    minors = [int(version.removeprefix("3.")) for version in listed.split()]
    assert minors == list(range(minors[0], minors[-1] - 1, -1))
    assert project["requires-python"] == f">=3.{minors[-1]},<3.{minors[0] + 1}"
    assert f"RANGE='3.{minors[-1]} to 3.{minors[0]}'" in script


def test_what_is_installed(machine: Machine) -> None:
    machine.make("train")
    machine.make("train")
    machine.make("train", "EXTRAS=parquet rjieba")
    machine.make("train", "EXTRAS=rjieba")
    machine.make("test", "EXTRAS=parquet,opencc")
    machine.make("train")
    assert [line.partition("-e ")[2] for line in machine.pip_lines()] == [
        ".[corpus,explore,tasks,train,words] -e data/starter",
        ".[corpus,explore,parquet,rjieba,tasks,train,words] -e data/starter",
        ".[corpus,dask,explore,opencc,parquet,rjieba,tasks,test,train,words] -e data/starter",
    ]
    assert all(line.startswith("-c constraints.txt") for line in machine.pip_lines())
    assert machine.refusal("train", "EXTRAS=parket").startswith("There is no extra parket (EXTRAS). There are: ")


def test_the_cpu_build(machine: Machine) -> None:
    told = machine.make("train", "TORCH=cpu").stderr
    assert "about 0.4 GB to download, 2.0 GB on disk" in told
    assert machine.pip_lines() == [
        f"--no-deps --index-url https://download.pytorch.org/whl/cpu torch=={TORCH}+cpu",
        "-c constraints.txt -e .[corpus,explore,tasks,train,words] -e data/starter",
    ]
    machine.make("train", "EXTRAS=parquet")
    assert machine.pip_lines()[2:] == [
        "-c constraints.txt -e .[corpus,explore,parquet,tasks,train,words] -e data/starter"
    ]
    machine.make("clean")
    machine.make("train")
    told = machine.refusal("train", "TORCH=cpu")
    assert told.startswith(".venv already has PyTorch's default build. For the CPU build, type make clean first")
    assert machine.refusal("train", "TORCH=cuda").startswith("TORCH=cuda is unknown.")


def test_what_pip_cannot_do(machine: Machine) -> None:
    for pip_says, expected in {
        "Retrying after connection broken by 'NewConnectionError(...)'\nERROR: x": "The package index cannot be",
        "ERROR: Could not install: [Errno 28] No space left on device": "There is no room left on the disk of .venv",
        "ERROR: ResolutionImpossible: x": "pip could not install the packages: ResolutionImpossible: x. The output",
    }.items():
        assert machine.refusal("train", PIP_FAILS=pip_says).startswith(expected)
    assert machine.make("train").returncode == 0, "the same command goes on"


def test_a_full_disk(machine: Machine) -> None:
    machine.write_program("df", "#!/bin/sh\necho Filesystem\necho 'disk 1 1 9000000 1% /'\n")
    assert machine.refusal("train").startswith(f"{machine.checkout} has 9.2 GB free, and PyTorch ")
    assert not (machine.checkout / ".venv").exists()


def test_names_of_runs(machine: Machine) -> None:
    assert machine.pipeline() == ["data/sample", "--run", "runs/sample", "--config", "configs/tiny.toml"]
    (machine.home / "novels").mkdir()
    texts = machine.checkout / "my texts"
    texts.mkdir()
    for name in ("news.txt.gz", "it's.txt"):
        (texts / name).write_text(TEXT, encoding="utf-8")
    for name in ("a.txt", "b.txt"):
        (machine.home / "novels" / name).write_text(TEXT, encoding="utf-8")
    dump = "https://example.org/zhwiki/latest/zhwiki-pages.xml.bz2?a=1&b=2"
    for corpus, sources, run in (
        ("my texts", ["my texts"], "my-texts"),
        ("my texts/it's.txt", ["my texts/it's.txt"], "it's"),
        ("~/novels/*.txt", [f"{machine.home}/novels/a.txt", f"{machine.home}/novels/b.txt"], "novels"),
        (f"~/novels/b.txt {dump}", [f"{machine.home}/novels/b.txt", dump], "b"),
        (dump, [dump], "zhwiki-pages.xml"),
        ("https://example.org:8080/", ["https://example.org:8080/"], "example.org-8080"),
        ("-", ["-"], "stdin"),
    ):
        expected = [*sources, "--run", f"runs/{run}", "--config", "configs/small.toml"]
        assert machine.pipeline(f"CORPUS={corpus}") == expected


def test_settings_and_a_run_that_has_its_own(machine: Machine) -> None:
    run = machine.home / "run"
    run.mkdir()
    (machine.home / "model").mkdir()
    (machine.home / "model" / "bundle.json").touch()
    words = ["RUN=~/run", "SET=vocab.size=7 train.epochs=2", "INIT=~/model", "ARGS=--set 'text.field=a b' --json"]
    expected = ["data/sample", "--run", str(run), "--config", "configs/tiny.toml", "--init", f"{machine.home}/model"]
    expected += ["--set", "vocab.size=7", "--set", "train.epochs=2", "--set", "text.field=a b", "--json"]
    assert machine.pipeline(*words) == expected
    (run / "config.toml").touch()
    assert machine.pipeline(*words) == [*expected[:3], *expected[5:]]


def test_what_is_misspelt_is_reported_before_anything_is_made(machine: Machine) -> None:
    for corpus in ("my-txts", "my-txts/", "my-txts/*.txt", "configs my-txts", "~/my-txts"):
        missing = corpus.split()[-1].replace("~", str(machine.home))
        assert machine.refusal("train", f"CORPUS={corpus}").startswith(f"CORPUS: {missing} does not exist.")
    for given, environment in ((["CORPUS= "], {}), (["CORPUS="], {}), ([], {"CORPUS": " "})):
        assert machine.refusal("train", *given, **environment).startswith("CORPUS: it is empty.")
    assert machine.refusal("train", "CONFIG=configs/smal.toml").startswith("CONFIG: configs/smal.toml does not exist.")
    told = machine.refusal("train", "INIT=models/nwes")
    assert told == "INIT: models/nwes is not a model. Give the folder of one, such as runs/NAME/model."
    told = machine.refusal("train", "INIT=configs/tiny.toml")
    assert told.endswith("To start from word2vec vectors, use: SET=word2vec.vectors=configs/tiny.toml")
    run = machine.home / "news"
    (run / "model").mkdir(parents=True)
    (run / "model" / "bundle.json").touch()
    assert machine.refusal("train", "INIT=~/news") == f"INIT: {run} is a run. Write its model: INIT={run}/model"
    assert not (machine.checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["corpus=x"], "corpus= is not a variable of this Makefile. Write it in capitals: CORPUS="),
        (["CORPSU=x"], "CORPSU= is not a variable of this Makefile. There are: CORPUS RUN"),
        (["make"], "make is not a target of this Makefile. Write: make train CORPUS=make."),  # a folder that exists
        (["CORPUS=a.txt", "b.txt"], 'b.txt is not a target of this Makefile. Write: make train CORPUS="a.txt b.txt".'),
    ],
)
def test_the_sample_is_not_trained_by_mistake(machine: Machine, words: list[str], expected: str) -> None:
    answer = machine.make("train", *words)
    assert answer.returncode
    assert expected in answer.stderr
    assert answer.stdout == ""
