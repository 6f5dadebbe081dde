"""The commands of labelled tasks: train a model on a bundle, use it and score it."""

import click

from elmo_zh.cli.settings_group import SettingsGroup
from elmo_zh.cli.task_fit import fit
from elmo_zh.cli.task_predict import predict
from elmo_zh.cli.task_score import score


@click.group(cls=SettingsGroup)
def task() -> None:
    """Train, use and score models of labelled tasks.

    Use it with a few thousand labelled texts: classes or numbers of texts, tags of characters or words, or pairs of
    texts. The model is a small network on the vectors of a bundle.

    \b
    Example:
      elmo-zh task fit tag names.conll --output my-tagger
      elmo-zh task predict file.txt --task my-tagger
      elmo-zh task score more-names.conll --task my-tagger
    """


for _command in (fit, predict, score):
    task.add_command(_command)
