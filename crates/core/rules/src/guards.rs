//! Guards of a rule: what it counts and asks of time and of earlier calls.

use std::fmt;

use model::ParticipantId;

use crate::decimal::Decimal;
use crate::pointer::Pointer;
use crate::spelling::named;
use crate::window::{DAY_MS, HOUR_MS, MINUTE_MS, RuleWindow, WeekHours};

/// The most uses of a rule.
pub const USES_MAX: u32 = 10_000;
/// The most guards of each sort: sums, counts, earlier calls.
pub const GUARDS_MAX: usize = 4;
/// The most members that an earlier call must share.
pub const SAME_MEMBERS_MAX: usize = 8;

/// The guards of a rule. An approving rule acts while all of them hold; one that rejects or asks
/// acts once one of them is broken, or always if it has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RuleGuards {
    /// The most calls in a minute, an hour or a day.
    pub rate: Option<RuleRate>,
    /// Bounds of sums.
    pub sums: Vec<SumGuard>,
    /// Bounds of calls with an equal member.
    pub counts: Vec<CountGuard>,
    /// Calls that must have come before.
    pub after: Vec<AfterGuard>,
}

impl RuleGuards {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rate.is_none()
            && self.sums.is_empty()
            && self.counts.is_empty()
            && self.after.is_empty()
    }

    /// The longest window in which calls are counted, in milliseconds; 0 without such a guard.
    #[must_use]
    pub fn longest_ms(&self) -> u64 {
        let rate = self.rate.iter().map(|rate| rate.per);
        let sums = self.sums.iter().map(|sum| sum.within);
        let counts = self.counts.iter().map(|count| count.within);
        let all = rate.chain(sums).chain(counts);
        all.map(RuleWindow::ms).max().unwrap_or_default()
    }
}

/// The most calls in a minute, an hour or a day. Prints as `12/h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleRate {
    /// The most calls.
    pub max: u32,
    /// One minute, hour or day.
    pub per: RuleWindow,
}

/// A text that is no [`RuleRate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate is a number of calls in a minute, an hour or a day, as in `12/h`")]
pub struct NoRate;

impl RuleRate {
    /// Reads a rate, such as `12/h`.
    ///
    /// # Errors
    /// [`NoRate`].
    pub fn parse(text: &str) -> Result<Self, NoRate> {
        let (max, unit) = text.split_once('/').ok_or(NoRate)?;
        let per = match unit {
            "m" => MINUTE_MS,
            "h" => HOUR_MS,
            "d" => DAY_MS,
            _ => return Err(NoRate),
        };
        let rate = Self {
            max: max.parse().map_err(|_| NoRate)?,
            per: RuleWindow::of_ms(per),
        };
        if rate.max > 0 && rate.max <= USES_MAX && rate.to_string() == text {
            Ok(rate)
        } else {
            Err(NoRate)
        }
    }

    /// A rate of so many calls an hour.
    #[must_use]
    pub fn an_hour(max: u32) -> Self {
        Self {
            max,
            per: RuleWindow::of_ms(HOUR_MS),
        }
    }

    /// The rate in words: `12 calls an hour`.
    #[must_use]
    pub fn words(self) -> String {
        format!("{} calls {}", self.max, self.per.words())
    }
}

impl fmt::Display for RuleRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.ms() {
            DAY_MS => "d",
            HOUR_MS => "h",
            _ => "m",
        };
        write!(out, "{}/{unit}", self.max)
    }
}

/// A bound of the sum of a member over the calls of a window, the one that is judged included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SumGuard {
    /// The member, a number that is not negative.
    pub of: Pointer,
    /// The highest sum.
    pub max: Decimal,
    /// The window.
    pub within: RuleWindow,
}

impl SumGuard {
    /// The guard in words: `the sum of amount over a day is at most 500`.
    #[must_use]
    pub fn words(&self) -> String {
        let (of, within) = (self.of.words(), self.within.words());
        format!("the sum of {of} over {within} is at most {}", self.max)
    }
}

/// A bound of the calls of a window in which a member has the same value, the one that is judged
/// included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CountGuard {
    /// The member.
    pub same: Pointer,
    /// The most calls.
    pub max: u32,
    /// The window.
    pub within: RuleWindow,
}

impl CountGuard {
    /// The guard in words: `at most 3 calls of the same to over a day`.
    #[must_use]
    pub fn words(&self) -> String {
        let (same, within) = (self.same.words(), self.within.words());
        format!(
            "at most {} calls of the same {same} over {within}",
            self.max
        )
    }
}

/// A call that the same proposer must have made before, and that was answered without an error.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AfterGuard {
    /// The method of that call.
    pub method: Box<str>,
    /// The tool, prompt or URI of that call.
    pub target: Box<str>,
    /// The participant that answered it.
    pub to: ParticipantId,
    /// Members of the judged call, each with the member of the earlier call that had the same
    /// value.
    pub same: Vec<(Pointer, Pointer)>,
    /// The longest time since it was answered.
    pub within: RuleWindow,
}

impl AfterGuard {
    /// The guard in words: `get_invoice of bank with the same id was answered within an hour`.
    #[must_use]
    pub fn words(&self) -> String {
        let same: Vec<String> = self
            .same
            .iter()
            .map(|(here, there)| {
                if here == there {
                    format!("the same {}", here.words())
                } else {
                    format!("its {} as {}", there.words(), here.words())
                }
            })
            .collect();
        let with = if same.is_empty() {
            String::new()
        } else {
            format!(" with {}", same.join(" and "))
        };
        format!(
            "{} of {}{with} was answered to the proposer within {}",
            named(&self.target),
            named(self.to.as_str()),
            self.within.words()
        )
    }
}

/// Hours in which a rule is in force, in words: `Mon-Fri 06:00-18:00 UTC`.
pub(crate) fn hours_words(hours: WeekHours) -> String {
    format!("only {hours}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_unit_and_a_limit() {
        for text in ["12/h", "1/m", "10000/d"] {
            assert_eq!(RuleRate::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "12", "12/s", "0/h", "012/h", "-1/h", "10001/d", "/h", "12/h ",
        ] {
            assert_eq!(RuleRate::parse(text), Err(NoRate), "{text}");
        }
    }

    #[test]
    fn the_longest_window_is_what_calls_are_kept_for() {
        let mut guards = RuleGuards::default();
        assert_eq!(guards.longest_ms(), 0);
        guards.rate = Some(RuleRate::an_hour(3));
        guards.sums.push(SumGuard {
            of: Pointer::parse("/amount").unwrap(),
            max: Decimal::from(500),
            within: RuleWindow::parse("1d").unwrap(),
        });
        assert_eq!(guards.longest_ms(), DAY_MS);
    }
}
