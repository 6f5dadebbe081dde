"""The shipped configurations, where the program runs from a checkout."""

from pathlib import Path

from elmo_zh.config import Config, load_config

# Smallest first; those in character mode after those in token mode.
NAMES = ("tiny", "small", "base", "original", "tiny-char", "small-char", "base-char", "original-char")
_FOLDER = Path(__file__).parents[2] / "configs"


def shipped_configs(folder: Path = _FOLDER) -> dict[str, Config]:
    """Return the configurations by name; none where the package was installed without them."""
    paths = {name: folder / f"{name}.toml" for name in NAMES}
    return {name: load_config(Config(), path, []) for name, path in paths.items() if path.is_file()}
