#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small transformers with dropout, as PyTorch's exporters write them for training.

    record_recompute.py [FOLDER]

Needs torch, transformers, onnx and onnxscript (recorded with torch 2.11.0, transformers 5.23.0, onnx 1.23.2, onnxscript
0.7.2). Writes into FOLDER, else tests/exporters/recompute: `post` normalises behind its sums, as BERT does, `pre` before them,
as GPT does; `erf` and `tanh` are the forms of Gelu; `layer` and `decoder` are those of torch.nn, the first post- and the second
pre-norm (with Relu and attention to a second input), `bert`, `gpt2` and `vit` those of transformers; `classic` is the exporter
by tracing at opset 15, `newer` the one by torch.export at opset 20. Their inputs are x: rows of 8 tokens of 16 floats, of 8
tokens below 11 and a mask, or an image of 16 x 16; their output is scores of 3 classes.

The exporters write the dropout of scaled_dot_product_attention without training_mode, which turns it off: it is added here.
"""
import logging
import pathlib
import sys
import warnings

import onnx
import torch
import transformers
from torch import nn

TOKENS, WIDTH, HEADS, LAYERS, CLASSES, DROPPED = 8, 16, 2, 3, 3, 0.25
FEWER_LAYERS, VOCABULARY, PATCH = 2, 11, 8


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.drop = nn.Dropout(DROPPED)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, HEADS, d // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = self.drop((q @ k.transpose(2, 3) / (d // HEADS) ** 0.5).softmax(-1))
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, is_post, approximate):
        super().__init__()
        self.is_post = is_post
        self.norm1, self.norm2, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.gelu, self.drop1, self.drop2 = nn.GELU(approximate), nn.Dropout(DROPPED), nn.Dropout(DROPPED)

    def forward(self, x):
        if self.is_post:
            x = self.norm1(x + self.drop1(self.attention(x)))
            return self.norm2(x + self.drop2(self.down(self.gelu(self.up(x)))))
        x = x + self.drop1(self.attention(self.norm1(x)))
        return x + self.drop2(self.down(self.gelu(self.up(self.norm2(x)))))


class Transformer(nn.Module):
    def __init__(self, is_post, approximate):
        super().__init__()
        self.norm, self.drop, self.head = nn.LayerNorm(WIDTH), nn.Dropout(DROPPED), nn.Linear(WIDTH, CLASSES)
        self.layers = nn.Sequential(*(Layer(is_post, approximate) for _ in range(LAYERS)))

    def forward(self, x):
        return self.head(self.layers(self.drop(self.norm(x))).mean(1))


class Torch(nn.Module):
    """Layers of torch.nn, in which one product makes query, key and value."""

    def __init__(self, is_decoder):
        super().__init__()
        name = "TransformerDecoder" if is_decoder else "TransformerEncoder"
        layer = getattr(nn, name + "Layer")(WIDTH, HEADS, 4 * WIDTH, DROPPED, "relu" if is_decoder else "gelu", batch_first=True,
                                            norm_first=is_decoder)
        self.layers, self.head = getattr(nn, name)(layer, FEWER_LAYERS), nn.Linear(WIDTH, CLASSES)
        self.memory = nn.Linear(WIDTH, WIDTH) if is_decoder else None

    def forward(self, x):
        return self.head((self.layers(x) if self.memory is None else self.layers(x, self.memory(x))).mean(1))


class HuggingFace(nn.Module):
    def __init__(self, kind, attention):
        super().__init__()
        common = {"hidden_size": WIDTH, "num_hidden_layers": FEWER_LAYERS, "num_attention_heads": HEADS,
                  "intermediate_size": 4 * WIDTH, "hidden_dropout_prob": DROPPED, "attention_probs_dropout_prob": DROPPED,
                  "attn_implementation": attention}
        if kind == "bert":
            config = transformers.BertConfig(vocab_size=VOCABULARY, max_position_embeddings=TOKENS, **common)
            self.model = transformers.BertModel(config, add_pooling_layer=False)
        elif kind == "vit":
            config = transformers.ViTConfig(image_size=2 * PATCH, patch_size=PATCH, num_channels=1, **common)
            self.model = transformers.ViTModel(config, add_pooling_layer=False)
        else:
            self.model = transformers.GPT2Model(transformers.GPT2Config(
                vocab_size=VOCABULARY, n_positions=TOKENS, n_embd=WIDTH, n_layer=FEWER_LAYERS, n_head=HEADS, resid_pdrop=DROPPED,
                embd_pdrop=DROPPED, attn_pdrop=DROPPED, use_cache=False, attn_implementation=attention))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, mask=None):
        inputs = {"attention_mask": mask} if mask is not None else {}
        return self.head(self.model(x, **inputs).last_hidden_state.mean(1))


def turn_dropout_on(graph):
    for node in graph.node:
        if node.op_type == "Dropout" and len(node.input) == 2:
            node.input.append("on")
    if any("on" in node.input for node in graph.node):
        graph.initializer.append(onnx.helper.make_tensor("on", onnx.TensorProto.BOOL, [], [True]))


def export(module, inputs, path, is_newer):
    names = {"input_names": ["x", "mask"][:len(inputs)], "output_names": ["scores"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_newer:
            torch.onnx.export(module, inputs, path, dynamo=True, opset_version=20, optimize=False, external_data=False,
                              verbose=False, dynamic_shapes=tuple({0: torch.export.Dim("batch")} for _ in inputs), **names)
        else:
            torch.onnx.export(module, inputs, path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                              do_constant_folding=False, opset_version=15,
                              dynamic_axes={name: {0: "batch"} for name in names["input_names"]}, **names)
    model = onnx.load(path)
    turn_dropout_on(model.graph)
    for node in model.graph.node:  # stack traces
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        del value.metadata_props[:]
    onnx.save(model, path)


def main(folder):
    folder.mkdir(exist_ok=True)
    logging.disable(logging.WARNING)
    for is_post, is_newer, form in ((True, False, "erf"), (True, True, "erf"), (True, False, "tanh"),
                                    (False, False, "tanh"), (False, True, "tanh")):
        torch.manual_seed(0)
        module = Transformer(is_post, "tanh" if form == "tanh" else "none").train()
        name = f"{'post' if is_post else 'pre'}_{form}_{'newer' if is_newer else 'classic'}.onnx"
        export(module, (torch.randn(2, TOKENS, WIDTH),), str(folder / name), is_newer)
    floats, tokens = torch.randn(2, TOKENS, WIDTH), torch.randint(0, VOCABULARY, (2, TOKENS))
    mask, images = torch.ones_like(tokens), torch.randn(2, 1, 2 * PATCH, 2 * PATCH)
    for name, is_newer, make, inputs in (("layer", False, lambda: Torch(False), (floats,)),
                                         ("layer", True, lambda: Torch(False), (floats,)),
                                         ("decoder", True, lambda: Torch(True), (floats,)),
                                         ("bert", False, lambda: HuggingFace("bert", "sdpa"), (tokens, mask)),
                                         ("gpt2", False, lambda: HuggingFace("gpt2", "eager"), (tokens, mask)),
                                         ("vit", True, lambda: HuggingFace("vit", "eager"), (images,))):
        torch.manual_seed(0)
        export(make().train(), inputs, str(folder / f"{name}_{'newer' if is_newer else 'classic'}.onnx"), is_newer)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "recompute")
