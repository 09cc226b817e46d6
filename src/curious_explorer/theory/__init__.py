"""Theory as software: how hard an MDP is to explore, what a run guarantees, and what it takes to be sure.

- Before a run: `hardness`, `exploitative_factor`, `plan`, `plan_chosen_resets`, `assess`.
- About a finished run of a known MDP: `theorem_1`, `remark`, `theorem_2`, `theorem_3`, `mismatch_free`,
  `chosen_resets`.
- About a finished run from samples alone: `certify_arrivals`, `certify_counts`, `certify_training`, `certify`,
  `certify_chosen_resets`, `visit_margins`.

Every report has ``summary()`` for people, ``to_dict()`` for programs, and shows itself as a table in Rich.
"""

from curious_explorer.errors import CertificateError
from curious_explorer.theory.certificates import (
    Certificate,
    VisitMargins,
    certify,
    clopper_pearson_upper,
    visit_margins,
)
from curious_explorer.theory.chosen_plan import ChosenPlan, plan_chosen_resets
from curious_explorer.theory.chosen_resets import (
    ChosenCertificate,
    ChosenResets,
    certify_chosen_resets,
    chosen_resets,
    chosen_resets_bound,
)
from curious_explorer.theory.counts_certificate import CountsCertificate, certify_counts, weissman_radius
from curious_explorer.theory.hardness import Hardness, hardness
from curious_explorer.theory.mismatch_free import MismatchFree, barrier_gradient, mismatch_free, mismatch_free_bound
from curious_explorer.theory.planner import Assessment, Plan, assess, plan
from curious_explorer.theory.quantities import (
    Coverage,
    ExploitativeFactorBound,
    coverage,
    distances,
    exploitative_factor,
    exploitative_factor_bound,
    hitting_times,
    mismatch_coefficient,
    reachable,
    worst_mismatch,
)
from curious_explorer.theory.reset_certificates import (
    ArrivalCertificate,
    TrainingCertificate,
    certify_arrivals,
    certify_training,
    clopper_pearson_lower,
)
from curious_explorer.theory.theorem_1 import Remark, Theorem1, remark, theorem_1
from curious_explorer.theory.theorems_2_and_3 import Theorem2, Theorem3, reinforce_rate, theorem_2, theorem_3

__all__ = [
    "ArrivalCertificate",
    "Assessment",
    "Certificate",
    "CertificateError",
    "ChosenCertificate",
    "ChosenPlan",
    "ChosenResets",
    "CountsCertificate",
    "Coverage",
    "ExploitativeFactorBound",
    "Hardness",
    "MismatchFree",
    "Plan",
    "Remark",
    "Theorem1",
    "Theorem2",
    "Theorem3",
    "TrainingCertificate",
    "VisitMargins",
    "assess",
    "barrier_gradient",
    "certify",
    "certify_arrivals",
    "certify_chosen_resets",
    "certify_counts",
    "certify_training",
    "chosen_resets",
    "chosen_resets_bound",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "coverage",
    "distances",
    "exploitative_factor",
    "exploitative_factor_bound",
    "hardness",
    "hitting_times",
    "mismatch_coefficient",
    "mismatch_free",
    "mismatch_free_bound",
    "plan",
    "plan_chosen_resets",
    "reachable",
    "reinforce_rate",
    "remark",
    "theorem_1",
    "theorem_2",
    "theorem_3",
    "visit_margins",
    "weissman_radius",
    "worst_mismatch",
]
