//! Guards as rules write them: rate, sums, counts and earlier calls.

use model::{KindRef, ParticipantId, REQUEST};

use crate::guards::{
    AfterGuard, CountGuard, GUARDS_MAX, RuleGuards, RuleRate, SAME_MEMBERS_MAX, SumGuard, USES_MAX,
};
use crate::pointer::Pointer;
use crate::window::RuleWindow;

use super::reader::{ItemReader, RuleFileError, TableReader};

/// Reads the guards of a rule.
pub(crate) fn guards(rule: &TableReader<'_>) -> Result<RuleGuards, RuleFileError> {
    let rate = rule.get("rate");
    let rate = rate.map(|rate| rate.parsed(RuleRate::parse, "a rate such as \"12/h\""));
    Ok(RuleGuards {
        rate: rate.transpose()?,
        sums: each(rule, "sum", sum)?,
        counts: each(rule, "count", count)?,
        after: each(rule, "after", after)?,
    })
}

fn each<T>(
    rule: &TableReader<'_>,
    key: &str,
    read: impl Fn(&TableReader<'_>) -> Result<T, RuleFileError>,
) -> Result<Vec<T>, RuleFileError> {
    let Some(item) = rule.get(key) else {
        return Ok(Vec::new());
    };
    let items = item.list()?;
    if items.len() > GUARDS_MAX {
        return Err(item.key_error(
            format_args!("the rule has {} of `{key}`", items.len()),
            format_args!("write at most {GUARDS_MAX}"),
        ));
    }
    items.iter().map(|item| read(&item.table()?)).collect()
}

fn sum(table: &TableReader<'_>) -> Result<SumGuard, RuleFileError> {
    table.known(&["of", "max", "within"])?;
    let max = table.required("max", "write the highest sum")?;
    let highest = max.decimal()?;
    if highest.is_negative() {
        return Err(max.error("a sum is not negative", "write 0 or more"));
    }
    Ok(SumGuard {
        of: pointer(&table.required("of", "write the member, as in `of = \"/amount\"`")?)?,
        max: highest,
        within: window(table)?,
    })
}

fn count(table: &TableReader<'_>) -> Result<CountGuard, RuleFileError> {
    table.known(&["same", "max", "within"])?;
    let max = table.required("max", "write the most calls")?;
    Ok(CountGuard {
        same: pointer(&table.required("same", "write the member, as in `same = \"/to\"`")?)?,
        max: count_of_calls(&max)?,
        within: window(table)?,
    })
}

fn after(table: &TableReader<'_>) -> Result<AfterGuard, RuleFileError> {
    table.known(&["kind", "to", "same", "within"])?;
    let kind = table.required("kind", "write the kind of the earlier call")?;
    let example = format!("a kind such as \"{REQUEST}:tools/call:get_invoice\"");
    let wrong = || {
        kind.error(
            "the earlier call is no request with a target",
            format_args!("write {example}"),
        )
    };
    let read = kind.parsed(KindRef::parse, &example)?;
    let (REQUEST, Some(method), Some(target)) = (read.head(), read.method(), read.context()) else {
        return Err(wrong());
    };
    let to = table.required("to", "write the server of the earlier call")?;
    let mut same = Vec::new();
    if let Some(item) = table.get("same") {
        for pair in item.table()?.items() {
            let here = Pointer::parse(&pair.key)
                .map_err(|error| pair.key_error(error, "write a member of this call"))?;
            same.push((here, pointer(&pair)?));
        }
        if same.len() > SAME_MEMBERS_MAX {
            return Err(item.error(
                "too many members",
                format_args!("write at most {SAME_MEMBERS_MAX}"),
            ));
        }
    }
    same.sort();
    Ok(AfterGuard {
        method: method.into(),
        target: target.into(),
        to: to.parsed(ParticipantId::new, "the name of a server")?,
        same,
        within: window(table)?,
    })
}

fn pointer(item: &ItemReader<'_>) -> Result<Pointer, RuleFileError> {
    item.parsed(Pointer::parse, "a JSON Pointer such as \"/amount\"")
}

fn window(table: &TableReader<'_>) -> Result<RuleWindow, RuleFileError> {
    let within = table.required("within", "write a window such as `within = \"1d\"`")?;
    within.parsed(
        RuleWindow::parse,
        "a window such as \"30m\", \"1h\" or \"7d\"",
    )
}

/// Reads a number of calls, from 1 to [`USES_MAX`].
pub(crate) fn count_of_calls(item: &ItemReader<'_>) -> Result<u32, RuleFileError> {
    let count = item.count()?;
    if (1..=USES_MAX).contains(&count) {
        Ok(count)
    } else {
        Err(item.error(
            format_args!("{count} is out of bounds"),
            format_args!("write 1 to {USES_MAX}"),
        ))
    }
}
