"""LaplaceConfidence: the probability that each given label is right, from a graph of the data.

Every public name is imported from here: ``from laplaceconfidence import audit``. Names load on first use, so
that ``import laplaceconfidence`` is instant and loads neither torch nor pandas nor matplotlib. The names
under "Training" need torch and raise ``MissingDependencyError`` where it is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

# The module that defines each public name. The imports for type checkers below repeat it; a test compares.
_HOMES = {
    # Finding wrong labels
    "audit": "laplaceconfidence.auditing.issues",
    "find_label_issues": "laplaceconfidence.auditing.issues",
    "AuditResult": "laplaceconfidence.auditing.result",
    "BlockAuditResult": "laplaceconfidence.auditing.block_audit",
    "AuditStatement": "laplaceconfidence.auditing.statement",
    "Explanation": "laplaceconfidence.auditing.explain",
    "Corrections": "laplaceconfidence.auditing.corrections",
    # Confidence estimators
    "NoiseAwareConfidence": "laplaceconfidence.confidence.noise_aware",
    "AnnotatorConfidence": "laplaceconfidence.confidence.annotators",
    "AnnotatorLabels": "laplaceconfidence.data.annotator_labels",
    "LaplaceConfidence": "laplaceconfidence.confidence.laplace",
    "KNNVote": "laplaceconfidence.confidence.knn_vote",
    "GaussianLossMixture": "laplaceconfidence.confidence.loss_mixture",
    "BetaLossMixture": "laplaceconfidence.confidence.beta_mixture",
    "SelfConfidence": "laplaceconfidence.confidence.self_confidence",
    "NormalizedMargin": "laplaceconfidence.confidence.normalized_margin",
    "RefinedCrossEntropy": "laplaceconfidence.confidence.refined_cross_entropy",
    "LargestComponent": "laplaceconfidence.confidence.largest_component",
    "ConfidenceEstimator": "laplaceconfidence.confidence.protocol",
    "Neighborhood": "laplaceconfidence.graph.neighborhood",
    # How many labels to flag
    "expected_curve": "laplaceconfidence.confidence.decisions",
    "threshold_for_precision": "laplaceconfidence.confidence.decisions",
    "ExpectedCurve": "laplaceconfidence.confidence.decisions",
    # Data
    "NoisyDataset": "laplaceconfidence.data.dataset",
    "read_dataset": "laplaceconfidence.data.readers",
    "make_encoder": "laplaceconfidence.encoders.registry",
    "load_digits": "laplaceconfidence.data.digits",
    "load_image": "laplaceconfidence.data.images",
    "load_images": "laplaceconfidence.data.images",
    # Noise of a known kind, for experiments
    "add_noise": "laplaceconfidence.data.noise",
    "empirical_transition": "laplaceconfidence.data.transitions",
    "NoiseRecord": "laplaceconfidence.data.noise_file",
    "read_noise_file": "laplaceconfidence.data.noise_file",
    "write_noise_file": "laplaceconfidence.data.noise_file",
    # Training (needs torch)
    "RobustClassifier": "laplaceconfidence.training.classifier",
    "Evaluation": "laplaceconfidence.training.evaluation",
    "Laplace": "laplaceconfidence.training.methods.laplace",
    "CrossEntropy": "laplaceconfidence.training.methods.cross_entropy",
    "CoTeaching": "laplaceconfidence.training.methods.co_teaching",
    "DivideMix": "laplaceconfidence.training.methods.dividemix",
    "Bootstrap": "laplaceconfidence.training.methods.bootstrap",
    "MixUpTraining": "laplaceconfidence.training.methods.mixup",
    "CoTeachingPlus": "laplaceconfidence.training.methods.co_teaching_plus",
    "Pencil": "laplaceconfidence.training.methods.pencil",
    "MCorrection": "laplaceconfidence.training.methods.m_correction",
    "CurriculumLoss": "laplaceconfidence.training.methods.curriculum",
    "TopoFilter": "laplaceconfidence.training.methods.topofilter",
    "D2L": "laplaceconfidence.training.methods.d2l",
    "MentorNet": "laplaceconfidence.training.methods.mentornet",
    "LaplaceNet": "laplaceconfidence.training.methods.laplacenet",
    "Moit": "laplaceconfidence.training.methods.moit",
    "MoitPlus": "laplaceconfidence.training.methods.moit_plus",
    "NGC": "laplaceconfidence.training.methods.ngc",
    "AugDesc": "laplaceconfidence.training.methods.augdesc",
    "NCR": "laplaceconfidence.training.methods.ncr",
    "MLNT": "laplaceconfidence.training.methods.mlnt",
    "INCV": "laplaceconfidence.training.methods.incv",
    "SELFIE": "laplaceconfidence.training.methods.selfie",
    "ITLM": "laplaceconfidence.training.methods.itlm",
    "ForwardCorrection": "laplaceconfidence.training.methods.forward_correction",
    "load_preset": "laplaceconfidence.training.presets",
    "preset_names": "laplaceconfidence.training.presets",
    "WeakAugment": "laplaceconfidence.training.augment.weak",
    "RandAugment": "laplaceconfidence.training.augment.randaugment",
    "AutoAugment": "laplaceconfidence.training.augment.autoaugment",
    "AugMix": "laplaceconfidence.training.augment.augmix",
    # Callbacks of training (needs torch)
    "Callback": "laplaceconfidence.training.callbacks",
    "TrainingContext": "laplaceconfidence.training.callbacks",
    "EarlyStopping": "laplaceconfidence.training.callbacks",
    "LogRounds": "laplaceconfidence.training.callbacks",
    "TensorBoardLogger": "laplaceconfidence.training.tensorboard",
    # Training methods of your own (needs torch)
    "Method": "laplaceconfidence.training.methods.interface",
    "Phase": "laplaceconfidence.training.methods.interface",
    "Plan": "laplaceconfidence.training.methods.interface",
    "Problem": "laplaceconfidence.training.methods.interface",
    "Stage": "laplaceconfidence.training.methods.interface",
    "WeightCopy": "laplaceconfidence.training.methods.interface",
    "MethodFacts": "laplaceconfidence.training.methods.published",
    "PublishedSettings": "laplaceconfidence.training.methods.published",
    "Step": "laplaceconfidence.training.step",
    "Batch": "laplaceconfidence.training.step",
    # Runs on disk: what report, review and export start from
    "write_audit": "laplaceconfidence.records.audit_run",
    "read_audit": "laplaceconfidence.records.audit_run",
    "AuditRun": "laplaceconfidence.records.audit_run",
    "AuditRecord": "laplaceconfidence.records.audit_run",
    "write_report": "laplaceconfidence.report.writing",
    "plan_export": "laplaceconfidence.export.plan",
    "write_export": "laplaceconfidence.export.writing",
    "ExportPlan": "laplaceconfidence.export.plan",
    # Errors and warnings
    "LaplaceConfidenceError": "laplaceconfidence.exceptions",
    "InvalidInputError": "laplaceconfidence.exceptions",
    "DataFormatError": "laplaceconfidence.exceptions",
    "DownloadError": "laplaceconfidence.exceptions",
    "RunFolderError": "laplaceconfidence.exceptions",
    "MissingDependencyError": "laplaceconfidence.exceptions",
    "Interrupted": "laplaceconfidence.exceptions",
    "TrainingStopped": "laplaceconfidence.exceptions",
    "AnotherProcessFailed": "laplaceconfidence.exceptions",
    "LaplaceConfidenceWarning": "laplaceconfidence.exceptions",
    "AdjustedSettingWarning": "laplaceconfidence.exceptions",
    "TrainingWarning": "laplaceconfidence.exceptions",
}

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from laplaceconfidence.auditing.block_audit import BlockAuditResult as BlockAuditResult
    from laplaceconfidence.auditing.corrections import Corrections as Corrections
    from laplaceconfidence.auditing.explain import Explanation as Explanation
    from laplaceconfidence.auditing.issues import audit as audit
    from laplaceconfidence.auditing.issues import find_label_issues as find_label_issues
    from laplaceconfidence.auditing.result import AuditResult as AuditResult
    from laplaceconfidence.auditing.statement import AuditStatement as AuditStatement
    from laplaceconfidence.confidence.annotators import AnnotatorConfidence as AnnotatorConfidence
    from laplaceconfidence.confidence.beta_mixture import BetaLossMixture as BetaLossMixture
    from laplaceconfidence.confidence.decisions import ExpectedCurve as ExpectedCurve
    from laplaceconfidence.confidence.decisions import expected_curve as expected_curve
    from laplaceconfidence.confidence.decisions import threshold_for_precision as threshold_for_precision
    from laplaceconfidence.confidence.knn_vote import KNNVote as KNNVote
    from laplaceconfidence.confidence.laplace import LaplaceConfidence as LaplaceConfidence
    from laplaceconfidence.confidence.largest_component import LargestComponent as LargestComponent
    from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture as GaussianLossMixture
    from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence as NoiseAwareConfidence
    from laplaceconfidence.confidence.normalized_margin import NormalizedMargin as NormalizedMargin
    from laplaceconfidence.confidence.protocol import ConfidenceEstimator as ConfidenceEstimator
    from laplaceconfidence.confidence.refined_cross_entropy import RefinedCrossEntropy as RefinedCrossEntropy
    from laplaceconfidence.confidence.self_confidence import SelfConfidence as SelfConfidence
    from laplaceconfidence.data.annotator_labels import AnnotatorLabels as AnnotatorLabels
    from laplaceconfidence.data.dataset import NoisyDataset as NoisyDataset
    from laplaceconfidence.data.digits import load_digits as load_digits
    from laplaceconfidence.data.images import load_image as load_image
    from laplaceconfidence.data.images import load_images as load_images
    from laplaceconfidence.data.noise import add_noise as add_noise
    from laplaceconfidence.data.noise_file import NoiseRecord as NoiseRecord
    from laplaceconfidence.data.noise_file import read_noise_file as read_noise_file
    from laplaceconfidence.data.noise_file import write_noise_file as write_noise_file
    from laplaceconfidence.data.readers import read_dataset as read_dataset
    from laplaceconfidence.data.transitions import empirical_transition as empirical_transition
    from laplaceconfidence.encoders.registry import make_encoder as make_encoder
    from laplaceconfidence.exceptions import AdjustedSettingWarning as AdjustedSettingWarning
    from laplaceconfidence.exceptions import AnotherProcessFailed as AnotherProcessFailed
    from laplaceconfidence.exceptions import DataFormatError as DataFormatError
    from laplaceconfidence.exceptions import DownloadError as DownloadError
    from laplaceconfidence.exceptions import Interrupted as Interrupted
    from laplaceconfidence.exceptions import InvalidInputError as InvalidInputError
    from laplaceconfidence.exceptions import LaplaceConfidenceError as LaplaceConfidenceError
    from laplaceconfidence.exceptions import LaplaceConfidenceWarning as LaplaceConfidenceWarning
    from laplaceconfidence.exceptions import MissingDependencyError as MissingDependencyError
    from laplaceconfidence.exceptions import RunFolderError as RunFolderError
    from laplaceconfidence.exceptions import TrainingStopped as TrainingStopped
    from laplaceconfidence.exceptions import TrainingWarning as TrainingWarning
    from laplaceconfidence.export.plan import ExportPlan as ExportPlan
    from laplaceconfidence.export.plan import plan_export as plan_export
    from laplaceconfidence.export.writing import write_export as write_export
    from laplaceconfidence.graph.neighborhood import Neighborhood as Neighborhood
    from laplaceconfidence.records.audit_run import AuditRecord as AuditRecord
    from laplaceconfidence.records.audit_run import AuditRun as AuditRun
    from laplaceconfidence.records.audit_run import read_audit as read_audit
    from laplaceconfidence.records.audit_run import write_audit as write_audit
    from laplaceconfidence.report.writing import write_report as write_report
    from laplaceconfidence.training.augment.augmix import AugMix as AugMix
    from laplaceconfidence.training.augment.autoaugment import AutoAugment as AutoAugment
    from laplaceconfidence.training.augment.randaugment import RandAugment as RandAugment
    from laplaceconfidence.training.augment.weak import WeakAugment as WeakAugment
    from laplaceconfidence.training.callbacks import Callback as Callback
    from laplaceconfidence.training.callbacks import EarlyStopping as EarlyStopping
    from laplaceconfidence.training.callbacks import LogRounds as LogRounds
    from laplaceconfidence.training.callbacks import TrainingContext as TrainingContext
    from laplaceconfidence.training.classifier import RobustClassifier as RobustClassifier
    from laplaceconfidence.training.evaluation import Evaluation as Evaluation
    from laplaceconfidence.training.methods.augdesc import AugDesc as AugDesc
    from laplaceconfidence.training.methods.bootstrap import Bootstrap as Bootstrap
    from laplaceconfidence.training.methods.co_teaching import CoTeaching as CoTeaching
    from laplaceconfidence.training.methods.co_teaching_plus import CoTeachingPlus as CoTeachingPlus
    from laplaceconfidence.training.methods.cross_entropy import CrossEntropy as CrossEntropy
    from laplaceconfidence.training.methods.curriculum import CurriculumLoss as CurriculumLoss
    from laplaceconfidence.training.methods.d2l import D2L as D2L
    from laplaceconfidence.training.methods.dividemix import DivideMix as DivideMix
    from laplaceconfidence.training.methods.forward_correction import ForwardCorrection as ForwardCorrection
    from laplaceconfidence.training.methods.incv import INCV as INCV
    from laplaceconfidence.training.methods.interface import Method as Method
    from laplaceconfidence.training.methods.interface import Phase as Phase
    from laplaceconfidence.training.methods.interface import Plan as Plan
    from laplaceconfidence.training.methods.interface import Problem as Problem
    from laplaceconfidence.training.methods.interface import Stage as Stage
    from laplaceconfidence.training.methods.interface import WeightCopy as WeightCopy
    from laplaceconfidence.training.methods.itlm import ITLM as ITLM
    from laplaceconfidence.training.methods.laplace import Laplace as Laplace
    from laplaceconfidence.training.methods.laplacenet import LaplaceNet as LaplaceNet
    from laplaceconfidence.training.methods.m_correction import MCorrection as MCorrection
    from laplaceconfidence.training.methods.mentornet import MentorNet as MentorNet
    from laplaceconfidence.training.methods.mixup import MixUpTraining as MixUpTraining
    from laplaceconfidence.training.methods.mlnt import MLNT as MLNT
    from laplaceconfidence.training.methods.moit import Moit as Moit
    from laplaceconfidence.training.methods.moit_plus import MoitPlus as MoitPlus
    from laplaceconfidence.training.methods.ncr import NCR as NCR
    from laplaceconfidence.training.methods.ngc import NGC as NGC
    from laplaceconfidence.training.methods.pencil import Pencil as Pencil
    from laplaceconfidence.training.methods.published import MethodFacts as MethodFacts
    from laplaceconfidence.training.methods.published import PublishedSettings as PublishedSettings
    from laplaceconfidence.training.methods.selfie import SELFIE as SELFIE
    from laplaceconfidence.training.methods.topofilter import TopoFilter as TopoFilter
    from laplaceconfidence.training.presets import load_preset as load_preset
    from laplaceconfidence.training.presets import preset_names as preset_names
    from laplaceconfidence.training.step import Batch as Batch
    from laplaceconfidence.training.step import Step as Step
    from laplaceconfidence.training.tensorboard import TensorBoardLogger as TensorBoardLogger


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'laplaceconfidence' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
