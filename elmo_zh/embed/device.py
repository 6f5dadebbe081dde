"""Choose between the processor and a GPU without importing PyTorch where there is no GPU."""

import os
from importlib.util import find_spec

from elmo_zh.choices import DEVICES
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _

# What NVIDIA's driver creates on Linux, and on Linux within Windows.
_DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg")


def choose_device(name: str) -> str:
    """Return cpu or cuda for a name in `choices.DEVICES`; raise ElmoZhError if it is unknown or there is no GPU."""
    name = str(name)
    if name not in DEVICES:
        raise ElmoZhError(
            _("Unknown device {name}. Choose {DEVICES} or {DEVICES2}.").format(
                name=name, DEVICES=", ".join(DEVICES[:-1]), DEVICES2=DEVICES[-1]
            )
        )
    if name == "cpu" or (name == "auto" and not (find_spec("torch") and any(map(os.path.exists, _DRIVER_FILES)))):
        return "cpu"
    from elmo_zh.model.precision import choose_device as choose_with_torch

    return choose_with_torch(name).type
