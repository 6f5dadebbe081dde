"""Vectors of sentences, computed once and kept in float16, or per batch by a biLM that is trained too.

On disk they are one memory-mapped .npy file, so an epoch does not run the biLM. It is joined from parts in the work
folder of a job, each with the vectors of a window of sentences, so an interrupted command can resume.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_zh.bundle.read import Bundle
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.token_layer import build_inputs, pad_sentences
from elmo_zh.reader.lstm import mark_sentence
from elmo_zh.run.arrays import load_npy, save_npy, write_header
from elmo_zh.run.files import require_disk_space
from elmo_zh.run.job import Files, FinishedPart, Step, Work
from elmo_zh.text.sentences import WINDOW_ITEMS, iter_windows

Sentence = tuple[str, ...]


class _SentenceRows:
    """Finds the rows of a sentence's tokens, given the row of its first token."""

    first_rows: dict[Sentence, int]

    def rows(self, sentences: Iterable[Sentence]) -> NDArray[np.int64]:
        """Return the rows of all tokens in the sentences, int64, shape (m,)."""
        ranges = [np.arange(len(tokens)) + self.first_rows[tokens] for tokens in sentences]
        return np.concatenate([np.zeros(0, np.int64), *ranges]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class VectorCache(_SentenceRows):
    """The vectors of distinct sentences, in memory or memory-mapped."""

    first_rows: dict[Sentence, int]  # row of the first token of each sentence
    # All layers of all tokens, float16, shape (N + 1, L + 1, 2P); row 0 is zero for units without a token
    vectors: NDArray[np.float16]

    def take(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the vectors at the given rows, shape (B, T), as float32, shape (L + 1, B, T, 2P)."""
        return torch.from_numpy(self.vectors[rows]).movedim(2, 0).float()

    @classmethod
    def in_memory(cls, embedder: ElmoEmbedder, sentences: Iterable[Sentence]) -> "VectorCache":
        """Compute the vectors of a few sentences, without a file."""
        first_rows = number_rows(sentences)
        shape = (embedder.num_layers, embedder.dimension)
        vectors = [np.zeros((1, *shape), np.float16)]
        for layers in embedder.compute_vectors(list(first_rows)):
            vectors.append(_to_float16(layers))
        return cls(first_rows, np.concatenate(vectors))

    @classmethod
    def on_disk(
        cls, work: Work, embedder: ElmoEmbedder, sentences: Iterable[Sentence], *, most_sentences: int = WINDOW_ITEMS
    ) -> "VectorCache":
        """Compute distinct sentences' vectors, or continue with those in the work, made from the same sentences."""
        first_rows = number_rows(sentences)
        joined = work.finished("join")
        if not joined:
            num_tokens = sum(map(len, first_rows))
            shape = (num_tokens + 1, embedder.num_layers, embedder.dimension)
            require_disk_space(work.path / "vectors", 4 * int(np.prod(shape)))
            step = Step(name="vectors", compute=_Vectors(embedder), unit="tokens", size=int, total=num_tokens)
            parts = list(work.run(step, iter_windows(first_rows, len, most_items=most_sentences)))
            joined = list(work.run(Step(name="join", compute=_Join(shape, parts)), [None]))
            work.discard("vectors")
        vectors: Any = np.load(joined[0].file("npy"), mmap_mode="r", allow_pickle=False)
        return cls(first_rows, vectors)


@dataclass(frozen=True)
class _Vectors:
    embedder: ElmoEmbedder

    def __call__(self, window: Sequence[Sentence], files: Files) -> int:
        """Write the vectors of some sentences; return the number of tokens."""
        vectors = np.concatenate([_to_float16(layers) for layers in self.embedder.compute_vectors(window)])
        with files.file("npy") as path:
            save_npy(path, vectors)
        return len(vectors)


@dataclass(frozen=True)
class _Join:
    shape: tuple[int, ...]
    parts: Sequence[FinishedPart]

    def __call__(self, _: None, files: Files) -> None:
        """Write all vectors as one array, with the zeros of row 0 first."""
        with files.file("npy") as path, path.open("wb") as file:
            write_header(file, np.float16, self.shape)
            file.write(np.zeros(self.shape[1:], np.float16).data)
            for part in self.parts:
                file.write(load_npy(part.file("npy")).data)


def number_rows(sentences: Iterable[Sentence]) -> dict[Sentence, int]:
    """Map each distinct sentence to the row of its first token; row 0 is for units without a token."""
    rows: dict[Sentence, int] = {}
    row = 1
    for tokens in sentences:
        if tokens not in rows:
            rows[tokens] = row
            row += len(tokens)
    return rows


def _to_float16(layers: NDArray[Any]) -> NDArray[np.float16]:
    """Return the layers (L + 1, n, 2P) arranged by token, float16, shape (n, L + 1, 2P)."""
    return np.ascontiguousarray(layers.transpose(1, 0, 2)).astype(np.float16)


class LiveVectors(_SentenceRows):
    """Computes sentence vectors for each batch, with gradients for thawed layers.

    One layer thaws per epoch, from the top down (Howard and Ruder 2018, gradual unfreezing): in the first epoch only
    the network learns, in the second also the top LSTM layer, and so on down to the token layer. `bilm` is a copy of
    the bundle's biLM on the CPU.
    """

    def __init__(self, bundle: Bundle, sentences: Iterable[Sentence]) -> None:
        """Copy a bundle's biLM to the CPU, and number the tokens of all sentences."""
        self.bilm: BiLM = copy.deepcopy(bundle.bilm).cpu()
        if self.bilm.shape.characters is None:
            # The optimiser and gradient clipping need dense gradients.
            self.bilm.token_table.has_sparse_gradient = False
        self._original = {name: value.clone() for name, value in self.bilm.state_dict().items()}
        self._lexicon = bundle.build_lexicon()
        self.first_rows = number_rows(sentences)
        self._starts = np.array(list(self.first_rows.values()), np.int64)
        self._ids = [mark_sentence(self._lexicon.encode(tokens)) for tokens in self.first_rows]

    def reset(self) -> None:
        """Restore the bundle's weights."""
        self.bilm.load_state_dict(self._original)

    def thaw(self, epoch: int) -> None:
        """Thaw the layers that learn in an epoch, with epochs counted from 1."""
        layers: list[nn.Module] = [*reversed(self.bilm.lstm_layers()), self.bilm.token_layer]
        for number, layer in enumerate(layers):
            layer.requires_grad_(number < epoch - 1)

    def take(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the vectors at the given rows, shape (B, T), as float32, shape (L + 1, B, T, 2P); row 0 is zero."""
        shape = self.bilm.shape
        there = rows > 0
        if not there.any():
            return torch.zeros(shape.num_layers + 1, *rows.shape, 2 * shape.projection_dim)
        numbers = np.searchsorted(self._starts, rows[there], "right") - 1
        used, sentence_of = np.unique(numbers, return_inverse=True)
        layers = self._compute([self._ids[number] for number in used])
        # The first token of a sentence comes after <S>.
        places = rows[there] - self._starts[numbers] + 1
        found = layers.new_zeros(len(layers), *rows.shape, layers.shape[-1])
        found[:, torch.from_numpy(there)] = layers[:, torch.from_numpy(sentence_of), torch.from_numpy(places)]
        return found

    def _compute(self, sentences: list[NDArray[np.int64]]) -> Tensor:
        """Return all layers of sentences with boundary markers, shape (L + 1, S, T + 2, 2P)."""
        learns = torch.is_grad_enabled() and any(each.requires_grad for each in self.bilm.parameters())
        with torch.set_grad_enabled(learns):
            ids, mask = pad_sentences(sentences)
            token_vectors = self.bilm.encode_tokens(build_inputs(self._lexicon, ids))
            return self.bilm.read_sentences(token_vectors, mask, self.bilm.start_state(len(mask)))[0]
