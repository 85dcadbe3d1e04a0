//! Lines of a text with their line ends, and their white space.

/// A line: where it begins, and its text with the line end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) start: usize,
    pub(super) text: &'a str,
}

impl Line<'_> {
    /// End of the line, behind its line end.
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub(super) fn is_comment(&self) -> bool {
        self.text.trim_start().starts_with('#')
    }
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|text| {
            let line = Line { start, text };
            start += text.len();
            line
        })
        .collect()
}

/// The part of a text from the line `first` to before the line `end`, widened by a line end before
/// it if the text ends there without one.
pub(super) fn part(
    text: &str,
    lines: &[Line<'_>],
    first: usize,
    end: usize,
) -> std::ops::Range<usize> {
    let start = lines.get(first).map_or(text.len(), |line| line.start);
    let stop = end
        .checked_sub(1)
        .and_then(|at| lines.get(at))
        .map_or(start, Line::end);
    let open_end = stop == text.len() && !text.ends_with('\n');
    let before = text.get(..start).unwrap_or_default();
    let line_end = before.len()
        - before
            .strip_suffix('\n')
            .map_or(before, |rest| rest.trim_end_matches('\r'))
            .len();
    if open_end {
        start - line_end..stop
    } else {
        start..stop
    }
}
