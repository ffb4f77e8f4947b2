"""Tensors, where torch is installed; the package does not need it."""

import collections

import numpy as np
import pytest
from conftest import PATIENCE_S, run_python

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 4, 5)], ids=str)
def test_tensors(a, b, name, shape):
    tensor = (
        torch.arange(60).reshape(3, 4, 5)[tuple(slice(0, extent) for extent in shape)] if len(shape) == 3 else torch.ones(shape)
    )
    tensor = tensor.to(getattr(torch, name))
    ref = a.put(tensor)
    for client in (a, b):
        got = client.get(ref, timeout=PATIENCE_S)
        assert type(got) is torch.Tensor
        assert got.dtype == tensor.dtype
        assert got.shape == tensor.shape
        assert torch.equal(got, tensor)


def test_no_copy_and_strides(a):
    tensor = torch.arange(10_000.0).reshape(100, 100)
    ref = a.put(tensor)
    assert a.get(ref).data_ptr() == a.get(ref).data_ptr()
    assert torch.equal(a.get(a.put(tensor.t()[::3])), tensor.t()[::3])


def test_a_state_dict(a, b):
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 5)).to(torch.bfloat16)
    ref = a.put(model.state_dict())
    got = b.get(ref, timeout=PATIENCE_S)
    assert isinstance(got, collections.OrderedDict)
    other = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 5)).to(torch.bfloat16)
    other.load_state_dict(got)
    for mine, theirs in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)
    parameters = b.get(a.put(list(model.parameters())), timeout=PATIENCE_S)
    assert all(isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad for parameter in parameters)


def test_reduce(a):
    refs = [a.put(torch.full((4,), i, dtype=torch.bfloat16)) for i in range(3)]
    total = a.get(a.reduce(refs), timeout=PATIENCE_S)
    assert total.dtype == torch.bfloat16
    assert total.tolist() == [3, 3, 3, 3]


def test_without_torch_it_is_an_array(shared_cluster, a):
    ref = a.put(torch.arange(3, dtype=torch.int32))
    code = "import hoplite, sys; print(hoplite.Client(sys.argv[1]).get(sys.argv[2]).tolist(), 'torch' in sys.modules)"
    assert run_python(code, shared_cluster.sockets[0], ref.id) == "[0, 1, 2] False\n"
    half = a.put(torch.ones(3, dtype=torch.bfloat16))
    with pytest.raises(AssertionError, match="import torch or ml_dtypes"):
        run_python(code, shared_cluster.sockets[0], half.id)
    assert np.asarray(a.get(ref)).tolist() == [0, 1, 2]
