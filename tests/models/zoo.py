# SPDX-License-Identifier: Apache-2.0
"""Models of other people's code, small and as they are initialised, without dropout; and random data for them.

An entry of MODELS makes a module, and says which inputs, loss, axis of classes and learning rate it trains with. Inputs
have rows along axis 0; labels are classes, or the values that the outputs are compared with.
"""
import dataclasses
import typing

import numpy as np
import torch
import torchvision
import transformers
from torch import nn
from torch.nn import functional

N_CLASSES, N_WORDS, N_POSITIONS, N_NODES, N_EDGES, N_FEATURES = 10, 97, 16, 12, 40, 8
LATENT, N_QUERIES = 6, 5


# ---- inputs and labels: of a number of rows, by a generator ----


def classes(*shape):
    return lambda rows, g: g.integers(N_CLASSES, size=(rows, *shape)).astype(np.int64)


def integers(above, *shape):
    return lambda rows, g: g.integers(above, size=(rows, *shape)).astype(np.int64)


def reals(*shape):
    return lambda rows, g: g.standard_normal((rows, *shape)).astype(np.float32)


WORDS = integers(N_WORDS, N_POSITIONS)
IMAGE = reals(3, 32, 32)


# ---- transformers ----


class Logits(nn.Module):
    """A model of transformers without the dict it gives back, and without the search for packed sequences, which the
    classic exporter does not know."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names or ("input_ids",)
        self.model.config.use_cache = False

    def forward(self, *inputs):
        given = dict(zip(self.names, inputs))
        if "decoder_input_ids" in given:
            given["decoder_attention_mask"] = torch.ones_like(given["decoder_input_ids"])
        elif "input_ids" in given:
            given["attention_mask"] = torch.ones_like(given["input_ids"])
        return self.model(**given).logits


SIZES = {"vocab_size": N_WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64, "max_position_embeddings": N_POSITIONS}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def bert():
    return Logits(transformers.BertForMaskedLM(transformers.BertConfig(**SIZES, **NO_DROPOUT)))


def gpt2():
    config = transformers.GPT2Config(vocab_size=N_WORDS, n_positions=N_POSITIONS, n_embd=32, n_layer=2, n_head=2,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return Logits(transformers.GPT2LMHeadModel(config))


def llama():
    return Logits(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_key_value_heads=1)))


def mixtral():
    config = transformers.MixtralConfig(**SIZES, num_key_value_heads=1, num_local_experts=4, num_experts_per_tok=2)
    config._experts_implementation = "batched_mm"  # of shapes that no data decide
    return Logits(transformers.MixtralForCausalLM(config))


def deberta():
    config = transformers.DebertaV2Config(**SIZES, **NO_DROPOUT, relative_attention=True, position_buckets=8,
                                          pos_att_type=["p2c", "c2p"], share_att_key=True, type_vocab_size=0)
    return Logits(transformers.DebertaV2ForMaskedLM(config))


def t5():
    config = transformers.T5Config(vocab_size=N_WORDS, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2,
                                   dropout_rate=0.0)
    return Logits(transformers.T5ForConditionalGeneration(config), "input_ids", "decoder_input_ids")


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=N_WORDS, num_mel_bins=8, encoder_layers=2, encoder_attention_heads=2, decoder_layers=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, d_model=32, dropout=0.0,
        max_source_positions=N_POSITIONS, max_target_positions=N_POSITIONS, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1)
    return Logits(transformers.WhisperForConditionalGeneration(config), "input_features", "decoder_input_ids")


def gpt2_classifier():
    """Its scores are those of the last word that is no padding, by the number of its row."""
    config = transformers.GPT2Config(vocab_size=N_WORDS, n_positions=N_POSITIONS, n_embd=32, n_layer=1, n_head=2,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, num_labels=N_CLASSES,
                                     pad_token_id=0)
    return Logits(transformers.GPT2ForSequenceClassification(config))


def xlnet():
    config = transformers.XLNetConfig(vocab_size=N_WORDS, d_model=32, n_layer=2, n_head=2, d_inner=64, dropout=0.0)
    return Logits(transformers.XLNetLMHeadModel(config))


class ClipText(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = transformers.CLIPTextModelWithProjection(transformers.CLIPTextConfig(
            **{**SIZES, "num_hidden_layers": 1}, projection_dim=N_CLASSES, eos_token_id=N_WORDS - 1, bos_token_id=0,
            pad_token_id=1))

    def forward(self, x):
        return self.model(input_ids=x, attention_mask=torch.ones_like(x)).text_embeds


def vit_transformers():
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                    image_size=32, patch_size=8, num_labels=N_CLASSES, **NO_DROPOUT)
    return Logits(transformers.ViTForImageClassification(config), "pixel_values")


# ---- torchvision ----


class Out(nn.Module):
    """A model of torchvision without the dict it gives back."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


class Detector(nn.Module):
    """The classes of anchors, on two sizes of maps."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, 4, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.pyramid = torchvision.ops.FeaturePyramidNetwork([16, 16], 16)
        self.head = torchvision.models.detection.retinanet.RetinaNetClassificationHead(16, 2, N_CLASSES)

    def forward(self, x):
        small = self.first(x)
        maps = self.pyramid({"0": small, "1": self.second(small)})
        return self.head(list(maps.values()))


def vit():
    return torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32,
                                                mlp_dim=64, num_classes=N_CLASSES)


def efficientnet():
    block = torchvision.models.efficientnet.MBConvConfig
    settings = [block(1, 3, 1, 8, 8, 1), block(4, 3, 2, 8, 16, 2), block(4, 5, 2, 16, 24, 1)]
    return torchvision.models.EfficientNet(settings, dropout=0.0, stochastic_depth_prob=0.0, num_classes=N_CLASSES)


def mobilenet_v3():
    return torchvision.models.mobilenet_v3_small(width_mult=0.25, num_classes=N_CLASSES, dropout=0.0)


def segmentation():
    head = torchvision.models.segmentation.deeplabv3.DeepLabHead(16, N_CLASSES, [2, 4])
    head[0].project[3] = nn.Identity()  # its dropout
    backbone = nn.Sequential(nn.Conv2d(3, 16, 3, 4, 1), nn.BatchNorm2d(16), nn.ReLU())
    return Out(torchvision.models.segmentation.DeepLabV3(Named(backbone), head))


class Named(nn.Module):
    """Maps under the names that torchvision's segmentation models look for."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return {"out": self.model(x)}


# ---- others ----


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(N_WORDS, 32)
        self.layers = nn.Transformer(32, 2, 1, 1, 64, dropout=0.0, batch_first=True)
        self.scores = nn.Linear(32, N_CLASSES)

    def forward(self, x, y):
        mask = nn.Transformer.generate_square_subsequent_mask(N_POSITIONS)
        return self.scores(self.layers(self.words(x), self.words(y), tgt_mask=mask)[:, -1])


class Queries(nn.Module):
    """Boxes of DETR: a decoder whose queries are the same for every row."""

    def __init__(self):
        super().__init__()
        self.maps = nn.Sequential(nn.Conv2d(3, 16, 3, 4, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1))
        self.layers = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
        self.queries = nn.Parameter(torch.rand(N_QUERIES, 16))
        self.rows, self.columns = nn.Parameter(torch.rand(4, 8)), nn.Parameter(torch.rand(4, 8))
        self.scores = nn.Linear(16, N_CLASSES)

    def forward(self, x):
        maps = self.maps(x)
        n, _, height, width = maps.shape
        places = torch.cat([self.columns[:width].unsqueeze(0).repeat(height, 1, 1),
                            self.rows[:height].unsqueeze(1).repeat(1, width, 1)], -1).flatten(0, 1)
        queries = self.queries.unsqueeze(0).repeat(n, 1, 1)
        return self.scores(self.layers(places + maps.flatten(2).permute(0, 2, 1), queries))


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.words = nn.Embedding(N_WORDS, 24)
        self.layers = kind(24, 20, num_layers=2, batch_first=True, **options)
        self.scores = nn.Linear(40 if options.get("bidirectional") else 20, N_CLASSES)

    def forward(self, x):
        return self.scores(self.layers(self.words(x))[0][:, -1])


def convolutions(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(),
                         nn.Conv2d(n_out, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = convolutions(3, 8), convolutions(8, 16), convolutions(16, 32)
        self.up2, self.up1 = convolutions(48, 16), convolutions(24, 8)
        self.scores = nn.Conv2d(8, N_CLASSES, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(functional.max_pool2d(a, 2))
        c = self.middle(functional.max_pool2d(b, 2))
        c = functional.interpolate(c, scale_factor=2, mode="bilinear", align_corners=False)
        c = self.up2(torch.cat([b, c], 1))
        c = functional.interpolate(c, size=a.shape[2:], mode="nearest")
        return self.scores(self.up1(torch.cat([a, c], 1)))


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 16, 5, padding=2), nn.PReLU(16), nn.Conv2d(16, 16, 3, padding=1),
                                    nn.PReLU(), nn.Conv2d(16, 27, 3, padding=1), nn.PixelShuffle(3))

    def forward(self, x):
        return self.layers(x) + functional.interpolate(x, scale_factor=3, mode="bicubic", align_corners=False)


class AutoEncoder(nn.Module):
    """Variational: noise comes in, so that its values are known."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, 2, 1),
                                     nn.SiLU(), nn.Flatten(), nn.Linear(512, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, 512), nn.SiLU(), nn.Unflatten(1, (8, 8, 8)),
                                     nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1))

    def forward(self, x, noise):
        mean, log_variance = self.encoder(x).chunk(2, 1)
        return self.decoder(mean + noise * torch.exp(0.5 * log_variance))


class GraphNetwork(nn.Module):
    """Two rounds of messages along edges, added up where they arrive."""

    def __init__(self):
        super().__init__()
        self.messages = nn.ModuleList(nn.Linear(n, 16) for n in (N_FEATURES, 16))
        self.own = nn.ModuleList(nn.Linear(n, 16) for n in (N_FEATURES, 16))
        self.scores = nn.Linear(16, N_CLASSES)

    def forward(self, x, edges):
        source, target = edges[..., :1], edges[..., 1:]
        for message, own in zip(self.messages, self.own):
            sent = torch.gather(message(x), 1, source.expand(-1, -1, 16))
            arrived = torch.zeros_like(own(x)).scatter_add(1, target.expand(-1, -1, 16), sent)
            x = functional.elu(own(x) + arrived)
        return self.scores(x)


@dataclasses.dataclass
class Entry:
    make: typing.Callable
    inputs: tuple
    labels: typing.Callable
    rate: float
    class_axis: int = 1
    loss: str = "cross-entropy"
    frozen: str = ""  # parameters that the module does not train, which a file cannot say


MODELS = {
    "resnet18": Entry(lambda: torchvision.models.resnet18(num_classes=N_CLASSES), (IMAGE,), classes(), 0.02),
    "mobilenet_v2": Entry(lambda: torchvision.models.mobilenet_v2(width_mult=0.25, num_classes=N_CLASSES, dropout=0.0),
                          (IMAGE,), classes(), 0.02),
    "mobilenet_v3": Entry(mobilenet_v3, (reals(3, 64, 64),), classes(), 0.02),
    "efficientnet": Entry(efficientnet, (IMAGE,), classes(), 0.02),
    "densenet121": Entry(lambda: torchvision.models.DenseNet(8, (6, 12, 24, 16), 16, num_classes=N_CLASSES), (IMAGE,),
                         classes(), 0.02),
    "segmentation": Entry(segmentation, (IMAGE,), classes(32, 32), 0.02),
    "detection": Entry(Detector, (IMAGE,), classes(160), 0.02, -1),
    "vit": Entry(vit, (IMAGE,), classes(), 0.1),
    "bert": Entry(bert, (WORDS,), integers(N_WORDS, N_POSITIONS), 0.1, -1),
    "gpt2": Entry(gpt2, (WORDS,), integers(N_WORDS, N_POSITIONS), 0.1, -1),
    "llama": Entry(llama, (WORDS,), integers(N_WORDS, N_POSITIONS), 0.1, -1),
    "mixtral": Entry(mixtral, (WORDS,), integers(N_WORDS, N_POSITIONS), 0.1, -1),
    "deberta": Entry(deberta, (WORDS,), integers(N_WORDS, N_POSITIONS), 0.1, -1),
    "t5": Entry(t5, (WORDS, WORDS), integers(N_WORDS, N_POSITIONS), 0.01, -1),
    "whisper": Entry(whisper, (reals(8, 2 * N_POSITIONS), WORDS), integers(N_WORDS, N_POSITIONS), 0.1, -1,
                     frozen="*encoder.embed_positions.weight"),
    "gpt2-classifier": Entry(gpt2_classifier, (WORDS,), classes(), 0.05),
    "xlnet": Entry(xlnet, (WORDS,), integers(N_WORDS, N_POSITIONS), 0.1, -1),
    "clip-text": Entry(ClipText, (WORDS,), classes(), 0.1),
    "transformer": Entry(Translator, (WORDS, WORDS), classes(), 0.05),
    "detr": Entry(Queries, (IMAGE,), classes(N_QUERIES), 0.05, -1),
    "vit-transformers": Entry(vit_transformers, (IMAGE,), classes(), 0.1),
    "lstm": Entry(lambda: Recurrent(nn.LSTM), (WORDS,), classes(), 0.1),
    "gru": Entry(lambda: Recurrent(nn.GRU, bidirectional=True), (WORDS,), classes(), 0.1),
    "unet": Entry(UNet, (IMAGE,), classes(32, 32), 0.02),
    "super-resolution": Entry(SuperResolution, (reals(3, 12, 12),), reals(3, 36, 36), 0.3, loss="mse"),
    "vae": Entry(AutoEncoder, (IMAGE, reals(LATENT)), IMAGE, 0.5, loss="mse"),
    "graph": Entry(GraphNetwork, (reals(N_NODES, N_FEATURES), integers(N_NODES, N_EDGES, 2)), classes(N_NODES), 0.05,
                   -1),
}
