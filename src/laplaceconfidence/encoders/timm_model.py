"""Image models of timm: ``--encoder timm:NAME``, or ``timm:local-dir:FOLDER`` from the disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from laplaceconfidence.encoders.model_files import from_disk_or_hub
from laplaceconfidence.encoders.torch_model import TorchEncoder, stacked


@dataclass(slots=True, eq=False)
class TimmEncoder(TorchEncoder):
    """The pooled features of a pretrained model of timm."""

    packages: ClassVar[tuple[str, ...]] = ("timm",)
    distributions: ClassVar[tuple[str, ...]] = ("timm", "torchvision")
    extra: ClassVar[str] = "timm"

    _transform: Any = field(default=None, init=False, repr=False)

    def load(self) -> Any:
        import timm
        import timm.data

        self.takes = ("image",)
        network = from_disk_or_hub(
            lambda: timm.create_model(self.model, pretrained=True, num_classes=0),
            self.name,
            self.model.removeprefix("local-dir:"),
        )
        config = timm.data.resolve_model_data_config(network)
        self._transform = timm.data.create_transform(**config, is_training=False)
        return network

    def forward(self, samples: list[Any]) -> Any:
        return self._network(stacked([self._transform(image) for image in samples], self._device))

    def settings(self) -> dict[str, Any]:
        return {"transform": str(self._transform)}
