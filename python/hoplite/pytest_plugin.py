"""Fixtures for tests of programs that use Hoplite; pytest finds them when the package is installed.

def test_it(hoplite_cluster):                 # three nodes
    a, b = hoplite_cluster.client(0), hoplite_cluster.client(1)

def test_more(hoplite_local):
    cluster = hoplite_local(5, memory="1GiB")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._cluster import LocalCluster


@pytest.fixture
def hoplite_local() -> Iterator[Callable[..., LocalCluster]]:
    """hoplite.local(), for clusters that end with the test."""
    from ._cluster import local

    with ExitStack() as clusters:

        def start(*arguments: Any, **options: Any) -> LocalCluster:
            return clusters.enter_context(local(*arguments, **options))

        yield start


@pytest.fixture
def hoplite_cluster(hoplite_local: Callable[..., LocalCluster]) -> LocalCluster:
    """A cluster of three nodes that ends with the test."""
    return hoplite_local(3)
