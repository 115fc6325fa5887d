"""Key-value caches of transformers as pytrees: `past_key_values.0.key`, `past_key_values.0.value` …"""

from __future__ import annotations


def register_caches() -> None:
    """Let torch's pytrees see the tensors in transformers' caches, when transformers is in use."""
