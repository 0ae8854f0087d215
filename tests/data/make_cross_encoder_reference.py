"""Make cross_encoder_reference.npz: a small cross-encoder with random weights, and what PyTorch makes of it.

usage: python make_cross_encoder_reference.py     (needs torch, transformers, tokenizers, numpy)

The file in the repository was made with torch 2.13 and transformers 5.24. The weights are float16 numbers, so that a
test can store them in float16 and in float32 and expect the same. `config` and `tokenizer` are the text of the two
files; `scores` is (variants, pairs): the logits in float32 of each configuration in `variants` (changes to `config`).
"""

from __future__ import annotations

import json
import string
import tempfile
from pathlib import Path

import numpy as np

VARIANTS = [{}, {"num_attention_heads": 4, "layer_norm_eps": 0.05}]
PAIRS = [
    ("why did the parser stall", "The parser stalls when a line has no end."),
    ("why did the parser stall", "Prices are cached by version, not by time."),
    ("", "nothing was asked"),
    ("what is here", ""),
    ("retry", "retry retry retry " * 40),
    ("a question that goes on and on without ever coming to its end " * 3, "short"),
    ("both of them are long and neither of them fits " * 4, "both of them are long and neither of them fits " * 4),
    ("Größe, naïve façade 🙂", "漢字 and the rest; x = {'a': 1}"),
]
WORDS = ["the", "parser", "line", "retry", "price", "cache", "version", "question", "what", "why", "did", "long",
         "short", "them", "and", "of"]  # fmt: skip
WIDTH, LAYERS, INNER, POSITIONS = 48, 2, 96, 64


def tokenizer_json() -> str:
    """A word-piece tokenizer as BERT's, with a small vocabulary."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    signs = string.ascii_lowercase + string.digits
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *signs, *(f"##{sign}" for sign in signs), *string.punctuation]
    pieces += WORDS
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer.to_str()


def main() -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    written = tokenizer_json()
    vocabulary = json.loads(written)["model"]["vocab"]
    shape = {
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 12,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "vocab_size": len(vocabulary),
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "id2label": {0: "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    }
    random = np.random.default_rng(1)
    weights = {}
    for name, value in BertForSequenceClassification(BertConfig(**shape)).state_dict().items():
        drawn = 0.25 * random.standard_normal(tuple(value.shape))
        weights[name] = (drawn + 1 if name.endswith("LayerNorm.weight") else drawn).astype(np.float16)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_text(written, encoding="utf-8")
        special = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep")}
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), **special)
    scores = []
    for variant in VARIANTS:
        model = BertForSequenceClassification(BertConfig(**shape | variant)).eval()
        model.load_state_dict({name: torch.from_numpy(value.astype(np.float32)) for name, value in weights.items()})
        row = []
        for question, passage in PAIRS:
            encoded = tokenizer(
                [question],
                [passage],
                truncation=True,
                max_length=POSITIONS,
                return_token_type_ids=True,
                return_tensors="pt",
            )
            with torch.no_grad():
                row.append(float(model(**encoded).logits[0, 0]))
        scores.append(row)
    config = {"architectures": ["BertForSequenceClassification"], "model_type": "bert", **shape}
    np.savez_compressed(
        Path(__file__).with_name("cross_encoder_reference.npz"),
        config=json.dumps(config),
        tokenizer=written,
        variants=json.dumps(VARIANTS),
        pairs=PAIRS,
        scores=np.array(scores, np.float32),
        **{f"weight {name}": value for name, value in weights.items()},
    )


if __name__ == "__main__":
    main()
