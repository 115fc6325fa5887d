"""parse: graph text → TypedGraph, the inverse of `fx2onnx.text.show`.

Every operator is run again on fake tensors, so that the graph's values are what PyTorch makes of its inputs; a type
that the text gives and that PyTorch does not is an error. Types of calls may be left out of the text.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import torch
import torch.utils._pytree as pytree
from torch import fx

from fx2onnx.dims import names as names_in
from fx2onnx.graph import Input, Output, Relation, TypedGraph, new_module
from fx2onnx.infer import NotInferableError, argument_values, infer, mapped_sizes, same_type, sizes_in
from fx2onnx.text import default_name, show_type
from fx2onnx.text_sizes import Sizes, example_sizes
from fx2onnx.text_syntax import Assign, Block, Frame, Parameter, read
from fx2onnx.text_tokens import Ref, RegionRef, fail
from fx2onnx.text_words import Opaque, find_target
from fx2onnx.types import TensorType, Type, type_of, type_of_value


def parse(text: str, *, state: Mapping[str, torch.Tensor] | None = None) -> TypedGraph:
    """The graph that a text says.

    Args:
        text: what `show` writes; types of calls may be omitted.
        state: tensors by qualified name (`"conv1.weight"`); those that are not there are zeros.

    Raises:
        GraphTextError: the text is no graph, or PyTorch makes other types than it gives; names the line.
    """
    return _Builder(text, state or {}).graph()


class _Builder:
    """Builds the graphs of one text over one set of sizes."""

    def __init__(self, text: str, state: Mapping[str, torch.Tensor]) -> None:
        self.text, self.given = text, state
        self.blocks = read(text)
        self.top = self.blocks[-1]
        self.regions: dict[str, fx.GraphModule] = {}
        self.sizes = self._sizes()

    def fail(self, line: int, why: str) -> NoReturn:
        """Raise the error of a line.

        Raises:
            GraphTextError: always.
        """
        fail(line, why, self.text)

    def _sizes(self) -> Sizes:
        """Example sizes for the names that inputs carry."""
        carried = [p.type for p in (*self.top.parameters, *self.top.state)]
        sizes = [size for type_ in carried for size in sizes_in(type_)]
        relations = [(n.left, n.sign, n.right) for n in self.top.needs if n.sign != "holds"]
        examples = example_sizes(sizes, relations)
        if examples is None:
            self.fail(
                self.top.line, "no sizes were found for which all sizes of inputs are whole and 'needs' holds"
            )
        written = [line.type for b in self.blocks for line in b.body]
        written += [parameter.type for b in self.blocks for parameter in b.parameters]
        every = set().union(examples or (), *(names_in(s) for t in written for s in sizes_in(t)))
        return Sizes(examples or {}, every)

    def graph(self) -> TypedGraph:
        """The whole text."""
        for block in self.blocks[:-1]:
            if str(block.name) in self.regions:
                self.fail(block.line, f"a second region is called {block.name!r}")
            self.regions[str(block.name)] = self._region(block)
        return _Top(self, self.top).typed_graph()

    def _region(self, block: Block) -> fx.GraphModule:
        body = _Body(self, block)
        for parameter in block.parameters:
            body.placeholder(parameter)
        for line in block.body:
            body.add(line)
        result = body.literal(block.returned, block.return_line)
        body.graph.output(result)
        found = type_of_value(fx.node.map_arg(result, lambda n: n.meta.get("val")))
        self.agree(found, block.result_type, block.return_line, "the region returns")
        cls = block.cls or str(block.name)
        module = new_module(body.attributes, body.graph, cls.rsplit(".", 1)[-1])
        if block.cls is not None:
            module.meta.update({"class": cls, "domain": cls.split(".", 1)[0]})
        return module

    def value(self, type_: Type | None, line: int) -> Any:
        """A fake value of a written type."""
        try:
            return self.sizes.value(type_)
        except (ValueError, RuntimeError) as error:
            self.fail(line, f"no value is {show_type(type_)}: {str(error).splitlines()[0]}")

    def check_free(self, line: Assign) -> None:
        """Refuse a call that fixes a size which the text has as a name."""
        if not (fixed := self.sizes.fixed()):
            return
        said = [names_in(n.left) | names_in(n.right) for n in self.top.needs if n.sign == "=="]
        for name, number in fixed.items():
            if {name} not in said:
                self.fail(line.line, f"{line.callee} works for {name} = {number} only")

    def agree(self, found: Type | None, written: Type | None, line: int, what: str) -> None:
        """Refuse a written type that is not the one that was found."""
        if same_type(found, written):
            return
        try:
            plain = mapped_sizes(written, self.sizes.plain)
        except ValueError:
            plain = written
        if not same_type(found, plain):
            self.fail(line, f"{what} {show_type(found)}, the text has {show_type(written)}")


class _Body:
    """One graph under construction: its values by name."""

    def __init__(self, builder: _Builder, block: Block) -> None:
        self.builder, self.block = builder, block
        self.graph = fx.Graph()
        self.attributes: dict[str, Any] = {}
        self.values: dict[str, fx.Node] = {}
        self.keys: dict[int, str] = {}  # the key of each module call, by its Frame

    def placeholder(self, parameter: Parameter) -> fx.Node:
        """A placeholder with a fake value of the written type."""
        if parameter.name is None:
            self.builder.fail(parameter.line, "a region has no Python values among its parameters")
        node = self.graph.placeholder(parameter.name)
        self._named(node, parameter.name, parameter.line)
        node.target = parameter.name
        node.meta["val"] = self.builder.value(parameter.type, parameter.line)
        return node

    def _named(self, node: fx.Node, name: str, line: int) -> None:
        """Give a node exactly its name."""
        if name in self.values:
            self.builder.fail(line, f"a second value is called {name!r}")
        if node.name != name:
            for holder in self.graph.find_nodes(op="get_attr"):  # its name is not the text's
                if holder.name == name:
                    holder.name = node.name
            node.name = name
        self.values[name] = node

    def literal(self, value: Any, line: int) -> Any:
        """A literal of the text with nodes for names."""
        if isinstance(value, Ref):
            if (node := self.values.get(value.name)) is None:
                self.builder.fail(line, f"no value is called {value.name!r} up to here")
            return node
        if isinstance(value, RegionRef):
            return self._held_region(value.name, line)
        if isinstance(value, Opaque):
            self.builder.fail(line, f"the object {value} cannot be read from text")
        if isinstance(value, list | tuple):
            return type(value)(self.literal(v, line) for v in value)
        if isinstance(value, dict):
            return {k: self.literal(v, line) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(*(self.literal(v, line) for v in (value.start, value.stop, value.step)))
        return value

    def _region(self, name: str, line: int) -> fx.GraphModule:
        found: fx.GraphModule | None = self.builder.regions.get(name)
        if found is None:
            self.builder.fail(line, f"no region is called {name!r} up to here")
        self.attributes[name] = found
        return found

    def _held_region(self, name: str, line: int) -> fx.Node:
        """The node that holds a region, for an operator that takes it."""
        self._region(name, line)
        holders: list[fx.Node] = self.graph.find_nodes(op="get_attr", sort=False)
        return next((n for n in holders if n.target == name), None) or self.graph.get_attr(name)

    # -- lines -------------------------------------------------------------------------------------

    def add(self, line: Assign) -> None:
        """The node of one line."""
        node, value = self._made(line)
        if line.typed:
            self.builder.sizes.bind(value, line.type)
        self.builder.sizes.name_rest(value)
        if line.typed:
            self.builder.agree(type_of_value(value), line.type, line.line, f"{line.callee} makes")
        self.builder.check_free(line)
        node.meta["val"] = value
        node.meta["nn_module_stack"] = self._stack(line.frames)
        self._named(node, line.name, line.line)

    def _made(self, line: Assign) -> tuple[fx.Node, Any]:
        if line.kind == "item":
            return self._item(line)
        if line.kind == "attribute":
            return self._attribute(line)
        args = self.literal(line.args, line.line)
        kwargs = self.literal(line.kwargs, line.line)
        if line.callee in self.builder.regions:
            return self._region_call(line, args, kwargs)
        if (target := find_target(line.callee)) is None:
            known = ", ".join(self.builder.regions) or "none"
            self.builder.fail(
                line.line, f"{line.callee!r} is neither an operator nor a region (regions: {known})"
            )
        node = self.graph.create_node("call_function", target, args, kwargs, name=line.name)
        return node, self._inferred(node, line)

    def _inferred(self, node: fx.Node, line: Assign) -> Any:
        module = torch.nn.Module()
        for name, value in self.attributes.items():
            setattr(module, name, value)
        args, kwargs = argument_values(module, node)  # type: ignore[arg-type]  # all it reads is attributes
        try:
            return infer(node.target, args, kwargs, self.builder.sizes.mode)  # type: ignore[arg-type]  # a call_function's target is callable
        except NotInferableError as error:
            if line.typed:
                return self.builder.value(line.type, line.line)
            self.builder.fail(line.line, f"the type of {line.callee} must be written: {error}")
        except Exception as error:  # noqa: BLE001  operators raise what they like for arguments that do not fit
            first = (str(error).splitlines() or ["no message"])[0]
            self.builder.fail(
                line.line, f"{line.callee} takes no such arguments: {type(error).__name__}: {first}"
            )

    def _item(self, line: Assign) -> tuple[fx.Node, Any]:
        source = self.literal(Ref(line.callee), line.line)
        (position,) = line.args
        values = source.meta["val"]
        if not isinstance(values, tuple | list) or position >= len(values):
            self.builder.fail(
                line.line, f"{line.callee} is {show_type(type_of(source))} and has no item {position}"
            )
        node = self.graph.create_node("call_function", operator.getitem, (source, position), name=line.name)
        return node, values[position]

    def _attribute(self, line: Assign) -> tuple[fx.Node, Any]:
        value = self.builder.value(line.type, line.line)
        if not isinstance(line.type, TensorType):
            self.builder.fail(line.line, "an attribute needs the type of a tensor")
        if not line.callee.isidentifier():
            self.builder.fail(line.line, f"an attribute of this graph cannot be called {line.callee!r}")
        self.attributes[line.callee] = self.tensor(line.callee, line.type, line.line)
        return self.graph.create_node("get_attr", line.callee, name=line.name), value

    def _region_call(self, line: Assign, args: Any, kwargs: Any) -> tuple[fx.Node, Any]:
        region = self._region(line.callee, line.line)
        formal = region.graph.find_nodes(op="placeholder")
        if kwargs or len(args) != len(formal):
            self.builder.fail(line.line, f"{line.callee} takes {len(formal)} values by position")
        for parameter, argument in zip(formal, args, strict=True):
            found = type_of(argument) if isinstance(argument, fx.Node) else type_of_value(argument)
            if not same_type(type_of(parameter), found):
                self.builder.fail(
                    line.line,
                    f"{line.callee} takes {show_type(type_of(parameter))} as {parameter.name}, not {show_type(found)}",
                )
        result = fx.node.map_arg(region.graph.output_node().args[0], lambda n: n.meta.get("val"))
        node = self.graph.create_node("call_module", line.callee, args, name=line.name)
        return node, self.builder.value(type_of_value(result), line.line)

    def _stack(self, frames: Sequence[Frame]) -> dict[str, tuple[str, str]]:
        """The module calls around a line in torch's form."""
        stack = {"L__self__": ("", "Model")}
        for frame in frames:
            key = self.keys.setdefault(id(frame), f"{frame.path}@{len(self.keys)}")
            stack[key] = (frame.path, frame.cls)
        return stack

    def tensor(self, name: str, type_: TensorType, line: int) -> torch.Tensor:
        """The given tensor of a state, or zeros."""
        if not all(isinstance(size, int) for size in type_.shape):
            self.builder.fail(line, f"{name!r} is a tensor of the model and has only sizes that are numbers")
        given = self.builder.given.get(name)
        if given is None:
            return torch.zeros(type_.shape, dtype=type_.dtype)  # type: ignore[arg-type]  # all are ints
        if type_of_value(given) != type_:
            self.builder.fail(line, f"the tensor given for {name!r} is {show_type(type_of_value(given))}")
        return given


class _Top(_Body):
    """The top graph, with its inputs, state and outputs."""

    def typed_graph(self) -> TypedGraph:
        inputs, constants = self._inputs()
        state, names = self._state()
        for line in self.block.body:
            self.add(line)
        outputs, values = self._outputs()
        self.graph.output(tuple(values))
        found = tuple(type_of(v) if isinstance(v, fx.Node) else None for v in values)
        self.builder.agree(
            found[0] if len(found) == 1 else found,
            self.block.result_type,
            self.block.return_line,
            "the graph returns",
        )
        leaves = {**{i.leaf: None for i in inputs}, **constants}
        return TypedGraph(
            new_module(self.attributes, self.graph, "GraphModule"),
            inputs,
            outputs,
            state,
            names,
            in_spec=_flat_inputs(sorted(leaves)),
            out_spec=_flat_outputs([o.leaf for o in outputs if o.leaf is not None]),
            input_constants=constants,
            relations=tuple(Relation(n.left, n.sign, n.right, None, n.text) for n in self.block.needs),
            notes=tuple(self.block.notes),
        )

    def _inputs(self) -> tuple[tuple[Input, ...], dict[int, Any]]:
        inputs: list[Input] = []
        constants: dict[int, Any] = {}
        expected = 0
        for parameter in self.block.parameters:
            leaf = expected if parameter.leaf is None else parameter.leaf
            expected = leaf + 1
            if parameter.name is None:
                constants[leaf] = parameter.value
                continue
            node = self.placeholder(parameter)
            inputs.append(Input(parameter.title or parameter.name, node.name, leaf))
        return tuple(inputs), constants

    def _state(self) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        state: dict[str, torch.Tensor] = {}
        names: dict[str, str] = {}
        for entry in self.block.state:
            node = self.placeholder(entry)
            if not isinstance(entry.type, TensorType):
                self.builder.fail(entry.line, "state is tensors: its type must be written")
            names[node.name] = str(entry.title)
            state[node.name] = self.tensor(str(entry.title), entry.type, entry.line)
        return state, names

    def _outputs(self) -> tuple[tuple[Output, ...], list[Any]]:
        line = self.block.return_line
        outputs: list[Output] = []
        values: list[Any] = []
        expected = 0
        for item in self.block.results:
            value = item.value if isinstance(item.value, Opaque) else self.literal(item.value, line)
            if item.into is not None:
                outputs.append(Output(item.title, mutated=item.into))
                values.append(value)
                continue
            leaf = expected if item.leaf is None else item.leaf
            expected = leaf + 1
            if isinstance(value, fx.Node):
                values.append(value)
                outputs.append(Output(item.title or "", leaf=leaf))
            else:
                outputs.append(Output(None, constant=value, leaf=leaf))
        return tuple(_with_name(o, outputs) for o in outputs), values


def _with_name(output: Output, outputs: Sequence[Output]) -> Output:
    """`output` with the default name where the text gives none."""
    if output.name != "":
        return output
    return Output(default_name(output, outputs), leaf=output.leaf)


def _flat_inputs(leaves: Sequence[int]) -> pytree.TreeSpec | None:
    """A call with one argument for each leaf; None where leaves are missing."""
    count = len(leaves)
    return pytree.tree_structure(((0,) * count, {})) if list(leaves) == list(range(count)) else None


def _flat_outputs(leaves: Sequence[int]) -> pytree.TreeSpec | None:
    count = len(leaves)
    if list(leaves) != list(range(count)):
        return None
    return pytree.tree_structure(0 if count == 1 else (0,) * count)
