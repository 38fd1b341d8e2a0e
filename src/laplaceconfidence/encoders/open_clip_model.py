"""Models of texts and images of open_clip: ``--encoder open_clip:NAME`` or ``open_clip:NAME/WEIGHTS``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from laplaceconfidence.encoders.model_files import from_disk_or_hub
from laplaceconfidence.encoders.torch_model import TorchEncoder, stacked
from laplaceconfidence.validation import did_you_mean, must_be


@dataclass(slots=True, eq=False)
class OpenClipEncoder(TorchEncoder):
    """The embeddings of texts or images of a model of open_clip, or of a folder (``local-dir:FOLDER``)."""

    packages: ClassVar[tuple[str, ...]] = ("open_clip",)
    distributions: ClassVar[tuple[str, ...]] = ("open_clip_torch", "torchvision")
    extra: ClassVar[str] = "open-clip"

    _transform: Any = field(default=None, init=False, repr=False)
    _tokenizer: Any = field(default=None, init=False, repr=False)

    def load(self) -> Any:
        import open_clip

        name, weights = self.model, None
        if not name.startswith(("hf-hub:", "local-dir:")):
            name, _, weights = name.partition("/")
            known = [model for model, _ in open_clip.list_pretrained()]
            if name not in known:
                rule = "'open_clip:NAME' of a pretrained model"
                raise must_be("encoder", rule, self.name, did_you_mean(name, known))
            tags = open_clip.list_pretrained_tags_by_model(name)
            if weights and weights not in tags:
                raise must_be("encoder", f"'open_clip:{name}/WEIGHTS', of {', '.join(tags)}", self.name)
            weights = weights or tags[-1]
        network, _, self._transform = from_disk_or_hub(
            lambda: open_clip.create_model_and_transforms(name, pretrained=weights),
            self.name,
            name.removeprefix("hf-hub:").removeprefix("local-dir:"),
        )
        self._tokenizer = open_clip.get_tokenizer(name)
        return network

    def forward(self, samples: list[Any]) -> Any:
        if isinstance(samples[0], str):
            return self._network.encode_text(self._tokenizer(samples).to(self._device))
        return self._network.encode_image(
            stacked([self._transform(image) for image in samples], self._device)
        )

    def settings(self) -> dict[str, Any]:
        return {"transform": str(self._transform)}
