"""Writing a model to disk: all of it or nothing, weights beside it when it is large."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import onnx_ir as ir

from fx2onnx.errors import SaveError
from fx2onnx.protobuf_stream import PROTOBUF_LIMIT, write_model

ROOM_FOR_STRUCTURE = 64 * 2**20


def weight_bytes(model: ir.Model) -> int:
    """The size of all initializers."""
    values = (v.const_value for v in model.graph.initializers.values())
    return sum(t.nbytes for t in values if t is not None)


def save(model: ir.Model, path: str | os.PathLike[str], *, external_data: bool | None = None) -> None:
    """Write a model to `path`.

    Everything is written to a folder next to `path` first and moved into place at the end, so that a crash or a full
    disk leaves what was there before.

    Args:
        model: the model; it is not changed.
        path: the file; its folder must exist.
        external_data: write the weights to a second file `<name>.data`; None does so when the model would
            pass protobuf's 2 GB.

    Raises:
        SaveError: the folder does not exist or cannot be written, or the disk is full.
    """
    target = Path(path)
    if external_data is None:
        external_data = weight_bytes(model) > PROTOBUF_LIMIT - ROOM_FOR_STRUCTURE
    try:
        _check_target(target)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            _write(model, Path(folder), target, external_data=external_data)
    except OSError as error:
        if isinstance(error, SaveError):
            raise
        raise SaveError(f"{target} was not written: {error.strerror or error}") from error


def _check_target(target: Path) -> None:
    if not target.parent.is_dir():
        raise SaveError(f"{target} was not written: the folder {target.parent} does not exist")
    if target.is_dir():
        raise SaveError(f"{target} was not written: it is a folder", fix="give a file name")


def _write(model: ir.Model, folder: Path, target: Path, *, external_data: bool) -> None:
    made = folder / target.name
    if not external_data:
        with made.open("wb") as file:
            write_model(model, file)
        _flush(made)
        os.replace(made, target)
        return
    data = _free_name(target)
    ir.save(model, made, external_data=data)
    _flush(made)
    _flush(folder / data)
    old = _data_files(target)
    shutil.move(folder / data, target.parent / data)
    os.replace(made, target)  # from here on the new model is the one at `target`, with the new data
    for name in old:
        (target.parent / name).unlink(missing_ok=True)


def _data_files(target: Path) -> list[str]:
    """The data files of the model that is at `target` now."""
    names = [f"{target.name}.data", f"{target.name}.1.data"]
    return [name for name in names if (target.parent / name).exists()]


def _free_name(target: Path) -> str:
    """A data file's name that the model at `target` does not use, so that it stays whole until replaced."""
    first, second = f"{target.name}.data", f"{target.name}.1.data"
    return second if (target.parent / first).exists() else first


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
