"""Networks: padding and company change nothing, alignments and pools by NumPy, places and rows by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from drawn_bundles import TOKENS, P, write_model
from tasks.labelled import WORDS

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle.read import load_bundle
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.tasks import encode_texts, train
from elmo_zh.tasks.encode_texts import (
    ALONE,
    FIRST,
    INSIDE,
    LAST,
    NO_TOKEN,
    Encoded,
    TextEncoder,
    TextReader,
    VectorCache,
    find_owners,
    read_alike,
)
from elmo_zh.tasks.networks import BiLSTM, Sizes, TaskHead, align, mix_taggers, pool_max, pool_mean
from elmo_zh.vocabulary.vocabulary import SPECIALS

TEXTS = ["我吃。果", "", "苹果。吃我我我", "吃"]
TAGS = ("O", "B-X", "I-X", "E-X", "S-X")
ALL_INPUTS = ("word2vec", "elmo", "characters")


def encoded(embedder: ElmoEmbedder, texts: Sequence[str]) -> tuple[TextEncoder, list[Encoded]]:
    reader = TextReader(embedder, by_words=False)
    read = [reader.read(text) for text in texts]
    vocabulary = embedder.bundle.vocabulary
    table = np.random.default_rng(3).normal(size=(len(vocabulary), 7)).astype(np.float16)
    table[:3] = 0  # the special tokens
    cache = VectorCache.in_memory(embedder, (sentence for text in read for sentence in text.sentences))
    encoder = TextEncoder(cache, Word2Vec(vocabulary, table), "我吃苹", has_grams=True)
    return encoder, [encoder.encode(text) for text in read]


def head_of(kind: str, **changes: object) -> TaskHead:
    settings = replace(HeadSettings(kind=kind, inputs=ALL_INPUTS, hidden_dim=11, character_dim=10), **changes)
    outputs = 1 if settings.regression else len(TAGS)
    sizes = Sizes(num_layers=3, elmo_dim=2 * P, word2vec_dim=7, num_characters=6, num_outputs=outputs)
    torch.manual_seed(5)
    return TaskHead(settings, sizes, TAGS, marks_spans=True).eval()


HEADS = [
    ("classify", {}),
    ("classify", {"head": "linear"}),
    ("classify", {"regression": True}),
    ("classify", {"inputs": ("characters",)}),
    ("tag", {"head": "bilstm"}),
    ("tag", {"head": "linear", "inputs": ("characters",)}),
    ("tag", {}),
    ("pairs", {}),
]


@pytest.mark.parametrize(("kind", "changes"), HEADS)
def test_company_and_padding_change_nothing(embedder: ElmoEmbedder, kind: str, changes: dict[str, object]) -> None:
    head = head_of(kind, **changes)
    encoder, texts = encoded(embedder, TEXTS)
    others = texts[::-1]
    pairs = kind == "pairs"
    together = head.network([encoder.batch(texts), *([encoder.batch(others)] if pairs else [])])
    for row, text in enumerate(texts):
        alone = head.network([encoder.batch([text]), *([encoder.batch([others[row]])] if pairs else [])])
        found = together[row, : len(text["places"])] if kind == "tag" else together[row]
        expected = alone[0, : len(text["places"])] if kind == "tag" else alone[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert torch.isfinite(together).all()
    predicted = head.predict([encoder.batch(texts), *([encoder.batch(others)] if pairs else [])])
    if kind == "tag":
        assert [len(tags) for tags in predicted] == [len(text["places"]) for text in texts]
    elif not changes.get("regression"):
        assert np.sum(predicted, axis=1) == pytest.approx(np.ones(len(texts)))


def test_n_grams_reach_two_units_and_one_word_far(embedder: ElmoEmbedder) -> None:
    """Equal surroundings make equal n-grams; a unit further away changes none, and a nearer one some."""
    _, [first, other, farther, nearer] = encoded(embedder, ["我吃苹果来", "我吃苹果来", "。吃苹果来", "我。苹果来"])
    np.testing.assert_array_equal(first["grams"], other["grams"])
    assert first["grams"].shape[0] == 5
    assert len(np.unique(first["grams"])) > 90  # of 5 times 22
    np.testing.assert_array_equal(farther["grams"][3:], first["grams"][3:])
    changed = (nearer["grams"] != first["grams"]).sum(axis=1)
    assert changed[4] == 0
    assert 0 < changed[3] < changed[2]


def test_a_mixture_of_taggers_scores_tags_as_its_parts_together(embedder: ElmoEmbedder) -> None:
    """What one sequence of tags costs more than another is the weighted sum of what it costs more in each."""
    network, linear = (head_of("tag", head=head) for head in ("bilstm", "linear"))
    for number, parameter in enumerate((*network.parameters(), *linear.parameters())):
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(number))
    encoder, texts = encoded(embedder, TEXTS[2:3] * 2)
    batch, tags = encoder.batch(texts), torch.tensor([[0, 4, 0, 1, 2, 3, 0], [1, 3, 4, 4, 0, 1, 3]])
    with torch.no_grad():
        costs = [
            head.network.crf.negative_log_likelihood(head.network([batch]), tags, batch["mask"])
            for head in (network, linear, mix_taggers(network, linear, 0.3))
        ]
    own, other, mixed = (float(first - second) for first, second in costs)
    assert mixed == pytest.approx(0.7 * own + 0.3 * other, abs=1e-3)
    assert abs(own - other) > 1


@pytest.mark.parametrize(("kind", "changes"), HEADS)
def test_every_weight_learns(embedder: ElmoEmbedder, kind: str, changes: dict[str, object]) -> None:
    """None is left out of the loss, but the vector of padding, which stays zero."""
    head = head_of(kind, **changes)
    encoder, texts = encoded(embedder, TEXTS)
    batch = dict(encoder.batch(texts))
    batch["target"] = torch.zeros_like(batch["places"]) if kind == "tag" else torch.arange(len(texts))[:, None]
    if changes.get("regression"):
        batch["target"] = batch["target"].float()
    head.loss([batch] * (2 if kind == "pairs" else 1)).backward()
    assert [name for name, parameter in head.named_parameters() if parameter.grad is None] == []


def test_alignment_is_the_mean_weighted_by_a_softmax_of_products() -> None:
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(2, 3, 5, generator=generator), torch.randn(2, 4, 5, generator=generator)
    mask_a = torch.tensor([[True, True, False], [True, True, True]])
    mask_b = torch.tensor([[True, False, False, False], [True, True, True, True]])
    to_b, to_a = align(a, b, mask_a, mask_b)
    for row in range(2):
        own, other = a[row, mask_a[row]].numpy(), b[row, mask_b[row]].numpy()
        powers = np.exp(own @ other.T)
        expected = powers / powers.sum(axis=1, keepdims=True) @ other
        np.testing.assert_allclose(to_b[row, mask_a[row]].numpy(), expected, rtol=0, atol=1e-5)
        expected = (powers / powers.sum(axis=0)).T @ own
        np.testing.assert_allclose(to_a[row, mask_b[row]].numpy(), expected, rtol=0, atol=1e-5)


def lstm_of_torch(ours: BiLSTM) -> torch.nn.LSTM:
    """The same weights in an LSTM of torch: in its order of gates, with the 1 that ours adds to the forget gate."""
    weights = ours.lstm
    width, size = weights.input_weight.shape[1], weights.recurrent_weight.shape[1]
    theirs = torch.nn.LSTM(width, size, batch_first=True, bidirectional=True)
    order = [0, 2, 1, 3]  # input, forget, candidate, output
    with torch.no_grad():
        for direction, suffix in enumerate(("l0", "l0_reverse")):
            for name, weight in (("ih", weights.input_weight), ("hh", weights.recurrent_weight)):
                gates = weight[direction].T.unflatten(0, (4, size))[order]
                getattr(theirs, f"weight_{name}_{suffix}").copy_(gates.flatten(0, 1))
            bias = weights.bias[direction].unflatten(0, (4, size))[order]
            bias[1] += 1
            getattr(theirs, f"bias_ih_{suffix}").copy_(bias.flatten())
            getattr(theirs, f"bias_hh_{suffix}").zero_()
    return theirs


def test_the_bilstm_is_that_of_torch() -> None:
    torch.manual_seed(3)
    ours = BiLSTM(5, 7).eval()
    torch.nn.init.normal_(ours.lstm.bias)
    theirs = lstm_of_torch(ours)
    texts, mask = torch.randn(3, 11, 5), torch.arange(11) < torch.tensor([[11], [4], [1]])
    found = ours(texts, mask)
    for row, length in enumerate((11, 4, 1)):
        expected, _ = theirs(texts[row : row + 1, :length])
        torch.testing.assert_close(found[row, :length], expected[0], rtol=0, atol=1e-5)
        assert not found[row, length:].any()
    # Products of training may be in bfloat16.
    torch.testing.assert_close(ours.train()(texts, mask), found, rtol=0, atol=0.02)


def test_pools_by_hand() -> None:
    vectors = torch.tensor([[[1.0, -5.0], [3.0, -7.0], [90.0, 90.0]], [[90.0, 90.0]] * 3])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert pool_mean(vectors, mask).tolist() == [[2.0, -6.0], [0.0, 0.0]]
    assert pool_max(vectors, mask).tolist() == [[3.0, -5.0], [0.0, 0.0]]


def test_owners_and_places_by_hand() -> None:
    """Characters 0 to 6; tokens (0, 3), (4, 5), (5, 7); a space at 3."""
    tokens = np.array([(0, 3), (4, 5), (5, 7)], np.int32)
    characters = np.array([(place, place + 1) for place in range(7)], np.int32)
    owners, places = find_owners(characters, tokens, 7)
    assert owners.tolist() == [0, 0, 0, -1, 1, 2, 2]
    assert places.tolist() == [FIRST, INSIDE, LAST, NO_TOKEN, ALONE, FIRST, LAST]
    owners, places = find_owners(np.array([(0, 3), (5, 6)], np.int32), tokens, 7)
    assert (owners.tolist(), places.tolist()) == ([0, 2], [ALONE, FIRST])
    nothing = np.zeros((0, 2), np.int32)
    assert find_owners(characters[:2], nothing, 2)[0].tolist() == [-1, -1]
    assert len(find_owners(nothing, tokens, 7)[0]) == 0


def test_word_vectors_reach_the_characters_of_the_word(embedder: ElmoEmbedder) -> None:
    """Against the vectors of the embedder, sentence by sentence and with a space, which has none."""
    text = "我 吃。苹果"
    encoder, [found] = encoded(embedder, [text])
    batch = encoder.batch([found])
    first, second = embedder.embed(["我 吃。", "苹果"])
    expected = np.concatenate([first[:, :1], np.zeros((3, 1, 2 * P)), first[:, 1:], second], axis=1)
    np.testing.assert_array_equal(batch["elmo"][:, 0].numpy(), expected.astype(np.float16))
    assert batch["characters"][0, :, 0].tolist() == [2, 1, 3, 1, 4, 1]
    assert batch["places"][0].tolist() == [ALONE, NO_TOKEN, ALONE, ALONE, ALONE, ALONE]
    rows = [encoder.word2vec.table[3 + WORDS.index(word)].astype(np.float32) for word in "我吃。苹果"]
    np.testing.assert_array_equal(batch["word2vec"][0].numpy(), [rows[0], np.zeros(7), *rows[1:]])


def test_word2vec_reads_unknown_words_as_the_embedder_does(tmp_path: Path) -> None:
    """吃桃苹 is unknown; of its parts 吃 and 苹 are words."""
    model = write_model(tmp_path / "model", TOKENS, words=WORDS, text=TextConfig(segmenter="whitespace"))
    vocabulary = load_bundle(model).vocabulary
    table = np.random.default_rng(3).normal(size=(len(vocabulary), 7)).astype(np.float16)
    table[:3] = 0
    word2vec = Word2Vec(vocabulary, table)
    parts = table[[3 + WORDS.index(word) for word in "吃苹"]].astype(np.float32).mean(axis=0).astype(np.float16)
    for unknown, expected in (("unk", np.zeros(7)), ("backoff", parts)):
        embedder = ElmoEmbedder.load(model, "cpu", unknown=unknown)
        text = TextReader(embedder, by_words=True).read("我 吃桃苹")
        encoder = TextEncoder(None, read_alike(word2vec, embedder, text.sentences), None)
        found = encoder.batch([encoder.encode(text)])["word2vec"][0].numpy()
        np.testing.assert_array_equal(found, [table[3 + WORDS.index("我")], expected])
    # A text needs no copy of the whole table.
    assert encoder.word2vec.vocabulary.tokens == (*SPECIALS, "我", "吃桃苹")


def test_given_words_are_looked_up_in_the_form_that_the_model_knows(tmp_path: Path) -> None:
    embedder = ElmoEmbedder.load(write_model(tmp_path / "model", TOKENS, words=("我", "，")), "cpu")
    reader = TextReader(embedder, by_words=True)
    units = np.array([(0, 1), (1, 2), (2, 3)], np.int32)
    example = Example(("我,桃",), ("O", "O", "O"), units, ("我", ",", "桃"))
    [text] = reader.read_example(example)
    assert text.sentences == (("我", "，", "桃"),)


def test_the_vectors_of_a_cache_are_those_of_its_sentences(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    sentences = [tuple(text) for text in ("我", "吃苹果", "我", "果", "。我吃", "吃", "苹苹", "我我我")]
    whole = VectorCache.on_disk(Work(tmp_path, SilentReporter()), embedder, sentences, most_sentences=3)
    for sentence in sentences:
        [expected] = embedder.embed_tokens([sentence])
        found = whole.vectors[whole.rows([sentence])].transpose(1, 0, 2)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3)
    in_memory = VectorCache.in_memory(embedder, sentences)
    assert in_memory.first_rows == whole.first_rows
    np.testing.assert_allclose(in_memory.vectors, whole.vectors, rtol=0, atol=2e-3)


def test_batches_hold_each_text_once_and_no_more_units_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_texts, "_BATCH_UNITS", 50)
    lengths = [0, 3, 17, 60, 5, 9, 24, 25, 1, 0, 2, 11]
    batches = train.shuffled_batches(lengths, 5, np.random.default_rng(3))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= 5
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= 50
    assert batches == train.shuffled_batches(lengths, 5, np.random.default_rng(3))
    assert batches != train.shuffled_batches(lengths, 5, np.random.default_rng(4))
