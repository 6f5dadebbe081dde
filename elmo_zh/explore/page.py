"""The page of `explore`: its content, and the self-contained HTML file with it."""

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from elmo_zh.checks import Place
from elmo_zh.contexts import PageChoice
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Occurrence
from elmo_zh.contexts.line_scorer import LineScorer, TokenScore
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.senses import usage_layer
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import ElmoZhError, OutputError
from elmo_zh.explore.points import (
    PointLabels,
    agreements,
    choose_points,
    colour_points,
    compute_maps,
    point_neighbours,
)
from elmo_zh.invocation import needs
from elmo_zh.language import _, chosen_language
from elmo_zh.run.files import atomic_path
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter, format_bytes

NUM_NEIGHBOURS, NUM_SUBSTITUTES = 8, 8
# A larger page is slow to open and to send to others.
MOST_BYTES = 20_000_000
_HERE = files("elmo_zh.explore")


class PageContent:
    """The content of a page: `overview`, and a part for each word, which takes longer to compute.

    Points are numbered from 0, word by word, and so are lines. `overview` is a dictionary with

        `index`, `model`: their names;
        `segmented`: whether the lines have a space between tokens;
        `layers`, `usage_layer`: numbers of the layers, and the layer that usages come from;
        `has_softmax`: whether the model can give surprisal and substitutes;
        `words`: for each word [word, its count in the texts, its first point, one past its last point];
        `points`: for each point [line, start, end], in characters of the line;
        `lines`: for each line [text, short name of its source, line number there, its first character in that line],
            from 0;
        `colourings`: by name, as in `colour_points`: `labels`; `labels_zh`, the same in Chinese or empty; `points`, the
            number of each point's label or null;
        `agreements`: by name of a colouring by labels, the `agreements` of each word;
        `neighbours`: by layer, for each point, a descending list of [point, cosine in thousandths].
    """

    def __init__(
        self,
        index: ContextIndex,
        embedder: ElmoEmbedder,
        choice: PageChoice,
        reporter: Reporter,
        labels: PointLabels | None = None,
    ) -> None:
        """Choose words and points, and compute the data shared by all words."""
        self._index, self._embedder, self._reporter = index, embedder, reporter
        self._seed = choice.seed
        self._reader = TokenReader(embedder, segmented=index.is_segmented)
        self._words = choose_points(index, choice, reporter, labels.words if labels else ())
        if labels and choice.labels:
            labels.report_missing(index, [word.word for word in self._words], reporter)
        self.overview = self._overview(labels)
        self.word = cache(self._word)

    def _overview(self, labels: PointLabels | None) -> dict[str, Any]:
        index = self._index
        words = self._words
        points = [point for word in words for point in word.occurrences]
        lines = {number: index.line(number) for number in dict.fromkeys(point.line for point in points)}
        names, places = short_names(index.sources), {number: place for place, number in enumerate(lines)}
        ends = np.cumsum([0, *(len(word.occurrences) for word in words)]).tolist()
        colourings = colour_points(index, words, names, labels, self._reporter)
        is_of_run = index.path.name == RunDir(index.path.parent).index.name
        return {
            "index": _short_name(index.path) if is_of_run else index.path.name,
            "model": _short_name(Path(index.model["path"])),
            "segmented": index.is_segmented,
            "layers": list(index.layers),
            "usage_layer": usage_layer(index),
            "has_softmax": has_probabilities(self._embedder),
            "words": [[word.word, index.count(word.word), *ends[n : n + 2]] for n, word in enumerate(words)],
            "points": [[places[point.line], point.start, point.end] for point in points],
            "lines": [[line.text, names[line.source], line.number, line.start] for line in lines.values()],
            "colourings": colourings,
            "agreements": agreements(colourings, words),
            "neighbours": _neighbours(index, points, [lines[point.line].text for point in points]),
        }

    @property
    def num_words(self) -> int:
        """The number of words on the page."""
        return len(self._words)

    def _word(self, number: int) -> dict[str, Any]:
        """Return a word's part of the page, with an entry for each of its points.

        `maps` has the points' [x, y] by layer and method; `tokens` has the `token_records` of their lines;
        `substitutes` has descending lists of [word, probability], or is null without a softmax.
        """
        points = self._words[number].occurrences
        lines = self._reader.read([self._index.line(point.line).text for point in points])
        substitutes = None
        if has_probabilities(self._embedder):
            tokens = [[token.token for token in line] for line in lines]
            places = [(line, point.token) for line, point in zip(tokens, points, strict=True)]
            substitutes = substitute_records(self._embedder, places)
        maps = {}
        for layer in self._index.layers:
            vectors = self._index.vectors(layer)[self._words[number].numbers]
            computed = compute_maps(unit_rows(vectors), self._seed)
            maps[str(layer)] = {method: places.tolist() for method, places in computed.items()}
        return {"maps": maps, "tokens": [token_records(line) for line in lines], "substitutes": substitutes}

    def whole(self) -> dict[str, Any]:
        """Return `overview` with `parts` for all words."""
        parts = []
        with self._reporter.progress("words", total=self.num_words, unit="words") as progress:
            for number in range(self.num_words):
                parts.append(self.word(number))
                progress.update(1)
        return {**self.overview, "parts": parts}


def _short_name(path: Path) -> str:
    return "/".join(path.resolve().parts[-2:])


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of texts without their common folders, which may reveal details about this machine."""
    folders = [name.split("/")[:-1] for name in names]
    num_shared = len(list(takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))))
    return {name: "/".join(name.split("/")[num_shared:]) for name in names}


def _neighbours(
    index: ContextIndex, points: Sequence[Occurrence], lines: Sequence[str]
) -> dict[str, list[list[tuple[int, int]]]]:
    numbers = np.array([point.number for point in points], np.int64)
    distinct: dict[str, int] = {}
    texts = [distinct.setdefault(line, len(distinct)) for line in lines]
    return {
        str(layer): point_neighbours(unit_rows(index.vectors(layer)[numbers]), texts, NUM_NEIGHBOURS)
        for layer in index.layers
    }


class TokenReader:
    """Reads the tokens of lines, with each token's surprisal if the model has a softmax."""

    def __init__(self, embedder: ElmoEmbedder, *, segmented: bool) -> None:
        self._embedder, self._segmented = embedder, segmented
        self._scorer: LineScorer | None = None
        if has_probabilities(embedder):
            self._scorer = LineScorer(
                embedder.bundle, segmented=segmented, by_token=True, user_dictionary=embedder.user_dictionary
            )

    def read(self, texts: Sequence[str]) -> list[Sequence[TokenScore]]:
        """Return the tokens of lines; the surprisal is NaN if the model has no softmax."""
        if self._scorer is None:
            return [list(self._unscored_tokens(text)) for text in texts]
        return [score.tokens or () for score in self._scorer.score(texts)]

    def _unscored_tokens(self, text: str) -> Iterator[TokenScore]:
        prepared = self._embedder.prepare(text, segmented=self._segmented)
        unknown = self._embedder.find_unknown(prepared.tokens).tolist()
        for token, (start, end), is_unknown in zip(prepared.tokens, prepared.offsets.tolist(), unknown, strict=True):
            yield TokenScore(token, start, end, math.nan, math.nan, is_unknown)


def has_probabilities(embedder: ElmoEmbedder) -> bool:
    """Return whether a model can compute surprisal and substitutes; converted models often lack the softmax."""
    return embedder.bundle.weights.has_softmax and embedder.bundle.vocabulary is not None


def substitute_records(embedder: ElmoEmbedder, places: Sequence[Place]) -> list[list[list[Any]]]:
    """Return the substitutes at each position as [word, probability], without the original word."""
    records = []
    for substitutes in embedder.substitutes_many(places, NUM_SUBSTITUTES + 1):
        best = substitutes.others[:NUM_SUBSTITUTES]
        records.append([[one.word, float(f"{one.probability:.2g}")] for one in best])
    return records


def token_records(tokens: Sequence[TokenScore]) -> list[list[Any]]:
    """Return [start, end, forward nats, backward nats, 1 if unknown] for each token, with None for NaN."""
    return [
        [
            token.start,
            token.end,
            *(None if math.isnan(nats) else round(nats, 2) for nats in (token.forward_nats, token.backward_nats)),
            int(token.is_unknown),
        ]
        for token in tokens
    ]


def write_page(data: Mapping[str, Any], path: Path) -> int:
    """Write a page, and return its size in bytes; raise OutputError if it is larger than `MOST_BYTES`."""
    content = build_page(data).encode()
    if len(content) > MOST_BYTES:
        raise OutputError(
            _(
                "{path} would be {content}, larger than the limit of {MOST_BYTES}. Lower --max-per-word, or choose"
                " fewer words with --word or --num-words."
            ).format(path=path, content=format_bytes(len(content)), MOST_BYTES=format_bytes(MOST_BYTES))
        )
    with atomic_path(path) as unfinished:
        unfinished.write_bytes(content)
    return len(content)


def build_page(data: Mapping[str, Any], *, live: bool = False) -> str:
    """Return the HTML of a page; if `live`, it can ask its server about words and sentences.

    Its content security policy allows only this page's scripts, by digest, so that a corpus cannot bring its own.
    """
    scripts = [*_bokeh_scripts(), _read("page.texts.js"), _read("page.js")]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{digest}'" for digest in digests),
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return Template(_read("page.html")).substitute(
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        style=_read("page.css"),
        data=embedded_json({**data, "live": live, "language": chosen_language()}),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def embedded_json(data: Mapping[str, Any]) -> str:
    """Return JSON that is safe inside an HTML script element: without <, it can neither end nor start an element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def check_packages() -> None:
    """Raise ElmoZhError if a package that the page needs is not installed."""
    for module, package in (("bokeh", "bokeh"), ("sklearn", "scikit-learn")):
        if find_spec(module) is None:
            raise ElmoZhError(needs("explore", package, "explore"))


def _bokeh_scripts() -> list[str]:
    from bokeh.resources import Resources

    scripts: list[str] = Resources(mode="inline", components=["bokeh", "bokeh-api"]).js_raw
    # HTML parsers end lines with \n alone, before the browser computes a digest.
    return [script.replace("\r\n", "\n").replace("\r", "\n") for script in scripts]


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
