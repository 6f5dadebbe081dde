"""The page as one HTML file that loads nothing from anywhere, and its content: points, maps, lines and substitutes."""

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

from elmo_zh.checks import Place
from elmo_zh.contexts import PageChoice
from elmo_zh.contexts.explore.colourings import PointLabels, colour_points
from elmo_zh.contexts.explore.points import (
    METHODS,
    WordPoints,
    choose_points,
    compute_maps,
    point_neighbours,
)
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import IndexedLine, Occurrence
from elmo_zh.contexts.line_scorer import LineReading, LineScorer, TokenScore
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import ElmoZhError, OutputError
from elmo_zh.extras import install_line
from elmo_zh.run.files import atomic_path
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter, format_bytes

# A larger page is slow to open and to send to others.
MOST_BYTES = 20_000_000
_HERE = files("elmo_zh.contexts.explore")
# Neighbours and substitutes that are kept for each point.
NUM_NEIGHBOURS, NUM_SUBSTITUTES = 8, 8
# Lines or points that are computed between two updates of the progress bar.
_AT_A_TIME = 256


def write_page(data: Mapping[str, Any], path: Path) -> int:
    """Write a page and return its size in bytes; raise OutputError for a page larger than `MOST_BYTES`."""
    content = build_page(data).encode()
    if len(content) > MOST_BYTES:
        raise OutputError(
            f"{path} would have {format_bytes(len(content))}, more than {format_bytes(MOST_BYTES)}. Lower"
            " --max-per-word, or choose fewer words with --word or --num-words."
        )
    with atomic_path(path) as unfinished:
        unfinished.write_bytes(content)
    return len(content)


def build_page(data: Mapping[str, Any], *, live: bool = False) -> str:
    """Return the HTML of a page.

    Its content security policy lets the browser run the scripts of this page alone, by their digests, and load nothing.
    So not even markup in a corpus that got into the page could do anything. A `live` page may ask its server about
    sentences.
    """
    scripts = [*_bokeh_scripts(), _read("page.texts.js"), _read("page.js")]
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{_digest(script)}'" for script in scripts),
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return Template(_read("page.html")).substitute(
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        style=_read("page.css"),
        data=embedded_json({**data, "live": live}),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def embedded_json(data: Mapping[str, Any]) -> str:
    """Return JSON that can be in a script element of HTML: without <, it can neither end the element nor begin one."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def check_packages() -> None:
    """Raise ElmoZhError if a package that only this page needs is not installed."""
    for module, package in (("bokeh", "bokeh"), ("sklearn", "scikit-learn")):
        if find_spec(module) is None:
            raise ElmoZhError(f"explore needs {package}. Install it with: {install_line('explore')}")


def _bokeh_scripts() -> list[str]:
    from bokeh.resources import Resources

    found: list[str] = Resources(mode="inline", components=["bokeh", "bokeh-api"]).js_raw
    # The parser of HTML ends lines with \n alone, before the browser computes a digest.
    return [script.replace("\r\n", "\n").replace("\r", "\n") for script in found]


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def build_page_data(
    index: ContextIndex,
    embedder: ElmoEmbedder,
    choice: PageChoice,
    device: str,
    reporter: Reporter,
    labels: PointLabels | None = None,
) -> dict[str, Any]:
    """Return the content of a page. Points are numbered from 0, word by word, and so are lines.

    Returns:
        A dictionary with
        `index`, `model`: their names;
        `segmented`: whether the lines have a space between tokens;
        `layers`: numbers of the layers;
        `words`: [word, number of its occurrences in the texts, its first point, the point after its last one] each;
        `points`: [line, start, end] each, in characters of the line;
        `colourings`: by name `labels`, `colours`, the number of each label's colour or null for grey, and `points`, the
            number of each point's label or null; the names are those of `colour_points`;
        `maps`: by layer and method [x, y] for each point;
        `neighbours`: by layer, for each point [point, cosine in thousandths] each, descending;
        `lines`: [text, short name of its source, number in its text from 0, tokens] each, tokens as
            `token_records` returns;
        `substitutes`: for each point [word, probability] each, descending; null if the model has no softmax.
    """
    words = choose_points(index, choice, reporter)
    points = [point for word in words for point in word.occurrences]
    numbers = list(dict.fromkeys(point.line for point in points))
    names = short_names(index.sources)
    maps = _maps(index, words, choice.seed, reporter)
    lines = page_lines(index, embedder, numbers, device, reporter)
    places = {number: place for place, number in enumerate(numbers)}
    return {
        "index": _name_of_index(index.path),
        "model": _short_name(Path(index.model["path"])),
        "segmented": index.is_segmented,
        "layers": list(index.layers),
        "words": _word_records(index, words),
        "points": [[places[point.line], point.start, point.end] for point in points],
        "colourings": colour_points(index, words, names, labels, reporter),
        "maps": maps,
        "neighbours": _neighbours(index, points, lines),
        "lines": [
            [line.line.text, names[line.line.source], line.line.number, token_records(line.tokens)]
            for line in lines.values()
        ],
        "substitutes": point_substitutes(lines, embedder, points, reporter) if has_probabilities(embedder) else None,
    }


def _word_records(index: ContextIndex, words: Sequence[WordPoints]) -> list[list[Any]]:
    """Return for each word itself, its count in the texts, its first point and the point after its last one."""
    ends = np.cumsum([len(word.occurrences) for word in words]).tolist()
    return [
        [word.word, index.count(word.word), end - len(word.occurrences), end]
        for word, end in zip(words, ends, strict=True)
    ]


def _name_of_index(path: Path) -> str:
    """Return the name of an index; of one that is in a run, with the run's name."""
    return _short_name(path) if path.name == RunDir(path.parent).index.name else path.name


def _short_name(path: Path) -> str:
    """Return the last two parts of a path, without a link such as `latest`."""
    return "/".join(path.resolve().parts[-2:])


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of texts without the folders that all of them share, which say much about this machine."""
    folders = [name.split("/")[:-1] for name in names]
    num_shared = len(list(takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))))
    return {name: "/".join(name.split("/")[num_shared:]) for name in names}


def _maps(
    index: ContextIndex, words: Sequence[WordPoints], seed: int, reporter: Reporter
) -> dict[str, dict[str, list[list[int]]]]:
    maps: dict[str, dict[str, list[list[int]]]] = {
        str(layer): {method: [] for method in METHODS} for layer in index.layers
    }
    with reporter.progress("maps", total=len(words) * len(index.layers), unit="maps") as progress:
        for word in words:
            for layer in index.layers:
                computed = compute_maps(unit_rows(index.vectors_of(word.numbers, layer)), seed)
                for method in METHODS:
                    maps[str(layer)][method] += getattr(computed, method).tolist()
                progress.update(1)
    return maps


def _neighbours(
    index: ContextIndex, points: Sequence[Occurrence], lines: "dict[int, PageLine]"
) -> dict[str, list[list[tuple[int, int]]]]:
    numbers = np.array([point.number for point in points], np.int64)
    distinct: dict[str, int] = {}
    texts = [distinct.setdefault(lines[point.line].line.text, len(distinct)) for point in points]
    return {
        str(layer): point_neighbours(unit_rows(index.vectors_of(numbers, layer)), texts, NUM_NEIGHBOURS)
        for layer in index.layers
    }


class PageLine(NamedTuple):
    """A line of a page, and its tokens with their surprisal, which is NaN if the model has no softmax."""

    line: IndexedLine
    tokens: Sequence[TokenScore]


class TokenReader:
    """Reads lines, with the surprisal of each token if the model has a softmax."""

    def __init__(self, embedder: ElmoEmbedder, device: str, *, segmented: bool) -> None:
        self._embedder, self._segmented = embedder, segmented
        self._scorer: LineScorer | None = None
        if has_probabilities(embedder):
            reading = LineReading(segmented=segmented, by_token=True)
            self._scorer = LineScorer(embedder.bundle, device, reading, embedder.user_dictionary)

    def read(self, texts: Sequence[str]) -> list[Sequence[TokenScore]]:
        """Return the tokens of lines; their surprisal is NaN if the model has no softmax."""
        if self._scorer is None:
            return [list(self._unscored_tokens(text)) for text in texts]
        return [score.tokens or () for score in self._scorer.score(texts)]

    def _unscored_tokens(self, text: str) -> Iterator[TokenScore]:
        prepared = self._embedder.prepare(text, segmented=self._segmented)
        unknown = self._embedder.find_unknown(prepared.tokens).tolist()
        for token, (start, end), is_unknown in zip(prepared.tokens, prepared.offsets.tolist(), unknown, strict=True):
            yield TokenScore(token, start, end, math.nan, math.nan, is_unknown)


def has_probabilities(embedder: ElmoEmbedder) -> bool:
    """Return whether a model can give surprisal and substitutes: models of other programs often lack the softmax."""
    return embedder.bundle.softmax is not None and embedder.bundle.vocabulary is not None


def page_lines(
    index: ContextIndex, embedder: ElmoEmbedder, numbers: Sequence[int], device: str, reporter: Reporter
) -> dict[int, PageLine]:
    """Return the lines of a page by their numbers in the index."""
    reader = TokenReader(embedder, device, segmented=index.is_segmented)
    found: dict[int, PageLine] = {}
    with reporter.progress("sentences", total=len(numbers), unit="lines") as progress:
        for start in range(0, len(numbers), _AT_A_TIME):
            chosen = numbers[start : start + _AT_A_TIME]
            lines = [index.line(number) for number in chosen]
            tokens = reader.read([line.text for line in lines])
            for number, line, own in zip(chosen, lines, tokens, strict=True):
                found[number] = PageLine(line, own)
            progress.update(len(chosen))
    return found


def point_substitutes(
    lines: Mapping[int, PageLine], embedder: ElmoEmbedder, points: Sequence[Occurrence], reporter: Reporter
) -> list[list[list[Any]]]:
    """Return the substitutes of each point: [word, probability] each, without the point's own word."""
    found: list[list[list[Any]]] = []
    with reporter.progress("substitutes", total=len(points), unit="points") as progress:
        for start in range(0, len(points), _AT_A_TIME):
            chosen = points[start : start + _AT_A_TIME]
            places = [([each.token for each in lines[point.line].tokens], point.token) for point in chosen]
            found += substitute_records(embedder, places)
            progress.update(len(chosen))
    return found


def substitute_records(embedder: ElmoEmbedder, places: Sequence[Place]) -> list[list[list[Any]]]:
    """Return the substitutes at places: [word, probability] each, without the place's own word."""
    found = []
    for substitutes in embedder.substitutes_many(places, NUM_SUBSTITUTES + 1):
        best = [each for each in substitutes.best if each.word != substitutes.word]
        found.append([[each.word, float(f"{each.probability:.2g}")] for each in best[:NUM_SUBSTITUTES]])
    return found


def token_records(tokens: Sequence[TokenScore]) -> list[list[Any]]:
    """Return [start, end, forward nats, backward nats, 1 if unknown] for each token; NaN becomes None."""
    return [
        [
            token.start,
            token.end,
            *(None if math.isnan(nats) else round(nats, 2) for nats in (token.forward_nats, token.backward_nats)),
            int(token.is_unknown),
        ]
        for token in tokens
    ]
