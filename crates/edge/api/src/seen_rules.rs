//! Rules that a caller may see.

use auth::Participant;
use rules::CallRule;

/// Whether a caller, with its capabilities in the topic, may see a rule. Its own rule it may see
/// whatever it may do itself by now, as far as its token is good for what the rule decides.
pub(crate) fn may_see(caller: &Participant, rule: &CallRule) -> bool {
    if rule.author != caller.id {
        return rule.is_within(&caller.capabilities);
    }
    let narrowing = caller.narrowing();
    narrowing.is_none_or(|narrowing| rule.is_within(&narrowing.to))
}
