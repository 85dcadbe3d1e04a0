//! Calls as Python writes them, `f('a', n=[1, 2.0])`, turned into JSON. Numbers keep their spelling.

/// A call of a function.
#[derive(Debug, PartialEq, Eq)]
pub struct PythonCall {
    /// The function.
    pub function: String,
    /// The arguments in their order, with a name where they have one, as JSON.
    pub given: Vec<(Option<String>, String)>,
}

/// A text that is read from its beginning.
struct Reader<'t>(&'t str);

impl PythonCall {
    /// Reads a call; `None` if the text is none.
    pub fn read(text: &str) -> Option<Self> {
        let (function, rest) = text.split_once('(')?;
        let mut reader = Reader(rest);
        let mut given = Vec::new();
        while !reader.takes(')') {
            let name = reader.name();
            given.push((name, reader.value()?));
            reader.takes(',');
        }
        let function = function.trim().to_owned();
        reader
            .0
            .trim()
            .is_empty()
            .then_some(Self { function, given })
    }

    /// The arguments as one JSON object. Those without a name have the next of these names.
    pub fn arguments(&self, names: &[String]) -> String {
        let members = self.given.iter().enumerate().map(|(at, (name, value))| {
            let spare = format!("argument{at}");
            let name = name.as_ref().or(names.get(at)).unwrap_or(&spare);
            format!("{}:{value}", quoted(name))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Reader<'_> {
    fn takes(&mut self, symbol: char) -> bool {
        self.0 = self.0.trim_start();
        let rest = self.0.strip_prefix(symbol);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// A name with its `=`, if there is one.
    fn name(&mut self) -> Option<String> {
        let text = self.0.trim_start();
        let end = text.find(|symbol: char| !symbol.is_alphanumeric() && symbol != '_')?;
        let (name, rest) = text.split_at(end);
        self.0 = rest.trim_start().strip_prefix('=')?;
        Some(name.to_owned())
    }

    /// A value as JSON.
    fn value(&mut self) -> Option<String> {
        self.0 = self.0.trim_start();
        match self.0.chars().next()? {
            quote @ ('\'' | '"') => self.text(quote),
            '[' | '(' => self.list(),
            '{' => self.object(),
            _ => self.word(),
        }
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut symbols = self.0.char_indices().skip(1);
        while let Some((at, symbol)) = symbols.next() {
            match symbol {
                '\\' => text.push(match symbols.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }),
                _ if symbol == quote => {
                    self.0 = self.0.get(at + 1..)?;
                    return Some(quoted(&text));
                }
                _ => text.push(symbol),
            }
        }
        None
    }

    fn list(&mut self) -> Option<String> {
        let end = if self.takes('[') { ']' } else { ')' };
        self.takes('(');
        let mut elements = Vec::new();
        while !self.takes(end) {
            elements.push(self.value()?);
            self.takes(',');
        }
        Some(format!("[{}]", elements.join(",")))
    }

    fn object(&mut self) -> Option<String> {
        self.takes('{');
        let mut members = Vec::new();
        while !self.takes('}') {
            let name = self.value()?;
            self.takes(':');
            members.push(format!("{name}:{}", self.value()?));
            self.takes(',');
        }
        Some(format!("{{{}}}", members.join(",")))
    }

    fn word(&mut self) -> Option<String> {
        let is_end = |symbol: char| ",)]} ".contains(symbol);
        let (word, rest) = self.0.split_at(self.0.find(is_end)?);
        self.0 = rest;
        match word {
            "True" => Some("true".to_owned()),
            "False" => Some("false".to_owned()),
            "None" => Some("null".to_owned()),
            number => number.parse::<f64>().ok().map(|_| number.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_become_json_with_their_spelling() {
        let text = r#"f('it\'s', n = 1.0, on=True,list=["a", (1,)], o={'k': None})"#;
        let call = PythonCall::read(text).expect("a call");
        assert_eq!(call.function, "f");
        let names = ["first".to_owned()];
        let expect = r#"{"first":"it's","n":1.0,"on":true,"list":["a",[1]],"o":{"k":null}}"#;
        assert_eq!(call.arguments(&names), expect);
        assert_eq!(
            PythonCall::read("ls()").expect("a call").arguments(&[]),
            "{}"
        );
        for no_call in ["f", "f(", "f('a)", "f(x)", "f(1) + 2"] {
            assert_eq!(PythonCall::read(no_call), None, "{no_call}");
        }
    }
}
