"""The stages of a run, each declared once: what it reads and makes, and which settings decide its result.

The table is used to skip a stage, to refuse to discard training, to describe what has changed, and to name the command
that makes a missing file. The work of a stage is the function of the same name in `elmo_zh.stages`.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from elmo_zh.config import SECTIONS, Config, recorded_settings
from elmo_zh.invocation import command


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The declaration of a stage.

    Settings are named as users type them: a whole section, or section.key. Not every setting of a section counts: those
    declared `free` and those that the model's mode does not use have no effect on a result.
    """

    name: str
    argument: str = ""  # What its command takes besides --run
    reads: tuple[str, ...] = ()  # Settings that decide the result
    budget: tuple[str, ...] = ()  # Those of them that only say how far to go: if they change, the stage continues
    # Files of the run that it reads, as glob patterns; files elsewhere are added when the stage runs.
    inputs: Callable[[Config], tuple[str, ...]] = lambda _: ()
    optional_inputs: tuple[str, ...] = ()  # Inputs that may be absent
    # Inputs that must match the record of the stage that makes them.
    intact_inputs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()  # Files and folders of the run that it writes
    resumes: bool = False  # Whether an unfinished stage resumes from what it has made, unless a change forbids it

    def words(self, run: Path) -> tuple[str | Path, ...]:
        """Return the words of the command that runs the stage."""
        return (self.name, *filter(None, [self.argument]), "--run", run)

    def command(self, run: Path, *options: str) -> str:
        """Return the command that runs the stage, as the user would type it."""
        return command(*self.words(run), *options)

    def uses(self, setting: str) -> bool:
        """Return whether the stage depends on a setting, given as section.key."""
        return setting in self.reads or setting.partition(".")[0] in self.reads

    def settings(self, config: Config) -> dict[str, Any]:
        """Return the settings that decide the result, except for the budget."""
        settings = _settings_with_effect(config)
        return {name: value for name, value in settings.items() if self.uses(name) and name not in self.budget}

    def budget_settings(self, config: Config) -> dict[str, Any]:
        """Return the settings that only say how long the stage goes on."""
        return {name: value for name, value in _settings_with_effect(config).items() if name in self.budget}


def _settings_with_effect(config: Config) -> dict[str, Any]:
    unused = {f"model.{name}" for name in config.model.unused}
    settings = {
        f"{section.name}.{key}": value
        for section in fields(config)
        for key, value in recorded_settings(getattr(config, section.name)).items()
    }
    settings["model.tie_softmax"] = config.model.is_tied  # as far as the mode allows
    return {name: value for name, value in settings.items() if name not in unused}


def unread_settings(config: Config) -> dict[str, str]:
    """Return the settings that no stage reads, given the others, each with the setting or option that is the reason."""
    reasons = dict.fromkeys((f"embed.{name}" for name in SECTIONS["embed"]), "--run")
    word2vec = [f"word2vec.{name}" for name in SECTIONS["word2vec"]]
    if config.train.init:
        reasons |= dict.fromkeys(word2vec, f"train.init = {config.train.init}")
    elif not config.word2vec.enabled:
        reasons |= dict.fromkeys(set(word2vec) - {"word2vec.enabled"}, "word2vec.enabled = false")
    elif config.word2vec.vectors:
        others = set(word2vec) - {"word2vec.enabled", "word2vec.vectors"}
        reasons |= dict.fromkeys(others, f"word2vec.vectors = {config.word2vec.vectors}")
    unused = [*config.model.unused, *(["tie_softmax"] if config.model.mode == "character" else [])]
    reasons |= dict.fromkeys((f"model.{name}" for name in unused), f"model.mode = {config.model.mode}")
    if config.text.user_dictionary and not config.text.dictionary:
        reasons["text.user_dictionary"] = f"text.segmenter = {config.text.segmenter}"
    return reasons


def _word2vec_inputs(config: Config) -> tuple[str, ...]:
    text = () if config.word2vec.vectors else ("segmented/train-*.txt",)
    return "vocab.data", "vocab.counts", *text


def _train_inputs(config: Config) -> tuple[str, ...]:
    vectors = ("word2vec.txt",) if config.word2vec.enabled and not config.train.init else ()
    return "ids", "vocab.data", "vocab.counts", *vectors


SEGMENT = Stage(
    name="segment",
    argument="CORPUS",
    reads=("text",),
    makes=("segmented", "user_dictionary.txt"),
)
VOCAB = Stage(
    name="vocab",
    reads=("vocab", "text.split_unknown"),
    inputs=lambda _: ("segmented/train-*.txt",),
    makes=("vocab.data", "vocab.counts", "character_counts.tsv"),
)
WORD2VEC = Stage(
    name="word2vec",
    reads=("word2vec", "model.projection_dim"),
    inputs=_word2vec_inputs,
    makes=("word2vec.txt",),
)
ENCODE = Stage(
    name="encode",
    reads=("model.mode", "text.split_unknown"),
    inputs=lambda _: ("segmented/train-*.txt", "vocab.data", "character_counts.tsv"),
    optional_inputs=("segmented/heldout-*.txt",),
    makes=("ids",),
)
TRAIN = Stage(
    name="train",
    reads=("model", "train"),
    budget=("train.max_tokens", "train.epochs"),
    inputs=_train_inputs,
    intact_inputs=("ids/*",),
    makes=("checkpoints", "start", "metrics.jsonl", "training.png"),
    resumes=True,
)
EXPORT = Stage(
    name="export",
    inputs=lambda _: ("checkpoints", "vocab.data", "character_counts.tsv"),
    optional_inputs=("word2vec.txt", "about.md"),
    intact_inputs=("vocab.counts", "character_counts.tsv", "word2vec.txt"),
    makes=("model",),
)
# In the order in which they run.
STAGES = (SEGMENT, VOCAB, WORD2VEC, ENCODE, TRAIN, EXPORT)


def maker_of(name: Path) -> Stage | None:
    """Return the stage that makes a file or folder of a run, given relative to the run, or None if none does."""
    return next((stage for stage in STAGES if name.parts[0] in stage.makes), None)


def later_stages(stage: Stage) -> tuple[Stage, ...]:
    """Return the stages that run after a stage."""
    return STAGES[STAGES.index(stage) + 1 :]


def makers_for(stage: Stage, config: Config) -> set[Stage]:
    """Return the stages whose results a stage needs, directly or indirectly."""
    direct = {maker for pattern in stage.inputs(config) if (maker := maker_of(Path(pattern)))}
    return direct.union(*(makers_for(maker, config) for maker in direct))
