"""The names in settings and options that stand for code, each with the module of that code; and shared choices.

Settings, help texts and errors read these tables, so that no name is listed twice. To add a segmenter or a format,
write its module and one line here (docs/adding.md). Other packages can add segmenters, corpus formats and models
through entry points. Modules are imported on first use, so that `elmo-zh --help` stays fast.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elmo_zh.errors import ConfigError
from elmo_zh.language import N_, _

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, eq=False)
class Registry:
    """Names that can be chosen; all but those in `also` stand for a module or an object in one.

    Iterating over a registry yields all its names.
    """

    kind: str  # The kind of thing that the names stand for, such as "segmenter"; used in messages
    group: str  # Entry point group through which other packages add names; empty if they cannot
    built_in: Mapping[str, str]  # Maps a name to "package.module" or "package.module:object"
    also: tuple[str, ...] = ()  # Names that can be chosen but have no code of their own, such as "auto"

    def __iter__(self) -> Iterator[str]:
        yield from (*self.also, *self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.also or name in self.built_in or name in self._plug_ins()

    def names(self) -> tuple[str, ...]:
        """Return the names that have code: the built-in ones, then those from installed plug-ins."""
        return (*self.built_in, *sorted(self._plug_ins()))

    def described(self, say: Callable[[str], str] = _) -> str:
        """Return all names as one phrase; `say` translates it, by default into the user's language."""
        names = say(", ").join(self)
        plug_in = say(N_("or the name of a plug-in"))
        return say("{text}, {detail}").format(text=names, detail=plug_in) if self.group else names

    def package_of(self, name: str) -> tuple[str, str] | None:
        """Return the name and version of the package that adds a name, or None for a built-in or unknown one."""
        point = None if name in self.built_in else self._plug_ins().get(name)
        return (point.dist.name, point.dist.version) if point is not None and point.dist is not None else None

    def load(self, name: str) -> Any:
        """Return the module or object behind a name; raise ConfigError for an unknown name or a broken plug-in."""
        if name in self.built_in:
            module, _colon, attribute = self.built_in[name].partition(":")
            loaded = importlib.import_module(module)
            return getattr(loaded, attribute) if attribute else loaded
        point = self._plug_ins().get(name)
        if point is None:
            known = ", ".join(self.names())
            raise ConfigError.unexpected(f"{_(self.kind)} {name!r}", f"{known} (docs/adding.md)")
        try:
            return point.load()
        except (Exception, SystemExit) as error:
            package = point.dist.name if point.dist is not None else point.value
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            message = _(
                "The {kind} {name} of the package {package} cannot be loaded ({reason}). Reinstall or update this"
                " package, or choose another {kind}."
            )
            values = {"kind": _(self.kind), "name": name, "package": package, "reason": reason}
            raise ConfigError(message.format(**values)) from None

    def _plug_ins(self) -> dict[str, "EntryPoint"]:
        if not self.group:
            return {}
        # This import takes longer than everything else that `--help` needs.
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group=self.group) if point.name not in self.built_in}


# Each is a module with TAKES_USER_DICTIONARY, build and describe (elmo_zh.text.segmenters.SegmenterModule).
SEGMENTERS = Registry(
    N_("segmenter"),
    "elmo_zh.segmenters",
    {
        "jieba": "elmo_zh.text.segmenters.jieba",
        "rjieba": "elmo_zh.text.segmenters.rjieba",
        "whitespace": "elmo_zh.text.segmenters:WHITESPACE",
        "character": "elmo_zh.text.segmenters:CHARACTER",
    },
)
# Each is an elmo_zh.corpus.readers.formats.CorpusFormat.
CORPUS_FORMATS = Registry(
    N_("corpus format"),
    "elmo_zh.corpus_formats",
    {
        "text": "elmo_zh.corpus.readers.plain:TEXT",
        "csv": "elmo_zh.corpus.readers.row_texts:CSV",
        "tsv": "elmo_zh.corpus.readers.row_texts:TSV",
        "json": "elmo_zh.corpus.readers.row_texts:JSON",
        "jsonl": "elmo_zh.corpus.readers.row_texts:JSON_LINES",
        "wikidump": "elmo_zh.corpus.readers.wikidump:WIKIDUMP",
        "wikiextractor": "elmo_zh.corpus.readers.plain:WIKIEXTRACTOR",
        "vertical": "elmo_zh.corpus.readers.plain:VERTICAL",
        "tagged": "elmo_zh.corpus.readers.plain:TAGGED",
        "subtitles": "elmo_zh.corpus.readers.plain:SUBTITLES",
        "html": "elmo_zh.corpus.readers.prose:HTML",
        "markdown": "elmo_zh.corpus.readers.prose:MARKDOWN",
    },
    also=("auto",),
)
# Each is a function that writes all vectors (elmo_zh.embed.formats.Writer); its name is also the suffix of outputs.
OUTPUT_FORMATS = Registry(
    N_("output format"),
    "",
    {
        "hdf5": "elmo_zh.embed.formats:write_hdf5",
        "npy": "elmo_zh.embed.formats:write_npy",
        "parquet": "elmo_zh.embed.parquet:write_parquet",
    },
)

# Each is the path of a bundle's folder. None is built in; packages such as elmo-zh-starter add theirs.
MODELS = Registry(N_("model"), "elmo_zh.models", {})

# Choices that a setting or an option shares with code that has no modules for them.
POOL_METHODS = ("mean", "max", "first-last")
RANKINGS = ("pattern", "slot")
WEIGHT_DTYPES = ("float32", "float16")
DEVICES = ("auto", "cpu", "cuda")
EMBED_PRECISIONS = ("float32", "bfloat16", "int8")
UNICODE_FORMS = ("none", "NFC", "NFD", "NFKC", "NFKD")
