"""Text and vision models of Hugging Face transformers: ``--encoder hf:NAME`` or ``hf:FOLDER``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from laplaceconfidence.encoders.model_files import from_disk_or_hub, silence_transformers
from laplaceconfidence.encoders.samples import SampleKind
from laplaceconfidence.encoders.torch_model import TorchEncoder
from laplaceconfidence.validation import must_be

_MOST_TOKENS = 512


@dataclass(slots=True, eq=False)
class HuggingFaceEncoder(TorchEncoder):
    """A model of transformers: the mean of its last hidden states, or its embedding of images or texts.

    Parameters
    ----------
    pooling : {"mean", "cls"}, default="mean"
        For texts: the mean over all tokens, or the first token.
    """

    packages: ClassVar[tuple[str, ...]] = ("transformers",)
    distributions: ClassVar[tuple[str, ...]] = ("transformers",)
    extra: ClassVar[str] = "hf"

    pooling: Literal["mean", "cls"] = "mean"
    _tokenizer: Any = field(default=None, init=False, repr=False)
    _processor: Any = field(default=None, init=False, repr=False)
    _most_tokens: int = field(default=_MOST_TOKENS, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.pooling not in ("mean", "cls"):
            raise must_be("pooling", "'mean' or 'cls'", self.pooling)
        super(HuggingFaceEncoder, self).__post_init__()  # a class with slots is made anew by the decorator

    def load(self) -> Any:
        return from_disk_or_hub(self._loaded, self.name, self.model)

    def forward(self, samples: list[Any]) -> Any:
        return self._of_texts(samples) if isinstance(samples[0], str) else self._of_images(samples)

    def settings(self) -> dict[str, Any]:
        return {"pooling": self.pooling, "most_tokens": self._most_tokens}

    def _loaded(self) -> Any:
        import transformers

        silence_transformers()
        safe = {"trust_remote_code": False}
        config = transformers.AutoConfig.from_pretrained(self.model, **safe)
        kinds: list[SampleKind] = []
        if hasattr(config, "text_config") or hasattr(config, "vocab_size"):
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(self.model, **safe)
            text = getattr(config, "text_config", config)
            positions = getattr(text, "max_position_embeddings", None) or _MOST_TOKENS
            self._most_tokens = min(_MOST_TOKENS, positions, self._tokenizer.model_max_length)
            if getattr(text, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "mpnet"):
                self._most_tokens -= 2 * (self._most_tokens == positions)  # two positions are reserved
            kinds.append("text")
        if hasattr(config, "vision_config") or hasattr(config, "image_size") or "vision" in str(type(config)):
            self._processor = transformers.AutoImageProcessor.from_pretrained(self.model, **safe)
            kinds.append("image")
        if not kinds:
            raise must_be("encoder", "a model of texts or images", f"{self.name} ({config.model_type})")
        self.takes = tuple(kinds)
        return transformers.AutoModel.from_pretrained(self.model, use_safetensors=True, **safe)

    def _of_texts(self, texts: list[str]) -> Any:
        tokens = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self._most_tokens, return_tensors="pt"
        ).to(self._device)
        if hasattr(self._network, "get_text_features"):
            return _tensor(self._network.get_text_features(**tokens))
        states = self._network(**tokens).last_hidden_state
        if self.pooling == "cls":
            return states[:, 0]
        weights = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)

    def _of_images(self, images: list[Any]) -> Any:
        pixels = self._processor(images=images, return_tensors="pt").to(self._device)
        if hasattr(self._network, "get_image_features"):
            return _tensor(self._network.get_image_features(**pixels))
        outputs = self._network(**pixels)
        pooled = getattr(outputs, "pooler_output", None)
        found = outputs.last_hidden_state if pooled is None else pooled
        if found.ndim == 4:  # maps of channels (n, d, h, w)
            return found.mean(dim=(2, 3))
        return found.mean(dim=1) if found.ndim == 3 else found


def _tensor(found: Any) -> Any:
    """The embedding that newer versions of transformers return within other outputs."""
    return getattr(found, "pooler_output", found)
