"""Lines of text that show what a run holds."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elmo_zh.corpus.cleaning.examples import visible
from elmo_zh.planning.comparison import Comparison
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.plan_lines import aligned, describe_comparison
from elmo_zh.run.reporter import format_seconds

_MOST_SOURCES, _MOST_REASONS = 20, 3
_BAR = 40


def describe_inspection(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show what `inspect_run` found, section by section, with empty lines between."""
    sections = (
        _stages(found["stages"]),
        _sources(found["sources"]),
        _curve(found["coverage_curve"], found["coverage_picture"]),
        _text(found["text"]),
        _oddities(found["oddities"]),
        _plan(found["plan"], found["changed_settings"]),
    )
    shown = [lines for section in sections if (lines := list(section))]
    for number, lines in enumerate(shown):
        yield from ([""] if number else [])
        yield from lines


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
    if not sources:
        return
    ranked = sorted(sources.items(), key=lambda item: (-item[1]["characters"], item[0]))
    rows: list[tuple[str, ...]] = [("source", "files", "documents", "characters", "kept", "left out for")]
    rows += [_source_row(name, [source]) for name, source in ranked[:_MOST_SOURCES]]
    if others := [source for _, source in ranked[_MOST_SOURCES:]]:
        rows.append(_source_row(f"{len(others):,} others", others))
    if len(sources) > 1:
        rows.append(_source_row("all", [source for _, source in ranked]))
    yield from aligned(rows)


def _source_row(name: str, sources: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    characters = sum(source["characters"] for source in sources)
    kept = sum(source["kept_characters"] for source in sources)
    reasons: Counter[str] = Counter()
    for source in sources:
        reasons.update({reason: dropped["characters"] for reason, dropped in source["dropped"].items()})
    left_out = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common(_MOST_REASONS) if count)
    files = sum(read["files"] for source in sources for read in source["read_as"])
    documents = sum(source["documents"] for source in sources)
    return name, f"{files:,}", f"{documents:,}", f"{characters:,}", f"{kept / max(1, characters):.1%}", left_out


def _curve(curve: Sequence[Mapping[str, float]], picture: str) -> Iterator[str]:
    if not curve:
        return
    rows = [("most frequent words", "tokens covered", " " * _BAR)]
    rows += [(f"{p['words']:,}", f"{p['share']:.1%}", ("#" * round(_BAR * p["share"])).ljust(_BAR)) for p in curve]
    yield from aligned(rows)
    if picture:
        yield f"Drawn in {picture}."


def _text(text: Mapping[str, Any]) -> Iterator[str]:
    if not text:
        return
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
        yield "Nothing looks odd."
        return
    yield "Worth a look:"
    for oddity in oddities:
        count = f"{oddity['count']:,}" if isinstance(oddity["count"], int) else f"{oddity['count']:.2%}"
        yield f"  {oddity['what']}: {count}" + (f", such as: {oddity['example']}" if oddity["example"] else "")
        yield f"    {oddity['advice']}"


def _plan(plan: Mapping[str, Any], changed: Sequence[str]) -> Iterator[str]:
    if not plan:
        return
    comparisons = [
        Comparison(name=name, planned=Estimate.load({**each, "value": each["planned"]}), actual=each["actual"])
        for name, each in plan.items()
    ]
    yield from describe_comparison(comparisons, changed)
