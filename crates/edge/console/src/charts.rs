//! Lines over time, as SVG that the server draws. Colours are those of the light palette; the style
//! sheet replaces them by the reader's.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::{
    ChartBuilder, IntoDrawingArea as _, IntoFont as _, LineSeries, RGBColor, SVGBackend,
};
use plotters::series::AreaSeries;
use plotters::style::Color as _;

/// Size of a picture's own units: about that of a narrow screen, so that texts are legible there.
const SIZE: (u32, u32) = (420, 170);
const SOFT: RGBColor = RGBColor(0x59, 0x63, 0x6e);
const GRID: RGBColor = RGBColor(0xd1, 0xd9, 0xe0);
const MAIN: RGBColor = RGBColor(0x0b, 0x5c, 0xad);
const SECOND: RGBColor = RGBColor(0x8a, 0x4b, 0x00);
/// The least seconds that a picture shows.
const SECONDS_MIN: f64 = 60.0;
/// Rows of the figures of a picture at most: from the oldest to now, as far apart as they must be.
const FIGURES_MAX: usize = 12;

/// A line: seconds before now, and values.
pub(crate) struct Line<'p> {
    words: &'static str,
    class: &'static str,
    color: RGBColor,
    is_filled: bool,
    points: &'p [(f64, f64)],
}

impl<'p> Line<'p> {
    /// The line that a picture is about.
    pub(crate) fn main(words: &'static str, points: &'p [(f64, f64)]) -> Self {
        Self {
            words,
            class: "main",
            color: MAIN,
            is_filled: true,
            points,
        }
    }

    /// The line beside it.
    pub(crate) fn second(words: &'static str, points: &'p [(f64, f64)]) -> Self {
        Self {
            words,
            class: "second",
            color: SECOND,
            is_filled: false,
            points,
        }
    }

    /// Its value at this time, if it has one.
    fn at(&self, at: f64) -> Option<f64> {
        let mut points = self.points.iter();
        let found = points.find(|(known, _)| known.total_cmp(&at).is_eq());
        found.map(|(_, value)| *value)
    }

    fn last(&self) -> Option<f64> {
        self.points.last().map(|(_, value)| *value)
    }
}

/// A picture with its title and the last values in words.
pub(crate) fn chart(title: &str, lines: &[Line<'_>]) -> Markup {
    let has_points = lines.iter().any(|line| line.points.len() > 1);
    html! {
        figure {
            figcaption {
                strong { (title) } " "
                @for line in lines {
                    span class={ "key " (line.class) } { (line.words) @if let Some(last) = line.last() { " " (format!("{last:.1}")) } } " "
                }
            }
            @match has_points.then(|| draw(lines)).flatten() {
                // Numbers and names of the gateway alone.
                Some(svg) => { div class="svg" aria-hidden="true" { (PreEscaped(svg)) } }
                None => { p class="empty" { "The picture begins now: it needs a few seconds." } }
            }
            @if has_points { (figures(title, lines)) }
        }
    }
}

/// The picture as a table.
fn figures(title: &str, lines: &[Line<'_>]) -> Markup {
    // A line may have fewer points than another one.
    let longest = lines.iter().max_by_key(|line| line.points.len());
    let points = longest.map_or(&[][..], |line| line.points);
    let every = points.len().div_ceil(FIGURES_MAX).max(1);
    // Counted from now, so that the newest figures are always there.
    let times: Vec<f64> = points
        .iter()
        .rev()
        .step_by(every)
        .map(|(at, _)| *at)
        .collect();
    html! {
        details class="figures-of" {
            summary { "Figures" span class="vh" { " of: " (title) } }
            table class="rows" {
                thead { tr { th { "When" } @for line in lines { th class="number" { (line.words) } } } }
                tbody {
                    @for at in times.into_iter().rev() {
                        tr {
                            td { (time_ago(at)) }
                            @for line in lines { td class="number" { @if let Some(value) = line.at(at) { (format!("{value:.1}")) } } }
                        }
                    }
                }
            }
        }
    }
}

/// The largest value of a scale: 1, 2 or 5 with zeros.
fn scale_of(largest: f64) -> f64 {
    let mut scale = 1.0;
    loop {
        for step in [1.0, 2.0, 5.0] {
            if scale * step >= largest {
                return scale * step;
            }
        }
        scale *= 10.0;
        if !scale.is_finite() {
            return largest;
        }
    }
}

fn draw(lines: &[Line<'_>]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let begin = points().map(|(at, _)| *at).fold(-SECONDS_MIN, f64::min);
    let top = scale_of(points().map(|(_, value)| *value).fold(0.0, f64::max));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(22)
            .y_label_area_size(34)
            .build_cartesian_2d(begin..0.0, 0.0..top)
            .ok()?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(GRID.mix(0.0))
            .bold_line_style(GRID)
            .axis_style(GRID)
            .x_labels(5)
            .y_labels(4)
            .label_style(("sans-serif", 12).into_font().color(&SOFT))
            .x_label_formatter(&|at: &f64| time_ago(*at))
            .y_label_formatter(&|value: &f64| short(*value))
            .draw()
            .ok()?;
        for line in lines {
            let all = || line.points.iter().copied();
            if line.is_filled {
                let filled = AreaSeries::new(all(), 0.0, line.color.mix(0.12));
                chart.draw_series(filled).ok()?;
            }
            let stroke = line.color.stroke_width(2);
            chart.draw_series(LineSeries::new(all(), stroke)).ok()?;
        }
        area.present().ok()?;
    }
    Some(svg)
}

fn time_ago(at: f64) -> String {
    match -at {
        now if now < 0.5 => "now".to_owned(),
        ago if ago < 120.0 => format!("-{ago:.0} s"),
        ago => format!("-{:.0} min", ago / 60.0),
    }
}

fn short(value: f64) -> String {
    if value >= 1_000.0 {
        format!("{:.0}k", value / 1_000.0)
    } else if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_its_lines_and_no_style_of_its_own() {
        let points = [(-2.0, 1.0), (-1.0, 3.0), (0.0, 2.0)];
        let page = chart(
            "Calls",
            &[Line::main("all", &points), Line::second("refused", &[])],
        );
        let page = page.into_string();
        assert!(page.contains("<svg") && page.contains("#0B5CAD"), "{page}");
        assert!(page.contains(">all 2.0<") && page.contains(">refused<"));
        // The policy of the page allows neither.
        assert!(
            !page.contains("style=") && !page.contains("<style"),
            "{page}"
        );
        assert!(chart("Calls", &[]).into_string().contains("begins now"));
        // The figures are there for readers who see no picture.
        assert!(
            page.contains("<td>-2 s</td>") && page.contains(">3.0</td>"),
            "{page}"
        );
    }

    #[test]
    fn the_figures_of_a_long_picture_are_few_and_the_newest_is_among_them() {
        let points: Vec<(f64, f64)> = (0..300).map(|at| (f64::from(at) - 299.0, 1.0)).collect();
        let page = figures("Calls", &[Line::main("all", &points)]).into_string();
        let rows = page.matches("<tr>").count() - 1;
        assert!((FIGURES_MAX - 1..=FIGURES_MAX).contains(&rows), "{rows}");
        assert!(page.contains("<td>now</td>"), "{page}");
        let late = [(0.0, 7.0)];
        let lines = [Line::main("all", &points), Line::second("late", &late)];
        let page = figures("Calls", &lines).into_string();
        let (before, now) = page.split_once("<td>now</td>").unwrap();
        assert!(now.contains(">7.0<") && !before.contains(">7.0<"), "{page}");
    }

    #[test]
    fn scales_are_round() {
        for (largest, top) in [
            (0.0, 1.0),
            (1.5, 2.0),
            (4.0, 5.0),
            (7.0, 10.0),
            (130.0, 200.0),
        ] {
            assert!((scale_of(largest) - top).abs() < f64::EPSILON, "{largest}");
        }
    }
}
