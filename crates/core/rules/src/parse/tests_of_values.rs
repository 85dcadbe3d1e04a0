//! Conditions as rules write them: `"/repo" = { one_of = [...] }`.

use std::collections::BTreeSet;

use crate::characters::{CharSet, IDENTIFIER_CHARS_MAX, Shape};
use crate::conditions::{CONDITIONS_MAX, Conditions};
use crate::constant::{Constant, ValueType};
use crate::decimal::{Decimal, SpelledNumber};
use crate::lattice::is_of_one_type;
use crate::path::PathRoot;
use crate::pointer::Pointer;
use crate::range::CountRange;
use crate::rule::RuleDecision;
use crate::url::UrlRoot;
use crate::value_test::{CONSTANTS_MAX, SHAPES_MAX, ValueTest};

use super::reader::{ItemReader, RuleFileError, TableReader};

/// The keys that say what sort of test it is, each of which stands alone.
pub(super) const SORTS: [&str; 12] = [
    "equals", "one_of", "integer", "decimal", "under", "url", "chars", "shape", "count", "absent",
    "type", "some",
];

/// The remedy where conditions name too many members, or one inside of another.
const INNERMOST: &str = "name the innermost members alone";

/// Reads `[rule.when]`.
pub(crate) fn conditions(
    when: Option<&ItemReader<'_>>,
    decision: RuleDecision,
) -> Result<Conditions, RuleFileError> {
    let Some(item) = when else {
        return Ok(Conditions::default());
    };
    let tests = tests_in(&item.table()?, decision)?;
    Conditions::new(tests).ok_or_else(|| item.key_error(no_conditions(), INNERMOST))
}

/// Reads a text that has what stands under `[rule.when]`.
pub(crate) fn conditions_in(
    table: &TableReader<'_>,
    decision: RuleDecision,
) -> Result<Conditions, RuleFileError> {
    let tests = tests_in(table, decision)?;
    Conditions::new(tests).ok_or_else(|| table.error(no_conditions(), INNERMOST))
}

fn no_conditions() -> String {
    format!("more than {CONDITIONS_MAX} members are named, or one inside of another")
}

fn tests_in(
    table: &TableReader<'_>,
    decision: RuleDecision,
) -> Result<Vec<(Pointer, ValueTest)>, RuleFileError> {
    let tests = table.items().map(|member| {
        let pointer = Pointer::parse(&member.key).map_err(|error| {
            member.key_error(error, "name the member by a JSON Pointer, as in \"/repo\"")
        })?;
        Ok((pointer, test(&member, decision)?))
    });
    tests.collect()
}

/// Reads one test.
fn test(item: &ItemReader<'_>, decision: RuleDecision) -> Result<ValueTest, RuleFileError> {
    let table = item.table()?;
    table.known(&[&SORTS[..], &["length", "each"]].concat())?;
    let sorts: Vec<&str> = SORTS.into_iter().filter(|sort| table.has(sort)).collect();
    let allows = |key: &str| match key {
        "length" => matches!(sorts.as_slice(), [] | ["chars"] | ["shape"]),
        _ => sorts == ["count"],
    };
    let misplaced = ["length", "each"]
        .iter()
        .find(|key| table.has(key) && !allows(key));
    let (1, None) = (sorts.len().max(usize::from(table.has("length"))), misplaced) else {
        return Err(item.error(
            "the condition has not exactly one sort",
            format_args!(
                "write one of {}; `length` goes with `chars` and `shape`, `each` with `count`",
                SORTS.join(", ")
            ),
        ));
    };
    let read = of_sort(&table, sorts.first().copied(), decision)?;
    if decision.tightens() || read.is_for_approval() {
        return Ok(read);
    }
    Err(item.error(
        "the condition would admit values that it does not describe",
        "in an approving rule write what the value is: `equals`, `one_of`, a range, `under`, `url`, `chars` or `shape`",
    ))
}

fn of_sort(
    table: &TableReader<'_>,
    sort: Option<&str>,
    decision: RuleDecision,
) -> Result<ValueTest, RuleFileError> {
    let Some(sort) = sort else {
        let length = table.required("length", "write `length = [lowest, highest]`")?;
        return length.range().map(ValueTest::Length);
    };
    let item = table.required(sort, "write it")?;
    match sort {
        "equals" => item.constant().map(ValueTest::equals),
        "one_of" => one_of(&item),
        "integer" => numbers(&item, true),
        "decimal" => numbers(&item, false),
        "under" => item
            .parsed(PathRoot::parse, "a directory such as \"/srv/docs\"")
            .map(ValueTest::Under),
        "url" => url(&item.table()?).map(ValueTest::Url),
        "chars" => {
            let set = item.parsed(CharSet::parse, "a set such as \"A-Z0-9\"")?;
            Ok(ValueTest::Chars(set, text_length(table)?))
        }
        "shape" => Ok(ValueTest::Shape(shapes(&item)?, text_length(table)?)),
        "count" => elements(table, &item, decision),
        "absent" if item.flag()? => Ok(ValueTest::Absent),
        "absent" => Err(item.error("`absent` is only ever true", "leave the condition out")),
        "type" => {
            let names = ValueType::ALL.map(ValueType::as_str).join(", ");
            let read = |name: &str| ValueType::parse(name).ok_or("this is no type of JSON");
            item.parsed(read, &names).map(ValueTest::Type)
        }
        _ => {
            let inner = test(&item, decision)?;
            no_elements(&item, &inner)?;
            Ok(ValueTest::Some(Box::new(inner)))
        }
    }
}

fn one_of(item: &ItemReader<'_>) -> Result<ValueTest, RuleFileError> {
    let items = item.list()?;
    if items.is_empty() || items.len() > CONSTANTS_MAX {
        return Err(item.error(
            format_args!("`one_of` has {} constants", items.len()),
            format_args!("write 1 to {CONSTANTS_MAX}"),
        ));
    }
    let constants = items
        .iter()
        .map(ItemReader::constant)
        .collect::<Result<Vec<_>, _>>()?;
    let different: BTreeSet<&Constant> = constants.iter().collect();
    if different.len() < constants.len() {
        return Err(item.error("a constant stands there twice", "write it once"));
    }
    if !is_of_one_type(&constants) {
        return Err(item.error(
            "the constants have several types",
            "write constants of one type, or null",
        ));
    }
    Ok(ValueTest::one_of(constants))
}

fn numbers(item: &ItemReader<'_>, is_whole: bool) -> Result<ValueTest, RuleFileError> {
    let [low, high] = item.pair()?;
    let read = |end: &ItemReader<'_>| -> Result<Decimal, RuleFileError> {
        let has_fraction = matches!(end.number()?, SpelledNumber::Fraction(_));
        if is_whole && has_fraction {
            return Err(end.error(
                "an integer has no fraction",
                "write it without, or use `decimal`",
            ));
        }
        end.decimal()
    };
    let (low, high) = (read(&low)?, read(&high)?);
    if low > high {
        return Err(item.not_ascending());
    }
    if is_whole {
        Ok(ValueTest::Integer(low, high))
    } else {
        Ok(ValueTest::Fraction(low, high))
    }
}

fn url(table: &TableReader<'_>) -> Result<UrlRoot, RuleFileError> {
    table.known(&["origin", "under", "query"])?;
    let origin = table.required("origin", "write `origin = \"https://api.example.com\"`")?;
    let under = table.get("under").map(|under| under.text()).transpose()?;
    let query = match table.get("query") {
        Some(query) => query
            .list()?
            .iter()
            .map(ItemReader::text)
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    UrlRoot::new(origin.text()?, under.unwrap_or("/"), &query).map_err(|error| {
        table.error(
            error,
            "write origin, path and query as the server's URLs have them",
        )
    })
}

fn shapes(item: &ItemReader<'_>) -> Result<Vec<Shape>, RuleFileError> {
    let items = item.list()?;
    if items.is_empty() || items.len() > SHAPES_MAX {
        return Err(item.error(
            format_args!("`shape` has {} shapes", items.len()),
            format_args!("write 1 to {SHAPES_MAX}"),
        ));
    }
    let shapes = items
        .iter()
        .map(|one| one.parsed(Shape::parse, "a shape such as \"A-9\""));
    let mut shapes = shapes.collect::<Result<Vec<_>, _>>()?;
    shapes.sort();
    shapes.dedup();
    Ok(shapes)
}

fn text_length(table: &TableReader<'_>) -> Result<CountRange, RuleFileError> {
    let item = table.required(
        "length",
        "write `length = [lowest, highest]`, in characters",
    )?;
    let length = item.range()?;
    if length.low() == 0 || length.high() > IDENTIFIER_CHARS_MAX {
        return Err(item.error(
            "the length is out of bounds",
            format_args!("write 1 to {IDENTIFIER_CHARS_MAX} characters"),
        ));
    }
    Ok(length)
}

fn elements(
    table: &TableReader<'_>,
    count: &ItemReader<'_>,
    decision: RuleDecision,
) -> Result<ValueTest, RuleFileError> {
    let range = count.range()?;
    let Some(each) = table.get("each") else {
        return Ok(ValueTest::Each(range, None));
    };
    if decision.tightens() {
        return Err(each.key_error(
            "one more element would evade the rule",
            "in a rule that rejects or asks write `some`",
        ));
    }
    let inner = test(&each, decision)?;
    no_elements(&each, &inner)?;
    Ok(ValueTest::Each(range, Some(Box::new(inner))))
}

/// Refuses tests of elements of elements, and of elements that are not there.
fn no_elements(item: &ItemReader<'_>, inner: &ValueTest) -> Result<(), RuleFileError> {
    match inner {
        ValueTest::Each(..) | ValueTest::Some(_) | ValueTest::Absent => Err(item.error(
            "elements are tested one level deep",
            "test their values, or leave them to a person",
        )),
        ValueTest::OneOf(_)
        | ValueTest::Integer(..)
        | ValueTest::Fraction(..)
        | ValueTest::Under(_)
        | ValueTest::Url(_)
        | ValueTest::Chars(..)
        | ValueTest::Shape(..)
        | ValueTest::Type(_)
        | ValueTest::Length(_) => Ok(()),
    }
}
