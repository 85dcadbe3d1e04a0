//! Conditions of a rule: a test for each member, in a closed or in an open world.

use std::collections::BTreeMap;

use crate::arguments::{ARGUMENTS_LEAVES_MAX, Arguments};
use crate::fit::Fit;
use crate::pointer::Pointer;
use crate::spelling;
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
        let is_nested = tests.keys().any(|inner| {
            tests.keys().any(|outer| {
                let rest = inner.as_str().strip_prefix(outer.as_str());
                rest.is_some_and(|rest| rest.starts_with('/'))
            })
        });
        (tests.len() <= CONDITIONS_MAX && !is_nested).then_some(Self(tests))
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

    /// How the arguments stand to the test of one member. A member that is there under a name that
    /// looks like this one, or as a whole with members inside, is unclear.
    #[must_use]
    pub fn fit_of(pointer: &Pointer, test: &ValueTest, arguments: &Arguments) -> Fit {
        match arguments.get(pointer) {
            Some(value) => test.fit(value),
            None if has_lookalike(pointer, arguments) => Fit::Unclear,
            None => Fit::of(*test == ValueTest::Absent),
        }
    }

    /// How arguments stand to all conditions in a closed world: a member that is not named fails.
    #[must_use]
    pub fn fit_closed(&self, arguments: &Arguments) -> Fit {
        // Both are sets, so that equal numbers and no other member mean equal sets.
        if self.first_unnamed(arguments).is_some() {
            return Fit::Failed;
        }
        self.fit_open(arguments)
    }

    /// How arguments stand to all conditions in an open world: members that are not named do not
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

impl FromIterator<(Pointer, ValueTest)> for Conditions {
    fn from_iter<I: IntoIterator<Item = (Pointer, ValueTest)>>(tests: I) -> Self {
        Self(tests.into_iter().collect())
    }
}

fn has_lookalike(pointer: &Pointer, arguments: &Arguments) -> bool {
    let own = spelling::likeness(pointer.as_str());
    arguments.leaves().any(|(leaf, _)| {
        let leaf = spelling::likeness(leaf.as_str());
        let holds = |outer: &str, inner: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        holds(&own, &leaf) || holds(&leaf, &own)
    })
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
    fn members_have_a_limit_and_do_not_nest() {
        assert!(conditions(&[("/a", is("1")), ("/a/b", is("1"))]).is_none());
        assert!(conditions(&[("/a", is("1")), ("/ab", is("1"))]).is_some());
        let many: Vec<String> = (0..=CONDITIONS_MAX).map(|at| format!("/m{at}")).collect();
        let many: Vec<(&str, ValueTest)> = many.iter().map(|one| (&**one, is("1"))).collect();
        assert!(conditions(&many[1..]).is_some());
        assert!(conditions(&many).is_none());
    }
}
