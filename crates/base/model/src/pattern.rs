//! Pattern for one part of a capability: a text in which `*` stands for any run of characters.

/// A compiled pattern. Matching allocates nothing and takes linear time in practice:
/// the texts between the stars are searched once, from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Exactly `*`: matches everything, and also a part that is absent.
    Any,
    /// No star: equal or not.
    Exact(Box<str>),
    /// At least one star and at least one other character.
    Stars {
        first: Box<str>,
        middle: Box<[Box<str>]>,
        last: Box<str>,
    },
}

impl Pattern {
    /// Compiles a text; the caller has refused empty texts and doubled stars.
    pub(crate) fn new(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        let mut pieces = text.split('*');
        let first: Box<str> = pieces.next().unwrap_or_default().into();
        let mut middle: Vec<Box<str>> = pieces.map(Box::from).collect();
        match middle.pop() {
            None => Self::Exact(first),
            Some(last) => Self::Stars {
                first,
                middle: middle.into(),
                last,
            },
        }
    }

    /// Whether the whole text matches, case-sensitive and anchored at both ends.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(own) => **own == *text,
            Self::Stars {
                first,
                middle,
                last,
            } => {
                let Some(rest) = text.strip_prefix(&**first) else {
                    return false;
                };
                // Most patterns end with a star.
                let mut rest = match &**last {
                    "" => rest,
                    last => match rest.strip_suffix(last) {
                        Some(rest) => rest,
                        None => return false,
                    },
                };
                for piece in middle {
                    let Some((_, behind)) = rest.split_once(&**piece) else {
                        return false;
                    };
                    rest = behind;
                }
                true
            }
        }
    }

    /// Whether every text that `other` matches matches here too: its stars are texts that only
    /// stars here stand for.
    pub(crate) fn includes(&self, other: &Pattern) -> bool {
        match other {
            Self::Any => matches!(self, Self::Any),
            Self::Exact(text) => self.matches(text),
            Self::Stars {
                first,
                middle,
                last,
            } => {
                let pieces = [first].into_iter().chain(middle.iter()).chain([last]);
                self.matches(&pieces.map(|piece| &**piece).collect::<Vec<_>>().join("*"))
            }
        }
    }

    /// Whether a star stands beside other characters.
    pub(crate) fn is_partial(&self) -> bool {
        matches!(self, Self::Stars { .. })
    }

    /// Whether some text matches both this pattern and `other`, in which `None` is a star.
    pub(crate) fn overlaps(&self, other: &[Option<char>]) -> bool {
        let own: Vec<Option<char>> = match self {
            Self::Any => return true,
            Self::Exact(text) => text.chars().map(Some).collect(),
            Self::Stars {
                first,
                middle,
                last,
            } => {
                let mut own: Vec<Option<char>> = first.chars().map(Some).collect();
                for piece in middle.iter().chain([last]) {
                    own.push(None);
                    own.extend(piece.chars().map(Some));
                }
                own
            }
        };
        overlap(&own, other)
    }
}

/// Whether two texts with stars (`None`) have a text in common. Time is the product of the lengths.
pub fn overlap(left: &[Option<char>], right: &[Option<char>]) -> bool {
    // `row[j]`: whether the part of `left` before this row and the first `j` of `right` have a text
    // in common.
    let mut row = vec![true];
    for symbol in right {
        row.push(symbol.is_none() && row.last() == Some(&true));
    }
    for own in left {
        let mut next = vec![own.is_none() && row.first() == Some(&true)];
        for (pair, other) in row.windows(2).zip(right) {
            let [diagonal, above] = pair else { continue };
            let beside = next.last() == Some(&true);
            next.push(match (own, other) {
                (None, _) | (_, None) => *above || beside,
                (Some(own), Some(other)) => own == other && *diagonal,
            });
        }
        row = next;
    }
    row.last() == Some(&true)
}

#[cfg(test)]
mod tests;
