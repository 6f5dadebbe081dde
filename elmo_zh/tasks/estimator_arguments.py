"""Checks of what the estimators of labelled tasks are given: settings, labels and tags."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from elmo_zh.sklearn import LEAVE_OUT
from elmo_zh.tasks.networks.settings import INPUTS
from elmo_zh.text.sentence_arguments import check_whole_number, is_missing

# The ranges of the options of `task fit`: the least value and the largest one, None for no limit.
_WHOLE: dict[str, tuple[int, int | None]] = {
    "hidden_dim": (1, 4096),
    "epochs": (1, None),
    "patience": (1, None),
    "batch_size": (1, None),
    "seed": (0, 2**31),
}


def check_settings(given: Mapping[str, Any]) -> None:
    """Raise ValueError unless the inputs and the numbers of an estimator are as `task fit` takes them.

    Args:
        given: Its settings by name, with `inputs`, `learning_rate` and the whole numbers.
    """
    _check_inputs(given["inputs"])
    for name, (least, most) in _WHOLE.items():
        check_whole_number(given[name], "fit", name, least, most)
    rate = given["learning_rate"]
    if not isinstance(rate, float | int | np.floating) or isinstance(rate, bool) or not 0 < rate <= 1:
        raise ValueError(f"fit: learning_rate={rate!r}, expected a number above 0, 1 at most")


def _check_inputs(inputs: Any) -> None:
    is_list = isinstance(inputs, Iterable) and not isinstance(inputs, str)
    names = list(inputs) if is_list else []
    if not is_list or any(name not in INPUTS for name in names) or len(set(names)) != len(names):
        raise ValueError(f"fit: inputs={inputs!r}, expected a list of some of {', '.join(INPUTS)}, each once")


def list_tags(tags: Iterable[Any], call: str) -> list[tuple[str, ...]]:
    """Return the tags of each text.

    Args:
        tags: For each text its tags.
        call: The method, for the message.

    Raises:
        ValueError: If a text has none, or a tag is None or NaN.
    """
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        raise ValueError(f"{call}: y is {tags!r:.60}, expected for each text a list of tags, one for each character")
    listed = []
    for place, each in enumerate(tags):
        if is_missing(each) or not isinstance(each, Iterable):
            raise ValueError(f"{call}: the tags of text {place} are {each!r:.60}, expected a list. {LEAVE_OUT}")
        found = list(each)
        for number, tag in enumerate(found):
            if is_missing(tag):
                raise ValueError(f"{call}: tag {number} of text {place} is {tag}, expected a tag. {LEAVE_OUT}")
        listed.append(tuple(map(str, found)))
    return listed
