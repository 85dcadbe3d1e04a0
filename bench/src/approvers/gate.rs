//! Aims of our rules: a run that misses one fails.

use super::ApproverScore;

/// The least part of prompts that our rules save, in percent.
pub const SAVED_PERCENT_MIN: f64 = 50.0;
/// Where reasons lie outside of the arguments, at most one use in so many is wrong.
pub const WRONG_ONE_IN: usize = 20;

/// The aims that a score misses on a trace whose decisions follow from arguments.
pub fn missed(score: &ApproverScore) -> impl Iterator<Item = String> {
    let saved = score.whole.saved_percent();
    let aims = [
        (
            saved < SAVED_PERCENT_MIN,
            format!("{saved:.1} % saved, and not {SAVED_PERCENT_MIN} %"),
        ),
        (
            score.whole.wrong > 0,
            format!("{} false approvals", score.whole.wrong),
        ),
        (
            !score.passed.is_empty(),
            format!("{} attack variants passed", score.passed.len()),
        ),
    ];
    let missed = aims.into_iter().filter(|(is_missed, _)| *is_missed);
    missed.map(|(_, words)| words)
}

/// The aim that a score misses on a trace whose decisions have other reasons, too.
pub fn missed_beside(score: &ApproverScore) -> Option<String> {
    let (saved, wrong) = (score.whole.saved, score.whole.wrong);
    let words = || format!("{wrong} of {saved} uses are wrong, more than one in {WRONG_ONE_IN}");
    (wrong * WRONG_ONE_IN > saved).then(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvers::PartScore;
    use crate::approvers::variants::AttackRow;

    #[test]
    fn each_aim_can_be_missed() {
        let of = |saved, wrong| ApproverScore {
            whole: PartScore {
                calls: 100,
                saved,
                wrong,
            },
            ..ApproverScore::default()
        };
        assert_eq!(missed(&of(50, 0)).count(), 0);
        assert_eq!(missed(&of(49, 0)).count(), 1);
        assert_eq!(missed(&of(49, 1)).count(), 2);
        let mut passed = of(60, 0);
        passed.passed.push((AttackRow::Path, "cat ..".to_owned()));
        assert_eq!(missed(&passed).count(), 1);
        assert_eq!(missed_beside(&of(60, 3)), None);
        assert!(missed_beside(&of(59, 3)).is_some());
    }
}
