"""Every recipe learns a tiny text as well as possible."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_trainings import SENTENCES, SHAPE, VOCABULARY, build_trainer

from elmo_zh.config import TrainConfig
from elmo_zh.model.language_model import LanguageModel, weights_of
from elmo_zh.scoring import TextCost, batch_costs, total_cost
from elmo_zh.training.checkpoint import MetricsFile
from elmo_zh.vocabulary.lexicon import Lexicon


@pytest.mark.parametrize(
    "changes",
    [
        {"max_tokens": 8_000},
        {"max_tokens": 8_000, "carry_state": True},
        pytest.param({"softmax": "full"}, marks=pytest.mark.slow),
        pytest.param({"optimizer": "adagrad", "learning_rate": 0.2}, marks=pytest.mark.slow),
        pytest.param({"precision": "bfloat16"}, marks=pytest.mark.slow),
    ],
    ids=lambda changes: ", ".join(changes) or "default",
)
def test_a_tiny_text_is_learned(tmp_path: Path, changes: dict[str, object]) -> None:
    config = replace(
        TrainConfig(), batch_size=7, unroll_steps=11, dropout=0.0, num_negatives=13, max_tokens=16_000, epochs=0.0,
        warmup_tokens=500, learning_rate=0.01, table_learning_rate=0.5, max_grad_norm=100.0,
    )  # fmt: skip
    config = replace(config, **changes)
    model, device = LanguageModel.build(SHAPE, tie_softmax=False), torch.device("cpu")
    build_trainer(model, tmp_path, device, config).train()
    sentences = [np.array(sentence) for sentence in SENTENCES]
    forward, backward = total_cost(
        batch_costs(weights_of(model.bilm, model.softmax), Lexicon(VOCABULARY, None), sentences)
    )
    cost = TextCost(num_sentences=7, num_tokens=35, num_characters=1, forward_nats=forward, backward_nats=backward)
    figures = cost.figures()
    # The first of six predictions is one of seven, the others are certain: 7 ** (1 / 6) = 1.38 is optimal.
    assert figures.perplexity > 1.38
    if config.carry_state:
        # Learned just as well with carried state, but sentences that start from zero state are scored worse.
        assert MetricsFile(tmp_path / "m.jsonl").lines()[-1]["train_loss"] < 0.6
        assert figures.perplexity > 1.6
    else:
        assert figures.perplexity < 1.55
