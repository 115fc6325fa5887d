"""Example sizes that do not leak: dynamic axes whose example is 0 or 1 (or all of them) get distinct sizes.

A tracer learns nothing about a size from an example of 0 or 1 (it would be taken for a broadcast or for an empty
tensor), so such an axis is traced at another size. Sums among the examples (`total = past + seq`) are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import torch

from fx2onnx import dims
from fx2onnx.capture.dynamic import Request

# Small, since a model may have a largest size (a table of positions), and seldom a constant of a model.
_FRESH = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)


def traced_sizes(requests: Sequence[Request], *, every: bool = False) -> dict[tuple[int, int], int]:
    """For (leaf index, axis): the size to trace with, where it differs from the example's.

    Args:
        requests: the dynamic axes.
        every: replace all named sizes, not only those whose example is 0 or 1.
    """
    symbols = _values(requests, every)
    sizes: dict[tuple[int, int], int] = {}
    changed: dict[int, int] = {}
    for request in requests:
        new = _size(request, symbols)
        if new is not None and new != request.example:
            sizes[request.leaf.index, request.axis] = new
            if request.example not in (0, 1):
                changed[request.example] = new
    if sizes:
        sizes |= _sums(requests, sizes, changed)
    return sizes


def _values(requests: Sequence[Request], every: bool) -> dict[str, int]:
    """A size for each name that needs another one than its example."""
    fresh = iter(_FRESH)
    used = {r.example for r in requests}
    values: dict[str, int] = {}
    for request in requests:
        size = request.size
        if isinstance(size, int) or size is None or not size.is_Symbol or size.name in values:
            continue
        if every or request.example in (0, 1):
            values[size.name] = _pick(fresh, request, used)
        else:
            values[size.name] = request.example
    return values


def _pick(fresh: Iterable[int], request: Request, used: set[int]) -> int:
    """A size within the bounds of a request, unlike the others where that is possible."""
    high = request.high
    if high is None or high > 2 * _FRESH[0]:
        for candidate in fresh:
            if candidate not in used and candidate >= request.low and (high is None or candidate <= high):
                return candidate
    low = max(request.low, 2)
    return low if high is None else min(low + 1, max(high, 1))


def _size(request: Request, symbols: dict[str, int]) -> int | None:
    if request.size is None:
        return _FRESH[request.axis] if request.example in (0, 1) else None
    carried_by_no_axis = dims.solve(request.size, request.example, symbols)  # the k of `2*k`
    return dims.evaluate(request.size, {**carried_by_no_axis, **symbols})


def _sums(
    requests: Sequence[Request], sizes: dict[tuple[int, int], int], changed: dict[int, int]
) -> dict[tuple[int, int], int]:
    """Axes without a name that were the same as, or the sum of, sizes that changed follow them."""
    found: dict[tuple[int, int], int] = {}
    named = {(r.leaf.index, r.axis): r for r in requests}
    pairs = [(named[k].example, v) for k, v in sizes.items()]
    pairs += [(r.example, r.example) for r in requests if (r.leaf.index, r.axis) not in sizes]
    for request in requests:
        place = (request.leaf.index, request.axis)
        if request.size is not None or place in sizes:
            continue
        if request.example in changed:
            found[place] = changed[request.example]
            continue
        for (a, new_a), (b, new_b) in itertools.combinations(dict.fromkeys(pairs), 2):
            if a + b == request.example and (new_a != a or new_b != b):
                found[place] = new_a + new_b
                break
    return found


def resized(tensor: torch.Tensor, sizes: dict[int, int]) -> torch.Tensor:
    """A tensor of other sizes along some axes, with the values of `tensor` repeated."""
    for axis, size in sizes.items():
        old = tensor.shape[axis]
        if old == 0:
            shape = list(tensor.shape)
            shape[axis] = size
            tensor = tensor.new_zeros(shape)
        else:
            tensor = tensor.index_select(axis, torch.arange(size, device=tensor.device) % old)
    return tensor
