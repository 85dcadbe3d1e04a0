//! A terminal with scripted answers, for tests.

use terminal::prompt::Terminal;

/// A terminal with scripted answers, for tests.
#[derive(Default)]
pub(crate) struct ScriptedTerminal {
    pub(crate) interactive: bool,
    pub(crate) answers: std::collections::VecDeque<&'static str>,
    pub(crate) shown: String,
}

impl ScriptedTerminal {
    pub(crate) fn new(interactive: bool, answers: &[&'static str]) -> Self {
        Self {
            interactive,
            answers: answers.iter().copied().collect(),
            shown: String::new(),
        }
    }
}

impl Terminal for ScriptedTerminal {
    fn is_interactive(&self) -> bool {
        self.interactive
    }

    fn show(&mut self, text: &str) {
        self.shown.push_str(text);
        self.shown.push('\n');
    }

    fn ask(&mut self, _: &str) -> Option<String> {
        self.answers.pop_front().map(str::to_owned)
    }
}
