"""The config of a run over chains: readers, judges, probes, labels, taxonomy and report, beside the
settings shared by all runs over traces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from faithscope.experiments.config.api import HOW_FAST
from faithscope.experiments.config.backend import WHERE
from faithscope.experiments.config.base import AnyNumber, FiguresConfig, OneOrMany, Section
from faithscope.experiments.config.comparison import ComparisonConfig
from faithscope.experiments.config.judge import JudgeConfig, JudgeName, room_to_think
from faithscope.experiments.config.model import SubjectName
from faithscope.experiments.config.yaml_source import Key
from faithscope.experiments.data.given.fine_cot import LabelSource
from faithscope.experiments.engine.forms import own_path
from faithscope.experiments.engine.traces.config import ProbeName, TracesConfig
from faithscope.experiments.engine.traces.sections import (
    DirectPromptName,
    GivenConfig,
    ModelConfig,
)
from faithscope.experiments.studies.slrc.stages import LEAST_LABEL_MASS
from faithscope.probes import PROBES
from faithscope.probes.program_reader import BY_READERS

FORMS = ("step_judge", "faithful_judge", "c2_detection", "c2_localisation", "c2_coverage")
GOOD = ("correct", "final_answer_correct", "faithful", "sound")

Share = Annotated[StrictFloat, Field(ge=0, le=1)]
Names = Annotated[list[StrictStr], Field(min_length=1)]


class SizeConfig(Section):
    """The size of a model whose weights are not at hand."""

    total: StrictInt = Field(ge=1)
    """Total number of parameters."""
    active: StrictInt | None = Field(default=None, ge=1)
    """Number of parameters used per token (all of them in a dense model); null if unknown."""

    @property
    def sizes(self) -> dict[str, int | None]:
        """The size in the fields that a run stores for weights it has loaded."""
        return {"parameters": self.total, "active_parameters": self.active}


class ReadersConfig(ModelConfig):
    """The models that write or read the chains, and how their weights are held."""

    name: Annotated[list[SubjectName], *AnyNumber] = Field(default=[])
    """One or several models: `bundled:NAME`, `planted:NAME`, a hub id, a folder, a .gguf file; or
    `api:PROVIDER/MODEL`, which only probes that ask questions can measure (section `api`). With an
    empty list no model reads the given chains, and only judges are asked about them."""


class ChainsConfig(GivenConfig):
    """Given chains (written elsewhere), in place of chains that models write here."""

    written_by: Annotated[list[StrictStr], *AnyNumber] = Field(default=[])
    """Without a model that reads the chains: judge only those written by these models; names as in
    `writers`, and an empty list takes all chains."""


class JudgesConfig(JudgeConfig):
    """The judges of the chains, what they are asked, and the settings by which they are asked."""

    KEY: ClassVar[str] = "judges"

    forms: Annotated[list[StrictStr], *OneOrMany] = Field(default=[*FORMS, "legibility"])
    """Prompts to ask: names (`faithscope list prompts`), or paths of YAML files with a question of
    your own."""
    prompts: StrictStr | None = None
    """A folder of your own prompt files, which take precedence over the shipped ones of the same
    name."""

    @property
    def form_names(self) -> list[str]:
        """The names of the forms; that of a file is its name without the ending."""
        return [path.stem if (path := own_path(entry)) else entry for entry in self.forms]

    @model_validator(mode="after")
    def _forms_of_different_names(self) -> Self:
        names = self.form_names
        if twice := next((n for i, n in enumerate(names) if n in names[:i]), None):
            raise ValueError(f".forms: two forms are named {twice!r}; name one once, or rename it")
        return self


def _one_or_two(names: list[str]) -> list[str]:
    if len(names) > 2:
        raise ValueError(
            f"names {len(names)} readers; name one, or two whose programs are compared"
        )
    return names


class ProgramsConfig(JudgeConfig):
    """Models that write down a chain in words as a program, where the rule of a probe that executes
    chains (`interchange`) cannot read it, and the settings by which they are asked."""

    KEY: ClassVar[str] = "programs"

    model: Annotated[list[JudgeName], *OneOrMany, AfterValidator(_one_or_two)]
    """One reader or two: a model here as in `model.name`, or `api:PROVIDER/MODEL`. Of two the first
    counts that can read a chain, and how often their programs agree is reported."""


class LabelsConfig(Section):
    """The labels that judges and detectors are evaluated against."""

    path: StrictStr | None = None
    """A folder in the layout of FINE-CoT (as `faithscope annotate` exports it) with labels for the
    chains of this run, joined by data set, item and model; null uses the labels that came with
    given chains, if any did. It is read for detectors."""
    source: LabelSource = "faithful_type"
    """Field of FINE-CoT that says whether a chain is unfaithful, for detectors."""

    good: Annotated[list[StrictStr], *AnyNumber] = Field(default=list(GOOD))
    """Names of labels whose true means that all is well; the true of any other label means that
    something is wrong."""


class EditsConfig(Section):
    """The source of edited steps: with a mistake, paraphrased, or distorted in meaning (C.1)."""

    by: Literal["rule", "judge"] = "rule"
    """Source of the edits: `rule` uses those of the probes `slrc`, `causal_effects` and
    `paraphrase`; `judge` has the first model of `judges.model` write them."""
    steps: StrictInt = Field(default=1, ge=1)
    """Number of steps per chain that a judge edits, drawn with the seed."""


class DetectorsConfig(Section):
    """Settings of FaithCoT-Bench's detectors that the paper leaves open."""

    edits: EditsConfig = EditsConfig()
    early_cut: Annotated[StrictFloat, Field(ge=0, lt=1)] = 0.5
    """Share of the steps after which early answering asks for the answer, rounded down to whole
    steps."""
    uncertain: Literal["left_out", "faithful", "unfaithful"] = "left_out"
    """How to count class 2 (uncertain) of the faithful judge."""
    paper_compat: StrictBool = False
    """Follow the released code and the paper's wording. Options are shuffled into any order (the
    old one too), letters are compared instead of texts, and an answer that cannot be read counts as
    a changed one; paraphrasing uses the edits that distort the meaning, as C.1 prints it (only
    `detectors.edits.by: judge` writes them)."""
    shuffle_given: StrictBool = False
    """Shuffle the options of given chains, too; valid only if the model of the run wrote the
    chains."""
    folds: StrictInt = Field(default=5, ge=2)
    """Number of folds for cross-fitted thresholds; chains about one question stay in one fold."""


def _all_detectors(value: object) -> object:
    return {} if value == "all" else value


class ReportConfig(FiguresConfig):
    """Settings of the report."""

    traces: StrictInt = Field(default=6, ge=0)
    """Number of example traces on the page, with steps coloured by necessity, or by what judges say
    of them; every judgement is in records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Number of bootstrap resamples for intervals, such as that of SLRC."""
    cut: Literal["left_out", "kept"] = "left_out"
    """Whether tables of judges and detectors leave out chains that a token limit cut off, or keep
    them; they are counted either way (`n_cut`)."""
    comparison: ComparisonConfig = ComparisonConfig()
    """Settings of the comparison of probes and judges, in runs that have both."""
    least_label_mass: StrictFloat = Field(default=LEAST_LABEL_MASS, ge=0, le=1)
    """Minimum label mass: items whose labels together have less of the model's probability after
    the unedited reasoning are left out of scored readings."""
    parameters: dict[StrictStr, SizeConfig] = Field(default_factory=dict)
    """Model name -> size, for models whose parameters the run cannot count, such as API models."""
    groups: dict[StrictStr, Names] = Field(default_factory=dict)
    """Name of a group -> its models. Table 1 lists the models by group, with the mean of each group
    (table `model_groups`)."""
    pairs: dict[StrictStr, Annotated[Names, Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict
    )
    """Name of a pair -> two models, which are compared on the items that both have (table
    `model_pairs`), such as two models of one lab (3.2)."""


def _as_shares(value: object) -> object:
    return [value] if isinstance(value, int | float) else value


class TaxonomyConfig(Section):
    """Thresholds of the four modes genuine, scaffolding, decorative and empty (2.3, 4.3)."""

    necessity: Share = 0.30
    """Necessity at or above which steps matter."""
    gap: Share = 0.10
    """Gain in accuracy at or above which reasoning helps."""
    prompt: DirectPromptName = "unformatted"
    """The direct prompt whose accuracy is the baseline for accuracy with reasoning."""
    sensitivity: Annotated[list[Share], BeforeValidator(_as_shares), Field(min_length=1)] = Field(
        default=[0.20, 0.25, 0.30, 0.35]
    )
    """Necessity thresholds for the sensitivity analysis (Extended Data 3)."""
    robustness: Share = 0.05
    """Change in necessity at or above which a change of prompt matters (2.6)."""


class RunConfig(TracesConfig):
    """The whole config of a run: models write or read chains, which probes and judges measure."""

    FREE: ClassVar[tuple[str, ...]] = (
        *TracesConfig.FREE,
        "report.",
        "labels.",
        "traces.written_by",  # a chain is a unit, whoever wrote others
        "judges.prompts",  # a form's text decides by itself what was asked
        "detectors.early_cut",
        "detectors.uncertain",
        "detectors.paper_compat",  # the order of the options decides by itself what was asked
        "detectors.folds",
        *(f"{of}.{key}" for of in ("judges", "programs") for key in (*HOW_FAST, *WHERE)),
    )
    SHOWN: ClassVar[tuple[str, ...]] = (*TracesConfig.SHOWN, "labels", "detectors")

    OPTIONAL: ClassVar[Mapping[str, str]] = {
        "model": "name",
        "judges": "model",
        "programs": "model",
    }

    model: ReadersConfig = ReadersConfig()
    traces: ChainsConfig = ChainsConfig()
    probes: Annotated[list[ProbeName], *AnyNumber] = Field(default=["slrc"])
    """Names of the probes that measure each trace (`faithscope list probes`); none where no model
    reads the chains."""
    judges: JudgesConfig | None = None
    """Models that judge each chain, as a whole or step by step; null asks no judge."""
    programs: ProgramsConfig | None = None
    """Models that write down chains in words as programs; null leaves out what the rule of a probe
    cannot read."""
    detectors: Annotated[DetectorsConfig | None, BeforeValidator(_all_detectors)] = None
    """FaithCoT-Bench's eleven detectors of unfaithful chains, which read the records of the probes
    `slrc`, `causal_effects`, `tracing`, `information` and `paraphrase` and of the forms
    `step_judge` and `faithful_judge`: `all`, or a section of settings; null evaluates none."""
    labels: LabelsConfig = LabelsConfig()
    taxonomy: TaxonomyConfig = TaxonomyConfig()
    report: ReportConfig = ReportConfig()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Give judges behind an API room to think (`room_to_think`)."""
        values = super().as_asked(values, asked, shipped)
        for key in ("judges", "programs"):
            values = room_to_think(values, asked, shipped, key)
        return values

    @model_validator(mode="before")
    @classmethod
    def _no_probe_without_a_reader(cls, values: Any) -> Any:
        """Without a model that reads the chains, no probe is the default."""
        model = values.get("model") if isinstance(values, dict) else None
        if isinstance(values, dict) and not (isinstance(model, dict) and model.get("name")):
            return {"probes": [], **values}
        return values

    @model_validator(mode="after")
    def _somebody_reads_or_judges(self) -> Self:
        for section in filter(None, (self.judges, self.programs)):
            if problem := section.misfit():
                raise ValueError(problem)
        able = [name for name, probe in PROBES.items() if probe.reads_programs]
        if self.programs is not None and not {*able} & {*self.probes}:
            raise ValueError(
                f"programs.model: no probe of the run reads programs; add {' or '.join(able)} to "
                "probes, or take the section out"
            )
        if self.writes_edits and self.judges is None:
            raise ValueError(
                "detectors.edits.by is 'judge', and there is none; name one in judges.model"
            )
        if self.model.name:
            if self.traces.written_by:
                raise ValueError(
                    "traces.written_by: is of chains that judges alone read; models of model.name "
                    "read their own chains by traces.read_by: writer"
                )
            if not self.probes and self.judges is None and self.detectors is None:
                raise ValueError("probes: name one, or judges in judges.model; nothing is measured")
            return self
        if self.detectors is not None:
            raise ValueError("detectors: no model reads the chains; name one in model.name")
        if self.judges is None:
            raise ValueError(
                "model.name: missing; name a model that writes or reads the chains, or one that "
                "judges them in judges.model"
            )
        if self.probes:
            raise ValueError(
                f"probes: {', '.join(self.probes)}: no model reads the chains; name one in "
                "model.name, or take the probes out"
            )
        of_readers = {"groups": None, "conclusion": "strip"}
        if named := [k for k, unset in of_readers.items() if getattr(self.steps, k) != unset]:
            raise ValueError(
                f"steps.{named[0]}: is of chains that a model reads, and model.name names none"
            )
        return self

    def mends(self, probe: str) -> Collection[str]:
        return BY_READERS if self.programs is not None and PROBES[probe].reads_programs else ()

    @property
    def writes_edits(self) -> bool:
        """Whether a judge writes edits of steps for detectors."""
        return self.detectors is not None and self.detectors.edits.by == "judge"

    @property
    def writer(self) -> str | None:
        """The judge that writes edits; None where edits are made by rule."""
        return self.judges.model[0] if self.writes_edits and self.judges is not None else None

    @property
    def notes(self) -> list[str]:
        notes = super().notes
        in_lists = [*self.report.groups.values(), *self.report.pairs.values()]
        named = [*self.report.parameters, *(m for models in in_lists for m in models)]
        strangers = [m for m in dict.fromkeys(named) if m not in self.model.name]
        if strangers:
            keys = "report.parameters, groups, pairs" if in_lists else "report.parameters"
            notes.append(f"{keys}: no models of this run: {', '.join(strangers)}")
        if self.detectors is not None and self.judges is None:
            notes.append("judges: none; step judge and faithful judge are left out")
        if self.judges is not None:
            notes += self.judges.short_of_thought(self.judges.model)
        if self.programs is not None:
            notes += self.programs.short_of_thought(self.programs.model)
        return notes


CONFIG = RunConfig
