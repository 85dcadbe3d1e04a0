//! Conditions of a rule: a test for each member, in a closed or in an open world.

use std::collections::BTreeMap;

use crate::arguments::{ARGUMENTS_LEAVES_MAX, Arguments};
use crate::fit::Fit;
use crate::pointer::Pointer;
use crate::value_test::ValueTest;

/// The most members that a rule names.
pub const CONDITIONS_MAX: usize = ARGUMENTS_LEAVES_MAX;

/// The tests of a rule, by the members that they are for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Conditions(BTreeMap<Pointer, ValueTest>);

impl Conditions {
    /// The conditions of these tests; `None` if there are more than [`CONDITIONS_MAX`], or if one
    /// member lies inside of another one.
    #[must_use]
    pub fn new(tests: impl IntoIterator<Item = (Pointer, ValueTest)>) -> Option<Self> {
        let tests: BTreeMap<Pointer, ValueTest> = tests.into_iter().collect();
        // First: all pairs are compared below.
        if tests.len() > CONDITIONS_MAX {
            return None;
        }
        let is_nested = tests.keys().any(|inner| {
            let mut outer = tests.keys();
            outer.any(|outer| outer != inner && outer.holds(inner))
        });
        (!is_nested).then_some(Self(tests))
    }

    /// The test of a member.
    #[must_use]
    pub fn get(&self, pointer: &Pointer) -> Option<&ValueTest> {
        self.0.get(pointer)
    }

    /// All members with their tests, in the order of their pointers.
    pub fn iter(&self) -> impl Iterator<Item = (&Pointer, &ValueTest)> {
        self.0.iter()
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no member is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members that must be there.
    pub fn present(&self) -> impl Iterator<Item = &Pointer> {
        let present = self
            .0
            .iter()
            .filter(|(_, test)| **test != ValueTest::Absent);
        present.map(|(pointer, _)| pointer)
    }

    /// The first member that the conditions do not name: in a closed world there is none.
    #[must_use]
    pub fn first_unnamed<'a>(&self, arguments: &'a Arguments) -> Option<&'a Pointer> {
        let mut leaves = arguments.leaves().map(|(pointer, _)| pointer);
        leaves.find(|pointer| !self.0.contains_key(*pointer))
    }

    /// Fit of the arguments to the test of one member. A member that is there under a name that
    /// looks like this one, or as a whole with members inside, is unclear.
    #[must_use]
    pub fn fit_of(pointer: &Pointer, test: &ValueTest, arguments: &Arguments) -> Fit {
        match arguments.get(pointer) {
            Some(value) => test.fit(value),
            None if arguments.has_another_like(pointer) => Fit::Unclear,
            None => Fit::of(*test == ValueTest::Absent),
        }
    }

    /// Fit of the arguments to the test of one member in an open world. A member that does not fit is
    /// unclear beside one whose name looks like its own: a server may read that one.
    #[must_use]
    pub(crate) fn fit_of_open(pointer: &Pointer, test: &ValueTest, arguments: &Arguments) -> Fit {
        let fit = Self::fit_of(pointer, test, arguments);
        if fit == Fit::Failed && arguments.has_another_like(pointer) {
            return Fit::Unclear;
        }
        fit
    }

    /// Fit of arguments to all conditions in a closed world: a member that is not named fails.
    #[must_use]
    pub fn fit_closed(&self, arguments: &Arguments) -> Fit {
        // Both are sets, so that equal numbers and no other member mean equal sets.
        if self.first_unnamed(arguments).is_some() {
            return Fit::Failed;
        }
        self.fit_open(arguments)
    }

    /// Fit of arguments to all conditions in a closed world, where some members were redacted: such a
    /// member may have any value.
    #[must_use]
    pub fn fit_redacted(&self, arguments: &Arguments, redacted: &[Pointer]) -> Fit {
        let is_redacted = |pointer: &Pointer| {
            let mut redacted = redacted.iter();
            redacted.any(|one| one.holds(pointer) || pointer.holds(one))
        };
        let mut leaves = arguments.leaves().map(|(pointer, _)| pointer);
        if leaves.any(|leaf| !is_redacted(leaf) && !self.0.contains_key(leaf)) {
            return Fit::Failed;
        }
        let fits = self.0.iter().map(|(pointer, test)| {
            if is_redacted(pointer) {
                Fit::Unclear
            } else {
                Self::fit_of(pointer, test, arguments)
            }
        });
        fits.fold(Fit::Held, Fit::and)
    }

    /// Fit of arguments to all conditions in an open world: members that are not named do not
    /// count.
    #[must_use]
    pub fn fit_open(&self, arguments: &Arguments) -> Fit {
        let mut whole = Fit::Held;
        for (pointer, test) in &self.0 {
            whole = whole.and(Self::fit_of(pointer, test, arguments));
            if whole == Fit::Failed {
                return Fit::Failed;
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constant;

    fn conditions(tests: &[(&str, ValueTest)]) -> Option<Conditions> {
        let tests = tests
            .iter()
            .map(|(place, test)| (Pointer::parse(place).unwrap(), test.clone()));
        Conditions::new(tests)
    }

    fn is(json: &str) -> ValueTest {
        ValueTest::equals(Constant::parse(json).unwrap())
    }

    #[track_caller]
    fn check(conditions: &Conditions, raw: &str, closed: Fit, open: Fit) {
        let arguments = Arguments::read(raw.as_bytes()).unwrap();
        assert_eq!(conditions.fit_closed(&arguments), closed, "{raw}");
        assert_eq!(conditions.fit_open(&arguments), open, "{raw}");
    }

    #[test]
    fn a_closed_world_has_the_named_members_alone() {
        let both = conditions(&[("/a", is("1")), ("/b/c", is("2"))]).unwrap();
        check(&both, r#"{"a":1,"b":{"c":2}}"#, Fit::Held, Fit::Held);
        check(
            &both,
            r#"{"a":1,"b":{"c":2},"d":null}"#,
            Fit::Failed,
            Fit::Held,
        );
        check(
            &both,
            r#"{"a":1,"b":{"c":2,"d":{}}}"#,
            Fit::Failed,
            Fit::Held,
        );
        check(&both, r#"{"a":1}"#, Fit::Failed, Fit::Failed);
        check(&both, r#"{"A":1,"b":{"c":2}}"#, Fit::Failed, Fit::Unclear);
        check(
            &both,
            r#"{"a":1,"b":"{\"c\":2}"}"#,
            Fit::Failed,
            Fit::Unclear,
        );
        check(
            &both,
            r#"{"a":{"x":1},"b":{"c":2}}"#,
            Fit::Failed,
            Fit::Unclear,
        );
        check(&Conditions::default(), "{}", Fit::Held, Fit::Held);
    }

    #[test]
    fn an_absent_member_is_not_there_under_any_spelling() {
        let absent = conditions(&[("/reason", ValueTest::Absent)]).unwrap();
        check(&absent, "{}", Fit::Held, Fit::Held);
        check(&absent, r#"{"reason":null}"#, Fit::Failed, Fit::Failed);
        check(&absent, r#"{"Reason":"x"}"#, Fit::Failed, Fit::Unclear);
    }

    #[test]
    fn a_redacted_member_may_have_any_value() {
        let both = conditions(&[("/a", is("1")), ("/b/c", is("2"))]).unwrap();
        let fit = |raw: &str, redacted: &[&str]| {
            let arguments = Arguments::read(raw.as_bytes()).unwrap();
            let redacted: Vec<Pointer> = redacted
                .iter()
                .map(|one| Pointer::parse(one).unwrap())
                .collect();
            both.fit_redacted(&arguments, &redacted)
        };
        let hidden = r#"{"a":"[redacted]","b":{"c":2}}"#;
        assert_eq!(fit(hidden, &["/a"]), Fit::Unclear);
        assert_eq!(fit(hidden, &[]), Fit::Failed);
        let whole = r#"{"a":1,"b":"[redacted]"}"#;
        assert_eq!(fit(whole, &["/b"]), Fit::Unclear);
        let other = r#"{"a":"[redacted]","b":{"c":3}}"#;
        assert_eq!(fit(other, &["/a"]), Fit::Failed);
        let more = r#"{"a":"[redacted]","b":{"c":2},"d":1}"#;
        assert_eq!(fit(more, &["/a"]), Fit::Failed);
    }

    #[test]
    fn members_have_a_limit_and_do_not_nest() {
        assert!(conditions(&[("/a", is("1")), ("/a/b", is("1"))]).is_none());
        assert!(conditions(&[("/a", is("1")), ("/ab", is("1"))]).is_some());
        let many: Vec<String> = (0..=CONDITIONS_MAX).map(|at| format!("/m{at}")).collect();
        let many: Vec<(&str, ValueTest)> = many.iter().map(|one| (&**one, is("1"))).collect();
        assert!(conditions(&many[1..]).is_some());
        assert!(conditions(&many).is_none());
    }
}
