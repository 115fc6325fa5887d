"""The models that the benchmarks and the model tests export: real libraries, random seeded weights.

Each entry of `MODELS` builds a `Subject`: the model in eval mode, example arguments, the sizes that stay free, and
inputs at other sizes (batch 1 among them).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Subject:
    """A model with its example inputs, dynamic sizes and inputs at other sizes."""

    model: nn.Module
    inputs: Inputs
    dynamic_shapes: Any
    others: list[Inputs] = field(default_factory=list)


MODELS: dict[str, Callable[[], Subject]] = {}


def subject(name: str) -> Callable[[Callable[[], Subject]], Callable[[], Subject]]:
    """Add a builder to the table; it runs with seeded random numbers."""

    def add(build: Callable[[], Subject]) -> Callable[[], Subject]:
        @functools.wraps(build)
        def seeded() -> Subject:
            torch.manual_seed(0)
            found = build()
            found.model.eval()
            _fill_zeros(found.model)
            return found

        MODELS[name] = seeded
        return seeded

    return add


def _fill_zeros(model: nn.Module) -> None:
    """Give weights that are made as zeros (classification heads) random values: a result of zeros proves nothing."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1 and not parameter.any():
                parameter.normal_(std=0.02)


def _vision(name: str, size: int) -> Callable[[], Subject]:
    def build() -> Subject:
        import torchvision

        model = torchvision.models.get_model(name, weights=None)
        image = lambda batch: ((torch.randn(batch, 3, size, size),), {})
        return Subject(model, image(2), {"x": {0: "batch"}}, [image(1), image(3)])

    return build


for _name in (
    "alexnet",
    "resnet50",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "densenet121",
    "convnext_tiny",
    "vit_b_16",
    "swin_t",
    "shufflenet_v2_x1_0",
):
    subject(_name)(_vision(_name, 224))


def _text(batch: int, seq: int, vocab: int = 1000, *, padded: bool = True) -> Inputs:
    ids = torch.randint(0, vocab, (batch, seq))
    mask = torch.ones(batch, seq, dtype=torch.int64)
    if padded and seq > 2 and batch > 1:
        mask[0, -2:] = 0
    return (), {"input_ids": ids, "attention_mask": mask}


_TEXT_DIMS = {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}}


@subject("bert_base")
def bert_base() -> Subject:
    """BERT-base: 12 layers, hidden size 768."""
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(vocab_size=1000))
    return Subject(model, _text(2, 16), _TEXT_DIMS, [_text(1, 9), _text(3, 24)])


@subject("distilbert")
def distilbert() -> Subject:
    """DistilBERT: 6 layers, hidden size 768."""
    from transformers import DistilBertConfig, DistilBertModel

    model = DistilBertModel(DistilBertConfig(vocab_size=1000))
    return Subject(model, _text(2, 16), _TEXT_DIMS, [_text(1, 9), _text(3, 24)])


@subject("gpt2")
def gpt2() -> Subject:
    """GPT-2 (12 layers, hidden size 768) without a cache."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, use_cache=False))
    text = functools.partial(_text, padded=False)
    return Subject(model, text(2, 16), _TEXT_DIMS, [text(1, 9), text(3, 24)])


def _with_cache(batch: int, seq: int, past: int, layers: int, heads: int, width: int) -> Inputs:
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer in range(layers):
        cache.update(torch.randn(batch, heads, past, width), torch.randn(batch, heads, past, width), layer)
    ids = torch.randint(0, 1000, (batch, seq))
    mask = torch.ones(batch, past + seq, dtype=torch.int64)
    return (), {"input_ids": ids, "attention_mask": mask, "past_key_values": cache}


def _cache_dims(layers: int) -> dict[str, Any]:
    entry = {0: "batch", 2: "past"}
    return {
        "input_ids": {0: "batch", 1: "seq"},
        "attention_mask": {0: "batch", 1: "past + seq"},
        "past_key_values": [(entry, entry)] * layers,
    }


@subject("gpt2_cache")
def gpt2_cache() -> Subject:
    """GPT-2 (12 layers) with its key-value cache as inputs and outputs."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000))
    step = functools.partial(_with_cache, layers=12, heads=12, width=64)
    return Subject(model, step(2, 3, 8), _cache_dims(12), [step(1, 1, 5), step(3, 4, 11)])


@subject("llama_16")
def llama_16() -> Subject:
    """A Llama of 16 layers with grouped-query attention, without a cache."""
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM(llama_config(16, use_cache=False))
    text = functools.partial(_text, padded=False)
    return Subject(model, text(2, 16), _TEXT_DIMS, [text(1, 9), text(3, 24)])


@subject("llama_16_cache")
def llama_16_cache() -> Subject:
    """A Llama of 16 layers with its key-value cache as inputs and outputs."""
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM(llama_config(16))
    step = functools.partial(_with_cache, layers=16, heads=4, width=32)
    return Subject(model, step(2, 3, 8), _cache_dims(16), [step(1, 1, 5), step(3, 4, 11)])


def llama_config(layers: int, **options: Any) -> Any:
    """A Llama with hidden size 256 and grouped-query attention."""
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=1000,
        **options,
    )


@subject("t5")
def t5() -> Subject:
    """T5-small: 6 encoder and 6 decoder layers."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=1000, use_cache=False, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config)

    def text(batch: int, seq: int, target: int) -> Inputs:
        args, kwargs = _text(batch, seq)
        return args, {**kwargs, "decoder_input_ids": torch.randint(0, 1000, (batch, target))}

    sizes = {**_TEXT_DIMS, "decoder_input_ids": {0: "batch", 1: "target"}}
    return Subject(model, text(2, 16, 7), sizes, [text(1, 9, 4), text(3, 24, 12)])


@subject("vit")
def vit() -> Subject:
    """transformers' ViT-base."""
    from transformers import ViTConfig, ViTModel

    image = lambda batch: ((), {"pixel_values": torch.randn(batch, 3, 224, 224)})
    return Subject(ViTModel(ViTConfig()), image(2), {"pixel_values": {0: "batch"}}, [image(1), image(3)])


def _sequence(batch: int, seq: int, width: int = 16) -> Inputs:
    return (torch.randn(batch, seq, width),), {}


@subject("lstm")
def lstm() -> Subject:
    """A bidirectional LSTM of two layers, batch first."""
    model = nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True)
    return Subject(
        model, _sequence(2, 6), {"input": {0: "batch", 1: "seq"}}, [_sequence(1, 4), _sequence(3, 9)]
    )


@subject("gru")
def gru() -> Subject:
    """A bidirectional GRU of two layers, batch first."""
    model = nn.GRU(16, 24, num_layers=2, bidirectional=True, batch_first=True)
    return Subject(
        model, _sequence(2, 6), {"input": {0: "batch", 1: "seq"}}, [_sequence(1, 4), _sequence(3, 9)]
    )


@subject("transformer_encoder")
def transformer_encoder() -> Subject:
    """nn.TransformerEncoder of 4 layers, batch first."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    sequence = functools.partial(_sequence, width=64)
    return Subject(model, sequence(2, 6), {"src": {0: "batch", 1: "seq"}}, [sequence(1, 4), sequence(3, 9)])


@subject("multihead_attention")
def multihead_attention() -> Subject:
    """nn.MultiheadAttention with averaged weights as a second result."""
    model = nn.MultiheadAttention(32, 4, batch_first=True)

    def inputs(batch: int, target: int, source: int) -> Inputs:
        memory = torch.randn(batch, source, 32)
        return (torch.randn(batch, target, 32), memory, memory + 1), {}

    source = {0: "batch", 1: "source"}
    sizes = {"query": {0: "batch", 1: "target"}, "key": source, "value": source}
    return Subject(model, inputs(2, 5, 7), sizes, [inputs(1, 3, 4), inputs(3, 8, 6)])


class Bags(nn.Module):
    """An embedding bag with per-sample weights and offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(50, 8, mode="sum")
        self.head = nn.Linear(8, 3)

    def forward(self, ids: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """(N,), (B,), (N,) -> (B, 3)."""
        return self.head(self.bag(ids, offsets, per_sample_weights=weights))


@subject("embedding_bag")
def embedding_bag() -> Subject:
    """nn.EmbeddingBag with offsets."""

    def inputs(count: int, *offsets: int) -> Inputs:
        return (torch.randint(0, 50, (count,)), torch.tensor(offsets), torch.rand(count)), {}

    sizes = {"ids": {0: "tokens"}, "offsets": {0: "bags"}, "weights": {0: "tokens"}}
    return Subject(Bags(), inputs(7, 0, 3), sizes, [inputs(4, 0), inputs(9, 0, 2, 2, 7)])


class UNet(nn.Module):
    """A small U-Net whose decoder interpolates to the size of each skip connection."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [self._block(3, width), self._block(width, 2 * width), self._block(2 * width, 4 * width)]
        )
        self.up = nn.ModuleList([self._block(6 * width, 2 * width), self._block(3 * width, width)])
        self.head = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _block(inside: int, outside: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
            nn.Conv2d(outside, outside, 3, padding=1),
            nn.GroupNorm(4, outside),
            nn.SiLU(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) -> (B, 2, H, W)."""
        skips = []
        for i, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if i else x)
            skips.append(x)
        for block, skip in zip(self.up, reversed(skips[:-1]), strict=True):
            x = nn.functional.interpolate(x, size=skip.shape[-2:], mode="bilinear", align_corners=False)
            x = block(torch.cat([x, skip], 1))
        return self.head(x)


@subject("unet")
def unet() -> Subject:
    """A U-Net, free in batch, height and width."""
    image = lambda batch, h, w: ((torch.randn(batch, 3, h, w),), {})
    sizes = {"x": {0: "batch", 2: "height", 3: "width"}}
    return Subject(UNet(), image(2, 36, 44), sizes, [image(1, 29, 33), image(3, 48, 26)])
