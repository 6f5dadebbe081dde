"""The token id store: segmented text as numbers on disk, read through memory maps.

A folder of raw little-endian arrays and `store.json`, which gives their lengths and the vocabulary's digest:

- `train.ids`, `heldout.ids`: word ids, uint16 where the vocabulary allows it, else uint32; no <S> or </S>.
- `train.offsets`, `heldout.offsets`: uint64, one more than sentences; sentence s is ids[offsets[s]:offsets[s+1]].
- `heldout.characters`: uint32, characters of each held-out sentence's words.
- `heldout.spelling`: float64, nats that spelling the sentence's unknown words costs.
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
from elmo_zh.reporter import Progress, Reporter
from elmo_zh.text.segment import iter_sentences
from elmo_zh.vocabulary import UNKNOWN_ID, Vocabulary

STORE_FORMAT = 1


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
    """The training and held-out sentences of a run."""

    train: EncodedSentences
    heldout: HeldoutSentences


def build_id_store(
    folder: Path,
    train_files: Iterable[Path],
    heldout_files: Iterable[Path],
    vocabulary: Vocabulary,
    spelling: SpellingModel,
    reporter: Reporter,
) -> dict[str, int]:
    """Encode segmented files into a folder, which appears whole or not at all; return its counts."""
    kind = "<u2" if len(vocabulary) <= 2**16 else "<u4"
    with atomic_path(folder) as unfinished, reporter.progress("encode", unit="tokens") as progress:
        unfinished.mkdir()
        train = _encode_files(unfinished, "train", train_files, vocabulary, kind, progress)
        heldout_files = list(heldout_files)
        heldout = _encode_files(unfinished, "heldout", heldout_files, vocabulary, kind, progress)
        _measure_heldout(unfinished, heldout_files, vocabulary, spelling)
        counts = {f"train_{k}": v for k, v in train.items()} | {f"heldout_{k}": v for k, v in heldout.items()}
        description = {"format": STORE_FORMAT, "id_dtype": kind, "vocabulary_digest": vocabulary.digest(), **counts}
        write_json(unfinished / "store.json", description)
    return counts


def _encode_files(
    folder: Path, name: str, files: Iterable[Path], vocabulary: Vocabulary, kind: str, progress: Progress
) -> dict[str, int]:
    num_tokens = num_sentences = num_unknown = 0
    with (folder / f"{name}.ids").open("wb") as ids_file, (folder / f"{name}.offsets").open("wb") as offsets_file:
        offsets_file.write(np.zeros(1, "<u8").tobytes())
        for sentence in iter_sentences(files):
            ids = vocabulary.encode(sentence)
            num_tokens += len(ids)
            num_sentences += 1
            num_unknown += ids.count(UNKNOWN_ID)
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


def load_id_store(folder: Path, vocabulary: Vocabulary) -> IdStore:
    """Open an id store without reading it into memory.

    Raises:
        RunError: If it was encoded with another vocabulary, or a file is not as long as `store.json` says.
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

    def open_array(name: str, kind: str, length: int) -> NDArray[Any]:
        path = folder / name
        expected = length * np.dtype(kind).itemsize
        found = path.stat().st_size if path.exists() else -1
        if found != expected:
            raise RunError(f"{path} has {max(found, 0)} bytes, expected {expected}. {remedy}")
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
    )


def store_files(folder: Path) -> list[Path]:
    """Return the files of an id store."""
    names = ("train.ids", "train.offsets", "heldout.ids", "heldout.offsets", "heldout.characters", "heldout.spelling")
    return [folder / name for name in (*names, "store.json")]
