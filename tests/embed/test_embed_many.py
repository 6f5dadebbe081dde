"""`elmo-zh embed` of several files, and of shares of one that `elmo-zh merge` joins."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import SampleRun, elmo_zh
from contract.dumps import SEGMENTED_TOKENS, embed, read_dump, write_lines

from elmo_zh.embed import dump
from elmo_zh.embed.shard_digest import write_digest

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.fixture
def texts(empty_folder: Path) -> Path:
    folder = empty_folder / "texts"
    (folder / "sub").mkdir(parents=True)
    write_lines(folder / "a.txt", ["我 吃 苹果", "", "好"])
    write_lines(folder / "sub" / "a.txt", ["春天 的 花"])
    (folder / "b.txt.gz").write_bytes(gzip.compress("我 吃 花\n".encode()))
    (folder / "picture.png").touch()
    return folder


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_to_a_folder_of_the_same_shape(sample_run: SampleRun, texts: Path) -> None:
    result = embed(sample_run, "texts", "--segmented", "--output", "out", "--json").result()
    assert files_below(Path("out")) == ["a.txt.hdf5", "b.txt.gz.hdf5", "sub/a.txt.hdf5"]
    assert read_dump(Path("out/a.txt.hdf5"))[1] == [["我", "吃", "苹果"], [], ["好"]]
    assert read_dump(Path("out/b.txt.gz.hdf5"))[1] == [["我", "吃", "花"]]
    assert (result["lines"], result["tokens"], result["empty_lines"], result["skipped"]) == (5, 10, 1, [])
    assert [each["lines"] for each in result["outputs"]] == [3, 1, 1]


def test_outputs_that_are_there_are_passed_over(sample_run: SampleRun, texts: Path) -> None:
    embed(sample_run, "texts", "--segmented")
    kept = {path: path.stat().st_mtime_ns for path in texts.rglob("*.hdf5")}
    (texts / "a.txt.hdf5").unlink()
    answer = embed(sample_run, "texts", "--segmented", "--json")
    assert answer.result()["skipped"] == ["texts/b.txt.gz.hdf5", "texts/sub/a.txt.hdf5"]
    assert "texts/b.txt.gz.hdf5 exists already, so texts/b.txt.gz is skipped." in answer.stderr
    assert {path for path in kept if path.stat().st_mtime_ns != kept[path]} == {texts / "a.txt.hdf5"}
    assert embed(sample_run, "texts", "--segmented", "--json", "--force").result()["skipped"] == []


def test_tokens_of_an_earlier_output_are_no_text(sample_run: SampleRun, texts: Path) -> None:
    for skipped in (0, 3):
        result = embed(sample_run, "texts", "--segmented", "--format", "npy", "--json").result()
        assert len(result["skipped"]) == skipped
        assert len(result["outputs"]) == 3 - skipped


def test_two_texts_that_would_have_one_output(sample_run: SampleRun, texts: Path) -> None:
    arguments = ("embed", texts / "a.txt", texts / "sub" / "a.txt", "--model", sample_run.model, "--output", "out")
    assert "would both be written to out/a.txt.hdf5." in elmo_zh(*arguments).only_error()
    assert not Path("out").exists()
    Path("file").touch()
    told = elmo_zh(*arguments[:-1], "file").only_error()
    assert told == "file is a file. With several texts --output has to be a folder."


def test_stdin_is_embedded_alone(sample_run: SampleRun, texts: Path) -> None:
    assert elmo_zh("embed", "-", texts, "--model", sample_run.model).status == 2
    told = elmo_zh("embed", "-", "--model", sample_run.model, stdin="好的。\n".encode() + b"\xb0\n").only_error()
    assert told.startswith("stdin: line 2, byte 10 (0xb0) is not UTF-8.")


def test_a_folder_of_something_else_is_never_replaced(sample_run: SampleRun, texts: Path) -> None:
    arguments = ("embed", texts / "a.txt", "--model", sample_run.model, "--output", "texts", "--force")
    for form in ("npy", "hdf5"):
        told = elmo_zh(*arguments, "--format", form).only_error()
        assert told == "texts is a folder with other content. Choose another --output."
    assert len(files_below(texts)) == 4
    embed(sample_run, texts / "a.txt", "--format", "npy", "--output", "mine")
    embed(sample_run, texts / "a.txt", "--format", "npy", "--output", "mine", "--force", "--layers", "top")
    assert np.load("mine/vectors.npy").ndim == 2


def test_what_it_tells_before_and_after(sample_run: SampleRun, source: Path) -> None:
    answer = embed(sample_run, source, "--segmented", "--layers", "average", "--dtype", "float16")
    expected = (
        r"file\.txt: 7 lines, 28 tokens; 784 bytes of vectors \(average, float16\), .* of disk space needed, .* free\n"
    )
    assert re.search(expected, answer.stderr)
    assert (
        "32.1% of the words are unknown, most often 春天 (1), '花\\u3000开' (1), 美 (1), '一行\\u2028两行' (1),"
        in answer.stdout
    )
    assert answer.stdout.count("\n") == 2


@pytest.fixture
def shards(sample_run: SampleRun, source: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(dump, "PART_LINES", 2)
    for number in (2, 1, 3):
        result = embed(sample_run, source, "--segmented", "--shard", f"{number}/3", "--json").result()
        assert result["lines"] == {1: 2, 2: 2, 3: 3}[number]
    return [source.with_name(f"file.txt.hdf5.shard-{number}-of-3") for number in (1, 2, 3)]


@pytest.mark.parametrize("options", [[], ["--layout", "packed"], ["--format", "npy"], ["--format", "jsonl"]])
def test_shards_become_the_whole(
    sample_run: SampleRun, source: Path, shards: list[Path], tmp_path: Path, options: list[str]
) -> None:
    assert sorted(tmp_path.iterdir()) == [source, *shards]
    merged = elmo_zh("merge", *shards[::-1], "--output", "merged", "--json", *options).result()
    whole = embed(sample_run, source, "--segmented", "--output", "whole", "--json", *options).result()
    assert whole.pop("model")["path"] == str(sample_run.model)
    assert {**merged, "output": ""} == {**whole, "output": ""}
    if options == ["--format", "npy"]:
        for path in Path("whole").iterdir():
            if path.name == "vectors.npy":
                np.testing.assert_allclose(np.load(Path("merged", path.name)), np.load(path), rtol=0, atol=1e-6)
            else:
                assert Path("merged", path.name).read_bytes() == path.read_bytes()
    elif not options:
        assert Path("merged").read_bytes() == Path("whole").read_bytes()
        (found, tokens, attributes), (vectors, _, expected) = read_dump(Path("merged")), read_dump(Path("whole"))
        assert (tokens, attributes) == (list(SEGMENTED_TOKENS), expected)
        for vector, other in zip(found, vectors, strict=True):
            np.testing.assert_allclose(vector, other, rtol=0, atol=1e-6)
    elif "packed" in options:
        with h5py.File("merged") as file, h5py.File("whole") as other:
            assert set(file) == set(other)
            assert dict(file.attrs) == dict(other.attrs)
            np.testing.assert_array_equal(file["line_offsets"], other["line_offsets"])


def sealed(path: Path, change: Callable[[h5py.File], object]) -> None:
    """Change a shard and give it the digest of what it then holds, as somebody who means harm would."""
    with h5py.File(path, "r+") as file:
        change(file)
    write_digest(path)


def described(**changes: object) -> Callable[[h5py.File], object]:
    def change(file: h5py.File) -> None:
        file.attrs["shard"] = json.dumps({**json.loads(file.attrs["shard"]), **changes})

    return change


def replaced(name: str, values: Callable[[Any], Any]) -> Callable[[h5py.File], object]:
    def change(file: h5py.File) -> None:
        changed = values(file[name][()])
        del file[name]
        file.create_dataset(name, data=changed)

    return change


def linked(file: h5py.File) -> None:
    del file["unknown"]
    file["unknown"] = h5py.ExternalLink("file.txt.hdf5.shard-1-of-3", "unknown")


CHANGES: list[Callable[[h5py.File], object]] = [
    described(number="2"),
    described(number=[]),
    described(total_lines=8),
    described(total_lines=-7),
    described(of=[]),
    described(of={}),
    described(counts={}),
    described(counts={"lines": 2, "tokens": "a"}),
    described(counts={"lines": 2, "tokens": 3}),
    described(another=1),
    replaced("tokens", lambda tokens: tokens[:-1]),
    replaced("tokens", lambda tokens: np.arange(len(tokens))),
    replaced("unknown", lambda unknown: unknown[:, None]),
    replaced("vectors", lambda vectors: vectors[..., :-1, :]),
    replaced("vectors", lambda vectors: vectors.astype(np.float64)),
    replaced("vectors", lambda vectors: vectors[0, 0]),
    replaced("line_offsets", lambda offsets: offsets[::-1]),
    replaced("line_offsets", lambda offsets: offsets - 1),
    replaced("line_offsets", lambda offsets: offsets.astype(float)),
    lambda file: file.attrs.update(first_line=3),
    lambda file: file.attrs.update(first_line="a"),
    lambda file: file.attrs.update(shard="[" * 200_000),
    lambda file: file.attrs.update(shard=7),
    lambda file: file.attrs.create("segmenter", b"\x8d", dtype=h5py.string_dtype("utf-8")),
    linked,
]


def test_shards_that_embed_did_not_write(shards: list[Path]) -> None:
    whole = shards[1].read_bytes()
    for change in CHANGES:
        shards[1].write_bytes(whole)
        sealed(shards[1], change)
        told = elmo_zh("merge", *shards, "--output", "merged").only_error()
        assert told == (
            f"{shards[1]} is damaged: it is not as `embed --shard` wrote it. Copy it again, or make it again."
        )
        assert not Path("merged").exists()


def test_every_byte_of_a_shard_counts(shards: list[Path]) -> None:
    whole = shards[1].read_bytes()
    for place in range(0, len(whole), len(whole) // 17):
        changed = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        shards[1].write_bytes(changed)
        answer = elmo_zh("merge", *shards, "--output", "merged")
        assert shards[1].read_bytes() == changed, place
        assert answer.status == 1, (place, answer)
        assert answer.only_error().startswith((f"{shards[1]} is damaged: ", f"{shards[1]} is not a shard. "))
    shards[1].write_bytes(whole)
    sealed(shards[1], lambda _: None)
    assert shards[1].read_bytes() == whole


def test_the_output_of_a_merge_has_the_common_name(source: Path, shards: list[Path]) -> None:
    assert elmo_zh("merge", *shards, "--json").result()["output"] == str(source.with_name("file.txt.hdf5"))
    told = elmo_zh("merge", *shards).only_error()
    assert told.endswith("file.txt.hdf5 exists already. Choose another --output, or replace it with --force.")


def test_more_shards_than_lines(sample_run: SampleRun, empty_folder: Path) -> None:
    write_lines(Path("file.txt"), ["好 吃"])
    for number in (1, 2):
        embed(sample_run, "file.txt", "--segmented", "--shard", f"{number}/2")
    assert elmo_zh("merge", *sorted(empty_folder.glob("*.shard-*"))).status == 0
    assert read_dump(Path("file.txt.hdf5"))[1] == [["好", "吃"]]


def test_shards_that_do_not_make_a_whole(sample_run: SampleRun, source: Path, shards: list[Path]) -> None:
    told = elmo_zh("merge", *shards[:2]).only_error()
    assert told.startswith("1 of 3 shards are missing: 3/3. Make them with: elmo-zh embed ... --shard 3/3")
    told = elmo_zh("merge", *shards, shards[1]).only_error()
    assert told.startswith(f"{shards[1]} and {shards[1]} are the same shard of the text.")
    assert elmo_zh("merge", source).only_error().startswith(f"{source} is not a shard.")
    assert elmo_zh("merge", "nowhere").only_error().startswith("nowhere does not exist or is not a file.")
    embed(sample_run, source, "--segmented", "--shard", "2/3", "--force", "--layers", "top")
    told = elmo_zh("merge", *shards).only_error()
    assert told == f"{shards[0]} and {shards[1]} do not belong together: they differ in layers."
    write_lines(source, ["一 二"] * 9)
    embed(sample_run, source, "--segmented", "--shard", "2/3", "--force")
    told = elmo_zh("merge", *shards).only_error()
    assert told == f"{shards[0]} and {shards[1]} do not belong together: they differ in source_digest."
    assert not source.with_name("file.txt.hdf5").exists()


def test_the_form_of_a_shard_is_chosen_when_it_is_merged(sample_run: SampleRun, source: Path) -> None:
    answer = elmo_zh("embed", source, "--shard", "1/2", "--format", "npy", "--model", sample_run.model)
    assert answer.status == 2
    assert "elmo-zh merge" in answer.stderr
