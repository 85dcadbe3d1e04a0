//! Chat output. While a line is being edited, the line editor prints.
//!
//! The editor takes a text only while it reads a line, and makes its printer wait until then. So a
//! thread of its own prints: the chat must take the typed line and let the editor go on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rustyline::ExternalPrinter;
use tokio::sync::Notify;

use crate::output::ChatOutput;

/// Texts that wait for the terminal. No further message of the topic is taken while there are as
/// many.
const TEXTS_MAX: usize = 1024;

/// Prints without the line editor.
type Plainly = fn(&dyn ChatOutput, &str);

/// Printer of a chat. Dropped, it waits until all is printed: drop the
/// [`Input`](super::input::Input) before.
pub(super) struct Printer {
    output: Arc<dyn ChatOutput>,
    beside: Option<Beside>,
}

/// A text for the thread that prints.
struct QueuedText {
    text: String,
    /// Way to print it once the thread has ended.
    plainly: Plainly,
}

/// The thread that prints beside a line editor.
struct Beside {
    texts: Option<mpsc::Sender<QueuedText>>,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    waiting: AtomicUsize,
    printed: Notify,
}

impl Printer {
    /// Prints at once.
    pub(super) fn plain(output: Arc<dyn ChatOutput>) -> Self {
        Self {
            output,
            beside: None,
        }
    }

    /// Prints beside a line editor.
    pub(super) fn beside(
        editor: impl ExternalPrinter + Send + 'static,
        output: Arc<dyn ChatOutput>,
    ) -> Self {
        let (texts, queued) = mpsc::channel();
        let queue = Arc::new(Queue::default());
        let printed = Arc::clone(&queue);
        let plain = Arc::clone(&output);
        let thread = std::thread::spawn(move || print_all(editor, &*plain, &queued, &printed));
        Self {
            output,
            beside: Some(Beside {
                texts: Some(texts),
                queue,
                thread: Some(thread),
            }),
        }
    }

    /// Prints a line to stdout.
    pub(super) fn result(&self, text: &str) {
        self.print(text.to_owned(), |output, text| output.result(text));
    }

    /// Prints a note to stderr. A `raw` one, which is for a person at the terminal, is printed
    /// beside a line editor only.
    pub(super) fn message(&self, text: &str, raw: bool) {
        if !raw || self.beside.is_some() {
            self.print(text.to_owned(), |output, text| output.message(text));
        }
    }

    /// Waits until fewer than [`TEXTS_MAX`] texts wait.
    pub(super) async fn wait_for_room(&self) {
        let Some(Beside { queue, .. }) = &self.beside else {
            return;
        };
        while queue.waiting.load(Ordering::Acquire) >= TEXTS_MAX {
            queue.printed.notified().await;
        }
    }

    fn print(&self, text: String, plainly: Plainly) {
        let Some(Beside {
            texts: Some(texts),
            queue,
            ..
        }) = &self.beside
        else {
            return plainly(&*self.output, &text);
        };
        queue.waiting.fetch_add(1, Ordering::AcqRel);
        if let Err(mpsc::SendError(unsent)) = texts.send(QueuedText { text, plainly }) {
            (unsent.plainly)(&*self.output, &unsent.text);
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.texts = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}

fn print_all(
    mut editor: impl ExternalPrinter,
    output: &dyn ChatOutput,
    queued: &mpsc::Receiver<QueuedText>,
    queue: &Queue,
) {
    for QueuedText { text, plainly } in queued {
        if editor.print(format!("{text}\n")).is_err() {
            plainly(output, &text);
        }
        queue.waiting.fetch_sub(1, Ordering::AcqRel);
        queue.printed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// An editor that takes one text for each line that it reads.
    struct Editor(mpsc::Receiver<()>, mpsc::Sender<String>);

    impl ExternalPrinter for Editor {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            let closed = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
            self.0.recv().map_err(closed)?;
            self.1.send(text).unwrap();
            Ok(())
        }
    }

    struct Silent;

    impl ChatOutput for Silent {
        fn result(&self, _: &str) {}
        fn message(&self, _: &str) {}
    }

    #[tokio::test]
    async fn printing_does_not_wait_for_the_editor_and_texts_have_a_limit() {
        let ((read, reads), (prints, printed)) = (mpsc::channel(), mpsc::channel());
        let printer = Printer::beside(Editor(reads, prints), Arc::new(Silent));
        let has_room = async || {
            timeout(Duration::ZERO, printer.wait_for_room())
                .await
                .is_ok()
        };
        for text in 0..TEXTS_MAX {
            assert!(has_room().await);
            printer.result(&text.to_string());
        }
        assert!(!has_room().await);
        for text in 0..TEXTS_MAX {
            read.send(()).unwrap();
            assert_eq!(printed.recv().unwrap(), format!("{text}\n"));
        }
        drop((read, printer));
    }
}
