"""Train CBOW and skip-gram with negative sampling in torch, on all cores and without a compiler.

The code follows gensim's Word2Vec (Mikolov et al. 2013): the same initial vectors, subsampling of frequent words,
random window widths, noise distribution and linear decay of the learning rate. Unlike gensim, it changes the tables
once per batch.

A part of a batch is G blocks of K consecutive words. The words of a block share M negative samples, each weighted
negative / M, so that the expected gradient stays the same (after Ji et al. 2016, "Parallelizing Word2Vec in Shared and
Distributed Memory"). A band matrix for each block says which words are context for which: K words by their X = K + 2 *
window neighbours, with 0 across the ends of sentences. So a table's row is read and written once per word.

Threads compute the parts of a batch side by side, each operation on one thread, so the result does not depend on the
number of threads. Memory: two tables of V x dimension float32, and buffers for one chunk of text.
"""

import operator
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

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
BLOCK_WORDS = 64
BLOCK_NEGATIVES = 32
# Number of blocks in a part, which one thread computes. Text is cut between parts, so more parts lose more context.
_PART_BLOCKS = 4
_MOST_BATCH_WORDS = 2048
# A row's gradients within a batch all come from the same, slightly old vectors. Too many of them overshoot.
_MOST_ROW_UPDATES = 128
# From Mikolov et al. 2013; gensim's defaults too.
_SUBSAMPLING = 1e-3
_NOISE_EXPONENT = 0.75


@dataclass(frozen=True)
class Part:
    """A part of a batch: consecutive words of the text, in G blocks of K."""

    word_ids: Tensor  # Rows of the words, int64, shape (G * K,); 0 in padding
    # Numbers that differ between neighbouring sentences and between padded places, int32, same shape.
    sentence_numbers: Tensor
    widths: Tensor  # How many words on either side are a word's context, from 1 to the window, int32, same shape
    negative_ids: Tensor  # Rows of the negative samples of each block, int64, shape (G, M)


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
        num_blocks = max(1, int(min(_MOST_BATCH_WORDS, _MOST_ROW_UPDATES / most_updates)) // BLOCK_WORDS)
        self._part_blocks = min(_PART_BLOCKS, num_blocks)
        self._num_parts = num_blocks // self._part_blocks

    def batches(self, ids: NDArray[np.int32]) -> list[list[Part]]:
        """Divide a text's word rows, with END_ID after each sentence, into batches of padded parts of equal size."""
        sentence_numbers = np.cumsum(ids == END_ID, dtype=np.int32)
        is_kept = self._generator.random(len(ids), np.float32) < self._kept[ids]
        part_words = self._part_blocks * BLOCK_WORDS
        word_ids, sentence_numbers = ids[is_kept].astype(np.int64), sentence_numbers[is_kept]
        num_padded = -len(word_ids) % part_words
        word_ids = np.pad(word_ids, (0, num_padded))
        sentence_numbers = np.concatenate([sentence_numbers, np.arange(-num_padded, 0, dtype=np.int32)])
        widths = self._generator.integers(1, self._window + 1, len(word_ids), np.int32)
        draws = self._generator.random((len(word_ids) // BLOCK_WORDS, BLOCK_NEGATIVES))
        negative_ids = np.searchsorted(self._noise, draws, side="right")
        if not len(word_ids):
            return []
        arrays = (
            *(values.reshape(-1, part_words) for values in (word_ids, sentence_numbers, widths)),
            negative_ids.reshape(-1, self._part_blocks, BLOCK_NEGATIVES),
        )
        parts = [Part(*of_part) for of_part in zip(*map(torch.from_numpy, arrays), strict=True)]
        return [parts[start : start + self._num_parts] for start in range(0, len(parts), self._num_parts)]


@dataclass(frozen=True)
class Steps:
    """The changes that a part adds to the tables."""

    part: Part
    inputs: Tensor  # Changes to the input vectors of the part's words, G * K * P numbers in any shape
    outputs: Tensor  # Changes to the output vectors of the part's words, as many numbers
    samples: Tensor  # Changes to the output vectors of the part's negative samples, G * M * P numbers


class NegativeSampling:
    """The two tables of word2vec, each (V, P): `inputs`, the result, trained in place; `outputs`, zero at first."""

    def __init__(self, inputs: Tensor, window: int, negative: int) -> None:
        self.inputs = inputs
        self.outputs = torch.zeros_like(inputs)
        self._window = window
        self._negative = negative
        self._distances = _distances(BLOCK_WORDS, window)

    def cbow_steps(self, part: Part, learning_rate: float) -> Steps:
        """Return the steps for predicting a word from the mean of its context, whose words get the mean's gradient."""
        shape = (*_blocks(part), self.inputs.shape[1])
        negative_ids, num_words = part.negative_ids, shape[1]
        is_context, is_context_of = self._context(part)
        num_context = is_context.sum(2, keepdim=True).clamp_(min=1)
        padded_inputs, inputs = self._padded(shape)
        torch.index_select(self.inputs, 0, part.word_ids, out=inputs)
        # Words without context have the mean 0, and so all steps are 0.
        means = torch.bmm(is_context.div_(num_context), self._with_neighbours(padded_inputs, num_words))  # (G, K, P)
        predicted = self.outputs.index_select(0, part.word_ids).view(shape)
        negatives = self._negatives(negative_ids)
        positive_steps = torch.linalg.vecdot(means, predicted)[..., None].neg_().sigmoid_().mul_(learning_rate)
        negative_steps = torch.bmm(means, negatives.mT).sigmoid_()
        negative_steps *= -learning_rate * self._negative / negative_ids.shape[1]
        # A word is never a negative sample for itself.
        negative_steps.masked_fill_(part.word_ids.view(*shape[:2], 1) == negative_ids[:, None], 0)
        padded_steps, mean_steps = self._padded(shape)
        torch.baddbmm(predicted.mul_(positive_steps), negative_steps, negatives, out=mean_steps.view(shape))
        input_steps = torch.bmm(is_context_of, self._with_neighbours(padded_steps, num_words))
        sample_steps = torch.bmm(negative_steps.mT, means)
        return Steps(part, input_steps, means.mul_(positive_steps), sample_steps)

    def skipgram_steps(self, part: Part, learning_rate: float) -> Steps:
        """Return the steps for predicting a word from each word in its context, with the context word's negatives."""
        shape = (*_blocks(part), self.inputs.shape[1])
        negative_ids, num_words = part.negative_ids, shape[1]
        _, is_context_of = self._context(part)
        inputs = self.inputs.index_select(0, part.word_ids).view(shape)
        padded_outputs, outputs = self._padded(shape)
        torch.index_select(self.outputs, 0, part.word_ids, out=outputs)
        predicted = self._with_neighbours(padded_outputs, num_words)  # (G, X, P)
        negatives = self._negatives(negative_ids)
        positive_steps = torch.bmm(inputs, predicted.mT).neg_().sigmoid_().mul_(is_context_of).mul_(learning_rate)
        # For each input and sample, the number of the input's predictions for which the sample is a wrong answer.
        neighbour_ids = self._with_neighbours(self._with_margins(part.word_ids), num_words)
        num_wrong = torch.bmm(is_context_of, (neighbour_ids[..., None] != negative_ids[:, None]).float())
        negative_steps = torch.bmm(inputs, negatives.mT).sigmoid_().mul_(num_wrong)
        negative_steps *= -learning_rate * self._negative / negative_ids.shape[1]
        input_steps = torch.bmm(positive_steps, predicted).baddbmm_(negative_steps, negatives)
        output_steps = self._sums_over_blocks(torch.bmm(positive_steps.mT, inputs))
        return Steps(part, input_steps, output_steps, torch.bmm(negative_steps.mT, inputs))

    def add_to_inputs(self, steps: Sequence[Steps]) -> None:
        """Apply the steps of a batch's parts to the input table."""
        _add_rows(self.inputs, [(of_part.part.word_ids, of_part.inputs) for of_part in steps])

    def add_to_outputs(self, steps: Sequence[Steps]) -> None:
        """Apply the steps of a batch's parts to the output table."""
        of_words = [(of_part.part.word_ids, of_part.outputs) for of_part in steps]
        of_samples = [(of_part.part.negative_ids, of_part.samples) for of_part in steps]
        _add_rows(self.outputs, [*of_words, *of_samples])

    def _negatives(self, negative_ids: Tensor) -> Tensor:
        return self.outputs.index_select(0, negative_ids.view(-1)).view(*negative_ids.shape, -1)

    def _context(self, part: Part) -> tuple[Tensor, Tensor]:
        """Return two masks, (G, K, X): the neighbours in a word's context, and those whose context has the word."""
        num_blocks, num_words = _blocks(part)
        distances = self._distances if num_words == BLOCK_WORDS else _distances(num_words, self._window)
        sentences = self._with_neighbours(self._with_margins(part.sentence_numbers, fill=-1), num_words)
        is_same = sentences[:, None] == part.sentence_numbers.view(num_blocks, num_words, 1)
        widths = part.widths.view(num_blocks, num_words, 1)
        neighbour_widths = self._with_neighbours(self._with_margins(part.widths), num_words)[:, None]
        return ((distances <= widths) & is_same).float(), ((distances <= neighbour_widths) & is_same).float()

    def _with_margins(self, values: Tensor, fill: int = 0) -> Tensor:
        """Return values, shape (G * K,), with a window full of `fill` added on each side."""
        margin = values.new_full((self._window,), fill)
        return torch.cat((margin, values, margin))

    def _padded(self, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
        """Return an array for G * K vectors with a window of zeros on each side, and a view between the zeros."""
        num_rows = shape[0] * shape[1]
        whole = self.inputs.new_empty(num_rows + 2 * self._window, shape[2])
        whole[: self._window] = 0
        whole[num_rows + self._window :] = 0
        return whole, whole[self._window : num_rows + self._window]

    def _with_neighbours(self, padded: Tensor, num_words: int) -> Tensor:
        """Return each block with its neighbours as overlapping views: shape (G, X), or (G, X, P) for vectors."""
        blocks = padded.unfold(0, num_words + 2 * self._window, num_words)
        return blocks if blocks.ndim == 2 else blocks.mT

    def _sums_over_blocks(self, values: Tensor) -> Tensor:
        """Return, for each word, the sum over its entries in all blocks that include it: (G, X, P) to (G * K, P)."""
        num_blocks, num_neighbours, dimension = values.shape
        num_words = num_neighbours - 2 * self._window
        sums = values.new_zeros(num_blocks * num_words + 2 * self._window, dimension)
        for start in range(0, num_neighbours, num_words):
            part = values[:, start : start + num_words]
            size = (num_blocks, part.shape[1], dimension)
            sums.as_strided(size, (num_words * dimension, dimension, 1), start * dimension).add_(part)
        return sums[self._window : -self._window]


def _distances(num_words: int, window: int) -> Tensor:
    """Return each word's distance from its neighbours, shape (K, X); its distance from itself is beyond any window."""
    distances = torch.arange(num_words, dtype=torch.int32)[:, None] - torch.arange(-window, num_words + window)
    return distances.abs_().masked_fill_(distances == 0, torch.iinfo(torch.int32).max).int()


def _blocks(part: Part) -> tuple[int, int]:
    num_blocks = len(part.negative_ids)
    return num_blocks, len(part.word_ids) // num_blocks


def _add_rows(table: Tensor, steps: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Add values to rows of a table in the given order; a row may occur several times."""
    rows = torch.cat([rows.reshape(-1, 1) for rows, _ in steps])
    values = torch.cat([of_rows.reshape(-1, table.shape[1]) for _, of_rows in steps])
    # With an expanded index torch sorts the rows, and adds whole ones.
    table.scatter_add_(0, rows.expand_as(values), values)


# gensim's defaults.
_FIRST_LEARNING_RATE = 0.025
_LAST_LEARNING_RATE = 0.0001
_CHUNK_IDS = 2**18


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
    model = NegativeSampling(torch.from_numpy(initial), config.window, config.negative)
    steps_of_part = model.cbow_steps if config.algorithm == "cbow" else model.skipgram_steps
    num_tokens, finished_tokens = job.num_tokens, 0
    with _encoded(job.files, job.vocabulary) as file, _single_threads() as compute:
        for _ in range(config.epochs):
            file.seek(0)
            while content := file.read(_CHUNK_IDS * np.dtype(np.int32).itemsize):
                ids = np.frombuffer(content, np.int32).copy()
                chunk_tokens = int(np.count_nonzero(ids != END_ID))
                batches = sampler.batches(ids)
                for number, parts in enumerate(batches):
                    fraction = (finished_tokens + chunk_tokens * number / len(batches)) / num_tokens
                    rate = _FIRST_LEARNING_RATE + (_LAST_LEARNING_RATE - _FIRST_LEARNING_RATE) * min(fraction, 1)
                    steps = compute(partial(steps_of_part, learning_rate=rate), parts)
                    compute(operator.call, [partial(model.add_to_inputs, steps), partial(model.add_to_outputs, steps)])
                finished_tokens += chunk_tokens
                progress.update(chunk_tokens)
    return model.inputs.numpy()[job.rows]


# Applies a function to each item and returns the results in order.
_Compute = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


@contextmanager
def _single_threads() -> Iterator[_Compute]:
    """Yield a function that maps another over items on as many threads as torch has, each operation on one thread.

    Threads that wait for each other after each small operation lose more than they gain.
    """
    num_threads = torch.get_num_threads()

    # torch sets the number only for the calling thread.
    def start() -> None:
        torch.set_num_threads(1)

    if num_threads == 1:
        yield lambda function, items: list(map(function, items))
        return
    with ThreadPoolExecutor(num_threads, thread_name_prefix="word2vec", initializer=start) as pool:
        try:
            yield lambda function, items: list(pool.map(torch.inference_mode()(function), items))
        finally:
            torch.set_num_threads(num_threads)


@contextmanager
def _encoded(files: Sequence[Path], vocabulary: Vocabulary) -> Iterator[IO[bytes]]:
    """Yield a temporary file with the text's ids, int32, and END_ID after each sentence.

    The file is beside the text, where there is room, and has no name: however the process ends, nothing stays behind.
    """
    with tempfile.TemporaryFile(dir=files[0].parent) as file:
        ids: list[int] = []
        for sentence in iter_sentences(files):
            ids += vocabulary.encode(sentence)
            ids.append(END_ID)
            if len(ids) >= _CHUNK_IDS:
                file.write(np.array(ids, np.int32).tobytes())
                ids.clear()
        file.write(np.array(ids, np.int32).tobytes())
        yield file
