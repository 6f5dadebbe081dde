"""Measure how well each layer of a model separates the senses of marked words, by nearest neighbour."""

import csv
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.read_source import decoded_files
from elmo_zh.corpus.sources import find_sources
from elmo_zh.corpus.tally import PassedOver
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.unknown_rate import TokenForms
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import parse_json
from elmo_zh.run.job import Work, run_job
from elmo_zh.run.mark import written_as
from elmo_zh.run.reporter import Reporter, SilentReporter, counted
from elmo_zh.tasks.encode_texts import TextReader
from elmo_zh.tasks.probe import Probed, ProbeReport, facts_of, word2vec_beside
from elmo_zh.tasks.vector_cache import Sentence, VectorCache

# word2vec gives a word one vector for all its senses, so this many words on either side are averaged instead.
_WINDOW_WORDS = 5
COLUMNS = ("file", "line", "start", "end", "word", "sense")
_HEADER = ", ".join(COLUMNS)
_TARGET = "<target>"
_LONGEST_LINE = 2**20

# The tokens of a sentence, and the positions of those that a marked word consists of or overlaps.
Place = tuple[tuple[str, ...], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class MarkedWord:
    """One occurrence of a word, marked in a sentence."""

    word: str
    sense: str  # its sense here
    text: str = ""  # the raw line with the word; "" if the sentence is segmented
    start: int = 0  # its first character in the line
    end: int = 0  # one past its last character
    tokens: tuple[str, ...] = ()  # the segmented sentence; empty if the line is raw
    position: int = 0  # the position of the word among the tokens, from 0


def read_senses(path: Path, texts: Path | None, encoding: str = "auto") -> list[MarkedWord]:
    """Read the marked words in a file, compressed or not; if it is a table, its texts are in the folder `texts`.

    The file is a tab-separated table with `COLUMNS`, or JSON lines with context (the tokens, where <target> may
    stand for the word), target_word, target_position (from 0) and sense (a string or a list).
    """
    found: list[MarkedWord] = []
    for source in find_sources([str(path)]).sources:
        for text in decoded_files(source, encoding, PassedOver()):
            is_json = text.head(_LONGEST_LINE).lstrip().startswith("{")
            found += _read_objects(text) if is_json else _read_table(text, texts or path.parent)
    if not found:
        raise CorpusError(f"{path} has no marked words. Give a table or JSON lines with one marked word per line.")
    return found


def _read_objects(text: DecodedText) -> Iterator[MarkedWord]:
    for number, line in enumerate(text.whole_lines(_LONGEST_LINE), start=1):
        if line.strip():
            try:
                yield _object(parse_json(line))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise CorpusError(
                    f"{text.name}: line {number} has no marked word ({error!r:.60}). Expected an object with context"
                    " (a list of tokens), target_word, target_position and sense."
                ) from None


def _object(found: dict[str, Any]) -> MarkedWord:
    context, position, word, sense = (found[key] for key in ("context", "target_position", "target_word", "sense"))
    if not isinstance(context, list) or not isinstance(position, int) or not 0 <= position < len(context):
        raise ValueError("target_position is no position in context")
    if context[position] not in (_TARGET, word):
        raise ValueError(f"{context[position]!r} at target_position; expected {word!r}")
    senses = [sense] if isinstance(sense, str) else sense
    if not word or not senses:
        raise ValueError("an empty word or sense")
    # Leave out tokens that are only white space.
    sides = context[:position], context[position + 1 :]
    before, after = ([str(token) for token in side if str(token).strip()] for side in sides)
    return MarkedWord(word=word, sense="|".join(map(str, senses)), tokens=(*before, word, *after), position=len(before))


def _read_table(text: DecodedText, texts: Path) -> Iterator[MarkedWord]:
    lines_of: dict[str, Sequence[str]] = {}
    rows = csv.reader(text.whole_lines(_LONGEST_LINE), delimiter="\t", quoting=csv.QUOTE_NONE)
    head = next(rows, [])
    if tuple(head[: len(COLUMNS)]) != COLUMNS:
        raise CorpusError(
            f"{text.name}: the columns are {', '.join(head)[:60]!r}; the first ones should be {_HEADER},"
            " separated by tabs. JSON lines are also accepted."
        )
    for number, row in enumerate(rows, start=2):
        where = f"{text.name}: line {number}"
        if len(row) != len(head) or not all(cell.isdecimal() for cell in row[1:4]) or not row[5]:
            raise CorpusError(f"{where} has a missing or invalid value. Check its columns: {_HEADER}.")
        name, word, sense = row[0], row[4], row[5]
        line, start, end = map(int, row[1:4])
        if name not in lines_of:
            lines_of[name] = _lines(texts, name, where)
        raw = lines_of[name][line] if line < len(lines_of[name]) else ""
        if not word or raw[start:end] != word:
            raise CorpusError(
                f"{where}: line {line} of {name} has {raw[start:end][:20]!r} at characters {start} to {end} (end"
                f" excluded); expected {word!r}. Correct these numbers, which count from 0, or give the texts with"
                " --text FOLDER."
            )
        yield MarkedWord(word=word, sense=sense, text=raw, start=start, end=end)


def _lines(folder: Path, name: str, where: str) -> Sequence[str]:
    path = folder / name
    if not path.is_file():
        raise CorpusError(f"{where}: {path} does not exist. Give the folder that contains the texts: --text FOLDER")
    return list(iter_lines(path))


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
    """Predict each occurrence's sense from the word's most similar other occurrence, for each layer separately.

    Words with one sense or one occurrence are left out. For word2vec, the vectors of surrounding words are averaged.
    """
    reporter = reporter or SilentReporter()
    marked = _ambiguous(read_senses(path, texts, encoding), path, reporter)
    places = _places(marked, embedder)
    probe = SenseProbe(
        inputs=(path, *([texts] if texts else []), embedder.bundle.path),
        marked=marked,
        places=places,
        embedder=embedder,
        word2vec=word2vec_beside(word2vec, embedder, [tokens for tokens, _ in places], reporter),
        output=output,
    )
    return run_job(probe, force=force, reporter=reporter)


@dataclass(frozen=True, kw_only=True, eq=False)
class SenseProbe:
    """Predicts the sense of each marked word by its most similar other occurrence."""

    inputs: Sequence[Path]
    marked: Sequence[MarkedWord]
    places: Sequence[Place]
    embedder: ElmoEmbedder
    word2vec: Word2Vec | None
    output: Path

    valuable = ()
    may_replace = staticmethod(written_as("probe"))

    @property
    def _sentences(self) -> list[Sentence]:
        return [tokens for tokens, _ in self.places]

    def made_from(self) -> dict[str, Any]:
        """Return what the vectors depend on."""
        sentences = hashlib.sha256(json.dumps(self._sentences).encode()).hexdigest()
        return {"sentences": sentences, **self.embedder.identity()}

    def make(self, path: Path, work: Work) -> ProbeReport:
        """Compute the vectors, and write the report."""
        cache = VectorCache.on_disk(work.within("vectors"), self.embedder, self._sentences)
        facts = facts_of(self.embedder, {"occurrences": self.marked})
        report = _report_senses(self.marked, self.places, cache, self.word2vec, facts)
        report.write(path, self.output.name)
        return report


def _ambiguous(marked: Sequence[MarkedWord], path: Path, reporter: Reporter) -> list[MarkedWord]:
    senses: dict[str, set[str]] = defaultdict(set)
    for each in marked:
        senses[each.word].add(each.sense)
    found = [each for each in marked if len(senses[each.word]) > 1]
    if not found:
        raise CorpusError(f"{path}: each word occurs in only one sense. Add occurrences in other senses.")
    num_words = sum(len(each) > 1 for each in senses.values())
    reporter.note(
        f"Reading {path}: {counted(len(found), 'occurrence')} of {counted(num_words, 'word')} with several senses."
        f" Occurrences left out because their word has only one sense: {len(marked) - len(found):,}."
    )
    return found


def _places(marked: Sequence[MarkedWord], embedder: ElmoEmbedder) -> list[Place]:
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
    else:  # the word crosses the end of a sentence
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
        others.append(probed("word2vec vectors of the surrounding words", None, np.stack(around)))
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
        what=f"sense of each occurrence ({counted(len(counts), 'word')})", baseline=baseline, others=others, facts=facts
    )


def _right_rows(marked: Sequence[MarkedWord], found: Sequence[str]) -> NDArray[np.float64]:
    return np.array([(each.sense == sense, 1.0) for each, sense in zip(marked, found, strict=True)], np.float64)


def nearest_senses(marked: Sequence[MarkedWord], vectors: NDArray[np.float32]) -> list[str]:
    """Return, for each occurrence, the sense of its word's most similar other one; `vectors` has shape (N, D)."""
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
    """Return the mean vector of the words around a word, float32, shape (P,); zeros without neighbours."""
    if not len(positions):
        return np.zeros(word2vec.dimension, np.float32)
    first, last = int(positions[0]), int(positions[-1])
    around = [*tokens[max(0, first - _WINDOW_WORDS) : first], *tokens[last + 1 : last + 1 + _WINDOW_WORDS]]
    vectors = word2vec.table[word2vec.rows(around)].astype(np.float32)
    found: NDArray[np.float32] = vectors.sum(axis=0) / max(1, len(around))
    return found
