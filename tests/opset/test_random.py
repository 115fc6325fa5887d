"""Random operators have PyTorch's distributions, whichever operators the opset makes them of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fx2onnx.opset.cases import Case
from fx2onnx.testing import check, load, run

aten = torch.ops.aten
COUNT = 20000

# operator, arguments, mean, standard deviation, smallest, largest
DISTRIBUTIONS = (
    (aten.rand.default, ([COUNT],), 0.5, 12**-0.5, 0.0, 1.0),
    (aten.randn.default, ([COUNT],), 0.0, 1.0, -6.0, 6.0),
    (aten.randint.low, (-3, 4, [COUNT]), 0.0, 2.0, -3.0, 3.0),
    (aten.bernoulli.p, (torch.zeros(COUNT), 0.25), 0.25, 0.1875**0.5, 0.0, 1.0),
    (aten.bernoulli.default, (torch.full((COUNT,), 0.75),), 0.75, 0.1875**0.5, 0.0, 1.0),
)


@pytest.mark.parametrize("opset", [21, 23])
@pytest.mark.parametrize(("target", "args", "mean", "deviation", "low", "high"), DISTRIBUTIONS, ids=str)
def test_distribution(
    target: Callable[..., torch.Tensor],
    args: tuple[object, ...],
    mean: float,
    deviation: float,
    low: float,
    high: float,
    opset: int,
) -> None:
    case = Case(target, args, why="its distribution", compare="types")
    session = load(check(case, dynamic=False, opset=opset))
    inputs = [a for a in args if isinstance(a, torch.Tensor)]
    ((first,), (second,)) = run(session, inputs), run(session, inputs)
    assert not torch.equal(first, second), "two runs draw different numbers"
    # five standard errors of 20000 numbers
    assert abs(first.double().mean() - mean) < 5 * deviation / COUNT**0.5
    assert abs(first.double().std() - deviation) < 5 * deviation / COUNT**0.5
    assert low <= first.min()
    assert first.max() <= high


def test_permutation_holds_every_number_once() -> None:
    session = load(
        check(Case(aten.randperm.default, (1000,), why="its numbers", compare="types"), dynamic=False)
    )
    (order,) = run(session, [])
    assert torch.equal(order.sort()[0], torch.arange(1000))
    assert not torch.equal(order, torch.arange(1000))


def test_normal_numbers_are_independent() -> None:
    session = load(
        check(Case(aten.randn.default, ([2, COUNT],), why="two rows", compare="types"), dynamic=False)
    )
    ((first, second),) = run(session, [])
    assert abs(torch.corrcoef(torch.stack([first, second]))[0, 1]) < 5 / COUNT**0.5
