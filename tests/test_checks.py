"""Wrong arguments of every Python call: the type of the exception and its one line, in one table."""

import builtins
from typing import Any

import numpy as np
import pytest
import torch
from contexts.texts import LINES, build, write_text
from drawn_bundles import SHAPES, add_word2vec, write_model
from messages import refusal_of

import elmo_zh
from elmo_zh import ContextIndex, Elmo, ElmoEmbedder, LineScorer, Word2Vec, batch_to_ids
from elmo_zh.config import TextConfig
from elmo_zh.errors import ElmoZhError
from elmo_zh.sklearn import ElmoVectorizer


class NAType:
    """Looks as pandas' NA does from outside; pandas itself is not a dependency."""

    def __repr__(self) -> str:
        return "<NA>"

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


class Table(dict[str, Any]):
    """Looks as a table of pandas does from outside."""

    columns, shape = ("text",), (1, 1)


# A call, the exception, and the beginning of its message.
CASES = """
embedder.embed("我吃") => TypeError: embed: sentences is '我吃'; expected a list of strings
embedder.embed([["今天"]]) => TypeError: embed: sentences[0] is ['今天']; expected a string; embed_tokens takes lists
embedder.embed(["我", NAType()]) => TypeError: embed: sentences[1] is <NA>; expected a string
embedder.embed(Table(text=["我"])) => TypeError: embed: sentences is a whole table; expected a list of strings

embedder.embed_tokens("今 天") => TypeError: embed_tokens: sentences is '今 天'; expected a list of sentences, each a
embedder.embed_tokens(["今天"]) => TypeError: embed_tokens: sentences[0] is '今天'; expected a list of tokens
embedder.embed_tokens([["我"], ["吃", None]]) => TypeError: embed_tokens: sentences[1][1] is None; expected a string
word2vec.embed_tokens(["我"]) => TypeError: word2vec.embed_tokens: sentences[0] is '我'; expected a list of tokens
Elmo.from_bundle(model, vocab_to_cache="今") => TypeError: vocab_to_cache is the string '今'; expected a list of words
embedder.outputs("我 吃") => TypeError: outputs: sentences is '我 吃'; expected a list of strings or of lists of words

embedder.substitutes("苹果", 0) => TypeError: substitutes_many: places[0] is '苹果'; expected a list of tokens
embedder.substitutes(["我"], 0, ranking="x") => ValueError: substitutes_many: ranking is 'x'; expected pattern, slot
embedder.substitutes(["我"], 0, -1) => ValueError: substitutes_many: top is -1; expected a whole number (x>=1)

Elmo() => ValueError: Elmo: expected options_file and weight_file, or module; Elmo.from_bundle takes a bundle
ElmoEmbedder(bundle, "gpu") => ValueError: ElmoEmbedder: device is 'gpu'; expected auto, cpu, cuda
ElmoEmbedder(bundle, batch_tokens=0) => ElmoZhError: ElmoEmbedder: batch_tokens is 0; expected a whole number
ElmoEmbedder(bundle, precision="int4") => ElmoZhError: ElmoEmbedder: precision is 'int4'; expected float32

elmo(character_ids) => ValueError: forward: inputs has shape (2, 2, 50); expected word ids; create them with
character_elmo(word_ids) => ValueError: forward: inputs has shape (1, 2); expected character ids, shape (sentences
elmo(word_ids * 9) => ValueError: forward: inputs has 9; expected 1 to 8, or 0 for padding: word ids
cached_elmo(word_ids, word_ids * 3) => ValueError: forward: word_inputs has 3; expected 1 to 2, or 0 for padding: the

index.neighbours(numbers[:3], 2) => ValueError: neighbours: vector has shape (3,); expected (10)

find_senses(index, "苹果", num_usages=0) => ValueError: find_senses: num_usages is 0; expected a whole number (x>=
measure_drift(index, index, by=5) => ValueError: measure_drift: by is 5; expected excess, apd, prt, jsd

make(layers="1,3") => ValueError: build: layers is '1,3'; expected all, top, or numbers from 0 to 2
make(segmented=True, split_sentences=True) => ValueError: build: segmented text has one sentence per line already

ElmoVectorizer(model, pool="sum").fit(["我"]) => ValueError: ElmoVectorizer: pool is 'sum'; expected mean, max, first-
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("checks")
    text = TextConfig(segmenter="whitespace")
    model = add_word2vec(write_model(folder / "model", SHAPES["token"], text=text, with_softmax=True))
    embedder = ElmoEmbedder.load(model, "cpu")
    build(embedder, [write_text(folder / "a.txt", LINES)], folder / "index", min_count=1)

    def make(**given: Any) -> object:
        return ContextIndex.build(**{"embedder": embedder, "texts": "a.txt", "path": "index", **given})

    return {
        **globals(), **{name: getattr(elmo_zh, name) for name in elmo_zh.__all__}, "ElmoVectorizer": ElmoVectorizer,
        "model": model, "embedder": embedder, "bundle": embedder.bundle, "nan": float("nan"),
        "make": make, "scorer": LineScorer.load(model), "word2vec": Word2Vec.load(model),
        "index": ContextIndex.load(folder / "index"), "find_senses": elmo_zh.find_senses, "numbers": np.ones(10),
        "measure_drift": elmo_zh.measure_drift, "OFFSETS": [(0, 1)],
        "elmo": Elmo.from_bundle(model),
        "character_elmo": Elmo.from_bundle(write_model(folder / "characters", SHAPES["character"])),
        "cached_elmo": Elmo.from_bundle(model, vocab_to_cache=["", "我们", "吃"]),
        "word_ids": torch.ones(1, 2, dtype=torch.int64), "character_ids": batch_to_ids([["今天", "吃"], ["苹果"]]),
    }  # fmt: skip


@pytest.mark.parametrize("case", [line for line in CASES.split("\n") if line])
def test_wrong_arguments(names: dict[str, Any], case: str) -> None:
    call, told = case.split(" => ")
    kind, message = told.split(": ", 1)
    exception = {"ElmoZhError": ElmoZhError}.get(kind) or getattr(builtins, kind)
    assert refusal_of(exception, lambda: eval(call, names)).startswith(message)


# Other containers than lists are taken.
