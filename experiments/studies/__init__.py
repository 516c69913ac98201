"""The studies, a folder each: what each asks, and what a reader gets of it.

Each declares itself as `STUDY`; a study of a user's own is `register`ed in the same way.
"""

from faithscope.experiments.config.study import register
from faithscope.experiments.studies import (
    c2faith,
    compare,
    rfeval,
    slrc,
    training,
)

for study in (slrc, c2faith, rfeval, training, compare):
    register(study.STUDY)
