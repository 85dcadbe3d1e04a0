//! Owns what is said to the room: admitted by kind and addressees, or withheld. One effect, however many hear it.
//! Must not know who hears it (see `ear`), nor what is in it.

use model::{KindRef, LinkId};

use crate::{
    effect::{Cause, Effect, Effects},
    refusals,
    topic::Topic,
};

impl Topic {
    pub(crate) fn say(&mut self, effects: &mut Effects, now_ms: u64, link: LinkId, kind: &str, to: &[&str]) {
        let Some(seat) = self.members.link(link).map(|own| own.seat) else { return };
        let Some(member) = self.members.get_mut(seat) else { return };
        if let Err(wait_ms) = member.take_token(now_ms) {
            let (refusal, cause) = (refusals::too_soon(wait_ms), Cause::RateLimited);
            return effects.push(Effect::Withhold { link, refusal, cause });
        }
        let cause = match KindRef::parse(kind) {
            Err(_) => Cause::Malformed,
            Ok(parsed) if parsed.is_reserved() => Cause::Reserved,
            Ok(parsed) if member.capabilities.admits(parsed, to) => {
                return effects.push(Effect::Publish { link });
            }
            Ok(_) => Cause::NotAdmitted,
        };
        effects.push(Effect::Withhold { link, refusal: refusals::of_said(cause, kind), cause });
    }
}
