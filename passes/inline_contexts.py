"""Take graphs that torch wraps into contexts (grad mode, autocast) back into the graph that they are called from.

    y = wrap_with_set_grad_enabled(False, body, x)    ->    y = aten.relu.default(x)

The values do not depend on the grad mode. Under an active autocast, operands are cast as autocast casts them; the
lists of operators are those of torch's CPU autocast ("CPU Op-Specific Behavior" in the documentation of torch.amp).
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.graph import attribute
from fx2onnx.rewrite import call, each_graph

aten = torch.ops.aten

_GRAD_MODE = torch.ops.higher_order.wrap_with_set_grad_enabled
_AUTOCAST = torch.ops.higher_order.wrap_with_autocast

# Operators that autocast computes in the lower precision, and those that it computes in float32.
_LOWER = frozenset(
    getattr(aten, name)
    for name in (
        *(
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "convolution",
        ),
        *(
            "bmm",
            "mm",
            "mv",
            "linear",
            "addmm",
            "addbmm",
            "baddbmm",
            "matmul",
            "conv_tbc",
            "linalg_vecdot",
            "addmv",
        ),
        *("linalg_matmul", "_native_multi_head_attention", "scaled_dot_product_attention"),
    )
)
_FULL = frozenset(
    getattr(aten, name)
    for name in (
        *(
            "avg_pool3d",
            "binary_cross_entropy",
            "grid_sampler",
            "_grid_sampler_2d_cpu_fallback",
            "grid_sampler_3d",
        ),
        *(
            "polar",
            "prod",
            "quantile",
            "nanquantile",
            "stft",
            "cdist",
            "trace",
            "view_as_complex",
            "cholesky",
        ),
        *("cholesky_inverse", "cholesky_solve", "inverse", "lu_solve", "orgqr", "ormqr", "pinverse"),
        *(
            "max_pool3d",
            "max_unpool2d",
            "max_unpool3d",
            "adaptive_avg_pool3d",
            "reflection_pad1d",
            "replication_pad1d",
        ),
        *(
            "mse_loss",
            "cosine_embedding_loss",
            "nll_loss",
            "nll_loss2d",
            "hinge_embedding_loss",
            "poisson_nll_loss",
        ),
        *("smooth_l1_loss", "cross_entropy_loss", "l1_loss", "huber_loss", "margin_ranking_loss", "kl_div"),
        *(
            "soft_margin_loss",
            "triplet_margin_loss",
            "multi_margin_loss",
            "ctc_loss",
            "multilabel_margin_loss",
        ),
        *(
            "binary_cross_entropy_with_logits",
            "fft_fft",
            "fft_ifft",
            "linalg_cond",
            "linalg_matrix_rank",
            "linalg_solve",
        ),
        *(
            "linalg_cholesky",
            "linalg_svdvals",
            "linalg_eigvals",
            "linalg_eigvalsh",
            "linalg_inv",
            "linalg_qr",
        ),
        *("linalg_svd", "linalg_eig", "linalg_eigh", "linalg_lstsq"),
    )
    if hasattr(aten, name)
)


def rewrite(module: fx.GraphModule) -> None:
    """Inline the wrapped bodies of one graph; write the casts of an autocast that was active around its capture."""
    if (lower := module.meta.pop("autocast", None)) is not None:
        for node in list(module.graph.nodes):
            _cast_operands(node, lower)
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is _GRAD_MODE:
            _inline(module, node, node.args[1], node.args[2:], None)
        elif node.op == "call_function" and node.target is _AUTOCAST:
            device, dtype, enabled, _, body, *arguments = node.args
            _check(node, device)
            _inline(module, node, body, arguments, _lower(dtype) if enabled else None)


def _lower(dtype: Any) -> torch.dtype:
    return dtype if isinstance(dtype, torch.dtype) else torch.get_autocast_dtype("cpu")


def _check(node: fx.Node, device: Any) -> None:
    if device != "cpu" and node.args[2]:
        raise UnsupportedOpError(
            f"autocast for {device} is active in the model, whose tensors are on the CPU",
            where=origin.user_line(node),
        )


def _inline(
    module: fx.GraphModule, node: fx.Node, body: Any, arguments: Any, lower: torch.dtype | None
) -> None:
    """Copy the nodes of a body in place of the call, then do the same for what it wraps itself."""
    region: fx.GraphModule = attribute(module, str(body.target))
    rewrite(region)
    mapped: dict[fx.Node, Any] = dict(zip(region.graph.find_nodes(op="placeholder"), arguments, strict=True))
    for inner in region.graph.nodes:
        if inner.op == "get_attr":
            setattr(module, f"{body.target}_{inner.target}", attribute(region, str(inner.target)))
        if inner.op in ("placeholder", "output"):
            continue
        with module.graph.inserting_before(node):
            made = module.graph.node_copy(inner, lambda n: mapped[n])
            if inner.op == "get_attr":
                made.target = f"{body.target}_{inner.target}"
            if lower is not None:
                _cast_operands(made, lower)
        mapped[inner] = made
    results = fx.node.map_arg(region.graph.output_node().args[0], lambda n: mapped[n])
    _replace(node, results)
    if not body.users:
        module.graph.erase_node(body)


def _replace(node: fx.Node, results: Any) -> None:
    for user in list(node.users):
        if user.target is operator.getitem:
            user.replace_all_uses_with(results[user.args[1]])
            user.graph.erase_node(user)
    if node.users:
        node.replace_all_uses_with(results if isinstance(results, fx.Node) else results[0])
    node.graph.erase_node(node)


def _cast_operands(node: fx.Node, lower: torch.dtype) -> None:
    """Cast a call's float operands as autocast does."""
    if not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
        return
    packet = node.target.overloadpacket
    dtype = lower if packet in _LOWER else torch.float32 if packet in _FULL else None
    if dtype is None:
        return

    def cast(argument: fx.Node) -> fx.Node:
        value = argument.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype == dtype or not value.is_floating_point():
            return argument
        if value.dtype is torch.float64:
            return argument
        with node.graph.inserting_before(node):
            return call(node.graph, aten._to_copy.default, argument, dtype=dtype, like=node)  # noqa: SLF001

    node.args = fx.node.map_arg(node.args, cast)
    node.kwargs = fx.node.map_arg(node.kwargs, cast)


run = each_graph("inline_contexts", rewrite)
