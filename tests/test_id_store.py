"""The token id store against bytes and numbers worked out by hand."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from messages import message_of

from elmo_zh.characters import SpellingModel
from elmo_zh.errors import RunError
from elmo_zh.id_store import IdStore, build_id_store, load_id_store, store_files
from elmo_zh.lexicon import Lexicon
from elmo_zh.reporter import SilentReporter
from elmo_zh.vocabulary import SPECIALS, Vocabulary

VOCABULARY = Vocabulary((*SPECIALS, "好", "天", "苹果"))
SPELLING = SpellingModel({"坏": 2, "</W>": 3})
TRAIN = ["天 好 好\n\n", "苹果 <S> 坏\n好\n"]
HELDOUT = ["好 天\n", "苹果 坏 <UNK>\n\n坏\n"]


def build(folder: Path, vocabulary: Vocabulary = VOCABULARY, num_slots: int | None = None) -> dict[str, int]:
    paths: dict[str, list[Path]] = {"train": [], "heldout": []}
    for kind, texts in (("train", TRAIN), ("heldout", HELDOUT)):
        for number, text in enumerate(texts):
            paths[kind].append(folder / f"{kind}-{number}.txt")
            paths[kind][-1].write_text(text, encoding="utf-8")
    # Iterators, since that is what is asked for: they can be gone through once only.
    return build_id_store(
        folder / "ids",
        iter(paths["train"]),
        iter(paths["heldout"]),
        Lexicon(vocabulary, num_slots),
        SPELLING,
        SilentReporter(),
    )


def load(folder: Path, vocabulary: Vocabulary = VOCABULARY, num_slots: int | None = None) -> IdStore:
    return load_id_store(folder / "ids", vocabulary, num_slots)


def problem_of(attempt: Callable[[], object], folder: Path) -> str:
    """The problem without the remedy, which is the same for all."""
    message = message_of(RunError, attempt)
    remedy = f" Make it again with: elmo-zh encode --run {folder} --force"
    assert message.endswith(remedy)
    return message.removesuffix(remedy)


def test_sentences_and_counts(tmp_path: Path) -> None:
    assert build(tmp_path) == {
        "train_tokens": 7,
        "train_sentences": 4,
        "train_unknown": 2,
        "heldout_tokens": 6,
        "heldout_sentences": 4,
        "heldout_unknown": 3,
    }
    store = load(tmp_path)
    assert [store.train[s].tolist() for s in range(len(store.train))] == [[4, 3, 3], [], [5, 2, 2], [3]]
    assert [store.heldout[s].tolist() for s in range(len(store.heldout))] == [[3, 4], [5, 2, 2], [], [2]]
    assert (store.train.num_tokens, store.train.num_predictions) == (7, 11)
    assert (store.heldout.num_tokens, store.heldout.num_predictions) == (6, 10)


def test_characters_and_spelling_of_heldout_text(tmp_path: Path) -> None:
    build(tmp_path)
    heldout = load(tmp_path).heldout
    assert heldout.characters.tolist() == [2, 8, 0, 1]
    # 8 slots: 5 counted symbols, one more for each of two and for the unseen ones. 坏 3, end 4, unseen 1.
    bad, end, unseen = math.log(8 / 3), math.log(8 / 4), math.log(8 * 1_112_064)
    np.testing.assert_allclose(heldout.spelling_nats, [0, bad + 5 * unseen + 2 * end, 0, bad + end])


def test_the_files_byte_by_byte(tmp_path: Path) -> None:
    build(tmp_path)
    folder = tmp_path / "ids"
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in store_files(folder))
    assert (folder / "train.ids").read_bytes() == bytes([4, 0, 3, 0, 3, 0, 5, 0, 2, 0, 2, 0, 3, 0])
    assert (folder / "heldout.offsets").read_bytes() == b"".join(n.to_bytes(8, "little") for n in (0, 2, 5, 5, 6))
    assert (folder / "heldout.characters").read_bytes() == b"".join(n.to_bytes(4, "little") for n in (2, 8, 0, 1))
    assert json.loads((folder / "store.json").read_text(encoding="utf-8")) == {
        "format": 1,
        "id_dtype": "<u2",
        "vocabulary_digest": VOCABULARY.digest(),
        "train_tokens": 7,
        "train_sentences": 4,
        "train_unknown": 2,
        "heldout_tokens": 6,
        "heldout_sentences": 4,
        "heldout_unknown": 3,
    }


@pytest.mark.parametrize(("rows", "kind"), [(2**16, "<u2"), (2**16 + 1, "<u4")])
def test_ids_are_as_wide_as_the_vocabulary_needs(tmp_path: Path, rows: int, kind: str) -> None:
    words = [*SPECIALS, *(f"{number}" for number in range(3, rows - 1)), "好"]
    vocabulary = Vocabulary(words)
    build(tmp_path, vocabulary)
    ids = load(tmp_path, vocabulary).train.ids
    assert ids.dtype == np.dtype(kind)
    assert ids.tolist() == [2, rows - 1, rows - 1, 2, 2, 2, rows - 1]


def test_arrays_are_mapped_and_not_read(tmp_path: Path) -> None:
    build(tmp_path)
    store = load(tmp_path)
    for array in (store.train.ids, store.train.offsets, store.heldout.characters, store.heldout.spelling_nats):
        assert isinstance(array, np.memmap)
        assert array.mode == "r"


def test_without_heldout_text(tmp_path: Path) -> None:
    train = tmp_path / "train.txt"
    train.write_text("好\n", encoding="utf-8")
    build_id_store(tmp_path / "ids", [train], [], Lexicon(VOCABULARY, None), SPELLING, SilentReporter())
    store = load(tmp_path)
    assert (len(store.heldout), store.heldout.num_tokens, store.heldout.num_predictions) == (0, 0, 0)
    assert len(store.heldout.characters) == len(store.heldout.spelling_nats) == 0


def test_a_failure_leaves_the_old_store(tmp_path: Path) -> None:
    build(tmp_path)
    with pytest.raises(FileNotFoundError):
        build_id_store(
            tmp_path / "ids", [], [tmp_path / "none.txt"], Lexicon(VOCABULARY, None), SPELLING, SilentReporter()
        )
    assert len(load(tmp_path).train) == 4
    assert not list(tmp_path.glob("*.unfinished"))


def test_another_vocabulary(tmp_path: Path) -> None:
    build(tmp_path)
    other = Vocabulary((*SPECIALS, "好", "苹果", "天"))
    assert problem_of(lambda: load(tmp_path, other), tmp_path) == (
        f"{tmp_path / 'ids'} was encoded with another vocabulary ({VOCABULARY.digest()[:19]}...,"
        f" vocab.data is {other.digest()[:19]}...)."
    )


@pytest.mark.parametrize("name", [path.name for path in store_files(Path()) if path.name != "store.json"])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_of_another_length(tmp_path: Path, name: str, change: int) -> None:
    build(tmp_path)
    path = tmp_path / "ids" / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] if change < 0 else content + b"\0")
    expected = f"{path} has {len(content) + change} bytes, expected {len(content)}."
    assert problem_of(lambda: load(tmp_path), tmp_path) == expected


def test_a_missing_file(tmp_path: Path) -> None:
    build(tmp_path)
    (tmp_path / "ids" / "train.ids").unlink()
    assert problem_of(lambda: load(tmp_path), tmp_path) == f"{tmp_path / 'ids' / 'train.ids'} has 0 bytes, expected 14."


def test_a_description_that_is_missing_damaged_or_of_another_format(tmp_path: Path) -> None:
    build(tmp_path)
    path = tmp_path / "ids" / "store.json"
    description = path.read_text(encoding="utf-8")
    path.write_text(description[:13], encoding="utf-8")
    assert problem_of(lambda: load(tmp_path), tmp_path).startswith(f"{path} cannot be read (")
    path.write_text(description.replace('"format": 1', '"format": 2'), encoding="utf-8")
    assert problem_of(lambda: load(tmp_path), tmp_path) == f"{tmp_path / 'ids'} is not an id store of format 1."
    path.unlink()
    assert problem_of(lambda: load(tmp_path), tmp_path).startswith(f"{path} cannot be read (")


SLOTS = 7
OTHER_WORDS = "<S>\n坏\n<UNK>\n"


def test_in_character_mode_words_outside_the_vocabulary_have_ids_above_it(tmp_path: Path) -> None:
    assert build(tmp_path, num_slots=SLOTS) == {
        "train_tokens": 7,
        "train_sentences": 4,
        "train_unknown": 2,
        "heldout_tokens": 6,
        "heldout_sentences": 4,
        "heldout_unknown": 3,
        "other_words": 3,
        "other_words_bytes": 14,
    }
    store = load(tmp_path, num_slots=SLOTS)
    assert [store.train[s].tolist() for s in range(len(store.train))] == [[4, 3, 3], [], [5, 6, 7], [3]]
    assert [store.heldout[s].tolist() for s in range(len(store.heldout))] == [[3, 4], [5, 7, 8], [], [7]]
    assert store.lexicon.other_words == ["<S>", "坏", "<UNK>"]
    assert store.lexicon.targets(store.heldout[1]).tolist() == [5, 2, 2]
    bad = [258, 0xE5, 0x9D, 0x8F, 259, 260, 260]
    assert store.lexicon.character_ids(store.heldout[3]).tolist() == [bad]


def test_in_character_mode_figures_of_heldout_text_are_the_same(tmp_path: Path) -> None:
    build(tmp_path)
    by_token = load(tmp_path).heldout
    build(tmp_path, num_slots=SLOTS)
    by_character = load(tmp_path, num_slots=SLOTS).heldout
    assert by_character.characters.tolist() == by_token.characters.tolist()
    assert by_character.spelling_nats.tolist() == by_token.spelling_nats.tolist()
    assert by_character.num_predictions == by_token.num_predictions


def test_the_files_of_character_mode(tmp_path: Path) -> None:
    build(tmp_path, num_slots=SLOTS)
    folder = tmp_path / "ids"
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in store_files(folder))
    assert (folder / "other_words.txt").read_bytes() == OTHER_WORDS.encode()
    assert (folder / "heldout.ids").read_bytes() == b"".join(n.to_bytes(4, "little") for n in (3, 4, 5, 7, 8, 7))
    description = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    assert (description["id_dtype"], description["other_words"]) == ("<u4", 3)


def test_in_character_mode_without_words_outside_the_vocabulary(tmp_path: Path) -> None:
    train = tmp_path / "train.txt"
    train.write_text("好 苹果\n", encoding="utf-8")
    build_id_store(tmp_path / "ids", [train], [], Lexicon(VOCABULARY, SLOTS), SPELLING, SilentReporter())
    store = load(tmp_path, num_slots=SLOTS)
    assert store.train[0].tolist() == [3, 5]
    assert store.lexicon.other_words == []


@pytest.mark.parametrize("encoded_for", [None, SLOTS])
def test_a_store_of_the_other_mode(tmp_path: Path, encoded_for: int | None) -> None:
    build(tmp_path, num_slots=encoded_for)
    wanted = None if encoded_for else SLOTS
    expected = f"{tmp_path / 'ids'} was encoded for the other model.mode."
    assert problem_of(lambda: load(tmp_path, num_slots=wanted), tmp_path) == expected


@pytest.mark.parametrize("content", ["", "<S>\n坏\n", OTHER_WORDS[:-3], f"{OTHER_WORDS}\n"])
def test_other_words_of_another_length(tmp_path: Path, content: str) -> None:
    """Cut off after a word or within one, too: the last word would be another one then."""
    build(tmp_path, num_slots=SLOTS)
    path = tmp_path / "ids" / "other_words.txt"
    path.write_text(content, encoding="utf-8")
    expected = f"{path} has {len(content.encode())} bytes, expected 14."
    assert problem_of(lambda: load(tmp_path, num_slots=SLOTS), tmp_path) == expected


def test_other_words_that_are_missing(tmp_path: Path) -> None:
    build(tmp_path, num_slots=SLOTS)
    path = tmp_path / "ids" / "other_words.txt"
    path.unlink()
    assert problem_of(lambda: load(tmp_path, num_slots=SLOTS), tmp_path) == f"{path} has 0 bytes, expected 14."
