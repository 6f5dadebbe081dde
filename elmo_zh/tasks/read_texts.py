"""The texts of all examples with their units and tokens, and the vectors of their sentences."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.run.reporter import Reporter
from elmo_zh.tasks.data.datasets import Dataset
from elmo_zh.tasks.data.examples import Example
from elmo_zh.tasks.task_model import read_example
from elmo_zh.tasks.units import TextReader, UnitText, sentences_of
from elmo_zh.tasks.vector_cache import VectorCache

# The texts of the examples of each part; a pair has two.
Texts = Mapping[str, Sequence[Sequence[UnitText]]]


def read_texts(dataset: Dataset, embedder: ElmoEmbedder, reporter: Reporter) -> dict[str, list[list[UnitText]]]:
    """Return the texts of each example with their units and tokens, by the name of the part."""
    reader = TextReader(embedder, by_words=True)
    parts = dataset.parts()
    with reporter.progress("segment", unit="texts", total=sum(map(len, parts.values()))) as progress:

        def read(example: Example) -> list[UnitText]:
            progress.update(1)
            return read_example(reader, example)

        return {part: [read(example) for example in examples] for part, examples in parts.items()}


def cached_vectors(texts: Texts, embedder: ElmoEmbedder, parts: Path, reporter: Reporter) -> VectorCache:
    """Compute the vectors of all sentences of all texts, unless they are in `parts/vectors` already."""
    return VectorCache.on_disk(parts / "vectors", embedder, sentences_of(chain(*texts.values())), reporter)
