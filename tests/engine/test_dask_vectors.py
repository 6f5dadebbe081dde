"""embed, score and index on the workers of a Dask cluster: the bytes that this machine makes, whatever dies."""

import signal
import threading
from functools import partial
from pathlib import Path

import pytest
from contract.command_line import elmo_zh, succeed
from drawn_bundles import SHAPES, WORDS, write_model
from engine.dask_cluster import Cluster
from waiting import wait_until

from elmo_zh.config import TextConfig
from elmo_zh.contexts import index_content, score_texts
from elmo_zh.embed import text_tokens
from elmo_zh.engine import dask_workers
from elmo_zh.invocation import install_line
from elmo_zh.run.work_folder import WorkFolder

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'distributed>=2026.1'")

LINES = [" ".join((WORDS * 7)[number % 5 : number % 31 + 2]) for number in range(120)] + [""] * 3


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "drawn"
    return write_model(folder, SHAPES["token"], with_softmax=True, text=TextConfig(segmenter="character"))


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(text_tokens, "PART_LINES", 7)
    monkeypatch.setattr(index_content, "PART_LINES", 7)
    monkeypatch.setattr(score_texts, "ScoreJob", partial(score_texts.ScoreJob, part_lines=7))
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


COMMANDS = {
    "embed": ("--layout", "packed"),
    "index": ("--min-count", "1", "--layers", "1,2"),
    "score tokens": ("--by", "token"),
    "score kept": ("--keep-share", "0.5"),
}


def files_of(path: Path) -> dict[str, bytes]:
    paths = [path] if path.is_file() else sorted(path.iterdir())
    return {each.name if path.is_dir() else "": each.read_bytes() for each in paths}


def run(name: str, text: Path, bundle: Path, output: Path, *more: str) -> None:
    command, options = name.split(" ")[0], COMMANDS[name]
    succeed(command, text, "--segmented", "--model", bundle, "--output", output, *options, *more)


@pytest.mark.parametrize("name", COMMANDS)
def test_workers_make_the_bytes_that_this_machine_makes(
    two_workers: Cluster, text: Path, bundle: Path, tmp_path: Path, name: str
) -> None:
    run(name, text, bundle, tmp_path / "here")
    run(name, text, bundle, tmp_path / "there", "--engine", "dask", "--scheduler", two_workers.address)
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
    assert not list(tmp_path.rglob("*.parts"))


def test_workers_that_die_lose_nothing(two_workers: Cluster, text: Path, bundle: Path, tmp_path: Path) -> None:
    """One is killed as soon as a part is finished, and another is started later."""
    run("embed", text, bundle, tmp_path / "here")
    victim = two_workers.workers[0]

    def kill() -> None:
        wait_until(lambda: list(tmp_path.glob("there.parts/computed-*")) or (tmp_path / "there").exists(), None)
        victim.kill()
        victim.wait()
        two_workers.start_worker()

    killer = threading.Thread(target=kill)
    killer.start()
    run("embed", text, bundle, tmp_path / "there", "--engine", "dask", "--scheduler", two_workers.address)
    killer.join()
    assert victim.returncode == -signal.SIGKILL
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")


def test_one_engine_continues_what_another_began(
    two_workers: Cluster, text: Path, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("embed", text, bundle, tmp_path / "here")
    computed = WorkFolder.compute
    seen = []

    def stopping(*arguments: object) -> object:
        for number, each in enumerate(computed(*arguments)):  # type: ignore[arg-type]
            if number == 3:
                raise KeyboardInterrupt
            seen.append(number)
            yield each

    dask = ("--engine", "dask", "--scheduler", two_workers.address)
    output = ("--output", tmp_path / "there", *COMMANDS["embed"])
    typed = ("embed", text, "--segmented", "--model", bundle, *output)
    for engine in (dask, ()):
        with monkeypatch.context() as during:
            during.setattr(WorkFolder, "compute", stopping)
            assert elmo_zh(*typed, *engine).status == 130
    assert len(seen) == 6
    assert len(list(tmp_path.glob("there.parts/part-*.json"))) == 6
    run("embed", text, bundle, tmp_path / "there", *dask)
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")


def test_a_model_that_workers_cannot_find(two_workers: Cluster, text: Path, bundle: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    bundle_copy = write_model(tmp_path / "drawn", SHAPES["token"], with_softmax=True)
    compute = WorkFolder.compute

    def without_model(*arguments: object) -> object:
        bundle_copy.rename(moved)
        yield from compute(*arguments)  # type: ignore[arg-type]

    dask = ("--engine", "dask", "--scheduler", two_workers.address)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkFolder, "compute", without_model)
        told = elmo_zh("embed", text, "--segmented", "--model", bundle_copy, *dask).only_error()
    assert str(bundle_copy) in told
    assert "\n" not in told.strip()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ("embed", "--stateful"),
            2,
            "--stateful processes the lines one after another, on one machine. Leave out --engine.",
        ),
        (("score",), 2, "--engine dask needs an output file on a disk that all workers share: --output FILE"),
        (("index", "--output", "x"), 1, "--engine dask needs Dask. Install it here and on the workers with: "),
    ],
)
def test_what_cannot_be_done(
    text: Path,
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(text.parent)
    find_spec = dask_workers.importlib.util.find_spec
    monkeypatch.setattr(
        dask_workers.importlib.util, "find_spec", lambda name: None if name == "distributed" else find_spec(name)
    )
    command, *options = arguments
    dask = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    answer = elmo_zh(command, text, "--segmented", "--model", bundle, *options, *dask)
    assert answer.only_error(status) == message + (install_line("dask") if status == 1 else "")
    assert sorted(path.name for path in text.parent.iterdir()) == ["text.txt"]
