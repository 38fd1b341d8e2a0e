"""Encoders by name: functions, ONNX files and pretrained networks."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset
from laplaceconfidence.encoders.batches import Advice, encode_in_batches
from laplaceconfidence.encoders.encoding import encode_dataset
from laplaceconfidence.encoders.model_files import revision_of
from laplaceconfidence.encoders.registry import make_encoder, parse_settings
from laplaceconfidence.encoders.samples import RawSamples
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, MissingDependencyError

IMAGES = np.random.default_rng(0).integers(0, 256, (10, 8, 8, 3), dtype=np.uint8)


def write_function(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "own_encoder.py").write_text(f"import numpy as np\n\n\ndef encode(samples):\n    {body}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_encoder", raising=False)
    return "own_encoder:encode"


def test_a_function_gets_texts_or_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "return [[len(one) if isinstance(one, str) else np.asarray(one).sum(), 1] for one in samples]"
    encoder = make_encoder(write_function(tmp_path, body, monkeypatch), {"batch_size": 3})
    of_texts = encoder.fit_transform(RawSamples.of_texts(["a", "bb", "ccc", "dddd"]))
    assert of_texts.tolist() == [[1, 1], [2, 1], [3, 1], [4, 1]]
    of_images = encoder.transform(RawSamples("image", IMAGES))
    assert np.array_equal(of_images[:, 0], IMAGES.reshape(10, -1).sum(axis=1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return np.full((len(samples), 2), np.nan)", "finite numbers: 4 of 4 rows"),
        ("return np.ones((len(samples) + 1, 2))", "5 rows for 4 samples"),
        ("return np.ones(len(samples))", "matrix of numbers"),
        ("return [['a']] * len(samples)", "matrix of numbers"),
        ("return np.ones((len(samples), len(samples[0])))", "rows of one length"),
    ],
)
def test_what_a_function_returns_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    size = 1 if "one length" in message else 4
    encoder = make_encoder(write_function(tmp_path, body, monkeypatch), {"batch_size": size})
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        encoder.fit_transform(RawSamples.of_texts(["a", "bb", "ccc", "dddd"]))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('vocabulary')", "KeyError: 'vocabulary' (own_encoder.py, line 5)."),
        ("raise ValueError('two\\nlines')", "ValueError: two lines (own_encoder.py, line 5)."),
        ("return np.ones((2, 3)) @ np.ones((2, 3))", "(own_encoder.py, line 5)."),
        ("assert len(samples[0]) < 3", "AssertionError (own_encoder.py, line 5)."),
    ],
)
def test_a_function_that_raises_is_named_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    encoder = make_encoder(write_function(tmp_path, body, monkeypatch), {"batch_size": 2})
    expected = "The encoder own_encoder:encode failed on 2 samples from row 0 on of the data"
    with pytest.raises(InvalidInputError, match=re.escape(expected)) as raised:
        encoder.fit_transform(RawSamples.of_texts(["aaa", "bb", "ccc"]))
    assert message in str(raised.value)
    assert raised.value.__cause__ is not None  # with the traceback of the user's code


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("def encode(samples) return samples", "SyntaxError: expected ':' (own_encoder.py, line 1)"),
        ("\nraise RuntimeError('no model')", "RuntimeError: no model (own_encoder.py, line 2)"),
        (
            "import no_such_package_at_all",
            "No module named 'no_such_package_at_all' (own_encoder.py, line 1)",
        ),
    ],
)
def test_a_module_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, message: str
) -> None:
    spec = write_function(tmp_path, "", monkeypatch)
    (tmp_path / "own_encoder.py").write_text(module)
    with pytest.raises(InvalidInputError, match=re.escape(message)) as raised:
        make_encoder(spec)
    assert "Importing 'own_encoder' failed" in str(raised.value)
    assert "PYTHONPATH" not in str(raised.value)
    with pytest.raises(InvalidInputError, match="PYTHONPATH"):
        make_encoder("no_such_module_at_all:encode")


def test_errors_name_rows_of_the_data_whatever_the_order() -> None:
    order = np.array([2, 0, 1])

    def take(rows: slice) -> Any:
        return order[rows]

    found = encode_in_batches(lambda rows: rows[:, None], take, 3, 2, "x", order=order)
    assert found.ravel().tolist() == [0, 1, 2]

    def one_is_not_finite(rows: Any) -> Any:
        return np.where(rows == 1, np.nan, 1.0)[:, None]

    advice = Advice(not_finite="Or try full precision.")
    with pytest.raises(InvalidInputError, match=r"1 of 1 rows .* in row 1 of the data .* full precision\.$"):
        encode_in_batches(one_is_not_finite, take, 3, 2, "x", order=order, advice=advice)


def test_batches_are_halved_where_the_memory_is_not_enough() -> None:
    sizes = []

    def take(rows: slice) -> Any:
        return np.arange(rows.start, rows.stop)

    def encode(samples: Any) -> Any:
        sizes.append(len(samples))
        if sizes[-1] > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        return samples[:, None]

    assert encode_in_batches(encode, take, 7, 8, "x").ravel().tolist() == list(range(7))
    assert sizes == [7, 4, 2, 2, 2, 1]

    def never(samples: Any) -> Any:
        raise MemoryError

    with pytest.raises(InvalidInputError, match=r"one sample at a time .* smaller model, or the CPU"):
        encode_in_batches(never, take, 7, 8, "x", advice=Advice(out_of_memory=", or the CPU"))


@pytest.mark.parametrize(
    "spec", ["nothing", "hf:", "no.such.module:encode", "json:no_such_function", "missing.onnx", "a b:c"]
)
def test_unknown_encoders_are_refused(spec: str) -> None:
    with pytest.raises(InvalidInputError, match="'encoder'"):
        make_encoder(spec)


@pytest.mark.parametrize(
    ("prefix", "package", "extra"),
    [
        ("hf", "transformers", "hf"),
        ("sentence-transformers", "sentence_transformers", "sentence-transformers"),
        ("timm", "timm", "timm"),
        ("torchvision", "torchvision", "torchvision"),
        ("open_clip", "open_clip", "open-clip"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    prefix: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "laplaceconfidence.encoders.torch_model.find_spec",
        lambda name: None if name == package else find_spec(name),
    )
    with pytest.raises(MissingDependencyError, match=rf"{package}.*laplaceconfidence\[{extra}\]"):
        make_encoder(f"{prefix}:some-model")


def test_settings_are_parsed_and_unknown_ones_refused() -> None:
    texts = ["size=224", "mean=0.5,0.25,1", "half=false", "pooling=cls", "rate=1e-3"]
    assert parse_settings(texts) == {
        "size": 224,
        "mean": (0.5, 0.25, 1),
        "half": False,
        "pooling": "cls",
        "rate": 0.001,
    }
    with pytest.raises(InvalidInputError, match="KEY=VALUE"):
        parse_settings(["size"])
    with pytest.raises(InvalidInputError, match="'n_components'"):
        make_encoder("tfidf", {"components": 3})
    with pytest.raises(InvalidInputError, match="runs on the CPU"):
        make_encoder("tfidf", device="cuda")


def test_the_encoder_must_suit_the_samples() -> None:
    data = NoisyDataset.from_arrays([0, 1] * 5, images=IMAGES)
    with pytest.raises(InvalidInputError, match="one that takes images"):
        encode_dataset(data, make_encoder("tfidf"))
    with pytest.raises(InvalidInputError, match="data with texts"):
        encode_dataset(NoisyDataset.from_arrays([0, 1] * 5), make_encoder("tfidf"))


def write_onnx(path: Path, side: int | str = "side", *, metadata: dict[str, str] | None = None) -> Path:
    """A network that returns the mean of every channel."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info("pixels", kind, ["n", 3, side, side])],
        [helper.make_tensor_value_info("features", kind, ["n", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, value in (metadata or {}).items():
        model.metadata_props.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return path


def test_an_onnx_file_with_its_size_and_normalization(tmp_path: Path) -> None:
    metadata = {"mean": "[0.5, 0.5, 0.25]", "std": "[0.5, 1, 2]"}
    encoder = make_encoder(str(write_onnx(tmp_path / "mean.onnx", 8, metadata=metadata)))
    features = encoder.fit_transform(RawSamples("image", IMAGES))
    means = IMAGES.reshape(10, -1, 3).mean(axis=1) / 255
    assert np.allclose(features, (means - [0.5, 0.5, 0.25]) / [0.5, 1, 2], atol=1e-5)


def test_settings_take_the_place_of_what_an_onnx_file_states(tmp_path: Path) -> None:
    path = str(write_onnx(tmp_path / "mean.onnx", metadata={"size": "4", "mean": "[9, 9, 9]"}))
    settings = parse_settings(["size=8", "mean=0,0,0"])
    encoder = make_encoder(path, settings)
    means = IMAGES.reshape(10, -1, 3).mean(axis=1) / 255
    assert np.allclose(encoder.transform(RawSamples("image", IMAGES)), means, atol=1e-5)
    assert encoder.describe()["size"] == 8
    assert make_encoder(path).describe()["size"] == 4
    assert make_encoder(path).describe() != encoder.describe()


def test_an_onnx_file_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="size=224"):
        make_encoder(str(write_onnx(tmp_path / "any.onnx")))
    with pytest.raises(InvalidInputError, match="three positive numbers"):
        make_encoder(str(write_onnx(tmp_path / "any.onnx", 8)), {"std": (1, 1, 0)})
    with pytest.raises(InvalidInputError, match="8, the size of the input"):
        make_encoder(str(write_onnx(tmp_path / "any.onnx", 8)), {"size": 9})
    (tmp_path / "damaged.onnx").write_bytes(b"not a model")
    with pytest.raises(DataFormatError, match="cannot be read as an ONNX model"):
        make_encoder(str(tmp_path / "damaged.onnx"))


def test_the_files_beside_the_weights_identify_a_local_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    first = revision_of(str(tmp_path))
    assert revision_of(f"local-dir:{tmp_path}") == first
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text("{}")
    assert revision_of(str(tmp_path)) != first
    assert revision_of("a name: of nothing") is None


def small_bert(folder: Path) -> Path:
    """A local folder with a tiny BERT and its tokenizer."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "card", "lost", "transfer", "my", "is"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast({word: code for code, word in enumerate(words)})
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def test_a_local_folder_of_transformers(tmp_path: Path) -> None:
    texts = ["my card is lost", "transfer", "my card is lost", "is " * 100]
    folder = small_bert(tmp_path / "bert")
    encoder = make_encoder(f"hf:{folder}", device="cpu")
    features = encoder.fit_transform(RawSamples.of_texts(texts))
    assert features.shape == (4, 16)
    assert np.allclose(features[0], features[2], atol=1e-5)
    alone = encoder.transform(RawSamples.of_texts(texts[:1]))
    assert np.allclose(alone, features[:1], atol=1e-5)  # padding changes nothing
    by_first_token = make_encoder(f"hf:{folder}", {"pooling": "cls"}, device="cpu")
    assert not np.allclose(by_first_token.transform(RawSamples.of_texts(texts)), features, atol=1e-3)
    assert by_first_token.describe() != encoder.describe()
    with pytest.raises(InvalidInputError, match="one that takes images"):
        encode_dataset(NoisyDataset.from_arrays([0, 1] * 5, images=IMAGES), encoder)
    described = encoder.describe()
    (folder / "vocab.txt").write_text("other words")
    assert make_encoder(f"hf:{folder}", device="cpu").describe() != described  # not found in the cache


def test_a_local_folder_of_sentence_transformers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    folder = small_bert(tmp_path / "bert")
    capfd.readouterr()
    encoder = make_encoder(f"sentence-transformers:{folder}", device="cpu")
    texts = ["my card is lost", "transfer", "my card"]
    features = encoder.fit_transform(RawSamples.of_texts(texts))
    by_mean = make_encoder(f"hf:{folder}", device="cpu").fit_transform(RawSamples.of_texts(texts))
    assert np.allclose(features, by_mean, atol=1e-5)  # a folder without modules is pooled by the mean
    assert capfd.readouterr().err == ""
    with pytest.raises(InvalidInputError, match="one that takes images"):
        encode_dataset(NoisyDataset.from_arrays([0, 1] * 5, images=IMAGES), encoder)


def test_a_folder_without_a_model_or_with_pickled_weights(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="cannot be loaded from"):
        make_encoder(f"hf:{tmp_path / 'empty'}")
    folder = small_bert(tmp_path / "bert")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidInputError, match="cannot be loaded from"):
        make_encoder(f"hf:{folder}")


def test_a_model_that_is_nowhere_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    monkeypatch.setattr("laplaceconfidence.encoders.model_files.is_reachable", lambda _: False)
    with pytest.raises(OSError, match=r"is not on this machine, and .* cannot be reached"):
        make_encoder("hf:nobody/no-such-model-anywhere")
