//! Tokens for registries, each with the one host that it is sent to: `BUF_TOKEN`, then the netrc
//! file (bufbuild/buf, `private/bufpkg/bufconnect`).

use std::collections::HashMap;
use std::fmt;

/// The host of a token without one. `buf` would send it to every registry.
pub const PUBLIC_HOST: &str = "buf.build";

/// Tokens by host.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RegistryTokens(HashMap<String, String>);

/// Why `BUF_TOKEN` is not used. It does not repeat the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("BUF_TOKEN is neither a token nor a list of token@host, each host once")]
pub struct BadTokens;

impl fmt::Debug for RegistryTokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

impl RegistryTokens {
    /// Reads the value of `BUF_TOKEN`, `TOKEN` or `TOKEN@HOST,...`, and the text of a netrc file;
    /// both may be empty.
    ///
    /// # Errors
    /// The value of `BUF_TOKEN` is neither.
    pub fn read(buf_token: &str, netrc: &str) -> Result<Self, BadTokens> {
        let mut tokens = HashMap::new();
        let is_bare = !buf_token.contains(['@', ',']);
        for entry in buf_token.split(',') {
            // Of an empty text `split` makes one empty entry.
            if buf_token.is_empty() {
                break;
            }
            let (token, host) = if is_bare {
                (entry, PUBLIC_HOST)
            } else {
                entry.split_once('@').ok_or(BadTokens)?
            };
            if !is_plain(token) || !is_plain(host) || host.contains('@') || token.contains(':') {
                return Err(BadTokens);
            }
            let earlier = tokens.insert(host.to_ascii_lowercase(), token.to_owned());
            if earlier.is_some() {
                return Err(BadTokens);
            }
        }
        // The variable counts before the file.
        for (host, password) in machines(netrc) {
            tokens.entry(host).or_insert(password);
        }
        Ok(Self(tokens))
    }

    /// The token for a host, with its port if it has one.
    pub(crate) fn of(&self, host: &str) -> Option<&str> {
        self.0.get(host).map(String::as_str)
    }
}

/// The machines of a netrc file that have a password. Its `default` names no host, so that it is
/// sent to none.
fn machines(netrc: &str) -> Vec<(String, String)> {
    let lines = netrc
        .lines()
        .map(|line| line.split_once('#').map_or(line, |(before, _)| before));
    let text: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    let mut found = Vec::new();
    let mut host = None;
    let mut words = text.into_iter();
    while let Some(word) = words.next() {
        match word {
            "machine" => host = words.next().map(str::to_ascii_lowercase),
            "default" => host = None,
            "password" => found.extend(host.clone().zip(words.next().map(str::to_owned))),
            "login" | "account" => _ = words.next(),
            _ => {}
        }
    }
    found
}

/// Whether a text is one or more visible characters of ASCII.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|one| one.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_one_host() {
        let netrc = "machine Corp.example:8443\n  login me\n  password of-netrc # mine\n\
            machine buf.build login x password second\ndefault login a password never\n";
        let bare = RegistryTokens::read("tok", netrc).unwrap();
        assert_eq!(bare.of("buf.build"), Some("tok"));
        assert_eq!(bare.of("corp.example:8443"), Some("of-netrc"));
        assert_eq!((bare.of("corp.example"), bare.of("other")), (None, None));
        let listed = RegistryTokens::read("a@x.example,b@y.example:1", "").unwrap();
        assert_eq!(
            (listed.of("x.example"), listed.of("y.example:1")),
            (Some("a"), Some("b"))
        );
        assert_eq!(
            (listed.of("buf.build"), listed.of("y.example")),
            (None, None)
        );
        assert_eq!(
            format!("{:?}", RegistryTokens::read("tok", "").unwrap()),
            "{\"buf.build\"}"
        );
        for wrong in [
            "a,b", "a@x,b", "@x", "a@", "a@x@y", "a@x,b@x", "a:b@x", "a b",
        ] {
            assert_eq!(RegistryTokens::read(wrong, ""), Err(BadTokens), "{wrong}");
        }
    }
}
