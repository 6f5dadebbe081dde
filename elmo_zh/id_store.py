"""The token id store: segmented text as numbers on disk, read through memory maps.

A folder of raw little-endian arrays and `store.json`, which gives their lengths and the vocabulary's digest:

- `train.ids`, `heldout.ids`: input ids of words, uint16 where they allow it, else uint32; no <S> or </S>.
- `train.offsets`, `heldout.offsets`: uint64, one more than sentences; sentence s is ids[offsets[s]:offsets[s+1]].
- `heldout.characters`: uint32, characters of each held-out sentence's words.
- `heldout.spelling`: float64, nats that spelling the sentence's unknown words costs.
- `other_words.txt`: in character mode, the words outside the vocabulary, one a line; the first has id V.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.characters import SpellingModel
from elmo_zh.errors import RunError
from elmo_zh.files import atomic_path, write_json
from elmo_zh.lexicon import Lexicon
from elmo_zh.reporter import Progress, Reporter
from elmo_zh.text.corpus import iter_lines
from elmo_zh.text.segment import iter_sentences
from elmo_zh.vocabulary import Vocabulary

STORE_FORMAT = 1
OTHER_WORDS = "other_words.txt"


@dataclass(frozen=True)
class EncodedSentences:
    """Sentences as word ids.

    Attributes:
        ids: All sentences one after another, shape (num_tokens,).
        offsets: Where each begins, and the end, shape (num_sentences + 1,).
    """

    ids: NDArray[Any]
    offsets: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return the ids of one sentence."""
        return self.ids[int(self.offsets[index]) : int(self.offsets[index + 1])]

    @property
    def num_tokens(self) -> int:
        """Words in all sentences, without <S> and </S>."""
        return len(self.ids)

    @property
    def num_predictions(self) -> int:
        """Predictions of one direction: each word and each sentence end."""
        return self.num_tokens + len(self)


@dataclass(frozen=True)
class HeldoutSentences(EncodedSentences):
    """Held-out sentences with what bits per character needs.

    Attributes:
        characters: Characters of each sentence's words, shape (num_sentences,).
        spelling_nats: Cost of spelling each sentence's unknown words, shape (num_sentences,).
    """

    characters: NDArray[np.uint32]
    spelling_nats: NDArray[np.float64]


@dataclass(frozen=True)
class IdStore:
    """The training and held-out sentences of a run, and what their ids stand for."""

    train: EncodedSentences
    heldout: HeldoutSentences
    lexicon: Lexicon


def build_id_store(
    folder: Path,
    train_files: Iterable[Path],
    heldout_files: Iterable[Path],
    lexicon: Lexicon,
    spelling: SpellingModel,
    reporter: Reporter,
) -> dict[str, int]:
    """Encode segmented files into a folder, which appears whole or not at all; return its counts."""
    vocabulary = lexicon.vocabulary
    # In character mode there is no telling beforehand how many words there are outside the vocabulary.
    kind = "<u2" if len(vocabulary) <= 2**16 and lexicon.num_slots is None else "<u4"
    with atomic_path(folder) as unfinished, reporter.progress("encode", unit="tokens") as progress:
        unfinished.mkdir()
        train = _encode_files(unfinished, "train", train_files, lexicon, kind, progress)
        heldout_files = list(heldout_files)
        heldout = _encode_files(unfinished, "heldout", heldout_files, lexicon, kind, progress)
        _measure_heldout(unfinished, heldout_files, vocabulary, spelling)
        counts = {f"train_{k}": v for k, v in train.items()} | {f"heldout_{k}": v for k, v in heldout.items()}
        if lexicon.num_slots is not None:
            counts["other_words"] = len(lexicon.other_words)
            with (unfinished / OTHER_WORDS).open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\n" for word in lexicon.other_words)
            counts["other_words_bytes"] = (unfinished / OTHER_WORDS).stat().st_size
        description = {"format": STORE_FORMAT, "id_dtype": kind, "vocabulary_digest": vocabulary.digest(), **counts}
        write_json(unfinished / "store.json", description)
    return counts


def _encode_files(
    folder: Path, name: str, files: Iterable[Path], lexicon: Lexicon, kind: str, progress: Progress
) -> dict[str, int]:
    num_tokens = num_sentences = num_unknown = 0
    with (folder / f"{name}.ids").open("wb") as ids_file, (folder / f"{name}.offsets").open("wb") as offsets_file:
        offsets_file.write(np.zeros(1, "<u8").tobytes())
        for sentence in iter_sentences(files):
            ids = lexicon.encode(sentence)
            num_tokens += len(ids)
            num_sentences += 1
            num_unknown += sum(token not in lexicon.vocabulary for token in sentence)
            ids_file.write(np.asarray(ids, kind).tobytes())
            offsets_file.write(num_tokens.to_bytes(8, "little"))
            progress.update(len(ids))
    return {"tokens": num_tokens, "sentences": num_sentences, "unknown": num_unknown}


def _measure_heldout(folder: Path, files: Iterable[Path], vocabulary: Vocabulary, spelling: SpellingModel) -> None:
    characters, nats = [], []
    for sentence in iter_sentences(files):
        characters.append(sum(len(token) for token in sentence))
        nats.append(sum(spelling.nats(token) for token in sentence if token not in vocabulary))
    (folder / "heldout.characters").write_bytes(np.asarray(characters, "<u4").tobytes())
    (folder / "heldout.spelling").write_bytes(np.asarray(nats, "<f8").tobytes())


def load_id_store(folder: Path, vocabulary: Vocabulary, num_slots: int | None = None) -> IdStore:
    """Open an id store without reading it into memory.

    Args:
        folder: Its folder.
        vocabulary: The run's.
        num_slots: Character slots of each word; None in token mode.

    Raises:
        RunError: If it was encoded with another vocabulary or for the other mode, or a file is not as long as
            `store.json` says.
    """
    remedy = f"Make it again with: elmo-zh encode --run {folder.parent} --force"
    try:
        description = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}/store.json cannot be read ({error}). {remedy}") from None
    if description.get("format") != STORE_FORMAT or description.get("id_dtype") not in ("<u2", "<u4"):
        raise RunError(f"{folder} is not an id store of format {STORE_FORMAT}. {remedy}")
    if description["vocabulary_digest"] != vocabulary.digest():
        raise RunError(
            f"{folder} was encoded with another vocabulary ({description['vocabulary_digest'][:19]}...,"
            f" vocab.data is {vocabulary.digest()[:19]}...). {remedy}"
        )

    if ("other_words_bytes" in description) != (num_slots is not None):
        raise RunError(f"{folder} was encoded for the other model.mode. {remedy}")

    def require_size(path: Path, expected: int) -> Path:
        found = path.stat().st_size if path.exists() else 0
        if found != expected or not path.exists():
            raise RunError(f"{path} has {found} bytes, expected {expected}. {remedy}")
        return path

    other_words: list[str] = []
    if num_slots is not None:
        path = require_size(folder / OTHER_WORDS, description["other_words_bytes"])
        other_words = list(iter_lines(path, drop_mark=False))

    def open_array(name: str, kind: str, length: int) -> NDArray[Any]:
        path = require_size(folder / name, length * np.dtype(kind).itemsize)
        # An empty file cannot be mapped.
        return np.memmap(path, kind, "r", shape=(length,)) if length else np.zeros(0, kind)

    def open_sentences(name: str) -> tuple[NDArray[Any], NDArray[np.uint64]]:
        ids = open_array(f"{name}.ids", description["id_dtype"], description[f"{name}_tokens"])
        return ids, open_array(f"{name}.offsets", "<u8", description[f"{name}_sentences"] + 1)

    num_heldout = description["heldout_sentences"]
    characters = open_array("heldout.characters", "<u4", num_heldout)
    spelling = open_array("heldout.spelling", "<f8", num_heldout)
    return IdStore(
        EncodedSentences(*open_sentences("train")),
        HeldoutSentences(*open_sentences("heldout"), characters, spelling),
        Lexicon(vocabulary, num_slots, other_words),
    )


def store_files(folder: Path) -> list[Path]:
    """Return the files of an id store, that of the other words where there is one."""
    names = ("train.ids", "train.offsets", "heldout.ids", "heldout.offsets", "heldout.characters", "heldout.spelling")
    optional = [folder / OTHER_WORDS] if (folder / OTHER_WORDS).exists() else []
    return [*(folder / name for name in (*names, "store.json")), *optional]
