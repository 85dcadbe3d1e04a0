//! Command-line flags of the form `--name value`. Must not know what they mean.

use std::fmt::Debug;
use std::str::FromStr;

/// The flags of this process.
pub struct Flags(Vec<String>);

impl Flags {
    /// Reads the command line.
    pub fn read() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// These flags, and the values of `defaults` for those that are not among them.
    pub fn or(&self, defaults: &str) -> Self {
        Self(
            defaults
                .split(' ')
                .map(str::to_owned)
                .chain(self.0.iter().cloned())
                .collect(),
        )
    }

    /// The first word, which is not a flag.
    pub fn word(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// All words.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// Whether `--name` is there.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|word| word == name)
    }

    /// Every value of a flag, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let pairs = self.0.windows(2);
        pairs
            .filter(|pair| pair[0] == name)
            .map(|pair| pair[1].as_str())
            .collect()
    }

    /// The value of a flag as it stands: the last, if there are several.
    pub fn text<'f>(&'f self, name: &str, default: &'f str) -> &'f str {
        self.all(name).last().copied().unwrap_or(default)
    }

    /// The value of a flag: the last, if there are several.
    ///
    /// # Panics
    /// When it cannot be read: a bench ends there.
    pub fn get<T: FromStr<Err: Debug>>(&self, name: &str, default: T) -> T {
        self.all(name).last().map_or(default, |text| {
            text.parse()
                .unwrap_or_else(|e| panic!("{name} {text}: {e:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_flag_counts() {
        let words = [
            "calls",
            "--portmoot",
            "own",
            "--rounds",
            "3",
            "--portmoot",
            "user's",
            "--rounds",
            "5",
        ];
        let flags = Flags(words.map(str::to_owned).to_vec());
        assert_eq!(flags.text("--portmoot", ""), "user's");
        assert_eq!(flags.get("--rounds", 1), 5);
        assert_eq!(flags.text("--secs", "2"), "2");
        assert_eq!(flags.all("--portmoot"), ["own", "user's"]);
        let flags = flags.or("--rounds 1 --secs 0.2");
        assert_eq!(
            (flags.get("--rounds", 0), flags.text("--secs", "")),
            (5, "0.2")
        );
    }
}
