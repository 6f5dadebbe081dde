"""CBOW and skip-gram with negative sampling in torch, on all cores and without a compiler.

It follows gensim's Word2Vec (Mikolov et al. 2013): the same initial vectors, subsampling of frequent words, random
window widths, noise distribution and linear decay of the learning rate. Unlike gensim it changes the tables once for a
batch of words, and the words of a block share their negative samples (see `negative_sampling`).

Memory: two tables of V x dimension float32, and buffers for one chunk of text. The same machine gives the same vectors,
whatever the number of threads.
"""

import operator
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.corpus.segmented import iter_sentences
from elmo_zh.run.reporter import Progress
from elmo_zh.vocabulary.vocabulary import END_ID, SPECIALS, Vocabulary
from elmo_zh.word2vec.negative_sampling import BatchSampler, NegativeSampling
from elmo_zh.word2vec.vectors import TrainingJob

# gensim's defaults.
_FIRST_LEARNING_RATE = 0.025
_LAST_LEARNING_RATE = 0.0001
# Ids read at a time.
_CHUNK_IDS = 2**18


@torch.inference_mode()
def train_rows(job: TrainingJob, progress: Progress) -> NDArray[np.float32]:
    """Return the vectors of the rows, shape (num_rows, dimension)."""
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
    """Yield what applies a function to items on as many threads as torch has, each operation on one thread.

    Operations are too small to be split: threads that wait for each other after each one lose more than they gain, on a
    busy machine many times over.
    """
    num_threads = torch.get_num_threads()

    # torch sets the number for one thread only.
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
    """Yield a temporary file of the text's ids, int32, with END_ID after each sentence.

    It is beside the text, where there is room, and nameless: whatever ends the process, nothing stays behind.
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
