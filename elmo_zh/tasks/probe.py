"""Measure what each layer of a model knows: a linear model predicts tags, the nearest neighbour predicts senses."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.read_source import decoded_files
from elmo_zh.corpus.readers.rows import iter_rows, starts_as_objects
from elmo_zh.corpus.sources import find_sources
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.files import file_digest
from elmo_zh.run.job import Work
from elmo_zh.run.outputs import written_as
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.tables import table
from elmo_zh.tasks.datasets import describe_data, load_dataset
from elmo_zh.tasks.encode_texts import TextReader, VectorCache, read_alike, read_texts, word2vec_digest
from elmo_zh.tasks.linear import Features, fit_path
from elmo_zh.tasks.scores import Difference, Rows, bootstrap_difference, score_rows, write_report
from elmo_zh.version import __version__

COLUMNS = ("file", "line", "start", "end", "word", "sense")
_FIELDS = ("context", "target_word", "target_position", "sense")
# The inverse strength of the penalty.
_STRENGTH = 10.0
# word2vec gives a word one vector for all its senses, so this many words on either side are averaged instead.
_WINDOW_WORDS = 5
_TARGET, _LONGEST_LINE = "<target>", 2**20


class Occurrence(NamedTuple):
    """A word in its sentence: the places of its tokens, and the tokens whose word2vec vectors are averaged for it."""

    sentence: tuple[str, ...] = ()
    places: Sequence[int] = ()
    beside: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Probed:
    """The accuracy of a layer or, if `layer` is None, of the baseline or word2vec."""

    name: str
    layer: int | None = None
    accuracy: float
    dev_accuracy: float | None = None  # on the development examples, by which the layer is chosen, if there are any
    above_baseline: Difference | None = None  # None for the baseline


@dataclass(frozen=True)
class ProbeReport:
    """The table of a probe: a baseline without vectors, word2vec if available, and the layers."""

    rows: Sequence[Probed]
    facts: Mapping[str, Any]

    @property
    def best_layer(self) -> int:
        """The most accurate layer, on development examples if possible; ties go to the lowest layer."""
        scores = {row.layer: row.accuracy if row.dev_accuracy is None else row.dev_accuracy for row in self.rows}
        return max((layer for layer in scores if layer is not None), key=lambda layer: scores[layer])

    def lines(self) -> list[str]:
        """Return the table and the recommended layer as lines of text."""
        leads = [row.above_baseline.points() if row.above_baseline else "" for row in self.rows]
        rows = [[_(row.name), f"{row.accuracy:.4f}", lead] for row, lead in zip(self.rows, leads, strict=True)]
        head = ["", _("accuracy"), _("points above the baseline (95% interval)")]
        best = _("The best layer is {best}. To use it alone: --layers {best}").format(best=self.best_layer)
        return [*table(head, rows).split("\n"), "", best]

    def to_json(self) -> dict[str, Any]:
        """Return the best layer, the figures of all rows, and the facts about the model and the data."""
        rows = [asdict(row) for row in self.rows]
        return {"elmo_zh": __version__, "best_layer": self.best_layer, "rows": rows, **self.facts}


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeJob:
    """Computes the vectors of all occurrences, and judges each layer and, if available, word2vec."""

    occurrences: Sequence[Occurrence]
    # From one vector for each occurrence, float32, shape (N, D), the accuracy on the development examples, if there are
    # any, and the counts of correct answers and of all answers per sentence or occurrence
    judge: Callable[[NDArray[np.float32]], tuple[float | None, Rows]]
    baseline: tuple[str, Rows]  # its name and counts
    embedder: ElmoEmbedder
    word2vec: Word2Vec | None
    data: Mapping[str, Any]  # what the occurrences depend on
    inputs: Sequence[Path]
    output: Path

    valuable = ()
    may_replace = staticmethod(written_as("probe"))

    def made_from(self) -> dict[str, Any]:
        """Return what the scores depend on."""
        return {**self.data, "word2vec": word2vec_digest(self.word2vec), **self.embedder.identity()}

    def make(self, path: Path, work: Work) -> ProbeReport:
        """Compute the vectors, and judge each layer; write and return the report."""
        sentences = (occurrence.sentence for occurrence in self.occurrences)
        cache = VectorCache.on_disk(work.within("vectors"), self.embedder, sentences)
        name, counts = self.baseline
        rows = [Probed(name=name, accuracy=score_rows(counts, metric="accuracy"))]
        if self.word2vec is not None:
            places = [self.word2vec.rows(occurrence.beside) for occurrence in self.occurrences]
            rows.append(self._probed("word2vec", None, self.word2vec.table, places))
        places = [cache.first_rows[word.sentence] + np.array(word.places, np.int64) for word in self.occurrences]
        for layer in range(cache.vectors.shape[1]):
            rows.append(self._probed(_("layer {layer}").format(layer=layer), layer, cache.vectors[:, layer], places))
            work.reporter.note(_("{name}: {value}").format(name=rows[-1].name, value=f"{rows[-1].accuracy:.4f}"))
        bundle = self.embedder.bundle
        facts = {"model": {"path": str(bundle.path), "digest": bundle.digest}, "occurrences": len(self.occurrences)}
        report = ProbeReport(rows, facts)
        path.mkdir()
        write_report(path, "probe", self.output.name, report.lines(), report.to_json())
        return report

    def _probed(self, name: str, layer: int | None, table: Any, places: Sequence[NDArray[np.int64]]) -> Probed:
        means = np.zeros((len(places), table.shape[1]), np.float32)
        for number, rows in enumerate(places):
            if len(rows):
                means[number] = np.asarray(table[rows], np.float32).mean(axis=0)
        dev_accuracy, counts = self.judge(means)
        return Probed(
            name=name,
            layer=layer,
            accuracy=score_rows(counts, metric="accuracy"),
            dev_accuracy=dev_accuracy,
            above_baseline=bootstrap_difference([counts], [self.baseline[1]], metric="accuracy", seed=1),
        )


def _vectors_of_words(
    word2vec: Path | None, embedder: ElmoEmbedder, occurrences: Sequence[Occurrence]
) -> Word2Vec | None:
    if word2vec is None and not BundleLayout(embedder.bundle.path).word2vec.is_file():
        return None
    vectors = Word2Vec.load(word2vec or embedder.bundle.path)
    return read_alike(vectors, embedder, [occurrence.beside for occurrence in occurrences])


def probe_tags(
    files: DataFiles, reading: Reading, embedder: ElmoEmbedder, output: Path, *, word2vec: Path | None,
    reporter: Reporter,
) -> ProbeJob:  # fmt: skip
    """Prepare to predict each unit's tag, such as its part of speech, with a linear model on each layer's vectors."""
    dataset = load_dataset(files, reading, reporter)
    if dataset.scheme:
        raise CorpusError(
            _("{data}: the tags mark spans. Use tags of single words, such as parts of speech.").format(data=files.data)
        )
    texts = [text for [text] in read_texts(dataset.examples, embedder, reporter)]
    example_of = np.repeat(np.arange(len(texts)), [len(text.owners) for text in texts])
    words = [text.text[start:end] for text in texts for start, end in text.units]
    tags = [tag for example in dataset.examples for tag in example.labels]
    numbers = {label: number for number, label in enumerate(dataset.labels)}
    classes = np.array([numbers.get(tag, -1) for tag in tags], np.int64)
    train, dev, test = (np.flatnonzero(np.isin(example_of, rows)) for rows in dataset.split.parts().values())

    def rows_of(right: NDArray[np.bool_]) -> Rows:
        """Count the correct tags and all tags in each test sentence."""
        sentences, sentence_of = np.unique(example_of[test], return_inverse=True)
        counts = [np.bincount(sentence_of, weights, len(sentences)) for weights in (right, np.ones(len(test)))]
        return np.stack(counts, axis=1)

    def judge(vectors: NDArray[np.float32]) -> tuple[float, Rows]:
        [model] = fit_path(Features([vectors]), train, classes[train], len(numbers), [_STRENGTH])
        right = [model.log_probabilities(vectors[rows]).argmax(axis=1) == classes[rows] for rows in (dev, test)]
        return float(right[0].mean()), rows_of(right[1])

    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in train:
        counts[words[row]][tags[row]] += 1
    [(usual, _number)] = Counter(tags[row] for row in train).most_common(1)
    baseline = [counts[words[row]].most_common(1)[0][0] if words[row] in counts else usual for row in test]
    right = np.array([guess == tags[row] for guess, row in zip(baseline, test, strict=True)])
    # A unit without a token has zeros.
    located = [_located(text.sentences, [owner]) for text in texts for owner in text.owners.tolist()]
    occurrences = [Occurrence(sentence, places, [sentence[place] for place in places]) for sentence, places in located]
    return ProbeJob(
        occurrences=occurrences,
        judge=judge,
        baseline=(N_("most frequent tag of the word"), rows_of(right)),
        embedder=embedder,
        word2vec=_vectors_of_words(word2vec, embedder, occurrences),
        data=describe_data(dataset, files, reading),
        inputs=(*dataset.files.values(), embedder.bundle.path),
        output=output,
    )


class MarkedWord(NamedTuple):
    """An occurrence of a word; `start` is the index of its first character in a line, or of its token in a sentence."""

    word: str
    sense: str
    text: str | tuple[str, ...]
    start: int


def probe_senses(
    path: Path, embedder: ElmoEmbedder, output: Path, *, texts: Path | None, encoding: str, word2vec: Path | None,
    reporter: Reporter,
) -> ProbeJob:  # fmt: skip
    """Prepare to predict each occurrence's sense from the word's most similar other occurrence, layer by layer.

    Words with one sense are left out. For word2vec, the vectors of surrounding words are averaged.
    """
    occurring = read_senses(path, texts, encoding)
    counts = Counter((marked.word, marked.sense) for marked in occurring)
    num_senses = Counter(word for word, _sense in counts)
    kept = [marked for marked in occurring if num_senses[marked.word] > 1]
    if not kept:
        raise CorpusError(
            _("{path}: no word occurs in several senses. Add occurrences in other senses.").format(path=path)
        )
    reporter.note(
        _("Reading {path}: {number} occurrences of words with several senses, {others} of words with one.").format(
            path=path, number=f"{len(kept):,}", others=f"{len(occurring) - len(kept):,}"
        )
    )
    # The most frequent sense of each word, in a tie the first by name: the last pair of a word counts.
    usual = dict(sorted(sorted(counts, reverse=True), key=lambda pair: counts[pair]))
    reader = TextReader(embedder, by_words=True)
    occurrences = [_occurrence(marked, reader) for marked in kept]
    return ProbeJob(
        occurrences=occurrences,
        judge=lambda vectors: (None, _right_rows(kept, nearest_senses(kept, vectors))),
        baseline=(N_("most frequent sense of the word"), _right_rows(kept, [usual[marked.word] for marked in kept])),
        embedder=embedder,
        word2vec=_vectors_of_words(word2vec, embedder, occurrences),
        data={"digest": file_digest(path), "marked": [list(occurrence) for occurrence in kept]},
        inputs=(path, *([texts] if texts else []), embedder.bundle.path),
        output=output,
    )


def _occurrence(marked: MarkedWord, reader: TextReader) -> Occurrence:
    """Find the tokens of a marked word in its sentence; return an empty occurrence if it has none."""
    if isinstance(marked.text, str):
        characters = np.array([(place, place + 1) for place in range(len(marked.text))], np.int32)
        text = reader.read(marked.text, characters[marked.start : marked.start + len(marked.word)])
        sentence, places = _located(text.sentences, dict.fromkeys(text.owners.tolist()))
    else:
        sentence, places = tuple(map(reader.known_form, marked.text)), [marked.start]
    if not places:
        return Occurrence()
    before, after = sentence[max(0, places[0] - _WINDOW_WORDS) : places[0]], sentence[places[-1] + 1 :]
    return Occurrence(sentence, places, [*before, *after[:_WINDOW_WORDS]])


def _located(sentences: Sequence[tuple[str, ...]], tokens: Iterable[int]) -> tuple[tuple[str, ...], list[int]]:
    """Return the first sentence with any of the tokens, and their places in it; both are empty if no sentence has one.

    Tokens are numbered through all sentences.
    """
    start = 0
    for sentence in sentences:
        if places := [token - start for token in tokens if 0 <= token - start < len(sentence)]:
            return sentence, places
        start += len(sentence)
    return (), []


def _right_rows(marked: Sequence[MarkedWord], senses: Sequence[str]) -> Rows:
    return np.array([(word.sense == sense, 1.0) for word, sense in zip(marked, senses, strict=True)], np.float64)


def nearest_senses(marked: Sequence[MarkedWord], vectors: NDArray[np.float32]) -> list[str]:
    """Return, for each occurrence, the sense of the word's most similar other occurrence, given vectors (N, D)."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    words = np.array([occurrence.word for occurrence in marked])
    nearest = np.zeros(len(marked), np.int64)
    for word in set(words):
        rows = np.flatnonzero(words == word)
        similarities = units[rows] @ units[rows].T
        np.fill_diagonal(similarities, -np.inf)
        nearest[rows] = rows[similarities.argmax(axis=1)]
    return [marked[row].sense for row in nearest.tolist()]


def read_senses(path: Path, texts: Path | None, encoding: str = "auto") -> list[MarkedWord]:
    """Read the marked words in a file, compressed or not; `texts` is the folder of a table's texts, by default its own.

    The file is a tab-separated table with `COLUMNS`, or JSON lines with context (the tokens, where <target> may
    stand for the word), target_word, target_position (from 0) and sense (a string or a list).
    """
    lines_of = cache(lambda name: list(iter_lines((texts or path.parent) / name)))
    marked = []
    for source in find_sources([str(path)]).sources:
        for text in decoded_files(source, encoding, Tally()):
            is_json = starts_as_objects(text.head(_LONGEST_LINE))
            for number, values in iter_rows(text, "jsonl" if is_json else "tsv"):
                try:
                    marked.append(_of_object(values) if is_json else _of_row(values, lines_of))
                except (ValueError, KeyError, TypeError, IndexError, OSError) as error:
                    raise CorpusError(
                        _("{name}: line {number} does not mark a word ({error}). Each line needs: {expected}.").format(
                            name=text.name,
                            number=number,
                            error=str(error)[:120],
                            expected=", ".join(_FIELDS if is_json else COLUMNS),
                        )
                    ) from None
    return marked


def _of_object(record: Mapping[str, Any]) -> MarkedWord:
    context, word, position, sense = (record[field] for field in _FIELDS)
    if not isinstance(context, list) or not isinstance(position, int) or not 0 <= position < len(context):
        raise ValueError(f"target_position {position} is no position in context")
    if not word or not sense or context[position] not in (_TARGET, word):
        raise ValueError(f"{context[position]!r} at target_position is not the word {word!r}, or the sense is empty")
    # Leave out tokens that are only white space.
    sides = context[:position], context[position + 1 :]
    before, after = ([str(token) for token in side if str(token).strip()] for side in sides)
    senses = [sense] if isinstance(sense, str) else sense
    return MarkedWord(word, "|".join(map(str, senses)), (*before, word, *after), len(before))


def _of_row(values: Mapping[str, str], lines_of: Callable[[str], Sequence[str]]) -> MarkedWord:
    name, word, sense = values["file"], values["word"], values["sense"]
    line, start, end = (int(values[column]) for column in ("line", "start", "end"))
    text = lines_of(name)[line]
    if not word or not sense or start < 0 or text[start:end] != word:
        raise ValueError(
            f"line {line} of {name} has {text[start:end][:20]!r} at characters {start} to {end}, not {word!r}"
        )
    return MarkedWord(word, sense, text, start)
