"""Measure how well a linear classifier predicts tags, such as parts of speech, from each layer of a model."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import write_json
from elmo_zh.run.job import Files, Json, Step, Work, run_job
from elmo_zh.run.mark import write_mark, written_as
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.run.tables import table
from elmo_zh.tasks.datasets import Dataset, describe_data, find_files, load_dataset
from elmo_zh.tasks.encode_texts import Texts, read_alike, read_texts, sentences_of, word2vec_digest
from elmo_zh.tasks.linear import fit_path
from elmo_zh.tasks.scores import Difference, Rows, bootstrap_difference, score_rows
from elmo_zh.tasks.vector_cache import Sentence, VectorCache
from elmo_zh.version import __version__

DATA = "probe.json"
# The inverse strength of the penalty.
_STRENGTH = 10.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Probed:
    """The scores of one layer or, without a layer number, of other vectors to compare with the layers."""

    name: str
    layer: int | None
    rows: Rows  # counts of correct answers and of all answers per sentence or occurrence, float64, shape (N, 2)
    # Accuracy on the development examples, by which the layer is chosen; None if there are none
    dev_score: float | None = None

    @property
    def score(self) -> float:
        """The accuracy over all sentences or occurrences."""
        return score_rows(self.rows, metric="accuracy")


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeReport:
    """The table of a probe: a baseline without vectors, word2vec if available, and the layers."""

    what: str
    baseline: Probed
    others: Sequence[Probed]
    facts: Mapping[str, Any]

    @property
    def best(self) -> Probed:
        """The layer with the highest score, on development examples if possible; ties go to the lowest layer."""
        layers = [each for each in self.others if each.layer is not None]
        return max(layers, key=lambda each: each.score if each.dev_score is None else each.dev_score)

    def difference(self, probed: Probed) -> Difference:
        """Return how much more accurate a layer is than the baseline, with a 95% interval."""
        return bootstrap_difference([probed.rows], [self.baseline.rows], metric="accuracy", seed=1)

    def lines(self) -> list[str]:
        """Return the table and the recommended layer as lines of text."""
        rows = [[self.baseline.name, f"{self.baseline.score:.4f}", ""]]
        for each in self.others:
            rows.append([each.name, f"{each.score:.4f}", self.difference(each).points()])
        head = [self.what, "accuracy", "points above the baseline (95% interval)"]
        best = self.best.layer
        return [*table(head, rows).split("\n"), "", f"The best layer is {best}. To use it alone: --layers {best}"]

    def to_json(self) -> dict[str, Any]:
        """Return the figures of all rows, and the facts about model and data."""
        rows = [
            {
                "name": each.name,
                "layer": each.layer,
                "accuracy": each.score,
                "dev_accuracy": each.dev_score,
                **({} if each is self.baseline else {"above_baseline": asdict(self.difference(each))}),
            }
            for each in (self.baseline, *self.others)
        ]
        return {"elmo_zh": __version__, "what": self.what, "best_layer": self.best.layer, "rows": rows, **self.facts}

    def write(self, folder: Path, name: str) -> None:
        """Write the report to a new folder, as Markdown and as JSON."""
        folder.mkdir()
        lines = [f"# {name}", "", *self.lines(), ""]
        (folder / "probe.md").write_text("\n".join(lines), encoding="utf-8")
        write_json(folder / DATA, self.to_json())
        write_mark(folder, "probe", 1, {"model": self.facts["model"]})


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
    """Predict the tag of each word, such as its part of speech, from each layer's vectors separately."""
    reporter = reporter or SilentReporter()
    probe = TagProbe.of(files, reading, embedder, output, word2vec, reporter)
    return run_job(probe, force=force, reporter=reporter)


def word2vec_beside(
    path: Path | None, embedder: ElmoEmbedder, sentences: Sequence[Sentence], reporter: Reporter
) -> Word2Vec | None:
    """Return word2vec vectors for the words in the sentences, to compare with the layers, or None if unavailable."""
    if path is None and not BundleLayout(embedder.bundle.path).word2vec.is_file():
        reporter.note(
            f"{embedder.bundle.path} has no word2vec vectors to compare its layers with. Give a model or run that has"
            " such vectors: --word2vec PATH"
        )
        return None
    return read_alike(Word2Vec.load(path or embedder.bundle.path), embedder, sentences)


def facts_of(embedder: ElmoEmbedder, parts: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the path and digest of the model and the size of each part, for the report of a probe."""
    bundle = embedder.bundle
    return {
        "model": {"path": str(bundle.path), "digest": bundle.digest},
        "examples": {part: len(examples) for part, examples in parts.items()},
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class TagProbe:
    """Fits a linear model on each layer, and on word2vec vectors, to predict the tags of words."""

    dataset: Dataset
    data: Mapping[str, Any]  # what the dataset depends on
    texts: Texts
    embedder: ElmoEmbedder
    word2vec: Word2Vec | None
    output: Path

    valuable = ()
    may_replace = staticmethod(written_as("probe"))

    @classmethod
    def of(
        cls,
        files: DataFiles,
        reading: Reading,
        embedder: ElmoEmbedder,
        output: Path,
        word2vec: Path | None,
        reporter: Reporter,
    ) -> "TagProbe":
        """Read the data, and find word2vec vectors to compare with."""
        files = find_files(files, reporter)
        dataset = load_dataset(files, reading, reporter)
        if dataset.scheme:
            raise CorpusError(f"{files.data}: the tags mark spans. Use tags of single words, such as parts of speech.")
        if not dataset.test:
            raise CorpusError(f"{files.data}: there are no test examples to score. Give a file: --test FILE")
        texts = read_texts(dataset, embedder, reporter)
        beside = word2vec_beside(word2vec, embedder, list(sentences_of(chain(*texts.values()))), reporter)
        data = describe_data(dataset, files, reading)
        return cls(dataset=dataset, data=data, texts=texts, embedder=embedder, word2vec=beside, output=output)

    @property
    def inputs(self) -> list[Path]:
        """The data and the model."""
        return [*self.dataset.files.values(), self.embedder.bundle.path]

    @property
    def _sentences(self) -> list[Sentence]:
        return list(sentences_of(chain(*self.texts.values())))

    def made_from(self) -> dict[str, Any]:
        """Return what the scores depend on."""
        return {**self.data, "word2vec": word2vec_digest(self.word2vec), **self.embedder.identity()}

    def make(self, path: Path, work: Work) -> ProbeReport:
        """Compute the vectors, fit a model on each layer, and write the report."""
        cache = VectorCache.on_disk(work.within("vectors"), self.embedder, self._sentences)
        layers: list[int | None] = [*([None] if self.word2vec else []), *range(cache.vectors.shape[1])]

        def fit(layer: int | None, _: Files) -> Json:
            dev_score, rows = self._fit(self._vectors(cache, layer))
            return {"dev_score": dev_score, "rows": rows.tolist()}

        step = Step(name="linear models", compute=fit, unit="models", total=len(layers), in_order=True)
        others = []
        for layer, part in zip(layers, work.run(step, layers), strict=True):
            name, found = "word2vec" if layer is None else f"layer {layer}", part.value()
            rows = np.array(found["rows"], np.float64)
            others.append(Probed(name=name, layer=layer, rows=rows, dev_score=found["dev_score"]))
            work.reporter.note(f"{name}: accuracy {others[-1].score:.4f}")
        what = f"tag of each word ({len(self._labels)} tags)"
        facts = facts_of(self.embedder, self.dataset.parts())
        report = ProbeReport(what=what, baseline=self._baseline(), others=others, facts=facts)
        report.write(path, self.output.name)
        return report

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        return self.dataset.labels()

    @cached_property
    def _classes(self) -> dict[str, NDArray[np.int64]]:
        numbers = {label: number for number, label in enumerate(self._labels)}
        return {
            part: np.array([numbers.get(label, -1) for example in examples for label in example.labels], np.int64)
            for part, examples in self.dataset.parts().items()
        }

    def _vectors(self, cache: VectorCache, layer: int | None) -> dict[str, Any]:
        """Return a layer's vectors of all words by part, or their word2vec vectors, shape (N, D)."""
        if layer is None and (word2vec := self.word2vec) is not None:
            rows = {part: self._rows(part, lambda text: word2vec.rows(text.tokens)) for part in self.texts}
            return {part: word2vec.table[rows_of_part] for part, rows_of_part in rows.items()}
        rows = {part: self._rows(part, lambda text: cache.rows(text.sentences)) for part in self.texts}
        return {part: np.asarray(cache.vectors[rows_of_part, layer]) for part, rows_of_part in rows.items()}

    def _rows(self, part: str, rows_of: Any) -> NDArray[np.int64]:
        found = [np.zeros(0, np.int64)]
        for [text] in self.texts[part]:
            found.append(np.concatenate([rows_of(text), np.zeros(1, np.int64)])[text.owners])
        return np.concatenate(found).astype(np.int64)

    def _fit(self, vectors: Mapping[str, Any]) -> tuple[float, Rows]:
        """Return the accuracy on the development examples, and the counts of correct tags in the test sentences."""
        [(_, model)] = fit_path(vectors["train"], self._classes["train"], len(self._labels), [_STRENGTH])
        dev, test = (model.log_probabilities(vectors[part]).argmax(axis=1) for part in ("dev", "test"))
        return float((dev == self._classes["dev"]).mean()), self._by_sentence(test)

    def _baseline(self) -> Probed:
        """Predict each word's most frequent training tag; for unseen words, the most frequent tag overall."""
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for word, number in zip(self._words("train"), self._classes["train"].tolist(), strict=True):
            counts[word][number] += 1
        overall = int(np.bincount(self._classes["train"]).argmax())
        best = {word: min(each, key=lambda number: (-each[number], number)) for word, each in counts.items()}
        found = np.array([best.get(word, overall) for word in self._words("test")], np.int64)
        return Probed(name="most frequent tag of the word", layer=None, rows=self._by_sentence(found))

    def _words(self, part: str) -> Iterator[str]:
        for [text] in self.texts[part]:
            yield from (text.text[start:end] for start, end in text.units)

    def _by_sentence(self, found: NDArray[np.int64]) -> NDArray[np.float64]:
        """Count the correct tags and all tags in each test sentence."""
        lengths = [len(example.labels) for example in self.dataset.test]
        right = np.split(found == self._classes["test"], np.cumsum(lengths)[:-1])
        return np.array([(each.sum(), len(each)) for each in right], np.float64)
