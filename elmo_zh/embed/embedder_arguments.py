"""Checks of what an ElmoEmbedder is built from."""

from elmo_zh.bundle.find_bundle import DEFAULT_MODEL
from elmo_zh.bundle.read import Bundle
from elmo_zh.choices import UNKNOWN_WAYS, VECTOR_DTYPES
from elmo_zh.errors import ElmoZhError
from elmo_zh.model.precision import PRECISIONS
from elmo_zh.run.path_arguments import shown_path

_KNOWN = {
    "precision": tuple(PRECISIONS),
    "unknown": UNKNOWN_WAYS,
    "dtype": VECTOR_DTYPES,
}


def check_bundle(given: object, name: str) -> Bundle:
    """Return a loaded bundle; raise TypeError with the right call for anything else.

    Args:
        given: The argument.
        name: The class that is built from it, for the message: ElmoEmbedder.
    """
    if isinstance(given, Bundle):
        return given
    path = shown_path(given, DEFAULT_MODEL)
    found = "nothing" if given is None else f"{given!r:.60}"
    raise TypeError(f"{name} takes a loaded bundle, found {found}. Call {name}.load({path!r}).")


def check_choices(**given: str) -> None:
    """Raise ElmoZhError unless each argument, by its name, is one of those listed."""
    for name, value in given.items():
        known = _KNOWN[name]
        if value not in known:
            raise ElmoZhError(f"{name} {value}: expected {', '.join(known[:-1])} or {known[-1]}.")
