"""`make train` on many kinds of machines: the Python, the packages, the run, and the last line of a failure.

Shell scripts replace each Python and the one in .venv, so nothing is installed and no network is needed.
"""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from functools import partial
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


def test_python_names_another(bare: Machine) -> None:
    bare.install("python3.14", "3.14")
    bare.install("mine", "3.11")
    assert "Setting up .venv with mine (Python 3.11), once." in bare.make("train", "PYTHON=mine").stderr
    answer = bare.make("train", "PYTHON=python3.14")
    assert ".venv keeps its Python 3.11; for python3.14 type make clean first." in answer.stderr


def test_no_python_that_will_do(bare: Machine) -> None:
    assert bare.refusal("train").startswith("Python 3.11 to 3.14 is needed, and no Python was found. Install one")
    bare.install("python3", "3.15")
    assert bare.refusal("train").startswith(
        "Python 3.11 to 3.14 is needed, and only Python 3.15 was found. Install one"
    )
    assert bare.refusal("train", "PYTHON=python3").startswith("Python 3.11 to 3.14 is needed, and python3 is 3.15.")
    assert bare.refusal("train", "PYTHON=nope").startswith("PYTHON=nope does not run.")


def test_no_venv(bare: Machine) -> None:
    bare.install("python3", "3.13", has_venv=False)
    expected = "python3 cannot make virtual environments: its modules venv and ensurepip are missing."
    assert bare.refusal("train").startswith(f"{expected} On Debian and Ubuntu type: sudo apt install python3.13-venv")
    assert not (bare.checkout / ".venv").exists()


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
        ".[corpus,explore] -e data/starter",
        ".[corpus,explore,parquet,rjieba] -e data/starter",
        ".[corpus,dask,explore,opencc,parquet,rjieba,sklearn,test] -e data/starter",
    ]
    assert all(line.startswith("-c constraints.txt") for line in machine.pip_lines())
    assert machine.refusal("train", "EXTRAS=parket").startswith("There is no extra parket (EXTRAS). There are: corpus ")


def test_sizes_and_a_hint_where_there_is_no_driver(machine: Machine) -> None:
    told = machine.make("train").stderr
    assert "about 3.0 GB to download, 7.0 GB on disk" in told
    if not Path("/proc/driver/nvidia/version").exists():
        assert "No NVIDIA driver was found. To download 0.4 GB instead of 3 GB, press Ctrl-C and add TORCH=cpu" in told
    machine.make("clean")
    machine.write_program("nvidia-smi", "#!/bin/sh\n")
    assert "No NVIDIA driver" not in machine.make("train").stderr


def test_the_cpu_build(machine: Machine) -> None:
    told = machine.make("train", "TORCH=cpu").stderr
    assert "about 0.4 GB to download, 2.0 GB on disk" in told
    assert machine.pip_lines() == [
        f"--no-deps --index-url https://download.pytorch.org/whl/cpu torch=={TORCH}+cpu",
        "-c constraints.txt -e .[corpus,explore] -e data/starter",
    ]
    machine.make("train", "EXTRAS=parquet")
    assert machine.pip_lines()[2:] == ["-c constraints.txt -e .[corpus,explore,parquet] -e data/starter"]
    machine.make("clean")
    machine.make("train")
    told = machine.refusal("train", "TORCH=cpu")
    assert told.startswith(".venv already has PyTorch's default build. For the CPU build, type make clean first")
    assert machine.refusal("train", "TORCH=cuda").startswith("TORCH=cuda is unknown.")


def test_the_cpu_build_out_of_reach(machine: Machine) -> None:
    told = machine.refusal("train", "TORCH=cpu", PIP_FAILS="ERROR: No matching distribution found for torch")
    assert told == (
        "PyTorch's CPU build cannot be fetched from https://download.pytorch.org/whl/cpu. Type make without TORCH=cpu"
        f" for the default build (3 GB), or put the wheel of torch {TORCH}+cpu into a folder and add"
        " PIP_FIND_LINKS=FOLDER."
    )
    assert machine.make("train").returncode == 0


def test_what_pip_cannot_do(machine: Machine) -> None:
    for pip_says, expected in {
        "Retrying after connection broken by 'NewConnectionError(...)'\nERROR: x": "The package index cannot be",
        "ERROR: Could not install: [Errno 28] No space left on device": "There is no room left on the disk of .venv",
        "ERROR: ResolutionImpossible: x": "pip could not install the packages: ResolutionImpossible: x. The output",
    }.items():
        assert machine.refusal("train", PIP_FAILS=pip_says).startswith(expected)
    assert machine.make("train").returncode == 0, "the same command goes on"


@pytest.mark.parametrize(("kilobytes", "words"), [(9_000_000, []), (2_000_000, ["TORCH=cpu"])])
def test_a_full_disk(machine: Machine, kilobytes: int, words: list[str]) -> None:
    machine.write_program("df", f"#!/bin/sh\necho Filesystem\necho 'disk 1 1 {kilobytes} 1% /'\n")
    told = machine.refusal("train", *words)
    needed = "2.4 GB" if words else "10.0 GB"
    assert told.startswith(f"{machine.checkout} has {kilobytes * 1.024 / 1e6:.1f} GB free, and PyTorch ")
    assert f" need {needed} there. Make room" in told
    assert not (machine.checkout / ".venv").exists()


def test_a_broken_environment(machine: Machine) -> None:
    machine.make("train")
    (machine.checkout / ".venv" / "bin" / "python").unlink()
    (machine.checkout / ".venv" / ".ready").unlink()
    assert machine.refusal("train").startswith(".venv is damaged, or its Python is gone. Type make clean")


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
        ("my texts/news.txt.gz", ["my texts/news.txt.gz"], "news"),
        ("my texts/it's.txt", ["my texts/it's.txt"], "it's"),
        ("~/novels", [f"{machine.home}/novels"], "novels"),
        ("~/novels/*.txt", [f"{machine.home}/novels/a.txt", f"{machine.home}/novels/b.txt"], "novels"),
        (f"~/novels/b.txt {dump}", [f"{machine.home}/novels/b.txt", dump], "b"),
        (dump, [dump], "zhwiki-pages.xml"),
        ("https://example.org/novel/index.html", ["https://example.org/novel/index.html"], "example.org-index.html"),
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


def test_unknown_variables(machine: Machine) -> None:
    for name in ("corpus", "run", "config", "set", "Corpus"):
        answer = machine.make("train", f"{name}=x")
        assert answer.returncode
        told = f"{name}= is not a variable of this Makefile. Write it in capitals: {name.upper()}=."
        assert told in answer.stderr
    assert "CORPSU= is not a variable of this Makefile. There are: CORPUS RUN" in machine.make("CORPSU=x").stderr
    assert machine.make("PIP_INDEX_URL=x", "https_proxy=x", "TMPDIR=/tmp").returncode == 0


def test_a_corpus_without_its_variable(machine: Machine) -> None:
    """Make counts a file that exists as made, so the sample would be trained instead."""
    (machine.checkout / "my-texts").mkdir()
    (machine.checkout / "more.txt").touch()
    for words, corpus in ((["my-texts"], "my-texts"), (["my-texts", "more.txt"], '"my-texts more.txt"')):
        answer = machine.make("train", *words)
        assert answer.returncode
        assert f"my-texts is not a target of this Makefile. Write: make train CORPUS={corpus}." in answer.stderr
        assert answer.stdout == ""
    for names in (["语料", "库/"], ["a.txt", "b.txt"]):
        told = machine.make("train", f"CORPUS={names[0]}", *names[1:]).stderr
        assert f'{names[1]} is not a target of this Makefile. Write: make train CORPUS="{" ".join(names)}".' in told
    assert "tset is not a target of this Makefile. See: make help." in machine.make("tset").stderr


def test_set_up_says_what_to_do_next(machine: Machine) -> None:
    for _ in range(2):
        answer = machine.make("set-up")
        assert answer.stdout.splitlines()[-4:] == [
            "Everything is installed. Next, train a model on your text:",
            "  make train CORPUS=my-texts/ INIT=starter",
            "Or look at the words of the starter model, in the browser:",
            "  .venv/bin/elmo-zh explore",
        ]
    assert "Next" not in machine.make("train").stdout


def test_make_itself_speaks_chinese_where_the_environment_says_so(machine: Machine) -> None:
    make = partial(machine.make, ELMO_ZH_LANG="zh")
    assert make("train", "CORPUS=nope").stderr.startswith("错误：CORPUS：nope 不存在。")
    assert "本 Makefile 没有变量 corpus=。请大写：CORPUS=" in make("corpus=x").stderr
    told = make("train", "CORPUS=a.txt", "b.txt").stderr
    assert '本 Makefile 没有目标 b.txt。请输入：make train CORPUS="a.txt b.txt"' in told
    assert make("set-up").stdout.splitlines()[-4] == "安装完毕。接下来用自己的文本训练模型："
    english, chinese = machine.make("help").stdout, make("help").stdout
    assert "  make train           用原始文本训练模型" in chinese
    # Both name the same targets and variables.
    names = re.compile("^  (make \\S+|[A-Z]+) ", re.MULTILINE)
    assert names.findall(chinese) == names.findall(english)
    assert len(names.findall(english)) == 27
