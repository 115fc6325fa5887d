"""Cases of the operators that give a tensor other axes without touching its values."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal

aten = torch.ops.aten

RESHAPING = (
    Case(aten.view.default, (normal(2, 3, 4), [6, 4]), why="all sizes given", dynamic=False),
    Case(aten.view.default, (normal(2, 3, 4), [2, -1]), why="one size left open", dynamic={0: ()}),
    Case(aten.view.default, (normal(5, 3, 4), [-1, 12]), why="the open size is free", dynamic={0: (0,)}),
    Case(aten.view.default, (normal(2, 3), [2, 1, 3, 1]), why="new axes of size 1", dynamic=False),
    Case(aten.view.default, (normal(1), []), why="to no axes"),
    Case(aten.view.default, (normal(), [1, 1]), why="from no axes"),
    Case(
        aten.view.default,
        (normal(0, 3), [0, 3, 1]),
        why="an empty tensor: 0 is a size, not a copy",
        dynamic=False,
    ),
    Case(aten.view.default, (normal(0, 3), [3, 0]), why="an empty axis moves", dynamic=False),
    Case(aten.reshape.default, (bools(4, 6), [8, 3]), why="bools", dynamic=False),
    Case(
        aten.reshape.default,
        (normal(4, 6).t(), [8, 3]),
        why="reads a transposed tensor by rows",
        dynamic=False,
    ),
    Case(lambda x: x.reshape(x.shape[0], -1), (normal(4, 5, 6),), why="reshape of size 0 and -1, all free"),
    Case(lambda x: x.reshape(-1, x.shape[2]), (normal(4, 5, 6),), why="reshape of -1 and a size that moves"),
    Case(
        lambda x: x.reshape(x.shape[1], x.shape[0], x.shape[2]),
        (normal(4, 5, 6),),
        why="reshape swaps two free sizes",
    ),
    Case(
        lambda x: x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2),
        (normal(3, 5, 8),),
        why="the heads of attention",
        dynamic={0: (0, 1)},
    ),
    Case(
        lambda x: x.view(2 * x.shape[0], x.shape[1] // 2),
        (normal(3, 8),),
        why="view by sizes that are computed",
        dynamic={0: (0,)},
    ),
    Case(
        aten._unsafe_view.default, (normal(4, 6), [24]), why="what matmul's decomposition uses", dynamic=False
    ),
    Case(
        aten.reshape_as.default,
        (normal(4, 6), normal(8, 3)),
        why="the shape of another tensor",
        dynamic=False,
    ),
    Case(aten.view_as.default, (normal(4, 6), normal(4, 6)), why="the same shape"),
    Case(aten.flatten.using_ints, (normal(2, 3, 4, 5), 1), why="before the head of a classifier"),
    Case(aten.flatten.using_ints, (normal(2, 3, 4, 5),), why="all axes"),
    Case(aten.flatten.using_ints, (normal(2, 3, 4, 5), 1, 2), why="axes in the middle"),
    Case(aten.flatten.using_ints, (normal(2, 3, 4, 5), 0, -2), why="all axes but the last"),
    Case(aten.flatten.using_ints, (normal(2, 3, 4, 5), 2, 2), why="one axis is no change"),
    Case(aten.flatten.using_ints, (normal(2, 3, 4, 5), 2, -1), why="the axes of an image"),
    Case(aten.flatten.using_ints, (normal(),), why="a tensor without axes gets one"),
    Case(aten.flatten.using_ints, (normal(0, 3, 4), 1), why="an empty batch"),
    Case(aten.flatten.using_ints, (normal(0, 3, 4, 2), 1, 2), why="free axes beside an empty one"),
    Case(aten.ravel.default, (normal(3, 4),), why="all axes"),
    Case(aten.unflatten.int, (normal(3, 8), 1, [2, -1]), why="an open part", dynamic={0: (0,)}),
    Case(aten.unflatten.int, (normal(8, 3), -2, [4, 2]), why="a negative axis", dynamic={0: (1,)}),
    Case(
        lambda x: x.unflatten(0, (-1, 2)),
        (normal(8, 3),),
        why="unflatten a free axis",
        dynamic={0: (0, 1)},
        second=(normal(6, 5),),
    ),
    Case(aten.squeeze.default, (normal(1, 3, 1, 2),), why="all axes of size 1"),
    Case(aten.squeeze.default, (normal(3, 2),), why="no axis of size 1"),
    Case(aten.squeeze.dim, (normal(3, 1, 2), -2), why="one axis"),
    Case(aten.squeeze.dim, (normal(3, 1, 2), 0), why="an axis of another size stays"),
    Case(aten.squeeze.dim, (normal(), 0), why="without axes nothing is left out"),
    Case(aten.squeeze.dims, (normal(1, 3, 1, 2), [0, -2]), why="several axes"),
    Case(aten.squeeze.dims, (normal(1, 3, 1), [0, 1]), why="of several axes one stays"),
    Case(aten.unsqueeze.default, (normal(3, 2), 1), why="in the middle"),
    Case(aten.unsqueeze.default, (normal(3, 2), -1), why="at the end"),
    Case(aten.unsqueeze.default, (normal(3, 2), -3), why="at the front, counted from the end"),
    Case(aten.unsqueeze.default, (normal(), 0), why="the first axis"),
    Case(aten.atleast_3d.default, (normal(3, 2),), why="by decomposition"),
    Case(torch.atleast_2d, (normal(3),), why="one axis is added in front"),
)

TRANSPOSING = (
    Case(aten.permute.default, (normal(2, 3, 4), [2, 0, 1]), why="a rotation"),
    Case(aten.permute.default, (normal(2, 3, 4), [-1, 0, -2]), why="negative axes"),
    Case(aten.permute.default, (normal(2, 3, 4), [0, 1, 2]), why="no change"),
    Case(aten.permute.default, (normal(), []), why="no axes"),
    Case(aten.transpose.int, (normal(2, 3, 4), 1, 2), why="two axes"),
    Case(aten.transpose.int, (normal(2, 3, 4), -1, 0), why="negative axes"),
    Case(aten.transpose.int, (normal(), 0, -1), why="no axes"),
    Case(aten.transpose.int, (bools(2, 3), 0, 1), why="bools"),
    Case(aten.transpose.int, (normal(2, 3, dtype=torch.bfloat16), 0, 1), why="bfloat16"),
    Case(aten.t.default, (normal(2, 3),), why="a matrix"),
    Case(aten.t.default, (normal(3),), why="a vector stays"),
    Case(aten.mT.default, (normal(2, 3, 4),), why="a batch of matrices"),
    Case(aten.mH.default, (normal(2, 3, 4),), why="real matrices"),
    Case(aten.adjoint.default, (normal(2, 3),), why="a real matrix"),
    Case(aten.matrix_H.default, (normal(2, 3),), why="a real matrix"),
    Case(aten.numpy_T.default, (normal(2, 3, 4),), why="all axes reversed"),
    Case(aten.movedim.int, (normal(2, 3, 4), 0, -1), why="the first axis to the end"),
    Case(aten.movedim.intlist, (normal(2, 3, 4, 5), [3, 0], [0, 2]), why="two axes, not in order"),
    Case(aten.moveaxis.int, (normal(2, 3, 4), -1, 0), why="the other name"),
    Case(aten.swapaxes.default, (normal(2, 3, 4), 0, 2), why="the other name"),
    Case(aten.swapdims.default, (normal(2, 3, 4), 0, -1), why="another name"),
)

EXPANDING = (
    Case(aten.expand.default, (normal(1, 3), [4, 3]), why="one axis", dynamic=False),
    Case(aten.expand.default, (normal(3), [2, 4, -1]), why="new axes, an old one kept", dynamic={0: (0,)}),
    Case(aten.expand.default, (normal(2, 3), [2, 3]), why="no change", dynamic=False),
    Case(aten.expand.default, (normal(1), [0]), why="to nothing"),
    Case(aten.expand.default, (normal(), [2, 3]), why="from no axes"),
    Case(aten.expand.default, (normal(1, 3, dtype=torch.bfloat16), [4, 3]), why="bfloat16", dynamic=False),
    Case(
        lambda x, y: x.expand(y.shape[0], -1, -1),
        (normal(1, 2, 3), normal(5)),
        why="expand a class token to the batch",
    ),
    Case(
        lambda x: x[:, :, None].expand(-1, -1, 2, -1, -1).reshape(x.shape[0], -1, *x.shape[2:]),
        (normal(2, 4, 3, 5),),
        why="the keys of grouped attention",
        dynamic={0: (0, 2)},
    ),
    Case(
        lambda x, y: x.expand(x.shape[0], y.shape[0]),
        (normal(4, 1), normal(5)),
        why="expand by sizes of two tensors",
    ),
    Case(aten.expand_as.default, (normal(1, 3), normal(4, 3)), why="the shape of another tensor"),
    Case(aten.expand_as.default, (normal(3), normal(2, 4, 3)), why="new axes"),
    Case(aten.broadcast_to.default, (ints(3, 1), [3, 2]), why="the other name", dynamic=False),
    Case(
        torch.broadcast_tensors,
        (normal(3, 1), normal(4)),
        why="broadcast_tensors is decomposed",
    ),
)

DTYPES = (
    Case(aten.view.dtype, (normal(2, 3), torch.int32), why="float bits as integers", opsets=(26,)),
    Case(
        aten.view.dtype,
        (ints(2, 3, dtype=torch.int16), torch.float16),
        why="integer bits as halves",
        opsets=(26,),
    ),
    Case(aten.view.dtype, (normal(2, 4), torch.int16), why="another width", opsets=(26,), gap="ours"),
    Case(aten.view.dtype, (normal(2, 3), torch.int32), why="BitCast is not in opset 23", gap="ours"),
)

MEMORY = (
    Case(
        lambda x: torch.as_strided(x, (2, 2), (1, 2)),
        (normal(4),),
        why="as_strided in a model becomes a take",
        dynamic=False,
    ),
    Case(
        aten.as_strided.default,
        (normal(4), [2, 2], [1, 2]),
        why="alone it reads memory",
        gap="never",
        dynamic=False,
    ),
)

CASES = (*RESHAPING, *TRANSPOSING, *EXPANDING, *DTYPES, *MEMORY)
