//! Values of the gateway's metrics, read from their text.

use std::collections::BTreeMap;

/// The text of the metrics.
#[derive(Clone, Copy)]
pub(crate) struct Metrics<'m>(pub(crate) &'m str);

/// A value of a metric.
#[derive(Debug, PartialEq)]
pub(crate) struct MetricLine {
    labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

impl MetricLine {
    /// The value of a label; empty if it has none of this name.
    pub(crate) fn label(&self, name: &str) -> &str {
        let found = self.labels.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

impl Metrics<'_> {
    /// The values of a metric.
    pub(crate) fn all(self, name: &str) -> Vec<MetricLine> {
        let lines = self.0.lines().filter_map(|line| line.strip_prefix(name));
        lines.filter_map(read).collect()
    }

    /// The sum of the values of a metric.
    pub(crate) fn sum(self, name: &str) -> f64 {
        self.all(name).iter().map(|line| line.value).sum()
    }

    /// The sum of those values of a metric whose label has this value.
    pub(crate) fn sum_of(self, name: &str, label: &str, value: &str) -> f64 {
        let all = self.all(name);
        let those = all.iter().filter(|line| line.label(label) == value);
        those.map(|line| line.value).sum()
    }

    /// The histograms of a metric, added up by the values of these labels. `name` is without the
    /// unit.
    pub(crate) fn durations(self, name: &str, labels: &[&str]) -> BTreeMap<Vec<String>, Durations> {
        let mut all: BTreeMap<Vec<String>, Durations> = BTreeMap::new();
        for line in self.all(&format!("{name}_seconds_bucket")) {
            let bound = match line.label("le") {
                "+Inf" => Some(f64::INFINITY),
                bound => bound.parse().ok(),
            };
            let key = labels.iter().map(|label| line.label(label).to_owned());
            if let Some(bound) = bound {
                let durations = all.entry(key.collect()).or_default();
                durations.enter(bound, line.value);
            }
        }
        all
    }
}

/// The rest of a line behind the name of its metric; `None` if the name goes on.
fn read(rest: &str) -> Option<MetricLine> {
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => read_labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = value.strip_prefix(' ')?.split(' ').next()?;
    Some(MetricLine {
        labels,
        value: value.parse().ok()?,
    })
}

/// Labels up to the brace that ends them, and what follows.
fn read_labels(mut rest: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, behind) = rest.split_once("=\"")?;
        let (value, behind) = read_value(behind)?;
        labels.push((name.to_owned(), value));
        rest = behind.strip_prefix(',').unwrap_or(behind);
    }
}

/// The value of a label up to its closing quote, and what follows.
fn read_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}

/// Durations in buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Durations {
    /// Bounds in seconds, the shortest first, with the number of durations that are no longer.
    buckets: Vec<(f64, f64)>,
}

impl Durations {
    /// Adds a count to that of its bound.
    fn enter(&mut self, bound: f64, count: f64) {
        let place = self
            .buckets
            .partition_point(|(known, _)| known.total_cmp(&bound).is_lt());
        match self.buckets.get_mut(place) {
            Some((known, sum)) if known.total_cmp(&bound).is_eq() => *sum += count,
            _ => self.buckets.insert(place, (bound, count)),
        }
    }

    /// Adds other ones with the same bounds.
    pub(crate) fn add(&mut self, other: &Self) {
        for (bound, count) in &other.buckets {
            self.enter(*bound, *count);
        }
    }

    /// Their number.
    pub(crate) fn count(&self) -> f64 {
        self.buckets.last().map_or(0.0, |(_, count)| *count)
    }

    /// The bound at or below which this part of them lies, in seconds; infinity for those beyond the
    /// longest one.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let wanted = part * self.count();
        let found = self.buckets.iter().find(|(_, count)| *count >= wanted);
        found.map_or(f64::INFINITY, |(bound, _)| *bound)
    }

    /// A duration of a quantile in words: a bucket says no more than its bound.
    pub(crate) fn words(&self, seconds: f64) -> String {
        if seconds.is_finite() {
            return format!("≤ {}", span(seconds));
        }
        let mut finite = self.buckets.iter().filter(|(bound, _)| bound.is_finite());
        let longest = finite.next_back().map_or(0.0, |(bound, _)| *bound);
        format!("> {}", span(longest))
    }
}

/// A count in words.
pub(crate) fn whole(count: f64) -> String {
    format!("{count:.0}")
}

/// Seconds in words.
fn span(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1_000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.0} s")
    } else if seconds < 3_600.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.0} h", seconds / 3_600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE portmoot_requests counter\n\
        portmoot_uptime_seconds 12\n\
        portmoot_sessions 3\n\
        portmoot_server_sessions{server=\"a\"} 9\n\
        portmoot_requests_total{topic=\"main\",verdict=\"admitted\"} 10\n\
        portmoot_requests_total{topic=\"other\",verdict=\"admitted\"} 5\n\
        portmoot_requests_total{topic=\"main\",verdict=\"refused\"} 2\n\
        portmoot_odd{tool=\"a\\\"},verdict=\\\"refused\\\\\\nb\",server=\"s\"} 7\n# EOF\n";

    #[test]
    fn metrics_are_read_by_their_names_and_labels() {
        let metrics = Metrics(TEXT);
        assert_eq!(metrics.sum("portmoot_requests_total"), 17.0);
        assert_eq!(
            metrics.sum_of("portmoot_requests_total", "verdict", "admitted"),
            15.0
        );
        assert_eq!(metrics.sum("portmoot_sessions"), 3.0);
        assert_eq!(metrics.sum("portmoot_uptime"), 0.0, "the name goes on");
        let [odd] = &metrics.all("portmoot_odd")[..] else {
            panic!("{TEXT}");
        };
        assert_eq!(odd.label("tool"), "a\"},verdict=\"refused\\\nb");
        assert_eq!((odd.label("server"), odd.label("verdict")), ("s", ""));
    }

    const BUCKETS: &str = "mcp_client_operation_duration_seconds_count{server=\"files\"} 100\n\
        mcp_client_operation_duration_seconds_bucket{le=\"0.01\",server=\"files\"} 60\n\
        mcp_client_operation_duration_seconds_bucket{le=\"1.0\",server=\"files\"} 90\n\
        mcp_client_operation_duration_seconds_bucket{le=\"300.0\",server=\"files\"} 90\n\
        mcp_client_operation_duration_seconds_bucket{le=\"+Inf\",server=\"files\"} 90\n\
        mcp_client_operation_duration_seconds_bucket{le=\"0.01\",server=\"files\",error_type=\"timeout\"} 0\n\
        mcp_client_operation_duration_seconds_bucket{le=\"1.0\",server=\"files\",error_type=\"timeout\"} 7\n\
        mcp_client_operation_duration_seconds_bucket{le=\"300.0\",server=\"files\",error_type=\"timeout\"} 7\n\
        mcp_client_operation_duration_seconds_bucket{le=\"+Inf\",server=\"files\",error_type=\"timeout\"} 10\n\
        mcp_client_operation_duration_seconds_bucket{le=\"0.01\",server=\"mail\"} 1\n\
        mcp_client_operation_duration_seconds_bucket{le=\"+Inf\",server=\"mail\"} 1\n";

    #[test]
    fn durations_of_a_server_are_those_of_all_its_calls() {
        let by_server = Metrics(BUCKETS).durations("mcp_client_operation_duration", &["server"]);
        let names: Vec<&str> = by_server.keys().map(|key| key[0].as_str()).collect();
        assert_eq!(names, ["files", "mail"]);
        let [files, mail] = ["files", "mail"].map(|name| &by_server[&vec![name.to_owned()]]);
        let seen = [0.5, 0.95, 0.99].map(|part| files.words(files.quantile(part)));
        assert_eq!(seen, ["≤ 10 ms", "≤ 1 s", "> 5 min"]);
        assert_eq!((files.count(), mail.count()), (100.0, 1.0));
        assert_eq!(mail.words(mail.quantile(0.99)), "≤ 10 ms");
        let mut both = files.clone();
        both.add(mail);
        assert_eq!(both.count(), 101.0);
        assert_eq!(Durations::default().count(), 0.0);
    }
}
