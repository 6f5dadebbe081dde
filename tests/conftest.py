"""What the tests share: one small run of the whole pipeline on part of data/sample."""

import faulthandler
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import pytest
from contract.command_line import ROOT, SETTINGS, SampleRun, remove_training, run_python
from contract.warm_python import WarmPython, warm_python
from hypothesis import HealthCheck, settings

from elmo_zh.hdf5 import foreign_file, reader_process

# The tests read what the program says in English, whatever the language of the machine.
os.environ["ELMO_ZH_LANG"] = "en"

# Before torch is imported, here and in processes started from here: these models are so small that sharing the work
# among threads costs more than it saves.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before the first product on a GPU: deterministic training needs it, and torch looks only once.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

# A shell starts background jobs with Ctrl-C ignored, and nohup its command with SIGHUP, and processes started from here
# would inherit that: tests that send these signals need their usual effect.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test depends on the clock, and each run tries the same examples: random ones are for `make fuzz`.
settings.register_profile("elmo-zh", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("elmo-zh")

# The one limit of time: tests wait without one, since machines may be slow and busy. A suite that hangs is ended with
# a traceback of every thread.
SUITE_HANGS_AFTER_SECONDS = 4800
faulthandler.dump_traceback_later(SUITE_HANGS_AFTER_SECONDS, exit=True)

CORPUS_FILES = ("food.txt", "nature.txt")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Take a temporary home, for the processes started from here too; workers of pytest-xdist share it."""
    if not hasattr(session.config, "workerinput"):
        home = tempfile.TemporaryDirectory(prefix="elmo-zh-home-", ignore_cleanup_errors=True)
        session.config.add_cleanup(home.cleanup)
        os.environ.update(HOME=home.name, USERPROFILE=home.name)
        for name in [name for name in os.environ if name.startswith("XDG_")]:
            del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def _working_folder_of_session(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fixtures of a session or a module write nothing to the checkout."""
    os.chdir(tmp_path_factory.mktemp("session"))


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests leave nothing in the checkout: commands write runs/latest and the like where they are called."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _no_model_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELMO_ZH_MODEL", raising=False)


@pytest.fixture(autouse=True)
def _hdf5_is_read_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a process for each file takes a third of a second; tests of it ask for `hdf5_in_its_process`."""

    def run_here(source: IO[bytes], _size: int, copy: IO[bytes]) -> int:
        reader_process.copy(source, copy)
        return 0

    if "hdf5_in_its_process" not in request.fixturenames:
        monkeypatch.setattr(foreign_file, "_run", run_here)


@pytest.fixture
def hdf5_in_its_process() -> None:
    """HDF5 files are read in a process with limits, as they are outside of tests."""


@pytest.fixture(autouse=True)
def _no_starter_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands behave the same whether the starter model is installed beside them or not."""
    installed = metadata.entry_points

    def entry_points(**chosen: str) -> Any:
        found = installed(**chosen)
        if chosen.get("group") != "elmo_zh.models":
            return found
        return metadata.EntryPoints(point for point in found if point.module != "elmo_zh_starter")

    monkeypatch.setattr(metadata, "entry_points", entry_points)


@pytest.fixture(autouse=True)
def _called_elmo_zh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name the program as it was called."""
    monkeypatch.setattr("sys.argv", ["elmo-zh"])


@pytest.fixture(scope="session", autouse=True)
def _jieba_dictionary_is_read_once() -> Iterator[None]:
    """Reading it takes half a second, each time; here it is asked for some hundred times."""
    import jieba

    from elmo_zh.text.segmenters import jieba as ours

    real = jieba.Tokenizer.gen_pfdict
    read = cache(lambda: real(jieba.Tokenizer().get_dict_file()))

    def read_copy(file: IO[bytes]) -> tuple[dict[str, int], int]:
        file.close()
        frequencies, total = read()
        return dict(frequencies), total

    in_use = ours._tokenizer_of_jieba()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba.Tokenizer, "gen_pfdict", staticmethod(read_copy))
        yield
    del in_use


@pytest.fixture(scope="session", autouse=True)
def _the_disk_is_not_waited_for() -> Iterator[None]:
    """A hundred times in each training; tests/faults and tests/run see in what order files are forced to disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> SampleRun:
    """The pipeline, run once by typing it, in a folder whose name needs care."""
    folder = tmp_path_factory.mktemp("sample")
    corpus = folder / "corpus"
    corpus.mkdir()
    for name in CORPUS_FILES:
        shutil.copyfile(ROOT / "data" / "sample" / name, corpus / name)
    config = folder / "small primes.toml"
    config.write_text(SETTINGS, encoding="utf-8")
    run = Path("runs", "新闻 1")
    answer = run_python("-m", "elmo_zh", "pipeline", "corpus", "--run", run, "--config", config.name, cwd=folder)
    assert answer.status == 0, answer.stderr
    return SampleRun(folder, corpus, config, folder / run, answer)


@pytest.fixture
def run(sample_run: SampleRun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_run.path, tmp_path / "runs" / "copy"))


@pytest.fixture
def threads_as_before() -> Iterator[None]:
    """For tests that set torch's number of threads."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_training_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """training.png takes longer than the trainings of tests; the run that all tests share has one."""
    from elmo_zh.training import train_run

    monkeypatch.setattr(train_run, "can_draw", lambda: False)


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """Processes that have imported torch."""
    with warm_python(tmp_path_factory.mktemp("warm")) as warm:
        yield warm


@pytest.fixture
def untrained_run(run: Path) -> Path:
    """A copy of the run as it was before its training."""
    remove_training(run)
    return run
