"""Make minilm_reference.npz: what PyTorch computes in float32 for a few sentences of our own.

usage: python make_minilm_reference.py MODEL_FOLDER     (needs torch, transformers, tokenizers, safetensors, numpy)

MODEL_FOLDER holds the pinned model's files and its config.json. The file in the repository was made with torch 2.13 and
transformers 5.24. `dense` is (texts, 384): the mean of the token states, scaled to length 1. `states` has the token
states of the text number `detailed`, (tokens, 384).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

TEXTS = [
    "",
    "retry",
    "Why did we move off the streaming parser?",
    "The nightly import now keeps the prefix hash, so a file that shrank is read again from the start.",
    "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'\n  at merge_rows (tables.py:214)",
    "def split(text: str, limit: int = 1200) -> list[str]:\n    return [text[i : i + limit] for i in range(0, 9)]",
    "Größe, naïve façade, 漢字かな交じり文, Привет мир, 🙂🙃, ﬁnal",
    'curl -sS -X POST http://127.0.0.1:8080/v1/items?dry_run=true -d \'{"name": "blue kettle", "count": 3}\'',
    "one two three four five six seven eight nine ten " * 40,
]
DETAILED = 3


def main() -> None:
    import torch
    from safetensors.torch import load_file
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertModel

    folder = Path(sys.argv[1])
    model = BertModel(BertConfig.from_json_file(folder / "config.json"), add_pooling_layer=False)
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    model.eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    dense, states = [], None
    for number, text in enumerate(TEXTS):
        with torch.no_grad():
            output = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0].numpy()
        mean = output.mean(axis=0)
        dense.append(mean / np.linalg.norm(mean))
        if number == DETAILED:
            states = output
    path = Path(__file__).with_name("minilm_reference.npz")
    np.savez(path, dense=np.stack(dense).astype(np.float32), states=states, texts=TEXTS, detailed=DETAILED)


if __name__ == "__main__":
    main()
