//! A server of a test whose tools are what the test says, and change when it says so.

use serde_json::{Value, json};

use crate::home::Home;

/// A server whose tools a test lists, and lists otherwise later: `listed.py`.
pub(crate) struct ListedServer<'h> {
    home: &'h Home,
    name: &'static str,
}

impl<'h> ListedServer<'h> {
    /// A server of this name with these tools: what each is called and how it is described.
    pub(crate) fn new(home: &'h Home, name: &'static str, tools: &[(&str, &str)]) -> ListedServer<'h> {
        home.write("listed.py", include_str!("listed.py"));
        let listed = ListedServer { home, name };
        listed.list(tools);
        listed
    }

    /// Its tools from now on.
    pub(crate) fn list(&self, tools: &[(&str, &str)]) {
        let tool = |(name, words): &(&str, &str)| json!({ "name": name, "description": words, "inputSchema": { "type": "object" } });
        self.home.write(self.name, &Value::from_iter(tools.iter().map(tool)).to_string());
    }

    /// Its table in the configuration.
    pub(crate) fn table(&self) -> String {
        let [script, list] = ["listed.py", self.name].map(|file| self.home.path().join(file));
        format!("[servers.{}]\ncommand = \"python3\"\nargs = [{script:?}, {list:?}]\n", self.name)
    }

    /// The names of the tools that were called, one a line; `change` is none of them.
    pub(crate) fn calls(&self) -> String {
        let file = self.home.path().join(format!("{}.calls", self.name));
        std::fs::read_to_string(file).unwrap_or_default()
    }
}
