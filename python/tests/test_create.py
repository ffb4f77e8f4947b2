"""Arrays that are filled in place."""

import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import PATIENCE_S

import hoplite


def address(array):
    return array.__array_interface__["data"][0]


def test_an_array_is_filled_in_place_and_sealed(a, b):
    array = a.create((300, 400), "f4")
    assert isinstance(array, np.ndarray)
    with pytest.raises(hoplite.GetTimeoutError):
        b.get(array.ref, timeout=0.05)
    array[:] = 1
    np.add(array, np.arange(400), out=array)
    ref = array.seal()
    assert ref == array.ref
    assert ref.dtype == "f32"
    expected = np.broadcast_to(np.arange(1, 401, dtype="f4"), (300, 400))
    for client in (a, b):
        got = client.get(ref, timeout=PATIENCE_S)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(array, expected)
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 7
    with pytest.raises(ValueError):
        array.flags.writeable = True
    with pytest.raises(hoplite.InvalidArgumentError, match=ref.id):
        array.seal()


def test_with_seals_and_an_exception_gives_up(a):
    with a.create(5, np.int64, id=a.new_ref()) as array:
        array[:] = range(5)
    assert a.get(array.ref).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ZeroDivisionError), a.create(100_000, id="given up") as array:
        array[:] = 1
        raise ZeroDivisionError
    assert not array.any()
    with pytest.raises(hoplite.InvalidArgumentError):
        array.seal()
    assert a.get(a.put("again", id="given up")) == "again"


@pytest.mark.parametrize("shape, dtype", [((), "f8"), ((0, 3), "f4"), ((7,), "?"), ((3, 5), "c8"), ((2,), "M8[s]")])
def test_shapes_and_types(a, shape, dtype):
    with a.create(shape, dtype) as array:
        array[...] = np.ones(shape, "i8").astype(dtype)
    got = a.get(array.ref)
    assert (got.shape, got.dtype) == (shape, np.dtype(dtype))
    np.testing.assert_array_equal(got, array)


def test_what_cannot_be_created(a):
    for shape, dtype in [((3,), object), ((-1,), "f4"), ((2,), "f4,i4")]:
        with pytest.raises(hoplite.InvalidArgumentError):
            a.create(shape, dtype)
    with a.create(3) as array, pytest.raises(hoplite.InvalidArgumentError):
        array[1:].seal()


def test_parts_and_copies_are_ordinary_arrays(a):
    with a.create(4, "i4") as array:
        array[:] = [1, 2, 3, 4]
        part = array[1:3]
    assert type(pickle.loads(pickle.dumps(array))) is np.ndarray
    assert type(a.get(a.put(part))) is np.ndarray
    assert a.get(a.put(part)).tolist() == [2, 3]
    assert (part + 1).tolist() == [3, 4]


def test_the_bytes_stay_while_the_array_lives(hoplite_local):
    client = hoplite_local(1, memory="64MiB").client(0)
    array = client.create(30 << 17)
    array[:] = 5
    ref = array.seal()
    part = array[100:110]
    client.delete(ref)
    del array
    with pytest.raises(hoplite.StoreFullError):
        client.put(np.ones(40 << 17), timeout=0.1)
    assert part.tolist() == [5] * 10
    del part
    client.put(np.ones(40 << 17), timeout=PATIENCE_S)


def test_one_that_is_dropped_gives_its_room_back(hoplite_local):
    client = hoplite_local(1, memory="64MiB").client(0)
    array = client.create(30 << 17)
    array[0] = 1
    del array
    client.put(np.ones(40 << 17), timeout=PATIENCE_S)


def test_the_array_outlives_its_cluster():
    with hoplite.local(1) as cluster:
        with cluster.client(0).create(1000) as array:
            array[:] = np.arange(1000)
        draft = cluster.client(0).create(1000)
        draft[:] = 1
    assert array.sum() == 499500
    draft[0] = 2
    with pytest.raises(hoplite.ConnectionLostError):
        draft.seal()


LATE_WRITE = """
import hoplite, sys
client = hoplite.Client(sys.argv[1])
array = client.create(1000)
array[:] = 1
part = array[:10]
array.seal()
print(client.get(array.ref).sum(), flush=True)
part[0] = 2
"""


def test_a_late_write_cannot_change_the_object(shared_cluster):
    command = [sys.executable, "-c", LATE_WRITE, shared_cluster.sockets[0]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.stdout == "1000.0\n"
    assert ended.returncode == -signal.SIGSEGV
