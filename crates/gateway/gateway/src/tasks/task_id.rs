//! Task ids as the gateway gives them out: sealed for its participant, so that no other participant
//! can guess or use it.

use auth::{Purpose, Sealer};
use model::{Form, ParticipantId};
use platform::random;
use upstream::tasks::{Origin, TASK_KEPT_MS_MAX};

const TASK: Purpose = Purpose {
    name: "task",
    valid_ms: TASK_KEPT_MS_MAX,
};
/// Shortest id, in bytes. A shorter text is not unsealed in vain.
const TASK_ID_BYTES_MIN: usize = 77;

/// The content of a task id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskId<'i> {
    /// The topic in which the task was created.
    pub(crate) topic: &'i str,
    /// Its server.
    pub(crate) server: &'i str,
    /// The instance number of the server's session; 0 if the server's tasks belong to no session.
    pub(crate) instance: u64,
    /// The form of payloads about it.
    pub(crate) form: Form,
    /// Whether the call was held until it was approved.
    pub(crate) held: bool,
    /// The tool that was called, under the name by which the call was judged.
    pub(crate) tool: &'i str,
    /// The server's own id.
    pub(crate) own: &'i str,
}

impl<'i> TaskId<'i> {
    /// The id, for this participant.
    pub(crate) fn seal(&self, sealer: &Sealer, who: &ParticipantId, now_ms: u64) -> String {
        let form = <&str>::from(self.form);
        let Self {
            topic,
            server,
            instance,
            tool,
            own,
            ..
        } = self;
        let held = if self.held { "held" } else { "plain" };
        // Either name may contain any character, so the length separates them.
        let state = format!(
            "{topic}\n{server}\n{instance:x}\n{form}\n{held}\n{}\n{tool}{own}",
            tool.len()
        );
        TASK.seal(sealer, who, now_ms, random(), &state)
    }

    /// The origin of a task that is known by its id alone.
    pub(crate) fn origin(&self, server: ParticipantId, created_ms: u64) -> Origin {
        Origin {
            server,
            instance: self.instance,
            form: self.form,
            own: self.own.into(),
            call: None,
            progress: None,
            created_ms,
        }
    }

    /// The content of an id that was sealed for this participant.
    pub(crate) fn open(
        sealer: &Sealer,
        who: &ParticipantId,
        now_ms: u64,
        id: &str,
    ) -> Option<String> {
        if id.len() < TASK_ID_BYTES_MIN {
            return None;
        }
        TASK.open(sealer, who, now_ms, id)
    }

    /// Reads the content that [`TaskId::open`] returned.
    pub(crate) fn read(state: &'i str) -> Option<Self> {
        let mut parts = state.splitn(7, '\n');
        let topic = parts.next()?;
        let server = parts.next()?;
        let instance = parts.next()?;
        let form = parts.next()?;
        let held = parts.next()?;
        let tool_len = parts.next()?;
        let names = parts.next()?;
        let instance = u64::from_str_radix(instance, 16).ok()?;
        let form = form.parse().ok()?;
        let held = match held {
            "held" => true,
            "plain" => false,
            _ => return None,
        };
        let (tool, own) = names.split_at_checked(tool_len.parse().ok()?)?;
        Some(Self {
            topic,
            server,
            instance,
            form,
            held,
            tool,
            own,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_valid_for_its_participant_and_for_a_day() {
        let sealer = Sealer::new(&[7; 32], None);
        let ada = ParticipantId::new("ada").unwrap();
        let bob = ParticipantId::new("bob").unwrap();
        let id_of = TaskId {
            topic: "main",
            server: "a",
            instance: u64::MAX,
            form: Form::Legacy,
            held: true,
            tool: "t\n\u{1F600}",
            own: "x\ny\u{1F600}",
        };
        let id = id_of.seal(&sealer, &ada, 5);
        let state = TaskId::open(&sealer, &ada, 6, &id).unwrap();
        assert_eq!(TaskId::read(&state), Some(id_of.clone()));
        assert_eq!(TaskId::open(&sealer, &bob, 6, &id), None);
        assert_eq!(TaskId::open(&sealer, &ada, 5 + TASK_KEPT_MS_MAX, &id), None);
        assert_eq!(
            TaskId::open(&Sealer::new(&[8; 32], None), &ada, 6, &id),
            None
        );
        assert_ne!(
            id_of.seal(&sealer, &ada, 5),
            id,
            "two ids of one task differ"
        );
        let empty = TaskId {
            topic: "",
            server: "",
            instance: 0,
            form: Form::Modern,
            held: false,
            tool: "",
            own: "",
        };
        assert!(empty.seal(&sealer, &ada, 0).len() >= TASK_ID_BYTES_MIN);
        for wrong in [
            "",
            "a\nb\n1\nlegacy\nheld\n1",
            "a\nb\nx\nlegacy\nheld\n1\ntc",
            "a\nb\n1\nnew\nheld\n1\ntc",
            "a\nb\n1\nlegacy\nopen\n1\ntc",
            "a\nb\n1\nlegacy\nheld\n3\ntc",
        ] {
            assert_eq!(TaskId::read(wrong), None, "{wrong:?}");
        }
    }
}
