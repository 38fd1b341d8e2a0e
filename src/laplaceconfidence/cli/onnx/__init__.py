"""The command ``laplaceconfidence onnx``."""
