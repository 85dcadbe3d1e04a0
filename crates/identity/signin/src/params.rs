//! Parameters of a query or a form (RFC 6749, section 3.1): one without a value is omitted, one
//! that is repeated is an error.

use std::collections::HashSet;

use url::form_urlencoded;

/// The longest query or form, in bytes.
pub const PARAMS_BYTES_MAX: usize = 64 * 1024;
/// The most parameters.
pub const PARAMS_MAX: usize = 64;

/// Parameters in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormParams(Vec<(String, String)>);

impl FormParams {
    /// Reads a query or a form; `None` if it is too long or has too many parameters.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > PARAMS_BYTES_MAX {
            return None;
        }
        let pairs = form_urlencoded::parse(text).filter(|(_, value)| !value.is_empty());
        let pairs: Vec<_> = pairs
            .take(PARAMS_MAX + 1)
            .map(|(a, b)| (a.into_owned(), b.into_owned()))
            .collect();
        (pairs.len() <= PARAMS_MAX).then_some(Self(pairs))
    }

    /// The value of a parameter; the first one if it is repeated.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// A parameter that is repeated and must not be. `resource` may be (RFC 8707, section 2).
    #[must_use]
    pub fn repeated(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        let mut names = self
            .0
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| *name != "resource");
        names.find(|name| !seen.insert(*name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_within_bounds() {
        let params = FormParams::parse(b"a=1&b=&c=x%26y+z&resource=1&resource=2").unwrap();
        assert_eq!(
            (params.get("a"), params.get("b"), params.get("c")),
            (Some("1"), None, Some("x&y z"))
        );
        assert_eq!(params.all("resource").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(params.repeated(), None);
        assert_eq!(
            FormParams::parse(b"a=1&b=2&a=1").unwrap().repeated(),
            Some("a")
        );
        let many = |count: usize| "a=1&".repeat(count);
        assert!(FormParams::parse(many(PARAMS_MAX).as_bytes()).is_some());
        assert!(FormParams::parse(many(PARAMS_MAX + 1).as_bytes()).is_none());
        let long = |bytes: usize| format!("a={}", "x".repeat(bytes - 2));
        assert!(FormParams::parse(long(PARAMS_BYTES_MAX).as_bytes()).is_some());
        assert!(FormParams::parse(long(PARAMS_BYTES_MAX + 1).as_bytes()).is_none());
    }
}
