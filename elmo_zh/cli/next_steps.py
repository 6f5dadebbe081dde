"""The command to type after another one, printed at its end."""

import shlex
from pathlib import Path

from elmo_zh.config import Config
from elmo_zh.invocation import program
from elmo_zh.run.layout import RunDir


def after_stage(stage: str, run: RunDir, config: Config) -> str:
    """Return the line that names the command after a stage.

    Args:
        stage: The stage's name.
        run: The run folder.
        config: The run's settings: training from another model skips word2vec and needs --init.
    """
    if stage == "export":
        return embed_with(run.model)
    init = config.train.init or config.vocab.init
    needs_vectors = config.word2vec.enabled and not init
    following = {
        "segment": "vocab",
        "vocab": "word2vec" if needs_vectors else "encode",
        "word2vec": "encode",
        "encode": "word2vec" if needs_vectors and not run.word2vec.exists() else "train",
        "train": "export",
    }[stage]
    own_init = f" --init {shlex.quote(init)}" if following == "train" and init and not config.train.init else ""
    return f"Next: {program()} {following} --run {shlex.quote(str(run.path))}{own_init}"


def embed_with(model: Path, *, segmented: bool = False) -> str:
    """Return the line that names the command to embed a file with a model."""
    return f"Next: {program()} embed file.txt --model {shlex.quote(str(model))}{' --segmented' if segmented else ''}"
