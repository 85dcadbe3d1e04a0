//! The way of plain lines to stdout and stderr, which the program that runs the chat brings.

/// Printer of results to stdout, and of messages to stderr.
pub trait ChatOutput: Send + Sync {
    /// Prints a message of the topic, or what a command was asked for.
    fn result(&self, text: &str);
    /// Prints a note.
    fn message(&self, text: &str);
}
