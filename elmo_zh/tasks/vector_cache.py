"""Vectors of sentences, computed once and kept in float16, or per batch by a biLM that is trained too.

On disk they are one memory-mapped .npy file, so an epoch does not run the biLM. The file is in a `WorkFolder`, where
its start and the vectors of each window of sentences are parts, so an interrupted command can resume.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_zh.bundle.read import Bundle
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.model.batches import build_inputs, mark_sentence, pad_sentences
from elmo_zh.model.bilm import BiLM
from elmo_zh.run.arrays import RowFile
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.run.work_folder import Region, WorkFolder
from elmo_zh.text.windows import iter_windows

Sentence = tuple[str, ...]
_VECTORS = "vectors.npy"


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
        cls, folder: Path, embedder: ElmoEmbedder, sentences: Iterable[Sentence], reporter: Reporter | None = None
    ) -> "VectorCache":
        """Compute distinct sentences' vectors, or resume if the folder has some from the same model and sentences."""
        first_rows = number_rows(sentences)
        distinct = list(first_rows)
        num_tokens = sum(map(len, distinct))
        shape = (num_tokens + 1, embedder.num_layers, embedder.dimension)
        reporter = reporter or SilentReporter()
        work = WorkFolder(folder)
        file = _open_rows(work, shape, reporter)
        done = sum(work.finished_lines(reporter=reporter).values())
        rows_done = sum(map(len, distinct[:done]))
        with reporter.progress("vectors", unit="tokens", total=num_tokens, initial=rows_done) as progress:
            for window in iter_windows(distinct[done:], len):
                layers = [_to_float16(each) for each in embedder.compute_vectors(window)]
                written = file.write(first_rows[window[0]], np.concatenate(layers))
                work.finish_lines(done, len(window), [written])
                done += len(window)
                progress.update(sum(map(len, window)))
        vectors: Any = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        return cls(first_rows, vectors)


def _open_rows(work: WorkFolder, shape: tuple[int, ...], reporter: Reporter) -> RowFile:
    """Open the file of vectors, keeping its content if the start is valid; otherwise create it."""
    path = work.path / _VECTORS
    begun = work.figures("vectors", reporter)
    if begun and begun["bytes"] != path.stat().st_size:
        work.warn_of_damage(reporter)
        begun = None
    if not begun:
        work.remove()
        require_disk_space(path, 2 * int(np.prod(shape)))
        with atomic_path(path) as unfinished:
            RowFile.create(unfinished, np.dtype(np.float16), shape)
        _, start, num_bytes = RowFile(path).write(0, np.zeros((1, *shape[1:]), np.float16))
        work.finish("vectors", {"bytes": path.stat().st_size}, [Region(path, 0, start + num_bytes)])
    return RowFile(path)


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
