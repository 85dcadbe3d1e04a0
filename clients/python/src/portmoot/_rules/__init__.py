"""Rules on the arguments of calls, as the gateway reads them: parsing, deciding and explaining in a program of one's own."""

from .call import RuledCall, Stage, definition_digest, participant_digest, succeeded
from .fit import Fit
from .judge import ExplainedCheck
from .reader import RuleFileError
from .rule import Decision, Rule
from .rule_set import RuleAnswer, RuleExplanation, RuleSet, RuleSetError
from .spent import Spent

__all__ = [
    "Decision",
    "ExplainedCheck",
    "Fit",
    "Rule",
    "RuleAnswer",
    "RuleExplanation",
    "RuleFileError",
    "RuleSet",
    "RuleSetError",
    "RuledCall",
    "Spent",
    "Stage",
    "definition_digest",
    "participant_digest",
    "succeeded",
]
