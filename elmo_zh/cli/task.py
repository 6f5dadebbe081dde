"""The commands of labelled tasks: train a model on a bundle, use it, score it, and see what ELMo adds."""

import click

from elmo_zh.cli.options import SettingsGroup
from elmo_zh.cli.task_compare import compare
from elmo_zh.cli.task_fit import fit
from elmo_zh.cli.task_predict import predict, score
from elmo_zh.cli.task_probe import probe


@click.group(cls=SettingsGroup)
def task() -> None:
    """Train, use, score and compare models for labelled tasks.

    Use it with a few thousand labelled texts: classes or numbers for texts, tags for characters or words, or labels for
    pairs of texts. The model is a small network on the vectors of a bundle; compare says whether ELMo helps on your
    labels.

    \b
    Example:
      elmo-zh task fit tag names.conll --output my-tagger
      elmo-zh task predict file.txt --task my-tagger
      elmo-zh task score more-names.conll --task my-tagger
      elmo-zh task compare tag names.conll --output my-comparison
    """


for _command in (fit, predict, score, compare, probe):
    task.add_command(_command)
