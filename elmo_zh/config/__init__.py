"""The settings of a run."""

from elmo_zh.config.load import config_names, load_config, parse_section, render_config, result_settings
from elmo_zh.config.schema import (
    READING,
    Config,
    EmbedConfig,
    ModelConfig,
    TextConfig,
    TrainConfig,
    VocabConfig,
    Word2vecConfig,
)

__all__ = [
    "READING",
    "Config",
    "EmbedConfig",
    "ModelConfig",
    "TextConfig",
    "TrainConfig",
    "VocabConfig",
    "Word2vecConfig",
    "config_names",
    "load_config",
    "parse_section",
    "render_config",
    "result_settings",
]
