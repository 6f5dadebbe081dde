"""Forecasts of what training costs."""

from dataclasses import replace

import pytest

from elmo_zh.config import Config, load_config
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.training.computation import forecast_training

ROWS = 303
SETTINGS = ["model.cell_dim=13", "model.projection_dim=7", "train.batch_size=3", "train.unroll_steps=7"]
SMALL = load_config(Config(), None, [*SETTINGS, "train.num_negatives=29", "train.max_tokens=0", "train.epochs=2"])
CHARACTER = load_config(
    SMALL, None, ["model.mode=character", "model.character_filters=[[1, 5], [2, 3]]", "model.character_dim=4"]
)


@pytest.mark.parametrize("config", [SMALL, CHARACTER, replace(SMALL, train=replace(SMALL.train, softmax="full"))])
def test_a_small_model_is_tried(config: Config) -> None:
    forecast = forecast_training(config, 10_000, ROWS)
    assert forecast["tokens"] == 20_013  # two epochs of 10,000 predictions, in whole steps of 21
    assert forecast["seconds"] * forecast["tokens_per_second"] == pytest.approx(forecast["tokens"])
    model = LanguageModel.from_settings(config.model, ROWS)
    model.initialise(1)
    assert forecast["parameters"] == model.num_parameters()
