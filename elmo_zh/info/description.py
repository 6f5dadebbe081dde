"""A description as JSON values and as lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elmo_zh.corpus.cleaning.line_counts import visible
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import aligned, first_ten

# Names of values in the JSON files of outputs, as they are shown.
_NAMES = (
    *(N_("coverage"), N_("given words"), N_("absent words"), N_("heldout unknown"), N_("step"), N_("steps")),
    *(N_("training seconds"), N_("vectors"), N_("pretrained vectors"), N_("covered"), N_("refused words")),
    *(N_("other words"), N_("other words bytes"), N_("a run"), N_("a comparison"), N_("a probe"), N_("size")),
    *(N_("started"), N_("finished"), N_("checkpoint step"), N_("sentences"), N_("sentence lengths")),
    *(N_("most frequent"), N_("longest"), N_("made by"), N_("mode"), N_("sizes"), N_("num tokens")),
    *(N_("cell dim"), N_("projection dim"), N_("num layers"), N_("cell clip"), N_("projection clip")),
    *(N_("skip connections"), N_("num characters"), N_("num slots"), N_("embedding dim"), N_("filters")),
    *(N_("num highways"), N_("activation"), N_("word dim"), N_("is published"), N_("parameters")),
    *(N_("tied softmax"), N_("segmenter"), N_("version"), N_("dictionary"), N_("carry state")),
    *(N_("warm state"), N_("training"), N_("epochs"), N_("heldout set"), N_("perplexity")),
    *(N_("forward perplexity"), N_("backward perplexity"), N_("bits per character"), N_("oov rate")),
    *(N_("num predictions"), N_("split unknown"), N_("started from"), N_("digest"), N_("origin")),
    *(N_("program"), N_("unknown"), N_("precision"), N_("dimension"), N_("settings"), N_("layers")),
    *(N_("segmented"), N_("split sentences"), N_("min count"), N_("max per word"), N_("seed"), N_("counts")),
    *(N_("unknown tokens"), N_("cut tokens"), N_("kept lines"), N_("columns"), N_("missing words")),
    *(N_("model digest"), N_("labels"), N_("members"), N_("head"), N_("encoder"), N_("inputs")),
    *(N_("elmo at"), N_("regression"), N_("metric"), N_("hidden dim"), N_("character dim"), N_("dropout")),
    *(N_("mix penalty"), N_("patience"), N_("batch size"), N_("learning rate"), N_("mix learning rate")),
    *(N_("bilm learning rate"), N_("seeds"), N_("dev examples"), N_("test examples"), N_("scores")),
    *(N_("chosen seed"), N_("accuracy"), N_("macro f1"), N_("by label"), N_("recall"), N_("vocabulary")),
    *(N_("options"), N_("characters"), N_("train tokens"), N_("heldout"), N_("name")),
)
_PLAIN = {None: N_("none"), True: N_("yes"), False: N_("no")}


@dataclass(frozen=True)
class Description:
    """A description of a folder as JSON values and as lines, with the problems that a check found."""

    values: dict[str, Any]
    lines: Sequence[str]
    problems: list[str] = field(default_factory=list)


def rows(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value, with its name."""
    shown = {name: value for name, value in values.items() if value not in ("", (), [], {})}
    if shown:
        yield from aligned([(f"{_label(name)}:", _shown(value)) for name, value in shown.items()], left=(0, 1))


def _label(name: str) -> str:
    return visible(name) if "." in name else _(name.replace("_", " "))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        shown = ((_label(str(name)), _shown(part), isinstance(part, Mapping)) for name, part in value.items())
        return ", ".join(f"{name} ({part})" if is_nested else f"{name} {part}" for name, part, is_nested in shown)
    if isinstance(value, list | tuple):
        return first_ten([f"({_shown(part)})" if isinstance(part, Mapping) else _shown(part) for part in value])
    if value is None or isinstance(value, bool):
        return _(_PLAIN[value])
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else visible(str(value))
