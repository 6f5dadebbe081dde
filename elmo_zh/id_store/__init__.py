"""The token id store: segmented text as numbers on disk, read through memory maps.

A folder of raw little-endian arrays, and `store.json` with their lengths and the vocabulary's digest:

- `train.ids`, `heldout.ids`: input ids of the words of all sentences without <S> and </S>, uint16 in token mode
  if they fit, otherwise uint32.
- `train.offsets`, `heldout.offsets`: uint64, one more than there are sentences; sentence s is
  ids[offsets[s]:offsets[s+1]].
- `heldout.characters`: uint32, number of characters in the words of each held-out sentence.
- `heldout.spelling`: float64, cost in nats of spelling the unknown words of each held-out sentence.
- `other_words.txt`: in character mode, the words outside the vocabulary, one per line, in order of first occurrence,
  training text before held-out text; the first has id V.
- `store.json`: `format` (3), `id_dtype` (<u2 or <u4), `vocabulary_digest`, the numbers of tokens, sentences and
  unknown words and, in character mode, the number of other words and the size of their file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.run.files import read_json
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import Vocabulary

STORE_FORMAT = 3
DESCRIPTION = "store.json"
OTHER_WORDS = "other_words.txt"
# The arrays of each kind of text.
ARRAYS = {"train": ("ids", "offsets"), "heldout": ("ids", "offsets", "characters", "spelling")}
_DTYPES = {"offsets": "<u8", "characters": "<u4", "spelling": "<f8"}


class EncodedSentences:
    """Sentences as word ids without <S> and </S>."""

    def __init__(self, ids: NDArray[Any], offsets: NDArray[np.uint64]) -> None:
        """Use the concatenated ids, shape (W,), and each sentence's start and the end of the last, shape (S + 1,)."""
        self._ids, self._offsets = ids, offsets
        self.num_tokens = len(ids)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return the ids of one sentence."""
        return self._ids[int(self._offsets[index]) : int(self._offsets[index + 1])]

    def lengths(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of words in each chosen sentence."""
        return (self._offsets[chosen + 1] - self._offsets[chosen]).astype(np.int64)

    def read(self, chosen: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the concatenated ids of sentences, and the length of each."""
        lengths = self.lengths(chosen)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self._ids[np.repeat(self._offsets[chosen].astype(np.int64), lengths) + within], lengths

    @property
    def num_predictions(self) -> int:
        """Number of predictions in one direction: one for each word and each sentence end."""
        return self.num_tokens + len(self)


class HeldoutSentences(EncodedSentences):
    """Held-out sentences, each with its number of characters and the cost in nats of spelling its unknown words."""

    def __init__(
        self,
        ids: NDArray[Any],
        offsets: NDArray[np.uint64],
        characters: NDArray[np.uint32],
        spelling_nats: NDArray[np.float64],
    ) -> None:
        super().__init__(ids, offsets)
        self.characters, self.spelling_nats = characters, spelling_nats


@dataclass(frozen=True)
class IdStore:
    """The training and held-out sentences of a run, and the lexicon that their ids refer to."""

    train: EncodedSentences
    heldout: HeldoutSentences
    lexicon: Lexicon


Count = Annotated[int, Meta(ge=0, lt=2**60)]


class Description(Struct):
    """The contents of store.json that are needed to read the store."""

    format: Literal[3]
    id_dtype: Literal["<u2", "<u4"]
    vocabulary_digest: str
    train_tokens: Count
    train_sentences: Count
    heldout_tokens: Count
    heldout_sentences: Count
    other_words_bytes: Count | None = None  # Size of other_words.txt; None in token mode

    def arrays(self) -> dict[str, tuple[np.dtype[Any], int]]:
        """Return the dtype and the length of each array by the name of its file."""
        sentences = {"train": self.train_sentences, "heldout": self.heldout_sentences}
        tokens = {"train": self.train_tokens, "heldout": self.heldout_tokens}
        return {
            f"{kind}.{suffix}": (
                np.dtype(_DTYPES.get(suffix, self.id_dtype)),
                tokens[kind] if suffix == "ids" else sentences[kind] + (suffix == "offsets"),
            )
            for kind, suffixes in ARRAYS.items()
            for suffix in suffixes
        }


def _again(folder: Path) -> str:
    """Return the command that writes a store again."""
    return command("encode", "--run", folder.parent, "--force")


def read_description(folder: Path) -> Description:
    """Read store.json; raise RunError if it is missing, damaged or in a different format."""
    try:
        description: Description = read_json(folder / DESCRIPTION, Description)
    except (OSError, ValueError) as error:
        raise RunError.damaged(folder / DESCRIPTION, error, _again(folder)) from None
    return description


def store_files(folder: Path) -> list[Path]:
    """Return the paths of the files of an id store."""
    description = read_description(folder)
    words = () if description.other_words_bytes is None else (OTHER_WORDS,)
    return [folder / name for name in (*description.arrays(), *words, DESCRIPTION)]


def load_id_store(folder: Path, vocabulary: Vocabulary, num_slots: int | None = None) -> IdStore:
    """Open an id store, whose arrays are memory-mapped.

    `num_slots` is None in token mode.

    Raises:
        RunError: If store.json is damaged, a file is missing or has the wrong size, or the store is for another
            vocabulary or mode.
    """
    description = read_description(folder)
    if description.vocabulary_digest != vocabulary.digest():
        raise RunError.unfit(folder, "vocab.data", _again(folder))
    if (description.other_words_bytes is not None) != (num_slots is not None):
        raise RunError.unfit(folder, "model.mode", _again(folder))
    arrays = {name: _map(folder / name, *array) for name, array in description.arrays().items()}
    other_words: list[str] = []
    if description.other_words_bytes is not None:
        _require_size(folder / OTHER_WORDS, description.other_words_bytes)
        other_words = list(iter_lines(folder / OTHER_WORDS, drop_mark=False))
    train, heldout = ([arrays[f"{kind}.{suffix}"] for suffix in suffixes] for kind, suffixes in ARRAYS.items())
    return IdStore(EncodedSentences(*train), HeldoutSentences(*heldout), Lexicon(vocabulary, num_slots, other_words))


def _map(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    _require_size(path, length * dtype.itemsize)
    if not length:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    # Slicing a plain array is several times faster than slicing a memmap.
    return np.asarray(np.memmap(path, dtype, "r", shape=(length,)))


def _require_size(path: Path, num_bytes: int) -> None:
    actual_bytes = path.stat().st_size if path.exists() else 0
    if not path.exists() or actual_bytes != num_bytes:
        raise RunError.damaged(path, f"{actual_bytes:,} != {num_bytes:,} {_('bytes')}", _again(path.parent))
