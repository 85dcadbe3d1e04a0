//! Traces as their callers send them: a context, and the `tracestate` beside it (W3C Trace Context).

use crate::context::TraceContext;

/// The most members of a `tracestate` that are passed on: the leftmost, which are the latest.
const STATE_MEMBERS_MAX: usize = 32;
/// The most characters of a `tracestate` that are passed on, with the commas between its members.
const STATE_CHARS_MAX: usize = 512;
/// Of a longer text, members with more characters than these are left out first.
const LONG_MEMBER_CHARS: usize = 128;
/// The most characters of a member's key, and of its value.
const MEMBER_PART_CHARS_MAX: usize = 256;

/// Positions of a trace in other systems of tracing: `key=value` members, the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceState(String);

impl TraceState {
    /// Reads as much of a `tracestate` as is passed on, in whole members. `None` without members, or
    /// with one that is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let written = text
            .split(',')
            .map(|member| member.trim_matches([' ', '\t']));
        // A member may be empty.
        let written = written.filter(|member| !member.is_empty());
        let mut members: Vec<&str> = written.take(STATE_MEMBERS_MAX).collect();
        if members.is_empty() || !members.iter().all(|member| is_member(member)) {
            return None;
        }
        let mut at = members.len();
        while chars_of(&members) > STATE_CHARS_MAX && at > 0 {
            at -= 1;
            if members
                .get(at)
                .is_some_and(|member| member.len() > LONG_MEMBER_CHARS)
            {
                members.remove(at);
            }
        }
        while chars_of(&members) > STATE_CHARS_MAX {
            members.pop();
        }
        Some(Self(members.join(","))).filter(|state| !state.0.is_empty())
    }

    /// The text that is sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The trace in which a caller sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerTrace {
    /// The caller's span.
    pub parent: TraceContext,
    /// The trace's positions in other systems.
    pub state: Option<TraceState>,
}

impl CallerTrace {
    /// Reads a `traceparent` and the `tracestate` beside it, which is not looked at if the former is
    /// none. `None` without a parent.
    #[must_use]
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let parent = TraceContext::parse(parent.as_bytes())?;
        let state = state.and_then(TraceState::parse);
        Some(Self { parent, state })
    }
}

impl CallerTrace {
    /// Reads them of headers: the only `traceparent`, and the values of `tracestate`, which are one
    /// list. `None` without a parent.
    pub fn of_headers<'h>(
        parents: impl IntoIterator<Item = &'h [u8]>,
        states: impl IntoIterator<Item = &'h [u8]>,
    ) -> Option<Self> {
        let mut parents = parents.into_iter();
        let (Some(parent), None) = (parents.next(), parents.next()) else {
            return None;
        };
        let parent = std::str::from_utf8(parent).ok()?;
        let states: Result<Vec<_>, _> = states.into_iter().map(std::str::from_utf8).collect();
        let state = states.ok().map(|states| states.join(","));
        Self::parse(parent, state.as_deref())
    }
}

/// The length of members with the commas between them. All are ASCII.
fn chars_of(members: &[&str]) -> usize {
    let chars: usize = members.iter().map(|member| member.len()).sum();
    chars + members.len().saturating_sub(1)
}

/// Whether a text is `key=value`, both of the characters that they may have.
fn is_member(text: &str) -> bool {
    let Some((key, value)) = text.split_once('=') else {
        return false;
    };
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_of_key = |byte: &u8| is_first(byte) || b"_-*/@".contains(byte);
    let is_of_value = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'=';
    let lengths = 1..=MEMBER_PART_CHARS_MAX;
    lengths.contains(&key.len())
        && lengths.contains(&value.len())
        && key.as_bytes().first().is_some_and(is_first)
        && key.as_bytes().iter().all(is_of_key)
        && value.as_bytes().iter().all(is_of_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str) -> Option<String> {
        TraceState::parse(text).map(|state| state.as_str().to_owned())
    }

    /// A member of so many characters.
    fn member(key: &str, chars: usize) -> String {
        format!("{key}={}", "v".repeat(chars - key.len() - 1))
    }

    #[test]
    fn members_pass_as_they_are_written_and_in_their_order() {
        for (written, expected) in [
            ("rojo=00f067,congo=t61 rc!", "rojo=00f067,congo=t61 rc!"),
            ("0a/b@c_*-= x", "0a/b@c_*-= x"),
            (" a=1 ,\t, b=2,", "a=1,b=2"),
        ] {
            assert_eq!(passed(written).as_deref(), Some(expected));
        }
        let long = format!("{}={}", "k".repeat(256), "v".repeat(200));
        assert_eq!(passed(&long), Some(long));
    }

    #[test]
    fn a_text_with_a_member_that_is_none_is_ignored_whole() {
        let cases = [
            "",
            " , ",
            "a",
            "a=",
            "=1",
            "A=1",
            "a=1,b",
            "a=1,b=2=3",
            "a b=1",
            "_a=1",
            "a=é",
            "a=1\n",
            "a=\u{7f}",
            &format!("{}=1", "k".repeat(257)),
            &format!("a={}", "v".repeat(257)),
        ];
        for wrong in cases {
            assert_eq!(passed(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn at_most_32_members_pass_the_leftmost() {
        let members = |count: usize| {
            let all: Vec<_> = (0..count).map(|at| format!("k{at}=v")).collect();
            all.join(",")
        };
        let full = members(STATE_MEMBERS_MAX);
        assert_eq!(passed(&full).as_ref(), Some(&full));
        assert_eq!(passed(&members(STATE_MEMBERS_MAX + 1)), Some(full));
    }

    #[test]
    fn at_most_512_characters_pass_in_whole_members_long_ones_first() {
        let (short, long) = (member("short", 128), member("long", 129));
        let full = [&*short, &short, &short, &member("d", 125)].join(",");
        assert_eq!(full.len(), STATE_CHARS_MAX);
        assert_eq!(passed(&full).as_ref(), Some(&full));
        // One character more: the last is left out.
        let more = [&*short, &short, &short, &member("d", 126)].join(",");
        let fewer = [&*short, &short, &short].join(",");
        assert_eq!(passed(&more).as_ref(), Some(&fewer));
        // One of more than 128 characters is left out before one behind it.
        let mixed = [&*long, &short, &short, &short].join(",");
        assert_eq!(passed(&mixed), Some(fewer));
        // Of two such, the later; and none that there is room for.
        let both = [&*long, &short, &member("later", 129), &short].join(",");
        assert_eq!(passed(&both), Some([&*long, &short, &short].join(",")));
        assert_eq!(passed(&member("k", 257)).map(|text| text.len()), Some(257));
        let only_long = [member(&"k".repeat(256), 512), member("a", 2 + 1)].join(",");
        assert_eq!(passed(&only_long).as_deref(), Some("a=v"));
    }

    #[test]
    fn without_a_parent_a_state_is_not_looked_at() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let state = |text: &str| CallerTrace::parse(parent, Some(text)).unwrap().state;
        assert_eq!(state("a=1"), TraceState::parse("a=1"));
        assert_eq!(state("nothing"), None);
        assert_eq!(CallerTrace::parse("00-0-0-0", Some("a=1")), None);
    }
}
