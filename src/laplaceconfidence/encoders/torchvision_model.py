"""Image models of torchvision: ``--encoder torchvision:NAME``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from laplaceconfidence.encoders.model_files import is_reachable
from laplaceconfidence.encoders.torch_model import (
    TorchEncoder,
    last_layer_removed,
    stacked,
)
from laplaceconfidence.exceptions import DownloadError
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import did_you_mean, must_be


@dataclass(slots=True, eq=False)
class TorchvisionEncoder(TorchEncoder):
    """A classifier of torchvision with its default weights, without its last layer."""

    packages: ClassVar[tuple[str, ...]] = ("torchvision",)
    distributions: ClassVar[tuple[str, ...]] = ("torchvision",)
    extra: ClassVar[str] = "torchvision"

    _transform: Any = field(default=None, init=False, repr=False)

    def load(self) -> Any:
        import torch
        from torchvision import models

        self.takes = ("image",)
        known = models.list_models(module=models)
        if self.model not in known:
            rule = "'torchvision:NAME' of a classifier of images"
            raise must_be("encoder", rule, self.name, did_you_mean(self.model, known))
        weights = models.get_model_weights(self.model).DEFAULT
        file = Path(torch.hub.get_dir()) / "checkpoints" / weights.url.rpartition("/")[2]
        if not file.is_file() and not is_reachable(weights.url):
            raise DownloadError(
                f"The weights of the encoder {self.name} are not on this machine, and {weights.url} cannot "
                f"be reached. Download that file elsewhere and copy it to {file}."
            )
        with stage("downloading"):
            network = models.get_model(self.model, weights=weights)
        self._transform = weights.transforms()
        return last_layer_removed(network)

    def forward(self, samples: list[Any]) -> Any:
        return self._network(stacked([self._transform(image) for image in samples], self._device))

    def settings(self) -> dict[str, Any]:
        return {"transform": str(self._transform)}
