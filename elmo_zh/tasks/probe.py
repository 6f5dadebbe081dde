"""Probe each layer of a model alone: parts of speech under a linear probe, senses of words by the nearest neighbour."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.unknown_rate import TokenForms
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import remove
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.run.resumable import claimed_output, parts_of
from elmo_zh.tasks.data.datasets import DataFiles, Dataset, load_dataset
from elmo_zh.tasks.data.read_labelled import Reading
from elmo_zh.tasks.data.senses import MarkedWord, read_senses
from elmo_zh.tasks.encode_texts import read_alike
from elmo_zh.tasks.fit import open_trainings
from elmo_zh.tasks.linear_probe import LabelledVectors, fit_linear_probe
from elmo_zh.tasks.probe_report import Probed, ProbeLayout, ProbeReport
from elmo_zh.tasks.read_texts import Texts, cached_vectors, read_texts
from elmo_zh.tasks.units import TextReader, UnitText, sentences_of
from elmo_zh.tasks.vector_cache import VectorCache

# word2vec gives a word one vector in all senses, so the words around it are averaged: so many on either side.
_WINDOW_WORDS = 5
Place = tuple[tuple[str, ...], NDArray[np.int64]]


def is_probe(path: Path) -> bool:
    """Return whether a folder is one that a probe wrote."""
    return ProbeLayout(path).data.is_file()


def probe_tags(
    files: DataFiles,
    reading: Reading,
    embedder: ElmoEmbedder,
    output: Path,
    *,
    word2vec: Path | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
) -> ProbeReport:
    """Predict the tag of each word, such as its part of speech, from the vectors of each layer alone.

    Args:
        files: CoNLL or CoNLL-U, whose test sentences are scored.
        reading: How it is read.
        embedder: The bundle.
        output: The folder to write.
        word2vec: The bundle or run whose word2vec vectors stand beside it; None for those of the model, if it has any.
        force: Replace a probe, and do not resume an unfinished one.
        reporter: Receives messages and progress.

    Raises:
        CorpusError: If the data cannot be read, its tags mark spans, or there are no test examples.
        OutputError: If the output exists, or an unfinished one is of other data or another model.
    """
    reporter = reporter or SilentReporter()
    files = files.resolved(reading, reporter)
    read = [path for path in (files.data, files.dev, files.test) if path is not None]
    with _claimed(output, read, embedder, force=force) as open_work:
        dataset = load_dataset(files, reading, reporter)
        if dataset.scheme:
            raise CorpusError(
                f"{files.data}: its tags mark spans, expected a tag for each word, such as its part of speech."
            )
        if not dataset.test:
            raise CorpusError(f"{files.data}: there are no test examples to score. Give a file: --test FILE")
        beside = _word2vec_beside(word2vec, embedder, reporter)
        texts = read_texts(dataset, embedder, reporter)
        parts = open_work([text.sentences for part in texts.values() for [text] in part])
        cache = cached_vectors(texts, embedder, parts, reporter)
        beside = beside and read_alike(beside, embedder, sentences_of(chain(*texts.values())))
        report = _TagProbe(dataset, texts, files.seed, reporter).report(
            cache, beside, _facts(embedder, dataset.parts())
        )
        report.write(output)
    return report


def probe_senses(
    path: Path,
    embedder: ElmoEmbedder,
    output: Path,
    *,
    texts: Path | None = None,
    encoding: str = "auto",
    word2vec: Path | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
) -> ProbeReport:
    """Give each occurrence of a word the sense of the most similar other one, by the vectors of each layer alone.

    Similarity is the cosine. Words with one sense, or that occur once, are left out. For word2vec the vectors of the
    five words on either side are averaged.

    Args:
        path: Marked words, as `read_senses` reads them.
        embedder: The bundle.
        output: The folder to write.
        texts: The folder of the files that a table names; None for its own folder.
        encoding: Encoding of the file, or auto.
        word2vec: As for `probe_tags`.
        force: As for `probe_tags`.
        reporter: Receives messages and progress.

    Raises:
        CorpusError: If the data cannot be read, or no word has two senses.
        OutputError: If the output exists, or an unfinished one is of other data or another model.
    """
    reporter = reporter or SilentReporter()
    read = [each for each in (path, texts) if each is not None]
    with _claimed(output, read, embedder, force=force) as open_work:
        marked = _ambiguous(read_senses(path, texts, encoding), path, reporter)
        beside = _word2vec_beside(word2vec, embedder, reporter)
        places = _places(marked, embedder)
        sentences = [tokens for tokens, _ in places]
        beside = beside and read_alike(beside, embedder, sentences)
        cache = VectorCache.on_disk(open_work(sentences) / "vectors", embedder, sentences, reporter)
        report = _report_senses(marked, places, cache, beside, _facts(embedder, {"occurrences": marked}))
        report.write(output)
    return report


@contextmanager
def _claimed(
    output: Path, read: Sequence[Path], embedder: ElmoEmbedder, *, force: bool
) -> Iterator[Callable[[Sequence[Any]], Path]]:
    """Reserve the output; give a function that returns the folder of unfinished work, which is removed at the end."""
    parts = parts_of(output)

    def open_work(sentences: Sequence[Any]) -> Path:
        digest = hashlib.sha256(json.dumps(sentences).encode()).hexdigest()
        open_trainings(parts, {"sentences": digest, **embedder.identity()}, force=force)
        return parts

    with claimed_output(output, [*read, embedder.bundle.path], is_probe, force=force):
        yield open_work
        remove(parts)


def _word2vec_beside(path: Path | None, embedder: ElmoEmbedder, reporter: Reporter) -> Word2Vec | None:
    if path is None and not BundleLayout(embedder.bundle.path).word2vec.is_file():
        reporter.note(
            f"{embedder.bundle.path} has no word2vec vectors to stand beside its layers. Name a model or run that has"
            " them: --word2vec PATH"
        )
        return None
    return Word2Vec.load(path or embedder.bundle.path)


def _facts(embedder: ElmoEmbedder, parts: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    bundle = embedder.bundle
    return {
        "model": {"path": str(bundle.path), "digest": bundle.digest},
        "examples": {part: len(examples) for part, examples in parts.items()},
    }


class _TagProbe:
    """Tags of words, and their classes as numbers."""

    def __init__(self, dataset: Dataset, texts: Texts, seed: int, reporter: Reporter) -> None:
        self._dataset, self._texts, self._seed, self._reporter = dataset, texts, seed, reporter
        self._labels = dataset.labels()
        numbers = {label: number for number, label in enumerate(self._labels)}
        self._classes = {
            part: np.array([numbers.get(label, -1) for example in examples for label in example.labels], np.int64)
            for part, examples in dataset.parts().items()
        }

    def report(self, cache: VectorCache, word2vec: Word2Vec | None, facts: Mapping[str, Any]) -> ProbeReport:
        """Probe word2vec and each layer."""
        others = []
        if word2vec is not None:
            table = word2vec.table
            rows = {part: self._rows(part, lambda text: word2vec.rows(_tokens(text))) for part in self._texts}
            others.append(self._probed("word2vec", None, {part: table[each] for part, each in rows.items()}))
        rows = {part: self._rows(part, lambda text: cache.rows(text.sentences)) for part in self._texts}
        for layer in range(cache.vectors.shape[1]):
            vectors = {part: np.asarray(cache.vectors[each, layer]) for part, each in rows.items()}
            others.append(self._probed(f"layer {layer}", layer, vectors))
        return ProbeReport(
            what=f"tag of a word, {len(self._labels)} tags", baseline=self._baseline(), others=others, facts=facts
        )

    def _rows(self, part: str, rows_of: Any) -> NDArray[np.int64]:
        """Return the row of the token of each unit; 0 for a unit without one."""
        found = [np.zeros(0, np.int64)]
        for [text] in self._texts[part]:
            found.append(np.concatenate([rows_of(text), np.zeros(1, np.int64)])[text.owners])
        return np.concatenate(found).astype(np.int64)

    def _probed(self, name: str, layer: int | None, vectors: Mapping[str, Any]) -> Probed:
        train, dev, test = (LabelledVectors(vectors[part], self._classes[part]) for part in ("train", "dev", "test"))
        found, dev_score = fit_linear_probe(train, dev, test, len(self._labels), self._seed)
        probed = Probed(name=name, layer=layer, rows=self._by_sentence(found), dev_score=dev_score)
        self._reporter.note(f"{name}: accuracy {probed.score:.4f}")
        return probed

    def _baseline(self) -> Probed:
        """Return the most frequent tag of each word in training; for other words the most frequent tag of all."""
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for word, number in zip(self._words("train"), self._classes["train"].tolist(), strict=True):
            counts[word][number] += 1
        overall = int(np.bincount(self._classes["train"]).argmax())
        best = {word: min(each, key=lambda number: (-each[number], number)) for word, each in counts.items()}
        found = np.array([best.get(word, overall) for word in self._words("test")], np.int64)
        return Probed(name="most frequent tag of the word", layer=None, rows=self._by_sentence(found))

    def _words(self, part: str) -> Iterator[str]:
        for [text] in self._texts[part]:
            yield from (text.text[start:end] for start, end in text.units)

    def _by_sentence(self, found: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the right tags and all tags of each test sentence."""
        lengths = [len(example.labels) for example in self._dataset.test]
        right = np.split(found == self._classes["test"], np.cumsum(lengths)[:-1])
        return np.array([(each.sum(), len(each)) for each in right], np.float64)


def _tokens(text: UnitText) -> list[str]:
    return [token for sentence in text.sentences for token in sentence]


def _ambiguous(marked: Sequence[MarkedWord], path: Path, reporter: Reporter) -> list[MarkedWord]:
    """Return the occurrences of words that have two senses at least."""
    senses: dict[str, set[str]] = defaultdict(set)
    for each in marked:
        senses[each.word].add(each.sense)
    found = [each for each in marked if len(senses[each.word]) > 1]
    if not found:
        raise CorpusError(f"{path}: no word occurs in two senses, so there is nothing to tell apart.")
    num_words = sum(len(each) > 1 for each in senses.values())
    reporter.note(
        f"Reading {path}: {counted(len(found), 'occurrence')} of {counted(num_words, 'word')} with several senses;"
        f" {len(marked) - len(found):,} of words with one sense are left out."
    )
    return found


def _places(marked: Sequence[MarkedWord], embedder: ElmoEmbedder) -> list[Place]:
    """Return the sentence of each marked word, and the positions of the tokens that it consists of or overlaps."""
    reader, forms = TextReader(embedder, by_words=True), TokenForms(embedder.bundle)
    return [
        (tuple(map(forms.known_form, each.tokens)), np.array([each.position]))
        if each.tokens
        else _raw_place(each, reader, embedder)
        for each in marked
    ]


def _raw_place(marked: MarkedWord, reader: TextReader, embedder: ElmoEmbedder) -> Place:
    text, start = marked.text, 0
    for sentence in reader.sentences(marked.text):
        if start <= marked.start and marked.end <= start + len(sentence):
            text = sentence
            break
        start += len(sentence)
    else:  # the word goes over the end of a sentence
        start = 0
    line = embedder.prepare(text)
    inside = (line.offsets[:, 0] + start < marked.end) & (line.offsets[:, 1] + start > marked.start)
    return tuple(line.tokens), np.flatnonzero(inside)


def _report_senses(
    marked: Sequence[MarkedWord],
    places: Sequence[Place],
    cache: VectorCache,
    word2vec: Word2Vec | None,
    facts: Mapping[str, Any],
) -> ProbeReport:
    def probed(name: str, layer: int | None, vectors: NDArray[np.float32]) -> Probed:
        return Probed(name=name, layer=layer, rows=_right_rows(marked, nearest_senses(marked, vectors)))

    others = []
    if word2vec is not None:
        around = [_around(word2vec, tokens, positions) for tokens, positions in places]
        others.append(probed("word2vec of the words around", None, np.stack(around)))
    for layer in range(cache.vectors.shape[1]):
        vectors = [
            cache.vectors[cache.first_rows[tokens] + positions, layer].astype(np.float32).mean(axis=0)
            if len(positions)
            else np.zeros(cache.vectors.shape[2], np.float32)
            for tokens, positions in places
        ]
        others.append(probed(f"layer {layer}", layer, np.stack(vectors)))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for each in marked:
        counts[each.word][each.sense] += 1
    frequent = [min(counts[each.word], key=lambda sense: (-counts[each.word][sense], sense)) for each in marked]
    baseline = Probed(name="most frequent sense of the word", layer=None, rows=_right_rows(marked, frequent))
    return ProbeReport(
        what=f"sense of an occurrence, {len(counts)} words", baseline=baseline, others=others, facts=facts
    )


def _right_rows(marked: Sequence[MarkedWord], found: Sequence[str]) -> NDArray[np.float64]:
    return np.array([(each.sense == sense, 1.0) for each, sense in zip(marked, found, strict=True)], np.float64)


def nearest_senses(marked: Sequence[MarkedWord], vectors: NDArray[np.float32]) -> list[str]:
    """Return for each occurrence the sense of the most similar other occurrence of its word.

    Args:
        marked: The occurrences; each word has two at least.
        vectors: Their vectors, float32, shape (N, D).
    """
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    of_word: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(marked):
        of_word[each.word].append(number)
    found = [""] * len(marked)
    for numbers in of_word.values():
        similarities = units[numbers] @ units[numbers].T
        np.fill_diagonal(similarities, -np.inf)
        for number, nearest in zip(numbers, similarities.argmax(axis=1), strict=True):
            found[number] = marked[numbers[nearest]].sense
    return found


def _around(word2vec: Word2Vec, tokens: Sequence[str], positions: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the mean vector of the words around a word, float32, shape (P,); zeros if there are none."""
    if not len(positions):
        return np.zeros(word2vec.dimension, np.float32)
    first, last = int(positions[0]), int(positions[-1])
    around = [*tokens[max(0, first - _WINDOW_WORDS) : first], *tokens[last + 1 : last + 1 + _WINDOW_WORDS]]
    vectors = word2vec.table[word2vec.rows(around)].astype(np.float32)
    found: NDArray[np.float32] = vectors.sum(axis=0) / max(1, len(around))
    return found
