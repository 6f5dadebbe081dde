"""The segment stage: raw text files to one segmented sentence a line, training and held-out text apart."""

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TextIO

from elmo_zh.config import TextConfig
from elmo_zh.errors import CorpusError
from elmo_zh.files import atomic_path
from elmo_zh.reporter import Reporter
from elmo_zh.text.cleaning.clean import EMPTY, LineCleaner
from elmo_zh.text.cleaning.counts import LineCounts
from elmo_zh.text.corpus import iter_lines
from elmo_zh.text.corpus_preparation import CorpusPreparation
from elmo_zh.text.han import count_han
from elmo_zh.text.heldout import HeldoutChoice, Paragraph, paragraph_key
from elmo_zh.text.readers.read import read_source
from elmo_zh.text.readers.sources import Sources
from elmo_zh.text.readers.tally import PassedOver, Tally
from elmo_zh.text.segmenters import split_tokens

# Characters handed to a worker at once: some milliseconds of work for jieba, so that the hand-over costs little.
BATCH_CHARACTERS = 50_000
# Sentences in one file of segmented text: some hundred MB, so that editors and copies stay bearable.
FILE_SENTENCES = 2_000_000


@dataclass(kw_only=True)
class SegmentCounts:
    """What the segment stage read and wrote.

    `characters` is all text that was read, which is `kept_characters` and those `dropped`, by reason.
    """

    files: int = 0
    documents: int = 0
    lines: int = 0
    characters: int = 0
    kept_characters: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    han_characters: int = 0
    empty_lines: int = 0
    train_sentences: int = 0
    train_tokens: int = 0
    heldout_sentences: int = 0
    heldout_tokens: int = 0


@dataclass(kw_only=True)
class SegmentedCorpus:
    """What became of a corpus: counts in all, of each source in its order, and of what was done to lines."""

    counts: SegmentCounts
    tallies: list[Tally]
    lines: LineCounts
    passed_over: PassedOver


@dataclass(frozen=True)
class _Part:
    """Lines that follow each other in one source, given by its number."""

    source: int
    lines: list[str]


@dataclass(frozen=True, kw_only=True)
class _PartCounts:
    source: int
    lines: LineCounts
    han_characters: int


@dataclass(frozen=True, kw_only=True)
class _Batch:
    paragraphs: list[Paragraph]
    parts: list[_PartCounts]


def segment_corpus(
    corpus: Sources, output: Path, config: TextConfig, user_dictionary: Path | None, reporter: Reporter
) -> SegmentedCorpus:
    """Segment a corpus into `output`/{train,heldout}-*.txt, replacing that folder as a whole at the end.

    Memory does not grow with the corpus: batches of lines go through a bounded queue to worker processes and come
    back in order. The files are the same whatever the number of workers.

    Raises:
        CorpusError: For text that cannot be read, or a corpus without any sentence.
    """
    done = SegmentedCorpus(
        counts=SegmentCounts(files=len(corpus.sources)),
        tallies=[Tally() for _ in corpus.sources],
        lines=LineCounts(),
        passed_over=PassedOver(),
    )
    counts = done.counts
    choice = HeldoutChoice(config)
    with (
        atomic_path(output) as unfinished,
        _Writer(unfinished, "train") as train,
        reporter.progress("segment", unit="characters") as progress,
        closing(_segmented_batches(corpus, config, user_dictionary, done)) as batches,
    ):
        for batch in batches:
            for part in batch.parts:
                _count(part, done)
            for paragraph in batch.paragraphs:
                train.write(choice.add(paragraph))
            progress.update(sum(part.lines.characters for part in batch.parts))
        heldout_paragraphs, rest = choice.finish()
        train.write(rest)
        with _Writer(unfinished, "heldout") as heldout:
            heldout.write(heldout_paragraphs)
        counts.train_sentences, counts.train_tokens = train.num_sentences, train.num_tokens
        counts.heldout_sentences, counts.heldout_tokens = heldout.num_sentences, heldout.num_tokens
        _add_up(done)
        if not counts.train_sentences:
            raise _no_text(corpus, done)
    return done


def _count(part: _PartCounts, done: SegmentedCorpus) -> None:
    done.tallies[part.source].take(part.lines)
    done.lines.merge(part.lines)
    done.counts.han_characters += part.han_characters


def _add_up(done: SegmentedCorpus) -> None:
    done.counts.lines = done.lines.lines
    done.counts.empty_lines = done.lines.dropped[EMPTY].lines if EMPTY in done.lines.dropped else 0
    for tally in done.tallies:
        done.counts.documents += tally.documents
        done.counts.characters += tally.characters
        done.counts.kept_characters += tally.kept_characters
    dropped = sum((tally.dropped for tally in done.tallies), Counter())
    done.counts.dropped = {reason: number for reason, number in sorted(dropped.items()) if number}


def _no_text(corpus: Sources, done: SegmentedCorpus) -> CorpusError:
    names = ", ".join(source.name for source in corpus.sources[:3])
    other = [f"{count:,} {reason}" for reason, count in sorted(done.passed_over.counts.items())]
    other += [f"{number:,} characters of {reason}" for reason, number in done.counts.dropped.items() if reason != EMPTY]
    found = f"{done.counts.lines} lines, all empty" + (f"; left out: {', '.join(other)}" if other else "")
    return CorpusError(f"{names} holds no text ({found}). Give a file with text.")


def _segmented_batches(
    corpus: Sources, config: TextConfig, user_dictionary: Path | None, done: SegmentedCorpus
) -> Generator[_Batch, None, None]:
    batches = _line_batches(corpus, config, done)
    num_workers = config.num_workers or os.cpu_count() or 1
    # A small corpus is done before worker processes have started.
    if num_workers == 1 or corpus.total_bytes() < 500_000:
        preparation = CorpusPreparation.build(config, user_dictionary)
        return (_segment_batch(preparation, parts) for parts in batches)
    if user_dictionary is not None:
        CorpusPreparation.build(config, user_dictionary)  # so that a bad one is told here, and once
    else:
        LineCleaner.build(config)  # and a package that is missing; the segmenter's are known by now
    return _segment_in_processes(batches, config, user_dictionary, num_workers)


def _line_batches(corpus: Sources, config: TextConfig, done: SegmentedCorpus) -> Iterator[list[_Part]]:
    """Yield lines enough for a worker at a time; sources may share a batch."""
    parts: list[_Part] = []
    size = 0
    for number, source in enumerate(corpus.sources):
        part = _Part(number, [])
        parts.append(part)
        for document in read_source(source, config, done.tallies[number], done.passed_over):
            for line in document:
                part.lines.append(line)
                size += len(line) + 1
                if size >= BATCH_CHARACTERS:
                    yield parts
                    part = _Part(number, [])
                    parts, size = [part], 0
    if any(part.lines for part in parts):
        yield parts


def _segment_batch(preparation: CorpusPreparation, parts: list[_Part]) -> _Batch:
    batch = _Batch(paragraphs=[], parts=[])
    for part in parts:
        batch.parts.append(_segment_part(preparation, part, batch.paragraphs))
    return batch


def _segment_part(preparation: CorpusPreparation, part: _Part, paragraphs: list[Paragraph]) -> _PartCounts:
    counts = LineCounts()
    for line in part.lines:
        segmented = preparation.sentences(line, counts)
        if segmented:
            sentences = tuple(" ".join(tokens) for tokens in segmented)
            num_tokens = sum(len(tokens) for tokens in segmented)
            key = paragraph_key(sentences)
            paragraphs.append(Paragraph(key=key, sentences=sentences, num_tokens=num_tokens))
    return _PartCounts(source=part.source, lines=counts, han_characters=count_han(part.lines))


_worker_preparation: CorpusPreparation


def _start_worker(config: TextConfig, user_dictionary: Path | None) -> None:
    global _worker_preparation
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the main process, which ends its workers
    main = parent_process()
    if main is not None:
        threading.Thread(target=_end_after, args=(main,), daemon=True).start()
    _worker_preparation = CorpusPreparation.build(config, user_dictionary)


def _end_after(main: BaseProcess) -> None:
    """Wait for the main process to be gone, killed perhaps, and leave nothing running behind it."""
    main.join()
    os._exit(1)


def _work(parts: list[_Part]) -> _Batch:
    return _segment_batch(_worker_preparation, parts)


def _segment_in_processes(
    batches: Iterator[list[_Part]], config: TextConfig, user_dictionary: Path | None, num_workers: int
) -> Generator[_Batch, None, None]:
    """Yield the segmented batches in order, with at most a few per worker on the way."""
    children_of_others = active_children()
    executor = ProcessPoolExecutor(
        num_workers, get_context("spawn"), initializer=_start_worker, initargs=(config, user_dictionary)
    )
    waiting: deque[Future[_Batch]] = deque()
    try:
        for batch in batches:
            waiting.append(executor.submit(_work, batch))
            if len(waiting) >= 4 * num_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        _stop_feeding(executor)
        raise CorpusError(
            "A segmenting process was killed, perhaps for lack of memory."
            " Type the command again with fewer of them: --set text.num_workers=1"
        ) from None
    except BaseException:
        # Ctrl-C, or a reader of these batches that failed: waiting for workers could wait forever.
        for child in active_children():
            if child not in children_of_others:
                child.terminate()
        _stop_feeding(executor)
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _stop_feeding(executor: ProcessPoolExecutor) -> None:
    """Close the pipe to the workers, now that nobody reads it.

    Where a batch does not fit into the pipe, the thread that writes it would wait for ever, and the end of the process
    for that thread. Python 3.12 closes it by itself (python/cpython#94777).
    """
    queue = getattr(executor, "_call_queue", None)
    if queue is not None:
        queue._reader.close()


class _Writer:
    """Writes sentences to KIND-00000.txt, KIND-00001.txt, ... and counts them."""

    def __init__(self, folder: Path, kind: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._kind = folder, kind
        self._file: TextIO | None = None
        self.num_sentences = 0
        self.num_tokens = 0

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, paragraphs: Iterable[Paragraph]) -> None:
        for paragraph in paragraphs:
            for sentence in paragraph.sentences:
                if self.num_sentences % FILE_SENTENCES == 0:
                    self._start_file(self.num_sentences // FILE_SENTENCES)
                assert self._file is not None
                self._file.write(sentence + "\n")
                self.num_sentences += 1
            self.num_tokens += paragraph.num_tokens

    def _start_file(self, index: int) -> None:
        if self._file is not None:
            self._file.close()
        path = self._folder / f"{self._kind}-{index:05d}.txt"
        self._file = path.open("w", encoding="utf-8", newline="\n")


def iter_sentences(paths: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the tokens of each line of the run's segmented files: lines end at LF, tokens are split at U+0020 only."""
    for path in paths:
        for line in iter_lines(path, drop_mark=False):
            yield split_tokens(line)
