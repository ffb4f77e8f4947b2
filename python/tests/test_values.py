"""What is put comes back, on this node and on another one."""

import collections
import dataclasses
import pickle

import numpy as np
import pytest
from conftest import PATIENCE_S
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hoplite

ROUND_TRIPS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

NUMBERS = st.sampled_from(["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
OTHERS = st.sampled_from(["?", "c8", "c16", ">f4", ">i8", "S3", "U5", "M8[ns]", "m8[s]", "f4,i8", "O"])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=5)


def same(got, put):
    assert isinstance(got, np.ndarray)
    assert got.dtype == put.dtype
    assert got.shape == put.shape
    np.testing.assert_array_equal(got, put)


@pytest.mark.parametrize("dtypes", [NUMBERS, OTHERS], ids=["numbers", "others"])
def test_arrays(a, b, dtypes):
    @ROUND_TRIPS
    @given(st.data())
    def check(data):
        dtype = np.dtype(data.draw(dtypes))
        shape = data.draw(SHAPES)
        if dtype.hasobject:
            array = np.full(shape, None)
            array[...] = "anything"
        else:
            bits = data.draw(st.binary(min_size=4, max_size=4))
            whole = np.resize(np.frombuffer(bits, np.uint8) % 100, shape)
            array = whole.astype("f4") if dtype.names is None else np.zeros(shape, dtype)
            array = array.astype(dtype)
        ref = a.put(array)
        same(a.get(ref), array)
        same(b.get(ref, timeout=PATIENCE_S), array)
        a.delete(ref)

    check()


def test_arrays_that_are_not_contiguous(a):
    @ROUND_TRIPS
    @given(st.data())
    def check(data):
        array = np.arange(4 * 5 * 6, dtype=data.draw(NUMBERS)).reshape(4, 5, 6)
        order = data.draw(st.permutations([0, 1, 2]))
        steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1, -2]))) for _ in range(3))
        part = array.transpose(order)[steps]
        ref = a.put(part)
        same(a.get(ref), part)
        a.delete(ref)

    check()


def test_containers(a, b):
    leaves = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False)
    values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)

    @ROUND_TRIPS
    @given(values)
    def check(value):
        ref = a.put(value)
        assert a.get(ref) == value
        assert b.get(ref, timeout=PATIENCE_S) == value
        a.delete(ref)

    check()


def test_views_are_read_only_and_not_copied(a):
    array = np.arange(1_000_000)
    ref = a.put(array)
    first, second = a.get(ref), a.get(ref)
    assert not first.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1
    with pytest.raises(ValueError):
        first.flags.writeable = True
    # Two views of the same bytes.
    assert first.__array_interface__["data"][0] == second.__array_interface__["data"][0]


def test_plain_buffers(a):
    assert a.get(a.put(b"")) == b""
    assert a.get(a.put(b"abc")) == b"abc"
    for value in (bytearray(b"abcdef"), memoryview(b"abcdef"), memoryview(b"a.b.c.d.e.f")[::2]):
        got = a.get(a.put(value))
        assert isinstance(got, memoryview)
        assert got.readonly
        assert got == b"abcdef"
    assert a.get(a.put(bytes(200_000))) == bytes(200_000)


def test_a_state_of_many_arrays_is_one_object_without_copies(a, b):
    state = collections.OrderedDict((f"layer{i}", np.full((100, 7), i, np.float32)) for i in range(200))
    ref = a.put(state)
    for client in (a, b):
        got = client.get(ref, timeout=PATIENCE_S)
        assert list(got) == list(state)
        for name, array in state.items():
            same(got[name], array)
            assert not got[name].flags.writeable
            assert got[name].__array_interface__["data"][0] % 64 == 0
    one, two = a.get(ref), a.get(ref)
    assert one["layer7"].__array_interface__["data"][0] == two["layer7"].__array_interface__["data"][0]


@dataclasses.dataclass
class Step:
    number: int
    gradient: np.ndarray


def test_objects_of_any_class(a):
    got = a.get(a.put(Step(3, np.ones(4))))
    assert got.number == 3
    same(got.gradient, np.ones(4))
    fortran = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    same(a.get(a.put([fortran]))[0], fortran)
    masked = a.get(a.put(np.ma.masked_array([1, 2, 3], [0, 1, 0])))
    assert isinstance(masked, np.ma.MaskedArray)


def test_pickles_can_be_refused(a):
    ref = a.put({"a": 1})
    with pytest.raises(hoplite.TypeMismatchError, match=str(ref)):
        a.get(ref, allow_pickle=False)
    assert a.get(a.put(b"abc"), allow_pickle=False) == b"abc"
    same(a.get(a.put(np.arange(3)), allow_pickle=False), np.arange(3))
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        a.put(lambda: 1)


def test_out_is_filled(a):
    array = np.arange(12, dtype="i4").reshape(3, 4)
    ref = a.put(array)
    out = np.empty_like(array)
    assert a.get(ref, out=out) is out
    same(out, array)
    wide = np.zeros((3, 8), "i4")
    a.get(ref, out=wide[:, ::2])
    same(wide[:, ::2], array)
    assert not wide[:, 1::2].any()
    zero = np.zeros((), "f8")
    a.get(a.put(np.array(2.5)), out=zero)
    assert zero == 2.5
    for wrong in (np.empty(12, "i4"), np.empty((3, 4), "u4"), np.empty((3, 5), "i4")):
        with pytest.raises(hoplite.TypeMismatchError, match=str(ref)):
            a.get(ref, out=wrong)
    out.flags.writeable = False
    with pytest.raises(ValueError):
        a.get(ref, out=out)


def test_a_large_put_of_several_steps(a, b):
    array = np.arange(20 << 17, dtype=np.int64)  # 20 MiB
    ref = a.put(array)
    same(b.get(ref, timeout=PATIENCE_S), array)
    a.delete(ref)
