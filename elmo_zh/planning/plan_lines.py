"""Lines of text that show a plan."""

from collections.abc import Iterator, Mapping
from typing import Any

from elmo_zh.language import translate
from elmo_zh.run.record import STAGES
from elmo_zh.run.reporter import aligned, counted, format_bytes, format_seconds
from elmo_zh.vocabulary.coverage import coverage_lines

# Figures of the corpus, in the order in which they are shown, with their titles.
_CORPUS = {
    "documents": "documents", "characters": "characters", "kept_characters": "of them kept", "sentences": "sentences",
    "tokens": "tokens", "distinct_words": "distinct words", "rows": "vocabulary rows",
}  # fmt: skip
# Which stage makes what a figure of disk space is about.
_MAKERS = {"segmented": "segment", "ids": "encode", "word2vec": "word2vec", "checkpoints": "train", "model": "export"}

# Why a size of the vocabulary is recommended.
_REASONS = {
    "coverage": "its words cover 95% of the tokens",
    "gain": "twice as many words would cover less than one percentage point more",
    "min_count": "it has room for every word that occurs vocab.min_count = {min_count} times or more",
}


def describe_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a plan."""
    figures = {name: each["value"] for name, each in plan["figures"].items()}
    yield from _sample(plan["sample"], plan["passed_over"])
    yield ""
    counts = [(title, f"{figures[name]:,.0f}") for name, title in _CORPUS.items()]
    rows = [(translate(name), shown) for name, shown in (*counts, ("tokens covered", f"{figures['coverage']:.2%}"))]
    yield from aligned(rows, header=("corpus", "exactly" if plan["sample"]["is_all"] else "about"))
    yield ""
    yield from coverage_lines(plan["coverage_curve"])
    vocab = plan["settings"]["vocab"]
    reason = _REASONS[plan["recommended_because"]].format(**vocab)
    yield (
        f"Recommended: vocab.size = {plan['recommended_vocab_size']:,}, since {reason}. Set:"
        f" {vocab['size']:,}, which gives {figures['rows']:,.0f} rows."
    )
    yield ""
    yield from _stages(plan["memory_bytes"], figures)
    if plan["training"]:
        yield ""
        yield from _training(plan["training"])
    yield ""
    size = format_bytes(plan["embedding_bytes"]["value"])
    yield f"Vectors of the whole corpus, with the settings of section embed: about {size}."


def _sample(sample: Mapping[str, Any], passed_over: Mapping[str, Any]) -> Iterator[str]:
    files, size = counted(sample["files"], "file"), format_bytes(sample["bytes"])
    if sample["is_all"]:
        yield f"All of the corpus was read: {files}, {size}."
    else:
        about = f"about {format_bytes(sample['corpus_bytes'])} of text ({sample['share']:.2%})"
        yield f"Sample: {sample['pieces']} blocks, {size} of {files}, {about}."
    if sample["places_not_reached"]:
        yield (
            f"{sample['places_not_reached']} files were not read to their end in time; the rest may differ. To allow"
            " more time: --seconds"
        )
    for reason, found in passed_over.items():
        yield f"Passed over in the sample: {found['count']:,} {reason}, such as {found['names'][0]}."


def _stages(memory: Mapping[str, float], figures: Mapping[str, float]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    seconds = {stage: figures[name] for stage in STAGES if (name := f"seconds.{stage}") in figures}
    disk = {stage: figures[name] for what, stage in _MAKERS.items() if (name := f"bytes.{what}") in figures}
    for stage in (stage for stage in STAGES if stage in {**seconds, **disk}):
        sizes = [format_bytes(found[stage]) if found.get(stage) else "" for found in (memory, disk)]
        rows.append((stage, format_seconds(seconds[stage]) if stage in seconds else "", *sizes))
    rows.append((translate("together"), format_seconds(sum(seconds.values())), "", format_bytes(sum(disk.values()))))
    yield from aligned(rows, header=("stage", "time", "memory", "disk"))


def _training(training: Mapping[str, Any]) -> Iterator[str]:
    header = ("training with", "rows", "parameters", "tokens", "epochs", "tokens/s", "time", "memory", "tried")
    rows = []
    for name, each in training.items():
        sizes = (f"{each['rows']:,}", f"{each['parameters'] / 1e6:,.1f} M", f"{each['tokens']:,}")
        pace = (f"{each['epochs']:.2f}", f"{each['tokens_per_second']:,.0f}", format_seconds(each["seconds"]))
        tried = translate("yes" if each["is_measured"] else "by its products")
        rows.append((name, *sizes, *pace, format_bytes(each["memory_bytes"]), tried))
    yield from aligned(rows, header=header)
