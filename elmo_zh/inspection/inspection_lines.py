"""Lines of text that show what a run holds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_zh.corpus.cleaning.examples import visible
from elmo_zh.corpus.tally import Tally
from elmo_zh.planning.plan_lines import aligned, coverage_lines, describe_comparison
from elmo_zh.run.reporter import format_seconds
from elmo_zh.training.verdict import describe_verdict

_MOST_SOURCES, _MOST_REASONS = 20, 3


def describe_inspection(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show what `inspect_run` found, section by section, with empty lines between."""
    picture = [f"Drawn in {found['coverage_picture']}."] if found["coverage_picture"] else []
    sections = (
        _stages(found["stages"]),
        _sources(found["sources"]) if found["sources"] else (),
        (*coverage_lines(found["coverage_curve"]), *picture) if found["coverage_curve"] else (),
        _text(found["text"]) if found["text"] else (),
        _oddities(found["oddities"]) if found["oddities"] or not found["verdict"] else (),
        describe_verdict(found["verdict"], Path(found["run"])) if found["verdict"] else (),
        describe_comparison(found["plan"], found["changed_settings"]) if found["plan"] else (),
    )
    shown = [lines for section in sections if (lines := list(section))]
    for number, lines in enumerate(shown):
        yield from ["", *lines] if number else lines


def _stages(stages: Mapping[str, Any]) -> Iterator[str]:
    if not stages:
        yield "No stage has finished yet."
        return
    for name, stage in stages.items():
        counts = ", ".join(
            f"{key.replace('_', ' ')} {value:,}"
            for key, value in stage.items()
            if key != "seconds" and isinstance(value, int | float) and not isinstance(value, bool)
        )
        yield f"{name} ({format_seconds(stage['seconds'])}): {counts}"


def _sources(sources: Mapping[str, Any]) -> Iterator[str]:
    tallies = {name: Tally.restored(source) for name, source in sources.items()}
    ranked = sorted(tallies.items(), key=lambda item: (-item[1].characters, item[0]))
    rows: list[tuple[str, ...]] = [("source", "files", "documents", "characters", "kept", "left out for")]
    rows += [_source_row(name, [tally]) for name, tally in ranked[:_MOST_SOURCES]]
    if others := [tally for _, tally in ranked[_MOST_SOURCES:]]:
        rows.append(_source_row(f"{len(others):,} others", others))
    if len(tallies) > 1:
        rows.append(_source_row("all", tallies.values()))
    yield from aligned(rows)


def _source_row(name: str, tallies: Iterable[Tally]) -> tuple[str, ...]:
    total = Tally()
    for tally in tallies:
        total.extend(tally)
    counts = (f"{count:,}" for count in (total.forms.total(), total.documents, total.characters))
    kept = f"{total.kept_characters / max(1, total.characters):.1%}"
    left_out = ", ".join(f"{reason} {count:,}" for reason, count in total.dropped.most_common(_MOST_REASONS) if count)
    return name, *counts, kept, left_out


def _text(text: Mapping[str, Any]) -> Iterator[str]:
    kinds = text["kinds"]
    rows = [("training text", *kinds["tokens"])]
    rows += [(f"share of {what}", *(f"{share:.1%}" for share in shares.values())) for what, shares in kinds.items()]
    yield from aligned(rows)
    yield f"Tokens of one Chinese character: {text['single_character_share']:.1%}."
    lengths = ", ".join(f"{share} {length:,}" for share, length in text["sentence_lengths"].items())
    yield f"Sentence lengths in tokens, so many of the sentences no longer: {lengths}."
    yield "Most frequent: " + "  ".join(f"{visible(word)} {count:,}" for word, count in text["most_frequent"].items())
    yield "Longest: " + "  ".join(map(visible, text["longest"]))
    if text["samples"]:
        yield "Random sentences:"
        yield from (f"  {visible(line)}" for line in text["samples"])


def _oddities(oddities: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not oddities:
        yield "No problem was found in the text."
        return
    yield "Worth a look:"
    for oddity in oddities:
        count = f"{oddity['count']:,}" if isinstance(oddity["count"], int) else f"{oddity['count']:.2%}"
        yield f"  {oddity['what']}: {count}" + (f", such as: {oddity['example']}" if oddity["example"] else "")
        yield f"    {oddity['advice']}"
