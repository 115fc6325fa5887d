"""Every case of the case table against eager PyTorch: with fixed sizes, and with free ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fx2onnx.errors import Fx2OnnxError
from fx2onnx.opset.cases import Case, families
from fx2onnx.testing import RuntimeRefusalError, check


def _parameters() -> Iterator[object]:
    """One test for each case, opset and kind of sizes; `gap` cases must fail, but never by wrong values."""
    for family, cases in families().items():
        for case in cases:
            marks = (
                [pytest.mark.xfail(reason=case.gap, raises=_failures(case), strict=True)] if case.gap else []
            )
            for opset in case.opsets:
                for sizes in ("static", "dynamic") if case.dynamic else ("static",):
                    version = "" if opset == Case.opsets[0] else f"-opset{opset}"
                    name = f"{family}/{case}-{sizes}{version}"
                    yield pytest.param(case, sizes, opset, id=name, marks=marks)


def _failures(case: Case) -> type[Exception] | tuple[type[Exception], ...]:
    return (Fx2OnnxError, RuntimeRefusalError) if case.gap == "onnxruntime" else Fx2OnnxError


@pytest.mark.parametrize(("case", "sizes", "opset"), [*_parameters()])
def test_case(case: Case, sizes: str, opset: int) -> None:
    check(case, dynamic=sizes == "dynamic", opset=opset)


def test_names_are_distinct() -> None:
    for family, cases in families().items():
        names = [str(case) for case in cases]
        doubles = {name for name in names if names.count(name) > 1}
        assert not doubles, f"{family}: two cases say the same why: {doubles}"
