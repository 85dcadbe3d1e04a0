//! The chat's lines, as all output is printed.

use crate::output::Output;

impl chat::ChatOutput for Output {
    fn result(&self, text: &str) {
        Output::result(*self, text);
    }

    fn message(&self, text: &str) {
        Output::message(*self, text);
    }
}
