# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmark as PyTorch modules, with initial weights as PyTorch draws them and without dropout.

    python3 bench/modules.py gpt FILE.onnx [--newer]

writes one as PyTorch exports it for training: by the classic exporter, or by the newer one. Its input is `x`, its output `scores`.
"""

import argparse
import math
import os
import warnings
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

import models

OPSET = 15  # of the classic exporter: the last that ONNX Runtime training takes


def mlp(problem):
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, problem.classes))


def lenet(problem):
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, problem.classes))


class Residual(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.a = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False), nn.BatchNorm2d(n_out))
        self.b = nn.Identity() if stride == 1 and n_in == n_out else nn.Sequential(
            nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.a(x) + self.b(x))


def resnet18(problem):
    layers, n_in = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                    nn.MaxPool2d(3, 2, 1)], 64
    for n_out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Residual(n_in, n_out, stride))
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, problem.classes))


class Encoder(nn.Module):
    """Sequences to classes: the transformer of torch.nn, four layers, and the mean over the tokens."""

    def __init__(self, problem, width=256, n_heads=8, n_layers=4):
        super().__init__()
        self.words = nn.Embedding(problem.vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(problem.row[0], width))
        layer = nn.TransformerEncoderLayer(width, n_heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, problem.classes)

    def forward(self, x):
        return self.head(self.layers(self.words(x) + self.positions).mean(1))


class Causal(nn.Module):
    """Self-attention in which a token sees those before it."""

    def __init__(self, n_tokens, width, n_heads):
        super().__init__()
        self.n_heads, self.qkv, self.out = n_heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("later", torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1))

    def forward(self, x):
        rows, n_tokens, width = x.shape
        q, k, v = (part.view(rows, n_tokens, self.n_heads, width // self.n_heads).transpose(1, 2)
                   for part in self.qkv(x).split(width, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.n_heads)
        weights = F.softmax(scores.masked_fill(self.later, float("-inf")), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(rows, n_tokens, width))


class Block(nn.Module):
    def __init__(self, n_tokens, width, n_heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Causal(n_tokens, width, n_heads)
        self.norm2 = nn.LayerNorm(width)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.dense(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, problem, width=256, n_heads=8, n_layers=4):
        super().__init__()
        n_tokens = problem.row[0]
        self.words = nn.Embedding(problem.vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(n_tokens, width))
        self.blocks = nn.Sequential(*(Block(n_tokens, width, n_heads) for _ in range(n_layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, problem.classes, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.words(x) + self.positions)))


def twice(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True),
                         nn.Conv2d(n_out, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """A class for every pixel; the way up is by ConvTranspose2d."""

    def __init__(self, problem, widths=(32, 64, 128, 256)):
        super().__init__()
        self.down = nn.ModuleList(twice(n_in, n_out) for n_in, n_out in zip((problem.row[0], *widths), widths))
        wider = list(zip(widths[:0:-1], widths[-2::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(n_in, n_out, 2, 2) for n_in, n_out in wider)
        self.join = nn.ModuleList(twice(n_in, n_out) for n_in, n_out in wider)
        self.head = nn.Conv2d(widths[0], problem.classes, 1)

    def forward(self, x):
        seen = []
        for i, layer in enumerate(self.down):
            x = layer(F.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for up, join, before in zip(self.up, self.join, seen[-2::-1]):
            x = join(torch.cat((before, up(x)), 1))
        return self.head(x)


class Bert(nn.Module):
    """BERT-base with its language-model head."""

    def __init__(self, problem):
        import transformers

        super().__init__()
        self.model = transformers.BertForMaskedLM(transformers.BertConfig(
            vocab_size=problem.vocabulary, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

    def forward(self, x):
        return self.model(input_ids=x, attention_mask=torch.ones_like(x)).logits


class Language(nn.Module):
    """A model of transformers, two layers of 256, from tokens to scores of words."""

    def __init__(self, problem, kind, head, **config):
        import transformers

        super().__init__()
        usual = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 1024,
                 "max_position_embeddings": 2 * problem.row[0], "use_cache": False}
        chosen = getattr(transformers, kind + "Config")(vocab_size=problem.vocabulary, **{**usual, **config})
        for name in vars(chosen):
            if "drop" in name and isinstance(getattr(chosen, name), float):
                setattr(chosen, name, 0.0)
        self.model = getattr(transformers, kind + head)._from_config(chosen)

    def forward(self, x):
        return self.model(input_ids=x).logits


class Recurrent(nn.Module):
    """A language model with two layers of a kind of torch.nn."""

    def __init__(self, problem, kind, width=256, **options):
        super().__init__()
        self.words = nn.Embedding(problem.vocabulary, width)
        self.layers = getattr(nn, kind)(width, width, 2, batch_first=True, **options)
        self.head = nn.Linear(2 * width if options.get("bidirectional") else width, problem.classes)

    def forward(self, x):
        return self.head(self.layers(self.words(x))[0])


class Cells(nn.Module):
    """The same with a cell, called token by token: the exporter writes the loop out."""

    def __init__(self, problem, width=256):
        super().__init__()
        self.words, self.cell = nn.Embedding(problem.vocabulary, width), nn.LSTMCell(width, width)
        self.head = nn.Linear(width, problem.classes)

    def forward(self, x):
        words, states = self.words(x), []
        h = c = torch.zeros(x.shape[0], words.shape[2])
        for t in range(x.shape[1]):
            h, c = self.cell(words[:, t], (h, c))
            states.append(h)
        return self.head(torch.stack(states, 1))


class Dilated(nn.Module):
    """Convolutions along the tokens, each with twice the dilation of the one before."""

    def __init__(self, problem, width=64):
        super().__init__()
        self.words = nn.Embedding(problem.vocabulary, width)
        self.layers = nn.Sequential(*(layer for i in range(6) for layer in (
            nn.Conv1d(width, width, 3, padding=2**i, dilation=2**i), nn.BatchNorm1d(width), nn.ReLU())))
        self.head = nn.Linear(width, problem.classes)

    def forward(self, x):
        return self.head(self.layers(self.words(x).transpose(1, 2)).transpose(1, 2))


def of_torchvision(problem, name, **options):
    """Without dropout, and without layers that are left out at random."""
    import torchvision

    module = torchvision.models.get_model(name, num_classes=problem.classes, **options)
    for part in module.modules():
        if isinstance(part, (nn.Dropout, torchvision.ops.StochasticDepth)):
            part.p = 0.0
    return module


MODULES = {"mlp": mlp, "lenet": lenet, "resnet18": resnet18, "encoder": Encoder, "gpt": Gpt,
           "lstm": partial(Recurrent, kind="LSTM"), "unet": UNet, "bert": Bert,
           "mobilenetv2": partial(of_torchvision, name="mobilenet_v2"),
           "googlenet": partial(of_torchvision, name="googlenet", aux_logits=False, init_weights=False),
           "albert": partial(Language, kind="Albert", head="ForMaskedLM"),
           "deberta": partial(Language, kind="DebertaV2", head="ForMaskedLM"),
           "electra": partial(Language, kind="Electra", head="ForMaskedLM", embedding_size=256),
           "gemma2": partial(Language, kind="Gemma2", head="ForCausalLM", head_dim=64),
           "gpt2": partial(Language, kind="GPT2", head="LMHeadModel"),
           "gptneox": partial(Language, kind="GPTNeoX", head="ForCausalLM"),
           "llama": partial(Language, kind="Llama", head="ForCausalLM", num_key_value_heads=2),
           "modernbert": partial(Language, kind="ModernBert", head="ForMaskedLM", local_attention=16, pad_token_id=0,
                                 bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2),
           "phi": partial(Language, kind="Phi", head="ForCausalLM"),
           "qwen3": partial(Language, kind="Qwen3", head="ForCausalLM", num_key_value_heads=2, head_dim=64),
           "gru": partial(Recurrent, kind="GRU"), "rnn": partial(Recurrent, kind="RNN"),
           "bilstm": partial(Recurrent, kind="LSTM", bidirectional=True), "lstmcell": Cells, "tcn": Dilated}


def module_of(name):
    name, problem = models.base(name), models.problem(name)
    return MODULES[name](problem=problem) if name in MODULES else of_torchvision(problem, name)


def input_of(problem):
    shape = (problem.rows, *problem.row)
    return torch.randint(0, problem.vocabulary, shape) if problem.vocabulary else torch.rand(shape) - 0.5


def export(name, path, newer):
    torch.manual_seed(0)
    module, x = module_of(name).train(), input_of(models.problem(name))
    names = {"input_names": ["x"], "output_names": ["scores"]}
    unfinished = path + ".part"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if newer:
            torch.onnx.export(module, (x,), unfinished, dynamo=True, optimize=False, external_data=False, verbose=False, **names)
        else:
            torch.onnx.export(module, (x,), unfinished, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                              do_constant_folding=False, opset_version=OPSET, **names)
    os.replace(unfinished, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=list(models.ALL))
    parser.add_argument("path")
    parser.add_argument("--newer", action="store_true")
    arguments = parser.parse_args()
    export(arguments.model, arguments.path, arguments.newer)
