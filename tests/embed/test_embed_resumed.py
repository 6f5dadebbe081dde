"""`elmo-zh embed` that is stopped, killed or out of room, and typed again."""

import shutil
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest
from contract.command_line import SampleRun, elmo_zh, run_python
from contract.dumps import (
    SEGMENTED_LINES,
    Interrupted,
    embed,
    write_lines,
)

from elmo_zh.embed import text_tokens
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import TextBlock
from elmo_zh.embed.text_tokens import TextTokens
from elmo_zh.text.alignment import TokenisedLine

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.fixture
def options() -> list[str]:
    """Those of the output that was stopped: tests that ask for others have a parameter of this name."""
    return []


@pytest.fixture
def unfinished(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> Path:
    """The parts of an output that was stopped after four of its seven lines."""
    monkeypatch.setattr(text_tokens, "PART_LINES", 2)
    with monkeypatch.context() as during:
        Interrupted(during, after_parts=2)
        answer = elmo_zh("embed", source, "--segmented", "--model", sample_run.model, *options)
    assert answer.status == 130
    assert answer.stderr.endswith("Interrupted. Run the same command again to continue.\n")
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    assert not source.with_name("file.txt.hdf5").exists()
    return source.with_name("file.txt.hdf5.parts")


@pytest.mark.parametrize(("options", "records_lost"), [([], 0), (["--stateful"], 0), (["--stateful"], 1)])
def test_an_unfinished_output_is_continued(
    sample_run: SampleRun,
    source: Path,
    unfinished: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    records_lost: int,
) -> None:
    """A carried state goes on from the end of the last part whose record was written."""
    for record in sorted(unfinished.glob("part-*.json"))[2 - records_lost :]:
        record.unlink()
    with monkeypatch.context() as during:
        counted = Interrupted(during, after_parts=100)
        answer = embed(sample_run, source, "--segmented", "--json", *options)
    assert f"Resuming: {4 - 2 * records_lost} of 7 lines are finished." in answer.stderr.splitlines()
    assert counted.num_calls == 2 + records_lost  # of four parts
    assert not unfinished.exists()
    # Without a carried state the last bits depend on the part in which a sentence is computed.
    for name, part_lines in (("at-once", 2), ("in-one-part", 1000))[: 1 + len(options)]:
        monkeypatch.setattr(text_tokens, "PART_LINES", part_lines)
        output = source.with_name(name)
        at_once = embed(sample_run, source, "--segmented", "--json", "--output", output, *options).result()
        assert answer.result() == {**at_once, "output": f"{source}.hdf5"}
        assert Path(f"{source}.hdf5").read_bytes() == output.read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["--layers", "top"],
        ["--precision", "bfloat16"],
        ["--unknown", "unk"],
        ["--pool", "mean"],
        ["--stateful"],
    ],
)
def test_an_unfinished_output_of_another_text_or_settings_is_refused(
    sample_run: SampleRun, source: Path, unfinished: Path, changes: list[str]
) -> None:
    if not changes:
        write_lines(source, ["别的 一 句"])
    arguments = ("embed", source, "--segmented", "--model", sample_run.model, *changes)
    told = elmo_zh(*arguments).only_error()
    assert told.startswith(f"{unfinished} contains an unfinished output for a different text, model or settings. To")
    assert unfinished.exists()
    # Started anew, it is as if nothing had been there.
    assert elmo_zh(*arguments, "--force").status == 0
    assert not unfinished.exists()
    assert_as_at_once(sample_run, source, *changes)


def assert_as_at_once(sample_run: SampleRun, source: Path, *options: str) -> None:
    """The output beside the source has the bytes of one that nothing has interrupted."""
    at_once = source.with_name("at-once")
    embed(sample_run, source, "--segmented", "--output", at_once, *options)
    assert source.with_name("file.txt.hdf5").read_bytes() == at_once.read_bytes()


# What is damaged, how, how many of the four finished lines stay, and whether that is told.
DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes] | None, int, bool]] = {
    "no record": ("part-000000000000.json", None, 0, False),
    "no vectors": ("part-000000000000.npy", None, 0, True),
    "no texts": ("text-000000000000.npz", None, 4, True),
    "vectors of part 2": ("part-000000000002.npy", lambda found: flipped(found, -1), 2, True),
    "vectors of part 1": ("part-000000000000.npy", lambda found: flipped(found, -1), 0, True),
    "a page of zeros": ("part-000000000000.npy", lambda found: found[:-64] + bytes(64), 0, True),
    "a record": ("part-000000000002.json", lambda found: flipped(found, found.index(b"num_lines") + 12), 2, True),
    "half a record": ("part-000000000002.json", lambda found: found[:-9], 2, True),
    "texts": ("text-000000000002.npz", lambda found: flipped(found, len(found) // 2), 4, True),
    "a record of texts": ("text-000000000002.json", lambda found: flipped(found, len(found) // 2), 4, True),
    "tokens": ("tokens.json", lambda found: flipped(found, len(found) // 2), 4, False),
}


def flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_made_again(
    sample_run: SampleRun, source: Path, unfinished: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    name, change, num_kept, is_told = DAMAGES[damage]
    content = (unfinished / name).read_bytes()
    (unfinished / name).unlink()
    if change:
        (unfinished / name).write_bytes(change(content))
    with monkeypatch.context() as during:
        counted = Interrupted(during, after_parts=100)
        answer = embed(sample_run, source, "--segmented")
    told = f"Warning: Some finished work in {unfinished} is damaged and will be computed again."
    assert (told in answer.stderr) == is_told
    assert (f"Resuming: {num_kept} of 7 lines are finished." in answer.stderr) == (num_kept > 0)
    assert counted.num_calls == 4 - num_kept // 2
    assert_as_at_once(sample_run, source)


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
        # The first reading counts unknown words, before any vector; the second one joins.
        num_read = count(1)

        def blocks_until_stopped(tokens: TextTokens) -> Iterator[TextBlock]:
            if next(num_read) == 1:
                yield from blocks(tokens)
                return
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
        assert found.read_bytes() == expected.read_bytes()


def test_an_unfinished_output_may_end_in_another_form(sample_run: SampleRun, source: Path, unfinished: Path) -> None:
    output = source.with_name("file.txt.hdf5")
    embed(sample_run, source, "--segmented", "--layout", "packed")
    with h5py.File(output) as file:
        assert file.attrs["layout"] == "packed"
        assert len(file["line_offsets"]) == len(SEGMENTED_LINES) + 1
    assert not unfinished.exists()


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
    assert_as_at_once(sample_run, source)


def test_a_disk_that_is_too_small_is_told_before_any_vector(
    sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=5000))
    arguments = ("embed", source, "--segmented", "--model", sample_run.model)
    told = elmo_zh(*arguments).only_error()
    assert "of disk space, but only 5.0 kB is free. Free some space, or write less: --layers average" in told
    assert not list(source.parent.glob("*/part-*"))


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
    assert told.startswith(f"{source} changed while it was being read. Run the command again when no other program")
    assert list(source.parent.iterdir()) == [source]


MOST_KERNELS = """
import os, sys
from elmo_zh.cli import main
try:
    main()
finally:
    print("torch" in sys.modules, "torch._dynamo" in sys.modules)
    print(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"], os.environ["LRU_CACHE_CAPACITY"])
"""


def test_kernels_are_not_kept_for_every_shape_and_torchs_compiler_not_waited_for(
    sample_run: SampleRun, source: Path, tmp_path: Path
) -> None:
    """Importing the compiler takes more than a second, half of what one sentence from the command line takes."""
    arguments = ("embed", source, "--segmented", "--model", sample_run.model, "--quiet")
    assert run_python("-c", MOST_KERNELS, *arguments, cwd=tmp_path).stdout == "True False\n64 64\n"
