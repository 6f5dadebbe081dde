"""The token id store against bytes and numbers worked out by hand."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from messages import message_of

from elmo_zh.corpus.text_files import iter_sentences
from elmo_zh.errors import RunError
from elmo_zh.id_store import ARRAYS, IdStore, load_id_store, store_files
from elmo_zh.id_store.build import EncodeJob
from elmo_zh.run.job import run_job
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

VOCABULARY = Vocabulary((*SPECIALS, "好", "天", "苹果"))
SPELLING = SpellingModel({"坏": 2, "</W>": 3})
TRAIN = ["天 好 好\n\n", "苹果 <S> 坏\n好\n"]
COUNTS = {
    "train_tokens": 7, "train_sentences": 4, "train_unknown": 2,
    "heldout_tokens": 6, "heldout_sentences": 4, "heldout_unknown": 3,
}  # fmt: skip
HELDOUT = ["好 天\n", "苹果 坏 <UNK>\n\n坏\n"]


def write_texts(folder: Path, kind: str, texts: Sequence[str]) -> list[Path]:
    paths = [folder / f"{kind}-{number:05d}.txt" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8", newline="")
    return paths


def build_of(
    folder: Path,
    train: Sequence[Path],
    heldout: Sequence[Path] = (),
    vocabulary: Vocabulary = VOCABULARY,
    num_slots: int | None = None,
) -> dict[str, int]:
    vocabulary.save(folder / "vocab.data")
    SPELLING.save(folder / "character_counts.tsv")
    job = EncodeJob(
        files={"train": train, "heldout": heldout},
        vocabulary=folder / "vocab.data",
        character_counts=folder / "character_counts.tsv",
        num_slots=num_slots,
        output=folder / "ids",
    )
    return run_job(job, force=False, reporter=SilentReporter())


def build(folder: Path, vocabulary: Vocabulary = VOCABULARY, num_slots: int | None = None) -> dict[str, int]:
    train, heldout = write_texts(folder, "train", TRAIN), write_texts(folder, "heldout", HELDOUT)
    return build_of(folder, train, heldout, vocabulary, num_slots)


def load(folder: Path, vocabulary: Vocabulary = VOCABULARY, num_slots: int | None = None) -> IdStore:
    return load_id_store(folder / "ids", vocabulary, num_slots)


def problem_of(attempt: Callable[[], object], folder: Path, path: Path) -> str:
    """Return what is wrong with a file, without the next step, which is the same in all messages."""
    message = message_of(RunError, attempt)
    assert message.startswith(f"{path} is damaged (")
    assert message.endswith(f"elmo-zh encode --run {folder} --force")
    return message


def test_sentences_and_counts(tmp_path: Path) -> None:
    assert build(tmp_path) == COUNTS
    store = load(tmp_path)
    assert [store.train[s].tolist() for s in range(len(store.train))] == [[4, 3, 3], [], [5, 2, 2], [3]]
    assert [store.heldout[s].tolist() for s in range(len(store.heldout))] == [[3, 4], [5, 2, 2], [], [2]]
    assert (store.train.num_tokens, store.train.num_predictions) == (7, 11)
    assert (store.heldout.num_tokens, store.heldout.num_predictions) == (6, 10)


def test_characters_and_spelling_of_heldout_text(tmp_path: Path) -> None:
    build(tmp_path)
    heldout = load(tmp_path).heldout
    assert heldout.characters.tolist() == [2, 8, 0, 1]
    # 8 slots: 5 counted symbols, plus one for each of two symbols and one for unseen ones. 坏 3, end 4, unseen 1.
    bad, end, unseen = math.log(8 / 3), math.log(8 / 4), math.log(8 * 1_112_064)
    np.testing.assert_allclose(heldout.spelling_nats, [0, bad + 5 * unseen + 2 * end, 0, bad + end])


def little_endian(num_bytes: int, *numbers: int) -> bytes:
    return b"".join(number.to_bytes(num_bytes, "little") for number in numbers)


def test_the_files_byte_by_byte(tmp_path: Path) -> None:
    build(tmp_path)
    folder = tmp_path / "ids"
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in store_files(folder))
    assert (folder / "train.ids").read_bytes() == little_endian(2, 4, 3, 3, 5, 2, 2, 3)
    assert (folder / "heldout.offsets").read_bytes() == little_endian(8, 0, 2, 5, 5, 6)
    assert (folder / "heldout.characters").read_bytes() == little_endian(4, 2, 8, 0, 1)
    assert len((folder / "heldout.spelling").read_bytes()) == 8 * 4
    assert json.loads((folder / "store.json").read_text(encoding="utf-8")) == {
        "format": 3,
        "id_dtype": "<u2",
        "vocabulary_digest": VOCABULARY.digest(),
        **COUNTS,
    }


@pytest.mark.parametrize(("rows", "kind"), [(2**16, "<u2"), (2**16 + 1, "<u4")])
def test_ids_are_as_wide_as_the_vocabulary_needs(tmp_path: Path, rows: int, kind: str) -> None:
    words = [*SPECIALS, *(f"{number}" for number in range(3, rows - 1)), "好"]
    vocabulary = Vocabulary(words)
    build(tmp_path, vocabulary)
    train = load(tmp_path, vocabulary).train
    assert train[0].dtype == np.dtype(kind)
    assert [train[s].tolist() for s in range(4)] == [[2, rows - 1, rows - 1], [], [2, 2, 2], [rows - 1]]


def test_many_sentences_at_once(tmp_path: Path) -> None:
    build(tmp_path)
    train = load(tmp_path).train
    assert train.lengths(np.array([3, 0, 2, 1, 0])).tolist() == [1, 3, 3, 0, 3]
    assert train.lengths(np.zeros(0, np.int64)).tolist() == []
    ids, lengths = train.read(np.array([0, 1, 3]))
    assert (ids.tolist(), lengths.tolist()) == ([4, 3, 3, 3], [3, 0, 1])
    ids, lengths = train.read(np.arange(4))
    assert (ids.tolist(), lengths.tolist()) == ([4, 3, 3, 5, 2, 2, 3], [3, 0, 3, 1])


@pytest.mark.parametrize("name", [f"{k}.{s}" for k, ss in ARRAYS.items() for s in ss])
def test_a_file_of_another_length(tmp_path: Path, name: str) -> None:
    build(tmp_path)
    path = tmp_path / "ids" / name
    content = path.read_bytes()
    for other in (content[:-1], content + b"\0", None):
        path.write_bytes(other) if other is not None else path.unlink()
        assert f"!= {len(content)} bytes" in problem_of(lambda: load(tmp_path), tmp_path, path)


def test_a_description_that_is_missing_damaged_or_of_another_format(tmp_path: Path) -> None:
    build(tmp_path)
    path = tmp_path / "ids" / "store.json"
    description = path.read_text(encoding="utf-8")
    for old, new in (
        (description[13:], ""),
        ('"format": 3', '"format": 2'),
        (description, "[]"),
        ("<u2", "<f2"),
        ("train_tokens", "xrain_tokens"),
        ('train_tokens": 7', 'train_tokens": -7'),
        ('train_tokens": 7', 'train_tokens": "7"'),
        ('train_sentences": 4', 'train_sentences": 1e9'),
        ('train_tokens": 7', f'train_tokens": {10**30}'),
    ):
        assert old in description
        path.write_text(description.replace(old, new), encoding="utf-8")
        problem_of(lambda: load(tmp_path), tmp_path, path)
    path.unlink()
    problem_of(lambda: load(tmp_path), tmp_path, path)


SLOTS = 7
OTHER_WORDS = "<S>\n坏\n<UNK>\n"


def test_in_character_mode_words_outside_the_vocabulary_have_ids_above_it(tmp_path: Path) -> None:
    assert build(tmp_path, num_slots=SLOTS) == {**COUNTS, "other_words": 3, "other_words_bytes": 14}
    store = load(tmp_path, num_slots=SLOTS)
    assert [store.train[s].tolist() for s in range(len(store.train))] == [[4, 3, 3], [], [5, 6, 7], [3]]
    assert [store.heldout[s].tolist() for s in range(len(store.heldout))] == [[3, 4], [5, 7, 8], [], [7]]
    assert store.lexicon.other_words == ["<S>", "坏", "<UNK>"]
    assert store.lexicon.targets(store.heldout[1]).tolist() == [5, 2, 2]
    bad = [258, 0xE5, 0x9D, 0x8F, 259, 260, 260]
    assert store.lexicon.character_ids(store.heldout[3]).tolist() == [bad]

    folder = tmp_path / "ids"
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in store_files(folder))
    assert (folder / "other_words.txt").read_bytes() == OTHER_WORDS.encode()
    assert (folder / "heldout.ids").read_bytes() == little_endian(4, 3, 4, 5, 7, 8, 7)
    description = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    assert (description["id_dtype"], description["other_words"]) == ("<u4", 3)


def drawn_texts(folder: Path, num_files: int) -> list[Path]:
    """Text with extra spaces, empty lines, and many words that are in more than one file."""
    random = np.random.default_rng(7)
    texts = []
    for number in range(num_files):
        words = [["好", "天", "苹果", "", " ", "<UNK>"][k] if k < 6 else f"词{k}" for k in random.zipf(1.4, 5000) % 997]
        ends = random.choice([" ", " ", " ", "  ", "\n", "\r\n", " \n"], len(words))
        texts.append("".join(word + end for word, end in zip(words, ends, strict=True)) + "末" * (number % 2))
    return write_texts(folder, "train", texts)


@pytest.mark.parametrize("num_slots", [None, SLOTS])
def test_the_store_is_what_one_sentence_after_another_gives(
    tmp_path: Path, num_slots: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of a few bytes, so that they end anywhere."""
    monkeypatch.setattr("elmo_zh.corpus.text_files.BLOCK_BYTES", 101)
    paths = drawn_texts(tmp_path, 3)
    build_of(tmp_path, paths[:2], paths[2:], num_slots=num_slots)
    store = load(tmp_path, num_slots=num_slots)
    oracle = Lexicon(VOCABULARY, num_slots)
    expected = [oracle.encode(sentence) for sentence in iter_sentences(paths)]
    found = [kind[s].tolist() for kind in (store.train, store.heldout) for s in range(len(kind))]
    assert found == expected
    assert store.lexicon.other_words == oracle.other_words
    heldout = list(iter_sentences(paths[2:]))
    assert store.heldout.characters.tolist() == [sum(map(len, words)) for words in heldout]
    assert store.heldout.spelling_nats.tolist() == [
        sum(SPELLING.nats(word) for word in words if word not in VOCABULARY) for words in heldout
    ]
