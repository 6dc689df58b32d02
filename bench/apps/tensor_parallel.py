"""Decodes with a small transformer of random weights, tensor parallel: `tensor_parallel.py BACKEND SECONDS`, once a rank.

torch.distributed.tensor.parallel divides each layer's attention heads and feed-forward rows among the ranks, which leaves two
allreduces of the hidden state a layer. With `operator/LIBRARY` as the backend the layers are divided here, and each of the two
is a call of the library's operator, as in DeepSpeed, sglang and vLLM. Prints the time of one token, and the share of it that is
communication: what it takes longer than one rank's part of the same layers by itself.
"""

from __future__ import annotations

import sys
from typing import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from ranks import join, leave, seconds_a_step, tell

HIDDEN, HEADS, INNER, LAYERS, PAST, SEQUENCES = 1024, 16, 2816, 8, 64, 4


class Layer(nn.Module):
    """One layer with `1 / parts` of the heads and of the inner rows where it is not divided by torch, and how sums of parts are made."""

    def __init__(self, parts: int = 1, add_up: Callable[[torch.Tensor], object] | None = None) -> None:
        super().__init__()
        self.add_up = add_up or (lambda part: None)
        self.each = HIDDEN // HEADS
        width = HIDDEN // parts
        self.before, self.between = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.query, self.key, self.value = (nn.Linear(HIDDEN, width, bias=False) for _ in range(3))
        self.merge = nn.Linear(width, HIDDEN, bias=False)
        self.gate, self.up = (nn.Linear(HIDDEN, INNER // parts, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER // parts, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        normal = self.before(x)
        query, key, value = (w(normal).view(SEQUENCES, -1, 1, self.each) for w in (self.query, self.key, self.value))
        keys, values = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        seen = nn.functional.scaled_dot_product_attention(query, keys, values)
        part = self.merge(seen.reshape(SEQUENCES, -1))
        self.add_up(part)
        x = x + part
        normal = self.between(x)
        part = self.down(nn.functional.silu(self.gate(normal)) * self.up(normal))
        self.add_up(part)
        return x + part


def share(whole: Layer, add_up: Callable[[torch.Tensor], object]) -> Layer:
    """This rank's part of a layer."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    part = Layer(ranks, add_up)
    for name, weight in part.named_parameters():
        of = whole.get_parameter(name)
        dim = next((d for d in range(of.dim()) if of.shape[d] != weight.shape[d]), None)
        weight.copy_(of if dim is None else of.chunk(ranks, dim)[rank])
    return part


@torch.inference_mode()
def main(backend: str, seconds: float) -> None:
    kind, _, library = backend.rpartition("/")
    join("gloo" if kind == "operator" else backend)
    ranks = dist.get_world_size()
    whole, part = [Layer() for _ in range(LAYERS)], [Layer(ranks) for _ in range(LAYERS)]
    token = torch.randn(SEQUENCES, HIDDEN)
    expected = token
    past = torch.randn(2, SEQUENCES, HEADS, PAST, HIDDEN // HEADS)
    mine = past.chunk(ranks, 2)[dist.get_rank()].contiguous()
    for layer in whole:
        expected = layer(expected, past)
    if kind == "operator":
        from lineweave._bench_inference import reducer

        add_up = reducer(library)
        divided = [share(layer, add_up) for layer in whole]
    else:
        mesh = init_device_mesh("cpu", (ranks,))
        wide = {name: ColwiseParallel() for name in ("query", "key", "value", "gate", "up")}
        plan = {**wide, "merge": RowwiseParallel(), "down": RowwiseParallel()}
        divided = [parallelize_module(layer, mesh, plan) for layer in whole]

    def decode(layers: list[nn.Module]) -> torch.Tensor:
        x = token
        for layer in layers:
            x = layer(x, mine)
        return x

    torch.testing.assert_close(decode(divided), expected, rtol=1e-3, atol=1e-3)
    together = seconds_a_step(lambda: decode(divided), seconds)
    tell("token", together, seconds_a_step(lambda: decode(part), seconds / 2))
    leave()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
