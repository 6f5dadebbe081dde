"""`elmo-zh embed` that is stopped, killed or out of room, and typed again."""

import shutil
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from contract.command_line import SampleRun, elmo_zh, run_python
from contract.dumps import (
    SEGMENTED_LINES,
    SEGMENTED_TOKENS,
    Interrupted,
    assert_close,
    embed,
    read_dump,
    write_lines,
)
from contract.warm_python import WarmPython

from elmo_zh.embed import text_tokens
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import TextBlock
from elmo_zh.embed.text_tokens import TextTokens
from elmo_zh.text.alignment import TokenisedLine

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.fixture
def unfinished(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parts of an output that was stopped after four of its seven lines."""
    monkeypatch.setattr(text_tokens, "PART_LINES", 2)
    with monkeypatch.context() as during:
        Interrupted(during, after_parts=2)
        answer = elmo_zh("embed", source, "--segmented", "--model", sample_run.model)
    assert answer.status == 130
    assert answer.stderr.endswith("Interrupted. Run the same command again to continue.\n")
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    assert not source.with_name("file.txt.hdf5").exists()
    return source.with_name("file.txt.hdf5.parts")


def test_an_unfinished_output_is_continued(
    sample_run: SampleRun, source: Path, unfinished: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counted = Interrupted(monkeypatch, after_parts=2)
    answer = embed(sample_run, source, "--segmented", "--json")
    assert "Resuming: 4 of 7 lines are finished." in answer.stderr.splitlines()
    continued = answer.result()
    assert counted.num_calls == 2  # four lines were there, three in two parts were left
    assert not unfinished.exists()
    counted.num_calls = -100
    output = tmp_path / "at-once.hdf5"
    at_once = embed(sample_run, source, "--segmented", "--json", "--output", output).result()
    assert continued == {**at_once, "output": f"{source}.hdf5"}
    (found, found_tokens, found_attributes), (vectors, tokens, attributes) = map(
        read_dump, (Path(f"{source}.hdf5"), output)
    )
    assert (found_tokens, found_attributes) == (tokens, attributes)
    for vector, expected in zip(found, vectors, strict=True):
        np.testing.assert_array_equal(vector, expected)


def test_an_unfinished_output_of_another_text_or_settings_is_refused(
    sample_run: SampleRun, source: Path, unfinished: Path
) -> None:
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    expected = (
        f"{unfinished} holds an unfinished output of another text, model or settings."
        " Give the same ones to continue it, or --force to start over."
    )
    assert elmo_zh(*arguments, "--layers", "top").only_error() == expected
    write_lines(source, ["别的 一 句"])
    assert elmo_zh(*arguments).only_error() == expected
    assert unfinished.exists()
    assert elmo_zh(*arguments, "--force").status == 0
    assert read_dump(Path(f"{source}.hdf5"))[1] == [["别的", "一", "句"]]
    assert not unfinished.exists()


def assert_same(found: Path, expected: Path) -> None:
    assert found.read_bytes() == expected.read_bytes()


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage", ["vectors of part 2", "vectors of part 1", "a page of zeros", "a record", "half a record"]
)
def test_damaged_vectors_are_computed_again(
    sample_run: SampleRun, source: Path, unfinished: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
) -> None:
    vectors, [_, second] = sorted(unfinished.glob("part-*.npy")), sorted(unfinished.glob("part-*.json"))
    if damage == "a record":
        flip(second, second.read_text().index("num_lines") + 12)
    elif damage == "half a record":
        second.write_bytes(second.read_bytes()[:-9])
    elif damage == "a page of zeros":
        vectors[0].write_bytes(vectors[0].read_bytes()[:-64] + bytes(64))
    else:
        flip(vectors[int(damage[-1]) - 1], -1)
    num_lost = 4 if damage in ("vectors of part 1", "a page of zeros") else 2
    counted = Interrupted(monkeypatch, after_parts=100)
    answer = embed(sample_run, source, "--segmented")
    assert f"Warning: Some finished work in {unfinished} is damaged, so it is computed again." in answer.stderr
    assert (f"Resuming: {4 - num_lost} of 7 lines are finished." in answer.stderr) == (num_lost == 2)
    assert counted.num_calls == 2 + num_lost // 2
    counted.num_calls = -100
    embed(sample_run, source, "--segmented", "--output", tmp_path / "at-once.hdf5")
    assert_same(Path(f"{source}.hdf5"), tmp_path / "at-once.hdf5")


@pytest.mark.parametrize("name", ["text-000000000002.npz", "text-000000000002.json", "tokens.json"])
def test_damaged_tokens_are_made_again(
    sample_run: SampleRun, source: Path, unfinished: Path, tmp_path: Path, name: str
) -> None:
    flip(unfinished / name, (unfinished / name).stat().st_size // 2)
    answer = embed(sample_run, source, "--segmented")
    assert "Resuming: 4 of 7 lines are finished." in answer.stderr
    embed(sample_run, source, "--segmented", "--output", tmp_path / "at-once.hdf5")
    assert_same(Path(f"{source}.hdf5"), tmp_path / "at-once.hdf5")


@pytest.mark.parametrize("options", [[], ["--layout", "packed"], ["--format", "npy"]])
def test_killed_while_the_parts_are_joined(
    sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str]
) -> None:
    """What a kill leaves is what Ctrl-C leaves, and the unfinished join beside it."""
    monkeypatch.setattr(text_tokens, "PART_LINES", 2)
    output = tmp_path / "out"
    arguments = ("embed", source, "--segmented", "--model", sample_run.model, "--output", output, *options)
    blocks = TextTokens.blocks
    with monkeypatch.context() as during:

        def blocks_until_stopped(tokens: TextTokens) -> Iterator[TextBlock]:
            yield from islice(blocks(tokens), 2)
            raise KeyboardInterrupt

        during.setattr(TextTokens, "blocks", blocks_until_stopped)
        assert elmo_zh(*arguments).status == 130
    assert not output.exists()
    (tmp_path / "out.unfinished").write_bytes(b"half a file")
    with monkeypatch.context() as during:
        Interrupted(during, after_parts=0)  # nothing is embedded again
        assert elmo_zh(*arguments).status == 0
    at_once = tmp_path / "at-once"
    embed(sample_run, source, "--segmented", "--output", at_once, *options)
    assert sorted(tmp_path.iterdir()) == [at_once, source, output]
    pairs = [(output, at_once)] if output.is_file() else [(path, at_once / path.name) for path in output.iterdir()]
    for found, expected in pairs:
        assert_same(found, expected)


def test_an_unfinished_output_may_end_in_another_form(sample_run: SampleRun, source: Path, unfinished: Path) -> None:
    output = source.with_name("file.txt.hdf5")
    embed(sample_run, source, "--segmented", "--layout", "packed")
    with h5py.File(output) as file:
        assert file.attrs["layout"] == "packed"
        assert len(file["line_offsets"]) == len(SEGMENTED_LINES) + 1
    assert not unfinished.exists()


@pytest.mark.parametrize("lost", ["part-000000000000.json", "part-000000000000.npy", "text-000000000000.npz"])
def test_a_lost_part_is_never_a_shorter_output(
    sample_run: SampleRun, source: Path, unfinished: Path, tmp_path: Path, lost: str
) -> None:
    (unfinished / lost).unlink()
    embed(sample_run, source, "--segmented")
    embed(sample_run, source, "--segmented", "--output", tmp_path / "at-once")
    assert_same(source.with_name("file.txt.hdf5"), tmp_path / "at-once")


def test_interrupted_while_the_tokens_are_written(
    sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tokens that are on the disk are not made again."""
    monkeypatch.setattr(text_tokens, "PART_LINES", 2)
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    prepared: list[str] = []
    interrupted_at = 4
    real = ElmoEmbedder.prepare

    def prepare_some(embedder: ElmoEmbedder, line: str, *, segmented: bool) -> TokenisedLine:
        prepared.append(line)
        if len(prepared) == interrupted_at:
            raise KeyboardInterrupt
        return real(embedder, line, segmented=segmented)

    monkeypatch.setattr(ElmoEmbedder, "prepare", prepare_some)
    assert elmo_zh(*arguments).status == 130
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".txt"] == ["file.txt.hdf5.parts"]
    interrupted_at = 0
    prepared.clear()
    assert elmo_zh(*arguments).status == 0
    assert prepared == list(SEGMENTED_LINES[2:])
    at_once = tmp_path / "at-once"
    embed(sample_run, source, "--segmented", "--output", at_once)
    assert_same(source.with_name("file.txt.hdf5"), at_once)


KILLED = """
import os, signal, sys
from elmo_zh.cli import main
from elmo_zh.embed import dump, text_tokens

text_tokens.PART_LINES = 2
finish_part, left = dump._Dump._finish_part, [int(sys.argv.pop())]

def finish_some(*arguments):
    finish_part(*arguments)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

dump._Dump._finish_part = finish_some
main()
"""


def test_killed_and_typed_again(sample_run: SampleRun, source: Path, tmp_path: Path, warm: WarmPython) -> None:
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    assert warm.run(KILLED, *arguments, "3", cwd=tmp_path).status == -signal.SIGKILL
    assert len(list(source.with_name("file.txt.hdf5.parts").glob("part-*.json"))) == 3
    assert elmo_zh(*arguments).status == 0
    vectors, tokens, _ = read_dump(source.with_name("file.txt.hdf5"))
    assert tokens == list(SEGMENTED_TOKENS)
    embed(sample_run, source, "--segmented", "--output", "at-once")
    for found, expected in zip(vectors, read_dump(Path("at-once"))[0], strict=True):
        assert_close(found, expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["at-once", "file.txt", "file.txt.hdf5"]


def test_a_disk_that_is_too_small_is_told_before_any_vector(
    sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=5000))
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    told = elmo_zh(*arguments).only_error()
    assert "of disk space, but only 5.0 kB are free. Free some space, or write less: --layers average" in told
    assert not list(source.parent.glob("*/part-*"))


# The limit comes when the vectors are there, so that they fit and the output that is made of them does not.
FULL_AT_THE_JOIN = """
import resource, sys
from elmo_zh.cli import main
from elmo_zh.embed import dump, text_tokens
text_tokens.PART_LINES = 3
join, limit = dump._Dump._join, int(sys.argv.pop())

def join_on_a_full_disk(*arguments):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    return join(*arguments)

dump._Dump._join = join_on_a_full_disk
main()
"""


@pytest.mark.parametrize("options", [[], ["--format", "npy"], ["--format", "jsonl"]])
def test_no_room_for_the_join(sample_run: SampleRun, empty_folder: Path, warm: WarmPython, options: list[str]) -> None:
    arguments = ("embed", sample_run.heldout, "--segmented", "--model", sample_run.model, "--output", "out", *options)
    answer = warm.run(FULL_AT_THE_JOIN, *arguments, "60000", cwd=empty_folder)
    assert "File too large" in answer.only_error()
    assert [path.name for path in empty_folder.iterdir()] == ["out.parts"]
    assert elmo_zh(*arguments).status == 0
    assert [path.name for path in empty_folder.iterdir()] == ["out"]


def test_a_text_that_changes_while_it_is_read(
    sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = ElmoEmbedder.prepare

    def prepare_and_change(embedder: ElmoEmbedder, line: str, *, segmented: bool) -> TokenisedLine:
        if line == SEGMENTED_LINES[0]:
            source.write_bytes(source.read_bytes() + b"\xe5\xa5\xbd\n")
        return prepare(embedder, line, segmented=segmented)

    monkeypatch.setattr(ElmoEmbedder, "prepare", prepare_and_change)
    told = elmo_zh("embed", source, "--segmented", "--model", sample_run.model).only_error()
    assert told == f"{source} changed while it was read. Run the command again when no other program writes it."
    assert list(source.parent.iterdir()) == [source]


@pytest.mark.parametrize("options", [["--precision", "bfloat16"], ["--unknown", "backoff"], ["--pool", "mean"]])
def test_what_changes_vectors_is_not_changed_on_the_way(
    sample_run: SampleRun, source: Path, unfinished: Path, options: list[str]
) -> None:
    arguments = ("embed", source, "--segmented", "--model", sample_run.model, *options)
    assert elmo_zh(*arguments).only_error().startswith(f"{unfinished} holds an unfinished output of another text")
    assert elmo_zh(*arguments, "--force").status == 0
    assert options[1] == read_dump(source.with_name("file.txt.hdf5"))[2][options[0].removeprefix("--")]


MOST_KERNELS = """
import os, sys
from elmo_zh.cli import main
try:
    main()
finally:
    assert "torch" in sys.modules
    print(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"], os.environ["LRU_CACHE_CAPACITY"])
"""


def test_kernels_are_not_kept_for_every_shape(sample_run: SampleRun, source: Path, tmp_path: Path) -> None:
    arguments = ("embed", source, "--segmented", "--model", sample_run.model, "--quiet")
    assert run_python("-c", MOST_KERNELS, *arguments, cwd=tmp_path).stdout == "64 64\n"
