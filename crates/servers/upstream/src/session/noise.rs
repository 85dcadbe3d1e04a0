//! Noise: what a server's process prints to stdout and is no message.

use platform::Mutex;

use client::StderrLog;

/// What is kept of the noise of one session.
#[derive(Default)]
pub(super) struct Noise(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The first text, quoted.
    first: Option<String>,
    /// Texts that the log of stderr has yet to take: they came before the session had its link.
    early: Vec<String>,
}

impl Noise {
    /// The first of it, for operators.
    pub(super) fn first(&self) -> Option<String> {
        let noise = self.0.lock().first.clone()?;
        Some(format!(
            "its stdout has what is no message, which belongs on stderr: {noise}"
        ))
    }

    /// Keeps the beginning of a text. `process` is asked while the noise is locked: a process is read
    /// as soon as it runs, which may be before the session has its link.
    pub(super) fn keep(&self, head: &str, process: impl FnOnce() -> Option<u32>, log: &StderrLog) {
        let mut kept = self.0.lock();
        kept.first
            .get_or_insert_with(|| format!("\"{}\"", head.escape_debug()));
        match process() {
            Some(process) => log.push_of_stdout(process, head),
            None => kept.early.push(head.to_owned()),
        }
    }

    /// Logs what came before the session had its link to this process.
    pub(super) fn log_early(&self, process: u32, log: &StderrLog) {
        let mut kept = self.0.lock();
        for head in kept.early.drain(..) {
            log.push_of_stdout(process, &head);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use client::processes::Root;
    use client::{Closing, Flow, LinkInbox, LinkTransport, SendError, SendMeta, ServerLink};

    use crate::session::inbox::SessionInbox;
    use crate::tests::bare_child_session;

    const PID: u32 = 7;

    /// A link to a process that takes no message.
    struct Process;

    impl LinkTransport for Process {
        fn send(&self, _: Bytes, _: SendMeta) -> Result<(), SendError> {
            Err(SendError::Closed)
        }

        fn process(&self) -> Option<Root> {
            Some(Root {
                started: PID,
                is_keeper: false,
            })
        }

        fn close(&self) -> Closing<'_> {
            Box::pin(std::future::ready(()))
        }
    }

    #[tokio::test]
    async fn what_is_printed_before_the_session_has_its_link_is_kept_and_logged() {
        let session = bare_child_session();
        let inbox = SessionInbox(Arc::downgrade(&session));
        let log = Arc::clone(&session.setup.environment.stderr);
        assert_eq!(inbox.frame(Bytes::from_static(b"one"), None), Flow::Noise);
        let noise = session.noise().unwrap();
        assert!(noise.ends_with("on stderr: \"one\""), "{noise}");
        assert!(log.last_of(PID, 9).is_empty());
        session.take_link(ServerLink::custom(Arc::new(Process)));
        assert_eq!(inbox.frame(Bytes::from_static(b"two"), None), Flow::Noise);
        let logged = ["one", "two"].map(|text| Arc::from(format!("on stdout, no message: {text}")));
        assert_eq!(log.last_of(PID, 9), logged);
        assert_eq!(
            session.noise().unwrap(),
            noise,
            "the first one is the reason"
        );
    }
}
