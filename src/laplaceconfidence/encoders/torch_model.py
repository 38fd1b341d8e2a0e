"""What encoders that are networks of torch share: device, precision, batches, and loading without code.

Weights come from the disk if they are there, and are downloaded only if not. Code that comes with a model is
never run, and pickled weights are not read.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.batches import Advice, encode_in_batches, is_out_of_memory
from laplaceconfidence.encoders.model_files import revision_of
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.exceptions import InvalidInputError, MissingDependencyError
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import check_integer, must_be


@dataclass(slots=True, eq=False)
class TorchEncoder:
    """A pretrained network; subclasses load it and run it on lists of texts or images.

    Parameters
    ----------
    name : str
        The encoder with the model, such as "hf:NAME".
    device : str, default="auto"
        "auto" takes a GPU if there is one.
    half : {"auto", True, False}, default="auto"
        Whether forward passes are in bfloat16, which has the range of float32; "auto" does so on GPUs that
        have instructions for it.
    batch_size : int, default=64
        Samples per forward pass; halved where the memory is not enough.
    """

    packages: ClassVar[tuple[str, ...]] = ()  # that the encoder needs, as they are imported
    distributions: ClassVar[tuple[str, ...]] = ()  # whose versions are recorded
    extra: ClassVar[str] = ""  # of this package, that installs them
    learns: ClassVar[bool] = False
    is_cached: ClassVar[bool] = True

    name: str
    device: str = "auto"
    half: Literal["auto"] | bool = "auto"
    batch_size: int = 64
    takes: tuple[SampleKind, ...] = field(default=("text", "image"), init=False)
    _network: Any = field(default=None, init=False, repr=False)
    _device: Any = field(default=None, init=False, repr=False)
    _digest: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        check_integer(self.batch_size, "batch_size", minimum=1)
        if self.half not in ("auto", True, False):
            raise must_be("half", "'auto', true or false", self.half)
        needed = ("torch", *self.packages)
        if missing := [package for package in needed if find_spec(package) is None]:
            raise MissingDependencyError(
                f"The encoder {self.name} needs {' and '.join(missing)}, not installed: "
                f"pip install 'laplaceconfidence[{self.extra}]'"
            )
        from laplaceconfidence.encoders.torch_device import choose_device

        self._device = choose_device(self.device)
        with stage("loading the encoder"):
            try:
                for package in self.packages:
                    import_module(package)
                network = self.load()
            except (ImportError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and "torchvision::" not in str(error):
                    raise
                # torchvision fails with a RuntimeError where it was built for another version of torch.
                raise MissingDependencyError(
                    f"The encoder {self.name} needs packages of which one fails to import ({error}). "
                    f"Install versions that fit together: pip install 'laplaceconfidence[{self.extra}]'"
                ) from error
            self._network = self._on_device(network)
        self._digest = weights_digest(self._network)

    @property
    def model(self) -> str:
        """str: the name of the model or the folder that holds it."""
        return self.name.partition(":")[2]

    @abstractmethod
    def load(self) -> Any:
        """Return the network, and keep what turns samples into its inputs; also set ``takes``."""

    @abstractmethod
    def forward(self, samples: list[Any]) -> Any:
        """Return the features of texts or images, a tensor of shape (n, d)."""

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        return self.transform(samples)

    def transform(self, samples: RawSamples) -> FloatArray:
        if samples.kind == "image":
            return self._encoded(samples.pictures, len(samples))
        # Texts of similar length together: less padding. The longest come first, so that a batch that is too
        # large for the memory is found at once.
        texts = np.array(samples.texts(), dtype=object)
        order = np.argsort([-len(text) for text in texts], kind="stable")
        return self._encoded(lambda rows: texts[order[rows]].tolist(), len(samples), order)

    def summary(self) -> str:
        return f"the encoder {self.name}"

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "weights_sha256": self._digest,
            "revision": revision_of(self.model),
            "precision": "bfloat16" if self._is_half() else "float32",
            "settings": self.settings(),
            "versions": {name: _version(name) for name in ("torch", *self.distributions)},
        }

    def settings(self) -> dict[str, Any]:
        """Return further settings that the features depend on."""
        return {}

    def _encoded(
        self, take: Callable[[slice], list[Any]], n: int, order: NDArray[np.intp] | None = None
    ) -> FloatArray:
        import torch

        def encode(samples: list[Any]) -> Any:
            with torch.inference_mode(), self._precision():
                return self.forward(samples).float()

        advice = Advice(
            not_finite="Or try full precision: --encoder-set half=false." if self._is_half() else "",
            out_of_memory=", or the CPU (--device cpu)" if self._device.type != "cpu" else "",
        )
        return encode_in_batches(encode, take, n, self.batch_size, self.name, order=order, advice=advice)

    def _on_device(self, network: Any) -> Any:
        try:
            return network.eval().requires_grad_(False).to(self._device)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise InvalidInputError(
                f"The model of the encoder {self.name} does not fit into the memory of the device "
                f"{self._device}. Choose a smaller model, or the CPU (--device cpu)."
            ) from error

    def _is_half(self) -> bool:
        import torch

        if self.half == "auto":
            return bool(self._device.type == "cuda" and torch.cuda.is_bf16_supported())
        return self.half

    def _precision(self) -> AbstractContextManager[Any]:
        import torch

        if not self._is_half():
            return nullcontext()
        return torch.autocast(self._device.type, dtype=torch.bfloat16)


def weights_digest(network: Any) -> str:
    """Hash the parameters and buffers of a network.

    Parameters
    ----------
    network : torch.nn.Module
        The network.

    Returns
    -------
    str
        Hexadecimal.
    """
    import torch

    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        if isinstance(value, torch.Tensor):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            flat = value.detach().cpu().contiguous().reshape(-1)
            if flat.numel():
                digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def last_layer_removed(network: Any) -> Any:
    """Replace the last linear layer of a network, its classifier, by the identity.

    Parameters
    ----------
    network : torch.nn.Module
        The network.

    Returns
    -------
    torch.nn.Module
        The same network.
    """
    from torch import nn

    linear = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    if linear:
        parent, _, last = linear[-1].rpartition(".")
        setattr(network.get_submodule(parent), last, nn.Identity())
    return network


def stacked(tensors: Sequence[Any], device: Any) -> Any:
    """Stack the tensors of images on a device.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of one shape.
    device : torch.device
        Where they are put.

    Returns
    -------
    Tensor
    """
    import torch

    return torch.stack(list(tensors)).to(device)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
