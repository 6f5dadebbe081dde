"""The layers whose vectors are wanted, as settings, options and Python calls name them."""

from collections.abc import Iterable

NAMES = ("all", "average", "top", "mix")
ALLOWED = "all, average, top, mix, the number of a layer (0, 1, ...), or numbers such as 1,2"


class Layers(str):
    """Layers of a model: all, average, top, mix, a number, or numbers separated by commas, in the order given.

    It is its own text, without spaces, so it can be stored and compared as one.
    """

    __slots__ = ()

    def __new__(cls, value: object = "all") -> "Layers":
        """Return the layers that a text, a number or numbers name.

        Raises:
            ValueError: If they name none, or one twice.
        """
        is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        parts = [str(part).strip() for part in (value if is_list else str(value).split(","))]  # type: ignore[attr-defined]
        is_named = len(parts) == 1 and parts[0] in NAMES
        if not is_named and not all(part.isascii() and part.isdecimal() for part in parts):
            raise ValueError(f"expected {ALLOWED}")
        text = parts[0] if is_named else ",".join(str(int(part)) for part in parts)
        if not parts or len(set(text.split(","))) < len(parts):
            raise ValueError(f"expected each layer once: {ALLOWED}")
        return super().__new__(cls, text)

    def stacked(self, num_layers: int) -> tuple[int, ...]:
        """Return the numbers of the layers that are kept side by side: of all or of several; () if only one results."""
        if self == "all":
            return tuple(range(num_layers))
        return self._numbers() if "," in self else ()

    def numbers(self, num_layers: int) -> tuple[int, ...]:
        """Return the numbers of the layers; for average and mix, which need all of them, all."""
        if self == "top":
            return (num_layers - 1,)
        return tuple(range(num_layers)) if self in NAMES else self._numbers()

    def _numbers(self) -> tuple[int, ...]:
        return tuple(map(int, self.split(",")))

    def require(self, num_layers: int, *names: str) -> "Layers":
        """Return these layers if a model has them; raise ValueError otherwise, or for a name that is not in `names`."""
        if (self in NAMES and self not in names) or max(self.numbers(num_layers)) >= num_layers:
            raise ValueError(f"expected {', '.join(names)} or numbers from 0 to {num_layers - 1}")
        return self
