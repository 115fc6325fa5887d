"""Cases of the operators that read a tensor at places that other tensors say."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal, values

aten = torch.ops.aten
i32, i64 = torch.int32, torch.int64


def places(*shape: int, below: int) -> torch.Tensor:
    """Valid indices into a size, negative ones among them."""
    return ints(*shape, low=-below, high=below)


def rows(*shape: int, below: int) -> torch.Tensor:
    """Valid indices into a size, none negative."""
    return ints(*shape, low=0, high=below)


ONE = (
    Case(aten.embedding.default, (normal(7, 3), rows(2, 4, below=7)), why="tokens"),
    Case(
        aten.embedding.default,
        (normal(7, 3), rows(2, 4, below=7).to(i32), 0),
        why="int32, a padding index that changes nothing",
    ),
    Case(aten.embedding.default, (normal(7, 3), rows(below=7)), why="one token"),
    Case(aten.index_select.default, (normal(3, 5), 1, rows(4, below=5)), why="columns"),
    Case(aten.index_select.default, (normal(3, 5), 0, rows(below=3)), why="an index without axes"),
    Case(aten.index_select.default, (normal(), 0, values(0, dtype=i64)), why="a tensor without axes"),
    Case(aten.gather.default, (normal(3, 5), 1, rows(3, 2, below=5)), why="columns"),
    Case(
        aten.gather.default,
        (normal(3, 5), 0, rows(4, 2, below=3)),
        why="an index that is smaller in the other axis",
        dynamic=False,
    ),
    Case(aten.gather.default, (normal(), 0, values(0, dtype=i64)[0]), why="no axes"),
    Case(aten.gather.default, (bools(3, 4), -1, rows(3, 4, below=4)), why="bools"),
    Case(aten.take_along_dim.default, (normal(3, 5), rows(3, 2, below=5), 1), why="columns", dynamic=False),
    Case(
        aten.take_along_dim.default,
        (normal(3, 5), rows(1, 2, below=5), 1),
        why="indices for all rows",
        dynamic=False,
    ),
    Case(
        aten.take_along_dim.default,
        (normal(1, 5), rows(3, 2, below=5), -1),
        why="a row for all indices",
        dynamic=False,
    ),
    Case(
        aten.take_along_dim.default,
        (normal(3, 5), rows(4, below=15)),
        why="of the flat tensor",
        dynamic=False,
    ),
    Case(
        aten.take.default,
        (normal(3, 5), places(2, 2, below=15)),
        why="of the flat tensor",
        dynamic={1: (0, 1)},
    ),
)

MASKED = (
    Case(aten.masked_select.default, (normal(3, 5), bools(3, 5)), why="one shape"),
    Case(aten.masked_select.default, (normal(3, 5), bools(5)), why="a mask for all rows"),
    Case(aten.masked_select.default, (normal(5), bools(3, 5)), why="a row for all masks"),
    Case(aten.masked_select.default, (normal(3, 1), bools(5)), why="both are broadcast"),
    Case(aten.masked_select.default, (normal(), bools()), why="no axes"),
    Case(lambda x, m: x[m], (normal(5, 3), bools(5)), why="rows"),
    Case(lambda x, m: x[m], (normal(4, 5, 3), bools(4, 5)), why="the mask of two axes"),
    Case(lambda x, m: x[m], (normal(4, 5), bools(4, 5)), why="the mask of all axes"),
    Case(lambda x, m: x[:, m], (normal(4, 5, 3), bools(5)), why="the mask of a middle axis"),
    Case(lambda x, m: x[:, m], (normal(2, 4, 5, 3), bools(4, 5)), why="the mask of two middle axes"),
    Case(lambda x, m: x[m], (normal(4, 3), torch.zeros(4, dtype=torch.bool)), why="nothing"),
    Case(lambda x: x[x > 0], (normal(4, 3),), why="the positive elements"),
    Case(lambda x, m: x[m].sum(0) + x[m].shape[0], (normal(5, 3), bools(5)), why="the size found flows on"),
    Case(
        lambda x, m, i: x[m, :, i],
        (normal(5, 2, 4), bools(5), rows(1, below=4)),
        why="a mask and an integer for all, apart",
        dynamic={0: (0, 1, 2), 1: (0,)},
    ),
    Case(lambda b, s: b[s > 0][:, :2], (normal(6, 4), normal(6)), why="boxes above a threshold"),
)

SEVERAL = (
    Case(aten.index.Tensor, (normal(5, 3), [places(4, below=5)]), why="rows, negative ones too"),
    Case(aten.index.Tensor, (normal(5, 3), [places(2, 4, below=5)]), why="a matrix of rows"),
    Case(aten.index.Tensor, (normal(5, 3), [places(below=5)]), why="an index without axes"),
    Case(aten.index.Tensor, (normal(5, 3), [None, places(4, below=3)]), why="columns"),
    Case(aten.index.Tensor, (normal(5, 3), [rows(4, below=5).to(i32)]), why="int32"),
    Case(
        aten.index.Tensor,
        (normal(5, 3), [rows(4, below=5).to(i32), rows(4, below=3).to(i32)]),
        why="two of int32",
    ),
    Case(aten.index.Tensor, (normal(5, 3), [rows(0, below=5)]), why="no rows"),
    Case(aten.index.Tensor, (normal(5, 4, 3), [places(6, below=5), places(6, below=4)]), why="pairs"),
    Case(aten.index.Tensor, (normal(5, 4), [places(6, below=5), places(6, below=4)]), why="single elements"),
    Case(
        aten.index.Tensor,
        (normal(5, 4), [places(6, 1, below=5), places(3, below=4)]),
        why="rows times columns",
    ),
    Case(
        aten.index.Tensor,
        (normal(5, 4), [places(6, below=5), places(3, 1, below=4)]),
        why="columns vary first",
    ),
    Case(
        aten.index.Tensor,
        (normal(5, 4, 3), [places(6, 1, below=5), places(2, 6, 7, below=4)]),
        why="shared and own axes",
    ),
    Case(
        aten.index.Tensor,
        (normal(5, 4, 3), [places(6, below=5), places(1, below=4)]),
        why="one column for all pairs",
    ),
    Case(
        aten.index.Tensor,
        (normal(5, 4, 3), [places(6, below=5), places(below=4), places(6, below=3)]),
        why="an index without axes between two",
    ),
    Case(
        aten.index.Tensor,
        (normal(2, 3, 5, 4), [None, None, places(6, 1, below=5), places(7, below=4)]),
        why="the pixels of a resized image",
    ),
    Case(
        aten.index.Tensor,
        (normal(2, 5, 4), [None, places(6, below=5), places(6, below=4)]),
        why="pairs of the last axes",
    ),
    Case(
        aten.index.Tensor,
        (normal(2, 5, 4, 3), [None, places(6, below=5), places(2, 6, below=4)]),
        why="pairs in the middle, broadcast",
    ),
    Case(
        aten.index.Tensor,
        (normal(5, 2, 4), [places(6, below=5), None, places(6, below=4)]),
        why="apart: the new axis comes first",
    ),
    Case(
        aten.index.Tensor,
        (normal(2, 5, 2, 4), [None, places(6, 1, below=5), None, places(3, below=4)]),
        why="apart and broadcast",
    ),
    Case(
        aten.index.Tensor,
        (normal(3, 4, 5), [places(6, below=3), places(6, below=4), places(6, below=5)]),
        why="three of them",
    ),
    Case(
        aten.index.Tensor,
        (normal(2, 3, 4, 5), [None, places(6, below=3), places(6, below=4), places(6, below=5)]),
        why="three of them, not in front",
    ),
    Case(aten.index.Tensor, (bools(5, 4), [places(6, below=5), places(6, below=4)]), why="bools"),
    Case(
        aten._unsafe_index.Tensor,
        (normal(2, 5, 4), [None, places(6, 1, below=5), places(7, below=4)]),
        why="the form without checks",
        dynamic=False,
    ),
    Case(
        lambda x, i: x[torch.arange(x.shape[0]), i],
        (normal(4, 5, 3), rows(4, below=5)),
        why="the last token of each sequence",
    ),
    Case(
        lambda x, i: x[:, [0, 2]] + x[:, i],
        (normal(4, 5), rows(2, below=5)),
        why="a list of columns",
        dynamic={0: (0,)},
    ),
    Case(lambda x, i: x[..., i, :], (normal(2, 4, 5), rows(3, below=4)), why="after an ellipsis"),
    Case(lambda x, i: x[i, 1:, None], (normal(4, 5), rows(3, below=4)), why="with a slice and a new axis"),
)

CASES = (*ONE, *MASKED, *SEVERAL)
