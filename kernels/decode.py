"""Text generation by a small transformer: one prefill, then one token after another for all requests at once.

Shows: a step of decoding is dozens of short kernels, and eagerly the GPU waits for the CPU before each;
    as a CUDA graph (mode=graph) a step is one launch.  Whether that shortens the time for each token is an
    experiment, not a conclusion.
Parameters: mode (eager or graph), requests, prompt and tokens [tokens of a request], layers, heads, head_dim,
    vocabulary.  Every request gets all its tokens: there is no early stopping.
Model: point(flops, bytes) of the whole generation: 2 FLOP a weight and token, 4 d a head and cached key;
    weights once a step, caches once a step.

As a workload its time is that of a whole generation.  As a program it prints one JSON object: time per output
token, 95th percentile of the time between tokens, prefill; set-up and capture apart; and what both modes must
agree on.  Gaps and kernel durations are for traces, never for these numbers.

    ncukit experiment decode.py --baseline decode --control mode=eager,graph \
        --range decode --watch gap_time:lower --watch kernel_time:lower
    ncukit experiment --end-to-end 'python decode.py --mode {mode}' --control mode=eager,graph \
        --metric time_per_output_token --metric p95_latency --range decode --watch gap_time:lower \
        --same output_tokens --same tokens_sha256 --same logits
"""

import argparse
import hashlib
import json
import math
import statistics
import time

import torch

import ncukit
from ncukit.run.workload.script import parameters

EXPECT = {
    "region": ["launch-bound"],
    "verdict": ["latency-bound:small-grid", "memory-bound:dram", "compute-bound:tensor", "balanced"],
    "findings": ["small-grid|over-at-once|dram-direction|tensor-use|busiest-unit"],
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = ("requests", "prompt", "tokens", "layers", "heads", "head_dim", "vocabulary")
DTYPE = torch.float16 if DEVICE == "cuda" else torch.float32


class Generator:
    """Greedy decoding; caches, position and tokens stay at their addresses: a graph can replay a step."""

    def __init__(self, mode, requests, prompt, tokens, layers, heads, head_dim, vocabulary):
        if mode not in ("eager", "graph"):
            raise ncukit.NcukitError(f"there is no mode {mode!r}", "use mode=eager or mode=graph")
        if mode == "graph" and DEVICE == "cpu":
            raise ncukit.NcukitError(
                "mode=graph cannot run here: a CUDA graph needs a GPU, and torch sees none", "use mode=eager"
            )
        for name, value in zip(
            SIZES, (requests, prompt, tokens, layers, heads, head_dim, vocabulary), strict=True
        ):
            if value < 1:
                raise ncukit.NcukitError(f"{name} is {value}", "give a number of at least 1")
        torch.manual_seed(0)
        self.requests, self.prompt, self.tokens, self.heads = requests, prompt, tokens, heads
        self.width, self.length = heads * head_dim, prompt + tokens
        shape = {"device": DEVICE, "dtype": DTYPE}

        def weight(rows, columns):
            return torch.randn(rows, columns, **shape) * columns**-0.5

        width = self.width
        self.layers = [
            {
                "qkv": weight(3 * width, width),
                "out": weight(width, width),
                "up": weight(4 * width, width),
                "down": weight(width, 4 * width),
            }
            for _ in range(layers)
        ]
        self.embedding = torch.randn(vocabulary, width, **shape)
        self.places = torch.randn(self.length, width, **shape)
        self.head = weight(vocabulary, width)
        self.asked = torch.randint(vocabulary, (requests, prompt), device=DEVICE)
        cache = (layers, 2, requests, heads, self.length, head_dim)
        self.cache = torch.zeros(cache, **shape)
        self.position = torch.zeros(1, dtype=torch.long, device=DEVICE)
        self.token = torch.zeros(requests, dtype=torch.long, device=DEVICE)
        self.said = torch.zeros(requests, tokens, dtype=torch.long, device=DEVICE)
        self.logits = torch.zeros(requests, vocabulary, **shape)
        self.keys = torch.arange(self.length, device=DEVICE)
        self.capture_time = 0.0
        self.step = self._capture() if mode == "graph" else self._step

    @torch.inference_mode()
    def generate(self, after_token=None):
        """Return the tokens of all requests and the logits of the last step."""
        with ncukit.annotate("prefill"):
            self.position.fill_(0)
            self._emit(self._forward(self.asked, self.keys[: self.prompt], causal=True))
            self.position.fill_(self.prompt)
        if after_token is not None:
            after_token()
        with ncukit.annotate("decode"):
            for _ in range(self.tokens - 1):
                self.step()
                if after_token is not None:
                    after_token()
        return {"tokens": self.said.clone(), "logits": self.logits.clone()}

    @torch.inference_mode()
    def without_cache(self, said):
        """Return the logits of the last step computed at once, from all tokens before it."""
        text = torch.cat([self.asked, said[:, :-1]], dim=1)
        return self._forward(text, self.keys[: text.shape[1]], causal=True)

    def _step(self):
        self._emit(self._forward(self.token[:, None], self.position, causal=False))
        self.position += 1

    def _emit(self, logits):
        self.logits.copy_(logits)
        self.token.copy_(logits.argmax(-1))
        slot = (self.position - self.prompt + 1).clamp_(0)
        self.said.index_copy_(1, slot, self.token[:, None])

    def _forward(self, text, places, *, causal):
        """Return the logits after the last of ``text``; keys and values go to the cache at ``places``."""
        x = self.embedding[text] + self.places[places]
        for weights, (keys, values) in zip(self.layers, self.cache, strict=True):
            q, k, v = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for part in (_norm(x) @ weights["qkv"].T).chunk(3, dim=-1)
            )
            keys.index_copy_(2, places, k)
            values.index_copy_(2, places, v)
            if causal:
                mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                known = (self.keys <= self.position)[None, None, None]
                mixed = torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=known)
            x = x + mixed.transpose(1, 2).flatten(2) @ weights["out"].T
            x = x + torch.nn.functional.gelu(_norm(x) @ weights["up"].T) @ weights["down"].T
        return _norm(x[:, -1]) @ self.head.T

    @torch.inference_mode()
    def _capture(self):
        """Return what replays a step; the time that capturing takes is kept apart."""
        began = time.perf_counter()
        self.position.fill_(self.prompt)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        self.position.fill_(self.prompt)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        torch.cuda.synchronize()
        self.capture_time = time.perf_counter() - began
        return graph.replay


def _norm(x):
    return torch.nn.functional.rms_norm(x, x.shape[-1:])


@ncukit.workload(
    mode="eager", requests=32, prompt=512, tokens=64, layers=4, heads=8, head_dim=64, vocabulary=8192
)
def decode(mode, requests, prompt, tokens, layers, heads, head_dim, vocabulary):
    sizes = (requests, prompt, tokens, layers, heads, head_dim, vocabulary)
    generator = Generator(mode, *sizes)

    def reference():
        eager = Generator("eager", *sizes)
        said = eager.generate()["tokens"]
        return {"tokens": said, "logits": eager.without_cache(said)}

    return ncukit.Case(run=generator.generate, reference=reference, model=_model(*sizes))


def _model(requests, prompt, tokens, layers, heads, head_dim, vocabulary):
    width, steps = heads * head_dim, tokens - 1
    size = torch.finfo(DTYPE).bits // 8
    weights = 12 * width * width * layers
    inside = prompt * (prompt + 1) // 2 + steps * prompt + steps * (steps + 1) // 2
    flops = 2 * requests * (weights * (prompt + steps) + vocabulary * width * tokens)
    flops += 4 * width * layers * requests * inside
    read = size * tokens * (weights + vocabulary * width)
    cached = size * 2 * width * layers * requests * (steps * prompt + steps * (steps + 1) // 2)
    precision = "tensor_fp16" if DEVICE == "cuda" else "fp32"
    return ncukit.models.point(flops, read + cached, precision)


class Clock:
    """Marks moments: events where there is a GPU, which make nobody wait, else the host's clock."""

    def __init__(self):
        self.marks = []

    def mark(self):
        if DEVICE == "cpu":
            self.marks.append(time.perf_counter())
            return
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self.marks.append(event)

    def seconds(self):
        """Return the times between marks [s]."""
        if DEVICE == "cpu":
            return [b - a for a, b in zip(self.marks, self.marks[1:], strict=False)]
        torch.cuda.synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(self.marks, self.marks[1:], strict=False)]


def percentile(values, share):
    """Return the smallest of ``values`` that at least ``share`` of them do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def main():
    parser = argparse.ArgumentParser(description="Generate text once, and print its times as JSON.")
    for name, value in parameters(decode).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    if given["tokens"] < 2:
        parser.exit(1, "error: one token has no time between tokens\nhint: give --tokens of at least 2\n")
    began = time.perf_counter()
    try:
        generator = Generator(**given)
    except ncukit.NcukitError as error:
        parser.exit(1, f"error: {error.message}\nhint: {error.hint}\n")
    generator.generate()  # warm-up, apart
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    setup, clock = time.perf_counter() - began, Clock()
    clock.mark()
    result = generator.generate(clock.mark)
    prefill, *between = clock.seconds()
    print(
        json.dumps(
            {
                "time_per_output_token": statistics.fmean(between),
                "p95_latency": percentile(between, 0.95),
                "prefill_time": prefill,
                "capture_time": generator.capture_time,
                "setup_time": setup - generator.capture_time,
                **given,
                "output_tokens": result["tokens"].numel(),
                "tokens_sha256": hashlib.sha256(result["tokens"].cpu().numpy().tobytes()).hexdigest(),
                "logits": result["logits"][:4, :16].flatten().tolist(),
                "early_stopping": False,
                "timer": "cuda-events" if DEVICE == "cuda" else "host",
                "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu",
                "dtype": str(DTYPE),
            }
        )
    )


if __name__ == "__main__":
    main()
