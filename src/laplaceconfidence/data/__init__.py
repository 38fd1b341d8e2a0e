"""Data sets with unverified labels: readers, and label noise for benchmarks."""

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.images import load_image, load_images
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.data.noise_file import NoiseRecord, read_noise_file, write_noise_file
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.transitions import empirical_transition

__all__ = [
    "NoiseRecord",
    "NoisyDataset",
    "add_noise",
    "empirical_transition",
    "load_digits",
    "load_image",
    "load_images",
    "read_dataset",
    "read_noise_file",
    "write_noise_file",
]
