"""The command that trains a model for a labelled task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.declared import takes
from elmo_zh.cli.model_options import load_embedder
from elmo_zh.cli.options import FOLDER, Common, common_options, reads, shared_options
from elmo_zh.cli.task_options import checked_job, training_options
from elmo_zh.config.declare import declare
from elmo_zh.config.task_settings import INPUTS, FitJob
from elmo_zh.errors import OptionError
from elmo_zh.language import N_, _

if TYPE_CHECKING:
    from elmo_zh.tasks.fit import FitReport

_MEMBERS = {
    "characters": N_("Characters (TF-IDF)"),
    "elmo": N_("ELMo, pooled"),
    "word2vec": N_("word2vec, pooled"),
    "bilstm": "BiLSTM",
    "crf": N_("CRF on character n-grams"),
}


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The options that `task fit` adds to the options for training."""

    num_seeds: int = declare(
        1,
        "Train N times, with consecutive seeds, and keep the model that scores best on the development examples.",
        names=("--seeds",),
        least=1,
        most=100,
        metavar="N",
    )
    inputs: str = declare(
        "",
        "Inputs of the network: one or more of word2vec, elmo and characters, separated by commas. Default: elmo, plus"
        " word2vec if the model has word2vec vectors, plus characters if characters are tagged rather than words.",
        metavar="NAME,...",
    )

    def input_names(self) -> tuple[str, ...]:
        """Return the names in `inputs`, in the order of INPUTS; raise OptionError for others."""
        names = [name.strip() for name in self.inputs.split(",") if name.strip()]
        if any(name not in INPUTS for name in names):
            raise OptionError.unexpected(f"--inputs {self.inputs}", ",".join(INPUTS))
        return tuple(name for name in INPUTS if name in names)


@click.command()
@shared_options("model")
@shared_options("output", help="Folder to write.", metavar="TASK", path=FOLDER, required=True)
@training_options
@takes(FitOptions, "options")
@shared_options("device")
@common_options
@reads("embed")
def fit(common: Common, /, job: FitJob, options: FitOptions) -> None:
    """Train a classifier, a tagger or a model for pairs of texts.

    Use it on labelled texts. KIND is classify, tag or pairs. DATA is a file, or a folder of files with train, dev and
    test in their names: CSV, TSV or JSON for classify and pairs; CoNLL (BIO, BMES, BIOES, or a tag for each unit) or
    JSON with spans of characters for tag. Linear models are combined with the network where they help (--head). TASK is
    a folder with the trained task, its scores, metrics.jsonl and pictures. Repeat an interrupted command to resume it.
    docs/tasks.md describes the data formats, the networks and the output.

    \b
    Example:
      elmo-zh task fit classify reviews.csv --output my-classifier
      elmo-zh task fit tag names/ --model runs/mine/model --output my-tagger --seeds 3
      elmo-zh task fit pairs questions.csv --inputs word2vec --output without-elmo
    """
    job = checked_job(common, job)
    settings = replace(job.settings, inputs=options.input_names())
    job = replace(job, settings=settings, num_seeds=options.num_seeds)
    embedder = load_embedder(common)
    from elmo_zh.tasks.fit import fit_task

    report = fit_task(job, embedder, common.written, force=common.force, reporter=common.console)
    common.finish(
        {
            "metric": report.description.scores["metric"],
            "scores": report.description.scores,
            "doubts": report.doubts,
            "members": report.description.members,
            "layer_weights": report.description.layer_weights,
            "inputs": report.description.settings.inputs,
            "examples": {part: report.description.training[f"{part}_examples"] for part in ("train", "dev", "test")},
        },
        _described(report),
        following=() if report.doubts else ("task", "predict", "file.txt", "--task", common.written),
    )


def _described(report: "FitReport") -> list[str]:
    from elmo_zh.tasks.fit import tested_examples

    scores = report.description.scores
    metric = scores["metric"]
    lines = [_judged(member, metric) for member in scores.get("members", ())]
    for part in ("dev", "test"):
        if part in scores:
            number = report.description.training[f"{part}_examples"]
            examples = tested_examples(number, part)
            reached = _("{metric} {scores} over {examples}").format(
                metric=metric, scores=f"{scores[part][metric]:.4f}", examples=examples
            )
            if len(scores["seeds"]) > 1 and report.description.settings.head != "mixture":
                by_seed = ", ".join(f"{seed[part]:.4f}" for seed in scores["seeds"].values())
                reached = _("{reached} (by seed: {shown})").format(reached=reached, shown=by_seed)
            lines.append(reached)
    return [*lines, *(_("Do not rely on this score: {doubt}").format(doubt=doubt) for doubt in report.doubts)]


def _judged(member: Mapping[str, Any], metric: str) -> str:
    """Return a line with a mixture member's score on held-out labels and its weight, which is 0 if it was left out."""
    return _("{name}: {metric} {score} on {number} held-out labels, weight {weight}").format(
        name=_(_MEMBERS[member["name"]]),
        metric=metric,
        score=f"{member['score']:.4f}",
        number=f"{member['num_labels']:,}",
        weight=f"{member['weight']:.2f}",
    )
