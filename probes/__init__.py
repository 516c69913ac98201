"""One measure per file: a trace and a model in, flat records out.

A probe knows nothing of datasets, files or run folders. To add one, write a function from a
model, a trace, what a task says about it and the settings to a list of records, in a file of
its own, and name it in `PROBES`.
"""

from collections.abc import Callable
from typing import Any

from faithscope.probes.attention import AttentionSettings, attention
from faithscope.probes.causal_effects import CausalEffectsSettings, causal_effects
from faithscope.probes.direct import DirectSettings, direct
from faithscope.probes.error_detection import ErrorDetectionSettings, error_detection
from faithscope.probes.flow import FlowSettings, flow
from faithscope.probes.framing import Asking
from faithscope.probes.information import InformationSettings, information
from faithscope.probes.knockout import KnockoutSettings, knockout
from faithscope.probes.linear_probe import LinearProbeSettings, linear_probe
from faithscope.probes.messages import Message
from faithscope.probes.patching import PatchingSettings, patching
from faithscope.probes.record import Record, record
from faithscope.probes.rigidity import RigiditySettings, rigidity
from faithscope.probes.slrc import SlrcSettings, slrc
from faithscope.probes.sycophancy import SycophancySettings, sycophancy
from faithscope.probes.tracing import TracingSettings, tracing

PROBES: dict[str, Callable[..., list[Record]]] = {
    "slrc": slrc,
    "direct": direct,
    "sycophancy": sycophancy,
    "error_detection": error_detection,
    "attention": attention,
    "rigidity": rigidity,
    "flow": flow,
    "linear_probe": linear_probe,
    "tracing": tracing,
    "information": information,
    "knockout": knockout,
    "patching": patching,
    "causal_effects": causal_effects,
}
"""Every probe by the name that its records carry."""

SETTINGS: dict[str, type[Any]] = {
    "slrc": SlrcSettings,
    "direct": DirectSettings,
    "sycophancy": SycophancySettings,
    "error_detection": ErrorDetectionSettings,
    "attention": AttentionSettings,
    "rigidity": RigiditySettings,
    "flow": FlowSettings,
    "linear_probe": LinearProbeSettings,
    "tracing": TracingSettings,
    "information": InformationSettings,
    "knockout": KnockoutSettings,
    "patching": PatchingSettings,
    "causal_effects": CausalEffectsSettings,
}
"""The settings that each probe takes, a frozen dataclass with defaults."""

__all__ = [
    "PROBES",
    "SETTINGS",
    "Asking",
    "AttentionSettings",
    "CausalEffectsSettings",
    "DirectSettings",
    "ErrorDetectionSettings",
    "FlowSettings",
    "InformationSettings",
    "KnockoutSettings",
    "LinearProbeSettings",
    "Message",
    "PatchingSettings",
    "Record",
    "RigiditySettings",
    "SlrcSettings",
    "SycophancySettings",
    "TracingSettings",
    "attention",
    "causal_effects",
    "direct",
    "error_detection",
    "flow",
    "information",
    "knockout",
    "linear_probe",
    "patching",
    "record",
    "rigidity",
    "slrc",
    "sycophancy",
    "tracing",
]
