"""What training is foretold to take."""

from dataclasses import replace

import pytest

from elmo_zh.config import Config, load_config
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.training import trial
from elmo_zh.training.optimizer import Optimizers
from elmo_zh.training.trial import forecast_training

SIZE = {"predictions": 10_000, "heldout_tokens": 500, "frequent_words": 300}
SETTINGS = ["model.cell_dim=13", "model.projection_dim=7", "train.batch_size=3", "train.unroll_steps=7"]
SMALL = load_config(Config(), None, [*SETTINGS, "train.num_negatives=29", "train.max_tokens=0", "train.epochs=2"])
CHARACTER = load_config(
    SMALL, None, ["model.mode=character", "model.character_filters=[[1, 5], [2, 3]]", "model.character_dim=4"]
)


@pytest.mark.parametrize("config", [SMALL, CHARACTER, replace(SMALL, train=replace(SMALL.train, softmax="full"))])
def test_a_small_model_is_tried(config: Config) -> None:
    found = forecast_training({"a": config}, **SIZE)["a"]
    assert found["is_measured"]
    assert found["rows"] == 303
    # Two epochs of 9,000 words and 1,000 ends of sentences, in whole steps of 21.
    assert found["tokens"] == 20_013
    assert found["seconds"] > found["tokens"] / found["tokens_per_second"] > 0
    model = LanguageModel.build(build_shape(config.model, found["rows"]), tie_softmax=config.model.is_tied)
    model.initialise(1)
    assert found["parameters"] == model.num_parameters()
    assert found["checkpoint_bytes"] >= 4 * found["parameters"] * 2


def test_a_checkpoint_is_weights_and_what_optimisers_keep() -> None:
    """AdamW keeps two numbers for each of its parameters, the tables' Adagrad one for each row."""
    found = forecast_training({"a": SMALL}, **SIZE)["a"]
    model = LanguageModel.build(build_shape(SMALL.model, found["rows"]), tie_softmax=SMALL.model.is_tied)
    optimizers = Optimizers(SMALL.train, model.bilm, model.softmax)
    parameters = {
        name: [parameter for group in each.param_groups for parameter in group["params"]]
        for name, each in optimizers.by_name.items()
    }
    numbers = {name: sum(parameter.numel() for parameter in some) for name, some in parameters.items()}
    rows = sum(len(parameter) for parameter in parameters["tables"])
    assert found["checkpoint_bytes"] == 4 * (numbers["network"] * 3 + numbers["tables"] + rows)


@pytest.mark.parametrize(("first", "tried_cell"), [("small", 13), ("huge", Config().model.cell_dim)])
def test_the_first_configuration_is_tried_and_the_default_one_in_place_of_a_large_one(
    first: str, tried_cell: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def step_seconds(config: Config, rows: int) -> float:
        tried.append(config.model.cell_dim)
        return 0.5

    monkeypatch.setattr(trial, "_step_seconds", step_seconds)
    huge = load_config(SMALL, None, ["model.cell_dim=4096", "model.projection_dim=512", "train.batch_size=128"])
    configs = {"huge": huge, "small": SMALL}
    found = forecast_training({first: configs[first], **configs, "again": configs[first]}, **SIZE)
    assert tried == [tried_cell]
    assert [name for name, each in found.items() if each["is_measured"]] == (
        ["small", "again"] if first == "small" else []
    )
    assert found["huge"]["tokens_per_second"] < found["small"]["tokens_per_second"] / 100
