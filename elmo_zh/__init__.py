"""elmo-zh: from raw Chinese text to ELMo vectors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elmo_zh.embed.embedder import ElmoEmbedder

__version__ = "0.1.0"

__all__ = ["ElmoEmbedder", "__version__"]


def __getattr__(name: str) -> object:
    """Import ElmoEmbedder, and torch with it, only when it is asked for."""
    if name == "ElmoEmbedder":
        from elmo_zh.embed.embedder import ElmoEmbedder

        return ElmoEmbedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
