"""Refs, waiting, errors, deletes, scopes, reduces: the calls against real daemons."""

import pickle

import numpy as np
import pytest
from conftest import PATIENCE_S, wait_until

import hoplite


def test_refs_are_values(a):
    ref = a.put(1)
    assert ref == hoplite.Ref(ref.id)
    assert hash(ref) == hash(hoplite.Ref(ref.id))
    assert ref != a.put(1)
    assert len({ref, hoplite.Ref(str(ref))}) == 1
    again = pickle.loads(pickle.dumps(a.put(np.ones(3, "f4"))))
    assert again.dtype == "f32"
    np.testing.assert_array_equal(a.get(again), np.ones(3))
    assert len(pickle.dumps(ref)) < 100
    assert ref.id in ref._repr_html_()
    with pytest.raises(hoplite.InvalidArgumentError):
        hoplite.Ref("weights")
    with pytest.raises(TypeError):
        a.get(3)


def test_names_are_the_same_everywhere(a, b):
    ref = a.put([1], id="a name")
    assert ref == hoplite.ref("a name") == b.ref("a name")
    assert b.get("a name", timeout=PATIENCE_S) == [1]
    assert b.get(ref, timeout=PATIENCE_S) == [1]
    with pytest.raises(hoplite.ObjectExistsError, match=ref.id):
        a.put([2], id="a name")
    assert a.delete("a name")


def test_a_ref_can_be_waited_for_before_the_put(a, b):
    ref = a.new_ref()
    with pytest.raises(hoplite.GetTimeoutError, match=ref.id) as error:
        b.get(ref, timeout=0.05)
    assert isinstance(error.value, TimeoutError)
    assert a.put("late", id=ref) == ref
    assert b.get(ref, timeout=PATIENCE_S) == "late"


def test_many_at_once(a, b):
    refs = [a.put(i) for i in range(100)]
    assert b.get(refs, timeout=PATIENCE_S) == list(range(100))
    assert b.gather(refs) == b.allgather(refs) == list(range(100))
    assert b.get([]) == []
    with pytest.raises(hoplite.GetTimeoutError):
        b.get([refs[0], a.new_ref()], timeout=0.05)


def test_wait(a):
    refs = [a.put(i) for i in range(3)]
    missing = a.new_ref()
    ready, rest = a.wait([missing, *refs], num_returns=3, timeout=PATIENCE_S)
    assert (ready, rest) == (refs, [missing])
    ready, rest = a.wait([missing], timeout=0.05)
    assert (ready, rest) == ([], [missing])
    with pytest.raises(ValueError):
        a.wait([refs[0]], num_returns=2)
    with pytest.raises(ValueError):
        a.wait([refs[0], refs[0]])


def test_as_completed(a):
    refs = [a.new_ref() for _ in range(3)]
    completed = iter(a.as_completed(refs, timeout=PATIENCE_S))
    for i in (2, 0, 1):
        a.put(i, id=refs[i])
        assert next(completed) == refs[i]
    with pytest.raises(StopIteration):
        next(completed)
    with pytest.raises(hoplite.GetTimeoutError, match="of 2 objects"):
        list(a.as_completed([refs[0], a.new_ref()], timeout=0.1))
    assert list(a.as_completed([])) == []


def test_deletes(a, b):
    ref = a.put(np.arange(1000))
    view = b.get(ref, timeout=PATIENCE_S)
    assert a.delete(ref)
    for client in (a, b):
        with pytest.raises(hoplite.ObjectDeletedError, match=ref.id):
            client.get(ref, timeout=PATIENCE_S)
    np.testing.assert_array_equal(view, np.arange(1000))
    assert a.delete([a.put(1), a.put(2)]) == [True, True]


def test_a_scope_deletes_what_was_put_inside(a):
    outside = a.put(1)
    with hoplite.scope() as scope:
        kept = scope.keep(a.put(2))
        with hoplite.scope():
            inner = a.put(3)
        with pytest.raises(hoplite.ObjectDeletedError):
            a.get(inner)
        refs = [a.put(np.full(4, i, "f4")) for i in range(3)]
        total = a.reduce(refs)
        np.testing.assert_array_equal(a.get(total, timeout=PATIENCE_S), np.full(4, 3.0))
    for ref in (*refs, total):
        with pytest.raises(hoplite.ObjectDeletedError):
            a.get(ref)
    assert a.get([outside, kept]) == [1, 2]


def test_a_full_store_is_an_error_with_the_numbers(hoplite_local):
    client = hoplite_local(1, memory="64MiB").client(0)
    ref = client.put(np.ones(40 << 17))
    with pytest.raises(hoplite.StoreFullError, match="MiB") as error:
        client.put(np.ones(40 << 17), timeout=0.1)
    assert isinstance(error.value, MemoryError)
    client.delete(ref)
    client.put(np.ones(40 << 17), timeout=PATIENCE_S)


def test_bad_arguments(a):
    ref = a.put(1)
    for call in (
        lambda: a.get(ref, priority="urgent"),
        lambda: a.get(ref, on_lost="panic"),
        lambda: a.get(ref, timeout=float("nan")),
        lambda: a.put(1, id=""),
        lambda: a.reduce([], "sum"),
        lambda: a.reduce([ref], "total"),
        lambda: a.reduce([ref, ref]),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert isinstance(error.value, hoplite.HopliteError)
    with pytest.raises(hoplite.TypeMismatchError):
        a.reduce([ref], dtype="U3")
    assert not a.prioritize(ref, "high")


# --- reduces


def test_reduces(a, b):
    arrays = [np.arange(10, dtype="f8").reshape(2, 5) + i for i in range(4)]
    refs = [(a, b)[i % 2].put(array) for i, array in enumerate(arrays)]
    for op, expected in {
        "sum": np.sum(arrays, 0),
        "mean": np.mean(arrays, 0),
        "max": np.max(arrays, 0),
        "min": np.min(arrays, 0),
        "product": np.prod(arrays, 0),
        "median": np.median(arrays, 0),
    }.items():
        target = a.reduce(refs, op)
        assert target.dtype == "f64"
        for client in (a, b):
            got = client.get(target, timeout=PATIENCE_S)
            assert got.shape == (2, 5)
            np.testing.assert_allclose(got, expected)


def test_a_reduce_of_what_does_not_exist_yet(a, b):
    refs = [a.new_ref() for _ in range(3)]
    target = b.reduce(refs, num_sources=2, dtype=np.int32, id="the sum")
    status = b.reduce_status(target)
    assert (status.phase, status.awaited, status.dtype) == ("waiting", 2, "i32")
    a.put(np.full(5, 1, "i4"), id=refs[0])
    b.put(np.full(5, 10, "i4"), id=refs[2])
    np.testing.assert_array_equal(b.get("the sum", timeout=PATIENCE_S), np.full(5, 11))
    wait_until(lambda: b.reduce_status(target).phase == "done", "the reduce is done")
    status = b.reduce_status(target)
    assert [source.ref for source in status.sources if source.state == "used"] == [refs[0], refs[2]]
    assert status.tree()
    assert "done" in status._repr_html_()
    b.delete(target)


def test_more_sources(a):
    first, second = a.put(np.ones(3, "f4")), a.new_ref()
    target = a.reduce([first], num_sources=2, more_sources_follow=True)
    a.add_sources(target, [second])
    a.put(np.full(3, 2, "f4"), id=second)
    np.testing.assert_array_equal(a.get(target, timeout=PATIENCE_S), np.full(3, 3))


def test_allreduce_and_reduce_scatter(a, b):
    arrays = [np.arange(1000, dtype="f4") * i for i in range(3)]
    refs = [(a, b)[i % 2].put(array) for i, array in enumerate(arrays)]
    total = a.allreduce(refs, "sum")
    for client in (a, b):
        np.testing.assert_array_equal(client.get(total, timeout=PATIENCE_S), np.sum(arrays, 0))
    parts = b.reduce_scatter(refs)
    assert len(parts) == 3
    np.testing.assert_array_equal(np.concatenate(b.get(parts, timeout=PATIENCE_S)), np.sum(arrays, 0))


def test_sources_that_do_not_fit_are_named(a):
    good, bad = a.put(np.ones(3, "f4")), a.put(np.ones(3, "f8"))
    with pytest.raises(hoplite.TypeMismatchError, match=bad.id) as error:
        a.get(a.reduce([good, bad]), timeout=PATIENCE_S)
    assert isinstance(error.value, TypeError)


def test_facts(a, b):
    ref = a.put(np.ones((3, 4), "f4"))
    stats = a.stats()
    assert stats.members == 2
    assert stats.objects >= 1
    assert "MiB" in stats._repr_html_()
    assert {node.node for node in a.nodes()} == {a.stats().node, b.stats().node}
    (mine,) = [node for node in a.nodes() if node.self]
    assert mine.node == stats.node
    (found,) = [known for known in a.objects() if known.ref == ref]
    assert (found.dtype, found.shape, found.size, found.state, found.primary) == ("f32", (3, 4), 48, "complete", True)
