"""Train CBOW and skip-gram with negative sampling in torch, so that gensim is not needed.

The code follows gensim's Word2Vec (Mikolov et al. 2013): the same initial vectors, subsampling of frequent words,
random window widths, noise distribution and linear decay of the learning rate. Unlike gensim, it changes the tables
once per batch, and a word's context ends with its block: G blocks of K consecutive words make a batch.

The words of a block share M negative samples, each weighted negative / M, so that the expected gradient stays the same
(after Ji et al. 2016, "Parallelizing Word2Vec in Shared and Distributed Memory"). A K x K matrix for each block says
which words are context for which. Memory: two tables of V x dimension float32, and buffers for one chunk of text.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.text_files import iter_sentences
from elmo_zh.run.reporter import Progress
from elmo_zh.vocabulary.vocabulary import END_ID, SPECIALS, Vocabulary
from elmo_zh.word2vec.vectors import TrainingJob

# Words that share negative samples, and how many they share. Fewer samples make a noisier gradient, more take longer.
BLOCK_WORDS = 128
BLOCK_NEGATIVES = 64
_MOST_BATCH_WORDS = 2048
# A row's gradients within a batch all come from the same, slightly old vectors. Too many of them overshoot.
_MOST_ROW_UPDATES = 128
# From Mikolov et al. 2013; gensim's defaults too.
_SUBSAMPLING = 1e-3
_NOISE_EXPONENT = 0.75
_FIRST_LEARNING_RATE = 0.025
_LAST_LEARNING_RATE = 0.0001
_CHUNK_IDS = 2**18


@dataclass(frozen=True)
class Batch:
    """G blocks of K consecutive words of the text."""

    word_ids: Tensor  # Rows of the words, int64, shape (G, K); 0 in padding
    sentence_numbers: Tensor  # Differ between neighbouring sentences and padded places, int32, shape (G, K)
    widths: Tensor  # How many words on either side are a word's context, 1 to the window, int32, shape (G, K)
    negative_ids: Tensor  # Rows of each block's negative samples, int64, shape (G, M)

    def context(self) -> Tensor:
        """Return 1 where the second word is in the context of the first, else 0, float32, shape (G, K, K)."""
        places = torch.arange(self.word_ids.shape[1])
        distances = (places[:, None] - places).abs()
        is_same = self.sentence_numbers[:, :, None] == self.sentence_numbers[:, None]
        return (is_same & (distances > 0) & (distances <= self.widths[:, :, None])).float()


class BatchSampler:
    """Draws a text's batches from one random generator; the same text and seed give the same batches."""

    def __init__(self, counts: NDArray[np.int64], config: Word2vecConfig, generator: np.random.Generator) -> None:
        self._generator = generator
        self._window = config.window
        relative = counts / (_SUBSAMPLING * counts.sum())
        with np.errstate(divide="ignore"):
            kept = np.where(counts > 0, np.minimum(1, (np.sqrt(relative) + 1) / relative), 0)
        self._kept = kept.astype(np.float32)
        noise = counts**_NOISE_EXPONENT / (counts**_NOISE_EXPONENT).sum()
        self._noise = np.cumsum(noise)
        # Rounding may leave the last number above or below 1, but no draw may land beyond the last row.
        self._noise[np.flatnonzero(counts)[-1] :] = 1
        share = counts * kept / (counts * kept).sum()
        most_updates = float((share + config.negative * noise).max())
        self._num_blocks = max(1, int(min(_MOST_BATCH_WORDS, _MOST_ROW_UPDATES / most_updates)) // BLOCK_WORDS)

    def batches(self, ids: NDArray[np.int32]) -> Iterator[Batch]:
        """Subsample a text's word rows, with END_ID after each sentence, and yield batches; pad the last block."""
        sentence_numbers = np.cumsum(ids == END_ID, dtype=np.int32)
        is_kept = self._generator.random(len(ids), np.float32) < self._kept[ids]
        word_ids, sentence_numbers = ids[is_kept].astype(np.int64), sentence_numbers[is_kept]
        num_padded = -len(word_ids) % BLOCK_WORDS
        word_ids = np.pad(word_ids, (0, num_padded))
        sentence_numbers = np.concatenate([sentence_numbers, np.arange(-num_padded, 0, dtype=np.int32)])
        widths = self._generator.integers(1, self._window + 1, len(word_ids), np.int32)
        draws = self._generator.random((len(word_ids) // BLOCK_WORDS, BLOCK_NEGATIVES))
        negative_ids = np.searchsorted(self._noise, draws, side="right")
        blocks = [values.reshape(-1, BLOCK_WORDS) for values in (word_ids, sentence_numbers, widths)]
        for start in range(0, len(negative_ids), self._num_blocks):
            of_batch = slice(start, start + self._num_blocks)
            yield Batch(*(torch.from_numpy(values[of_batch]) for values in (*blocks, negative_ids)))


class NegativeSampling:
    """The two tables of word2vec, each (V, P): `inputs`, the result, trained in place; `outputs`, zero at first."""

    def __init__(self, inputs: Tensor, negative: int) -> None:
        self.inputs = inputs
        self.outputs = torch.zeros_like(inputs)
        self._negative = negative

    def train_cbow(self, batch: Batch, learning_rate: float) -> None:
        """Predict each word from the mean of its context, whose words get the mean's gradient."""
        inputs, predicted, negatives = self._vectors(batch)
        is_context = batch.context()
        # Words without context have the mean 0, and so all steps are 0.
        means = torch.bmm(is_context / is_context.sum(2, keepdim=True).clamp_(min=1), inputs)
        positive_steps = learning_rate * torch.linalg.vecdot(means, predicted)[..., None].neg().sigmoid_()
        # A word is never a negative sample for itself.
        is_wrong = batch.word_ids[:, :, None] != batch.negative_ids[:, None]
        negative_steps = torch.bmm(means, negatives.mT).sigmoid_().mul_(is_wrong) * self._rate(batch, learning_rate)
        mean_steps = torch.baddbmm(positive_steps * predicted, negative_steps, negatives)
        input_steps = torch.bmm(is_context.mT, mean_steps)
        self._add(batch, input_steps, positive_steps * means, torch.bmm(negative_steps.mT, means))

    def train_skipgram(self, batch: Batch, learning_rate: float) -> None:
        """Predict each word from each word in its context."""
        inputs, predicted, negatives = self._vectors(batch)
        is_context_of = batch.context().mT
        positive_steps = learning_rate * is_context_of * torch.bmm(inputs, predicted.mT).neg_().sigmoid_()
        # For each input and sample, the number of the input's predictions for which the sample is a wrong answer.
        num_wrong = torch.bmm(is_context_of, (batch.word_ids[:, :, None] != batch.negative_ids[:, None]).float())
        negative_steps = torch.bmm(inputs, negatives.mT).sigmoid_().mul_(num_wrong) * self._rate(batch, learning_rate)
        input_steps = torch.bmm(positive_steps, predicted).baddbmm_(negative_steps, negatives)
        output_steps = torch.bmm(positive_steps.mT, inputs)
        self._add(batch, input_steps, output_steps, torch.bmm(negative_steps.mT, inputs))

    def _vectors(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return the input and output vectors of a batch's words and the output vectors of its samples."""
        return self.inputs[batch.word_ids], self.outputs[batch.word_ids], self.outputs[batch.negative_ids]

    def _rate(self, batch: Batch, learning_rate: float) -> float:
        return -learning_rate * self._negative / batch.negative_ids.shape[1]

    def _add(self, batch: Batch, input_steps: Tensor, output_steps: Tensor, sample_steps: Tensor) -> None:
        """Add steps for the words and samples of a batch to their rows; a row may occur several times."""
        rows = torch.cat((batch.word_ids.flatten(), batch.negative_ids.flatten()))
        values = torch.cat((output_steps.flatten(0, 1), sample_steps.flatten(0, 1)))
        # With an expanded index torch sorts the rows, and adds whole ones.
        self.outputs.scatter_add_(0, rows[:, None].expand_as(values), values)
        values = input_steps.flatten(0, 1)
        self.inputs.scatter_add_(0, batch.word_ids.view(-1, 1).expand_as(values), values)


@torch.inference_mode()
def train_rows(job: TrainingJob, progress: Progress) -> NDArray[np.float32]:
    """Train word2vec, and return the vectors of the job's rows, float32, shape (len(job.rows), dimension)."""
    config, generator = job.config, np.random.default_rng(job.config.seed)
    word_counts = np.array(job.counts, np.int64)
    word_counts[: len(SPECIALS)] = 0
    initial = generator.random((len(job.vocabulary), job.dimension), np.float32)
    initial *= 2
    initial -= 1
    initial /= job.dimension
    if not len(job.rows):
        return initial[job.rows]
    sampler = BatchSampler(word_counts, config, generator)
    model = NegativeSampling(torch.from_numpy(initial), config.negative)
    train = model.train_cbow if config.algorithm == "cbow" else model.train_skipgram
    num_tokens, finished_tokens = job.num_tokens, 0
    with _one_thread():
        for _ in range(config.epochs):
            for ids in _iter_chunks(job.files, job.vocabulary):
                chunk_tokens = int(np.count_nonzero(ids != END_ID))
                batches = list(sampler.batches(ids))
                for number, batch in enumerate(batches):
                    fraction = (finished_tokens + chunk_tokens * number / len(batches)) / num_tokens
                    train(batch, _FIRST_LEARNING_RATE + (_LAST_LEARNING_RATE - _FIRST_LEARNING_RATE) * min(fraction, 1))
                finished_tokens += chunk_tokens
                progress.update(chunk_tokens)
    return model.inputs.numpy()[job.rows]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit torch to one thread: threads that wait for each other after each small operation are slower."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


def _iter_chunks(files: Sequence[Path], vocabulary: Vocabulary) -> Iterator[NDArray[np.int32]]:
    """Yield the text's ids, with END_ID after each sentence, in chunks of about `_CHUNK_IDS` ids."""
    ids: list[int] = []
    for sentence in iter_sentences(files):
        ids += vocabulary.encode(sentence)
        ids.append(END_ID)
        if len(ids) >= _CHUNK_IDS:
            yield np.array(ids, np.int32)
            ids.clear()
    yield np.array(ids, np.int32)
