"""Sentence encoders: ``--encoder sentence-transformers:NAME`` or ``sentence-transformers:FOLDER``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from laplaceconfidence.encoders.model_files import from_disk_or_hub, silence_transformers
from laplaceconfidence.encoders.torch_model import TorchEncoder


@dataclass(slots=True, eq=False)
class SentenceTransformerEncoder(TorchEncoder):
    """A model of the package sentence-transformers."""

    packages: ClassVar[tuple[str, ...]] = ("sentence_transformers",)
    distributions: ClassVar[tuple[str, ...]] = ("sentence-transformers", "transformers")
    extra: ClassVar[str] = "sentence-transformers"

    def load(self) -> Any:
        self.takes = ("text",)
        return from_disk_or_hub(self._loaded, self.name, self.model)

    def forward(self, samples: list[Any]) -> Any:
        return self._network.encode(
            samples, batch_size=len(samples), convert_to_tensor=True, show_progress_bar=False
        )

    def _loaded(self) -> Any:
        from sentence_transformers import SentenceTransformer

        silence_transformers()
        return SentenceTransformer(
            self.model,
            device=str(self._device),
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
