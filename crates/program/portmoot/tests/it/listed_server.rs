//! A server whose list of tools a test sets and changes.

use serde_json::{Value, json};

use crate::home::Home;

/// A server with the tools that the test sets: `listed.py`.
pub(crate) struct ListedServer<'h> {
    home: &'h Home,
    name: &'static str,
}

impl<'h> ListedServer<'h> {
    /// A server with this name and these tools, as name and description.
    pub(crate) fn new(
        home: &'h Home,
        name: &'static str,
        tools: &[(&str, &str)],
    ) -> ListedServer<'h> {
        home.write("listed.py", include_str!("listed.py"));
        let listed = ListedServer { home, name };
        listed.list(tools);
        listed
    }

    /// Changes the list of tools.
    pub(crate) fn list(&self, tools: &[(&str, &str)]) {
        let tool = |(name, words): &(&str, &str)| json!({ "name": name, "description": words, "inputSchema": { "type": "object" } });
        self.home.write(
            self.name,
            &Value::from_iter(tools.iter().map(tool)).to_string(),
        );
    }

    /// Has the server keep back its list when it is asked for it, until [`Self::give_list`].
    pub(crate) fn keep_list(&self) {
        self.home.write(&format!("{}.hold", self.name), "");
    }

    /// Has the server give the list that it keeps back.
    pub(crate) fn give_list(&self) {
        let file = self.home.path().join(format!("{}.hold", self.name));
        std::fs::remove_file(file).unwrap();
    }

    /// The table of the server in the configuration.
    pub(crate) fn table(&self) -> String {
        let [script, list] = ["listed.py", self.name].map(|file| self.home.path().join(file));
        format!(
            "[servers.{}]\ncommand = \"python3\"\nargs = [{script:?}, {list:?}]\n",
            self.name
        )
    }

    /// The names of the called tools, one per line, without `change`.
    pub(crate) fn calls(&self) -> String {
        let file = self.home.path().join(format!("{}.calls", self.name));
        std::fs::read_to_string(file).unwrap_or_default()
    }
}
