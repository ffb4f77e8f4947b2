"""The commands that pip installs: they become the programs in this package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ._daemon import program


def _become(name: str) -> NoReturn:
    os.execv(program(name), [name, *sys.argv[1:]])


def hoplite() -> NoReturn:
    """The command line."""
    _become("hoplite")


def hoplited() -> NoReturn:
    """A node."""
    _become("hoplited")
