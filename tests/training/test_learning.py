"""A tiny text is learned, by every recipe, as far as it can be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from elmo_zh.config import TrainConfig
from elmo_zh.id_store import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.lexicon import Lexicon
from elmo_zh.model.bilm import BiLMShape
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.reporter import SilentReporter
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.computation import choose_computation
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.scoring import Figures, TextMeasure, score_sentences
from elmo_zh.training.train import initialise_model
from elmo_zh.training.trainer import Trainer
from elmo_zh.vocabulary import SPECIALS, Vocabulary

# Each sentence follows from its first word, forwards, and from its last, backwards: seven equally likely ones.
SENTENCES = [[3 + k, 10 + k, 17 + k, 24, 25 + k] for k in range(7)]
ROWS = 32
VOCABULARY = Vocabulary([*SPECIALS, *(chr(ord("一") + row) for row in range(ROWS - 3))])


def build_store(num_slots: int | None = None) -> IdStore:
    ids = np.array([word for sentence in SENTENCES for word in sentence], np.uint16)
    offsets = np.arange(len(SENTENCES) + 1, dtype=np.uint64) * 5
    nothing = HeldoutSentences(
        np.zeros(0, np.uint16), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.float64)
    )
    return IdStore(EncodedSentences(ids, offsets), nothing, Lexicon(VOCABULARY, num_slots))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"softmax": "full"},
        {"optimizer": "adagrad", "learning_rate": 0.2},
        {"precision": "bfloat16"},
        {"carry_state": True},
    ],
    ids=lambda changes: ", ".join(changes) or "default",
)
def test_a_tiny_text_is_learned(tmp_path: Path, changes: dict[str, object]) -> None:
    config = replace(
        TrainConfig(), batch_size=7, unroll_steps=11, dropout=0.0, num_negatives=13, max_tokens=16_000, epochs=0.0,
        warmup_tokens=500, learning_rate=0.01, table_learning_rate=0.5, max_grad_norm=100.0,
    )  # fmt: skip
    config = replace(config, **changes)
    shape = BiLMShape(
        num_tokens=ROWS, cell_dim=23, projection_dim=13, num_layers=2, cell_clip=3.0, projection_clip=3.0,
        skip_connections=True,
    )  # fmt: skip
    model, device = LanguageModel.build(shape, tie_softmax=False), torch.device("cpu")
    trainer = Trainer(
        model, build_store(), "digest", config, CheckpointFolder(tmp_path / "c"), MetricsFile(tmp_path / "m.jsonl"),
        device, choose_computation(config, device, {}), SilentReporter(), lambda m: initialise_model(m, 1, None),
    )  # fmt: skip
    trainer.train()
    model.prepare_for_training(None)
    nats = score_sentences(
        model.bilm, model.softmax, Lexicon(VOCABULARY, None), [np.array(sentence) for sentence in SENTENCES]
    )
    measure = TextMeasure(num_predictions=42, num_tokens=35, num_unknown=0, num_characters=1, spelling_nats=0.0)
    figures = Figures.build(measure, *nats)
    # One of seven at the start, then certainty: 7 ** (1 / 6) = 1.38 is the best there is.
    assert figures.perplexity > 1.38
    if config.carry_state:
        # Learned just as well while the state is carried, but no longer sound from zero state.
        assert MetricsFile(tmp_path / "m.jsonl").lines()[-1]["train_loss"] < 0.6
        assert figures.perplexity > 1.6
    else:
        assert figures.perplexity < 1.55
