//! The id under which a caller knows a task of a server: sealed for its participant, so that it can be neither guessed nor
//! used by anybody else. Must not know which tasks there are.

use auth::Sealer;
use model::{Era, ParticipantId};
use platform::random;

/// How long a task of a server can be asked for here, whatever its server says, milliseconds: a day.
pub const TASK_KEPT_MS_MAX: u64 = 24 * 3600 * 1000;
const PURPOSE: &str = "task";
/// No id of ours is shorter, in bytes: what is, is not unsealed in vain.
const SHORTEST: usize = 77;

/// What an id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed<'i> {
    /// In which topic it was made.
    pub(crate) topic: &'i str,
    /// At which server.
    pub(crate) upstream: &'i str,
    /// In which of its sessions; 0 where its tasks belong to none.
    pub(crate) birth: u64,
    /// In which era.
    pub(crate) era: Era,
    /// Whether the call was held until it was approved.
    pub(crate) held: bool,
    /// The tool that was called, under the name by which that was judged.
    pub(crate) tool: &'i str,
    /// The server's own id.
    pub(crate) own: &'i str,
}

impl<'i> Sealed<'i> {
    /// The id, for this participant.
    pub(crate) fn seal(&self, sealer: &Sealer, who: &ParticipantId, now_ms: u64) -> String {
        let era = match self.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        let Self { topic, upstream, birth, tool, own, .. } = self;
        let held = if self.held { "held" } else { "plain" };
        // Neither name is kept from having any character: the length parts them.
        let state = format!("{topic}\n{upstream}\n{birth:x}\n{era}\n{held}\n{}\n{tool}{own}", tool.len());
        let until = now_ms.saturating_add(TASK_KEPT_MS_MAX);
        sealer.seal(PURPOSE, who.as_str(), until, random(), state.as_bytes())
    }

    /// What an id of this participant holds; nothing if it is none.
    pub(crate) fn open(sealer: &Sealer, who: &ParticipantId, now_ms: u64, id: &str) -> Option<String> {
        if id.len() < SHORTEST {
            return None;
        }
        String::from_utf8(sealer.open(PURPOSE, who.as_str(), now_ms, id).ok()?).ok()
    }

    /// Reads what [`Sealed::open`] gave.
    pub(crate) fn read(state: &'i str) -> Option<Self> {
        let mut parts = state.splitn(7, '\n');
        let (topic, upstream, birth, era) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let (held, tool_len, names) = (parts.next()?, parts.next()?, parts.next()?);
        let birth = u64::from_str_radix(birth, 16).ok()?;
        let era = match era {
            "legacy" => Era::Legacy,
            "modern" => Era::Modern,
            _ => return None,
        };
        let held = match held {
            "held" => true,
            "plain" => false,
            _ => return None,
        };
        let (tool, own) = names.split_at_checked(tool_len.parse().ok()?)?;
        Some(Self { topic, upstream, birth, era, held, tool, own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_participants_alone_and_only_for_a_day() {
        let sealer = Sealer::new(&[7; 32], None);
        let (ada, bob) = (ParticipantId::new("ada").unwrap(), ParticipantId::new("bob").unwrap());
        let told = Sealed {
            topic: "main",
            upstream: "a",
            birth: u64::MAX,
            era: Era::Legacy,
            held: true,
            tool: "t\n\u{1F600}",
            own: "x\ny\u{1F600}",
        };
        let id = told.seal(&sealer, &ada, 5);
        let state = Sealed::open(&sealer, &ada, 6, &id).unwrap();
        assert_eq!(Sealed::read(&state), Some(told.clone()));
        assert_eq!(Sealed::open(&sealer, &bob, 6, &id), None);
        assert_eq!(Sealed::open(&sealer, &ada, 5 + TASK_KEPT_MS_MAX, &id), None);
        assert_eq!(Sealed::open(&Sealer::new(&[8; 32], None), &ada, 6, &id), None);
        assert_ne!(told.seal(&sealer, &ada, 5), id, "two ids of one task differ");
        let nothing =
            Sealed { topic: "", upstream: "", birth: 0, era: Era::Modern, held: false, tool: "", own: "" };
        assert!(nothing.seal(&sealer, &ada, 0).len() >= SHORTEST);
        for wrong in [
            "",
            "a\nb\n1\nlegacy\nheld\n1",
            "a\nb\nx\nlegacy\nheld\n1\ntc",
            "a\nb\n1\nnew\nheld\n1\ntc",
            "a\nb\n1\nlegacy\nopen\n1\ntc",
            "a\nb\n1\nlegacy\nheld\n3\ntc",
        ] {
            assert_eq!(Sealed::read(wrong), None, "{wrong:?}");
        }
    }
}
