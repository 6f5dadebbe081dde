"""A small text and trainings on it, for tests and `gpu_checks`; needs no pytest."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.id_store import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.reader.bilm import BiLMShape
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.training.checkpoint import CheckpointFolder, MetricsFile
from elmo_zh.training.computation import choose_computation
from elmo_zh.training.initial_weights import initialise_model
from elmo_zh.training.trainer import Trainer
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# Seven equally likely sentences. The first word determines the rest forwards, the last word backwards.
SENTENCES = [[3 + k, 10 + k, 17 + k, 24, 25 + k] for k in range(7)]
ROWS = 32
VOCABULARY = Vocabulary([*SPECIALS, *(chr(ord("一") + row) for row in range(ROWS - 3))])
SHAPE = BiLMShape(
    num_tokens=ROWS, cell_dim=23, projection_dim=13, num_layers=2, cell_clip=3.0, projection_clip=3.0,
    skip_connections=True,
)  # fmt: skip
SHORT = replace(
    TrainConfig(), batch_size=7, unroll_steps=11, num_negatives=13, max_tokens=1_000, epochs=0.0, precision="float32",
    deterministic=True, log_every_steps=1,
)  # fmt: skip


def build_store(num_slots: int | None = None) -> IdStore:
    ids = np.array([word for sentence in SENTENCES for word in sentence], np.uint16)
    offsets = np.arange(len(SENTENCES) + 1, dtype=np.uint64) * 5
    nothing = HeldoutSentences(
        np.zeros(0, np.uint16), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.float64)
    )
    return IdStore(EncodedSentences(ids, offsets), nothing, Lexicon(VOCABULARY, num_slots))


def build_trainer(
    model: LanguageModel, folder: Path, device: torch.device, config: TrainConfig, store: IdStore | None = None
) -> Trainer:
    return Trainer(
        model=model, store=store or build_store(), vocabulary_digest="digest", config=config,
        checkpoints=CheckpointFolder(folder / "c", config.keep_checkpoints), metrics=MetricsFile(folder / "m.jsonl"),
        device=device, computation=choose_computation(config, ModelConfig(), device, {}), reporter=SilentReporter(),
        initialise=lambda new: initialise_model(new, 1, None),
    )  # fmt: skip


def train_some_steps(folder: Path, device: torch.device, config: TrainConfig) -> tuple[list[float], dict[str, Tensor]]:
    model = LanguageModel.build(SHAPE, tie_softmax=False)
    build_trainer(model, folder, device, config).train()
    losses = [line["train_loss"] for line in MetricsFile(folder / "m.jsonl").lines() if "train_loss" in line]
    return losses, {name: value.cpu().clone() for name, value in model.named_tensors().items()}
