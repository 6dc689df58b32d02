"""Writes a model of the llama kind with random weights: `model.py FILE`.

Its form is that of small published models (6 layers of 512, 8 heads, 32,000 words): what a machine computes for a token does not
depend on what the weights are.
"""

from __future__ import annotations

import sys

import gguf
import numpy as np

LAYERS, HIDDEN, HEADS, INNER, WORDS = 6, 512, 8, 1408, 32000


def main(file: str) -> None:
    numbers = np.random.default_rng(0)
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(WORDS)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_tokenizer_model("llama")
    special = [("<unk>", 2), ("<s>", 3), ("</s>", 3)]
    words = special + [(f"word{i}", 1) for i in range(WORDS - len(special))]
    writer.add_token_list([text for text, _ in words])
    writer.add_token_scores([0.0] * WORDS)
    writer.add_token_types([kind for _, kind in words])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def matrix(name: str, rows: int, columns: int) -> None:
        weights = numbers.standard_normal((rows, columns), np.float32) * columns**-0.5
        packed = gguf.quantize(weights, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(f"{name}.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    def ones(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(HIDDEN, np.float32))

    matrix("token_embd", WORDS, HIDDEN)
    matrix("output", WORDS, HIDDEN)
    ones("output_norm")
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            ones(f"blk.{layer}.{name}")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{name}", HIDDEN, HIDDEN)
        matrix(f"blk.{layer}.ffn_gate", INNER, HIDDEN)
        matrix(f"blk.{layer}.ffn_up", INNER, HIDDEN)
        matrix(f"blk.{layer}.ffn_down", HIDDEN, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
