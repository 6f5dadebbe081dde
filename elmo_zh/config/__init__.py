"""The settings of a run: names, defaults and checks."""

from elmo_zh.config.declare import Layers
from elmo_zh.config.load import (
    SECTIONS,
    config_names,
    default_setting,
    load_config,
    parse_section,
    plain,
    preparation_settings,
    recorded_settings,
    render_config,
    result_settings,
    setting,
    with_defaults,
)
from elmo_zh.config.schema import AUTOMATIC, Config, EmbedConfig, ModelConfig, TrainConfig, VocabConfig, Word2vecConfig
from elmo_zh.config.text_section import CORPUS, TextConfig

__all__ = [
    "AUTOMATIC",
    "CORPUS",
    "SECTIONS",
    "Config",
    "EmbedConfig",
    "Layers",
    "ModelConfig",
    "TextConfig",
    "TrainConfig",
    "VocabConfig",
    "Word2vecConfig",
    "config_names",
    "default_setting",
    "load_config",
    "parse_section",
    "plain",
    "preparation_settings",
    "recorded_settings",
    "render_config",
    "result_settings",
    "setting",
    "with_defaults",
]
