"""An ONNX file as an encoder: ``--encoder model.onnx``, run by onnxruntime."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.batches import encode_in_batches
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.exceptions import DataFormatError, MissingDependencyError
from laplaceconfidence.threads import thread_count
from laplaceconfidence.validation import check_integer, must_be

_CHANNELS = 3
# How a tensor states the file that holds it: the key "location" in protocol buffers, and a value.
_WEIGHTS_ELSEWHERE = re.compile(rb"\x0a\x08location\x12(.)", re.DOTALL)


@dataclass(slots=True, eq=False)
class OnnxEncoder:
    """A network in an ONNX file that takes images (n, 3, height, width), or texts as strings (n,).

    Size and normalization are read from the file: the size from the shape of its input; "size", "mean" and
    "std" from its metadata. Settings take their place.

    Parameters
    ----------
    name : str
        The file.
    input, output : str or None, default=None
        Names of the input and the output; ``None`` takes the only input and the first output.
    size : int or None, default=None
        Side in pixels that images are resized to.
    mean, std : tuple of float or None, default=None
        Per channel, of pixels from 0 to 1; 0 and 1 where neither the file nor the user states them.
    batch_size : int, default=64
        Samples per run.
    n_jobs : int or None, default=None
        Number of threads.
    """

    learns: ClassVar[bool] = False
    is_cached: ClassVar[bool] = True

    name: str
    input: str | None = None
    output: str | None = None
    size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    batch_size: int = 64
    n_jobs: int | None = None
    takes: tuple[SampleKind, ...] = field(default=("image",), init=False)
    _session: Any = field(init=False, repr=False)
    _digest: str = field(init=False, repr=False)
    _type: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        path = Path(self.name)
        check_integer(self.batch_size, "batch_size", minimum=1)
        if not path.is_file():
            raise must_be("encoder", "a path to an existing .onnx file", self.name)
        if find_spec("onnxruntime") is None:
            raise MissingDependencyError(
                f"The encoder {self.name} needs onnxruntime, which is not installed: "
                "pip install 'laplaceconfidence[onnx]'"
            )
        self._session = _session(path, thread_count(self.n_jobs))
        self._digest = _file_digest(path)
        self._choose_tensors()

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        return self.transform(samples)

    def transform(self, samples: RawSamples) -> FloatArray:
        take = self._texts if samples.kind == "text" else self._images
        return encode_in_batches(
            self._run, lambda rows: take(samples, rows), len(samples), self.batch_size, self.name
        )

    def summary(self) -> str:
        return f"the output {self.output!r} of {Path(self.name).name}"

    def describe(self) -> dict[str, Any]:
        import onnxruntime

        return {
            "name": Path(self.name).name,
            "sha256": self._digest,
            "input": self.input,
            "output": self.output,
            "size": self.size,
            "mean": None if self.mean is None else list(self.mean),
            "std": None if self.std is None else list(self.std),
            "versions": {"onnxruntime": onnxruntime.__version__},
        }

    def _choose_tensors(self) -> None:
        inputs = {tensor.name: tensor for tensor in self._session.get_inputs()}
        outputs = [tensor.name for tensor in self._session.get_outputs()]
        if self.input is None and len(inputs) == 1:
            self.input = next(iter(inputs))
        if self.input not in inputs or len(inputs) > 1:
            rule = f"the only input of {self.name}: {', '.join(map(repr, inputs))}"
            raise must_be("input", rule, self.input, "Export the model with one input.")
        if self.output is None:
            self.output = outputs[0]
        if self.output not in outputs:
            raise must_be("output", f"one of the outputs {', '.join(map(repr, outputs))}", self.output)
        tensor = inputs[self.input]
        if tensor.type == "tensor(string)":
            self.takes, self._type = ("text",), np.object_
            return
        types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
        if tensor.type not in types or len(tensor.shape) != 4:
            raise must_be(
                "encoder",
                "an ONNX file whose input is images (n, 3, height, width) of floats, or texts",
                f"{self.name} with the input {self.input!r} of {tensor.type} and shape {tensor.shape}",
            )
        self._type = types[tensor.type]
        metadata = self._session.get_modelmeta().custom_metadata_map
        self._choose_size(tensor.shape, metadata)
        self.mean = _per_channel(self.mean, metadata, "mean")
        self.std = _per_channel(self.std, metadata, "std")
        if isinstance(tensor.shape[0], int):
            self.batch_size = tensor.shape[0]

    def _choose_size(self, shape: Sequence[Any], metadata: dict[str, str]) -> None:
        channels, height, width = shape[1:]
        if isinstance(channels, int) and channels != _CHANNELS:
            rule = "an ONNX file that takes images of 3 channels, (n, 3, height, width)"
            raise must_be("encoder", rule, f"{self.name} with the shape {list(shape)}")
        fixed = height if isinstance(height, int) and height == width else None
        if self.size is None:
            self.size = fixed if fixed is not None else _read(metadata, "size")
        if self.size is None:
            advice = "Give it with --encoder-set size=224, for example."
            raise must_be("size", f"given, as {self.name} takes images of any size", None, advice)
        check_integer(self.size, "size", minimum=1)
        if fixed is not None and self.size != fixed:
            raise must_be("size", f"{fixed}, the size of the input of {self.name}", self.size)

    def _run(self, inputs: Any) -> Any:
        n = len(inputs)
        fixed = self._session.get_inputs()[0].shape[0]
        if isinstance(fixed, int) and n < fixed:  # the last batch of a model of a fixed batch size
            inputs = np.concatenate([inputs, np.repeat(inputs[-1:], fixed - n, axis=0)])
        found = np.asarray(self._session.run([self.output], {self.input: inputs})[0])[:n]
        if found.ndim > 2:  # maps of channels (n, d, h, w), or tokens (n, t, d): their mean
            axes = tuple(range(2, found.ndim)) if found.ndim == 4 else (1,)
            found = found.mean(axis=axes)
        return found

    def _texts(self, samples: RawSamples, rows: slice) -> Any:
        return np.array(samples.texts(rows), dtype=object)

    def _images(self, samples: RawSamples, rows: slice) -> Any:
        from PIL import Image

        assert self.size is not None
        assert self.mean is not None
        assert self.std is not None
        side = (self.size, self.size)
        pixels = np.stack(
            [np.asarray(image.resize(side, Image.Resampling.BICUBIC)) for image in samples.pictures(rows)]
        )
        scaled = (pixels.astype(np.float32) / 255 - np.array(self.mean)) / np.array(self.std)
        return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), dtype=self._type)


def _session(path: Path, n_threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.log_severity_level = 3  # errors only
    try:
        return onnxruntime.InferenceSession(
            str(path), options, providers=onnxruntime.get_available_providers()
        )
    except Exception as error:  # onnxruntime's own errors have no common base
        raise DataFormatError(
            f"{path} cannot be read as an ONNX model: {str(error).splitlines()[0]}"
        ) from error


def _file_digest(path: Path) -> str:
    """The digest of the file, and of the files beside it that hold its weights."""
    content = path.read_bytes()
    digest = hashlib.sha256(content)
    names = {
        content[match.end() : match.end() + match[1][0]].decode(errors="replace")
        for match in _WEIGHTS_ELSEWHERE.finditer(content)
    }
    for name in sorted(names):
        if (file := path.parent / name).is_file():
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _per_channel(given: tuple[float, ...] | None, metadata: dict[str, str], name: str) -> tuple[float, ...]:
    values = given if given is not None else _read(metadata, name)
    if values is None:
        values = (0.0,) * _CHANNELS if name == "mean" else (1.0,) * _CHANNELS
    numbers = tuple(values) if isinstance(values, (list, tuple)) else (values,)
    is_usable = all(isinstance(number, (int, float)) and np.isfinite(number) for number in numbers)
    if len(numbers) != _CHANNELS or not is_usable or (name == "std" and min(numbers) <= 0):
        positive = "positive " if name == "std" else ""
        raise must_be(name, f"three {positive}numbers, one per channel", values)
    return tuple(float(number) for number in numbers)


def _read(metadata: dict[str, str], name: str) -> Any:
    """A value of the metadata of the file, written as JSON."""
    if name not in metadata:
        return None
    try:
        return json.loads(metadata[name])
    except json.JSONDecodeError:
        return None
