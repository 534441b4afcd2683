//! The requests of all curves by size, as SVG: both axes are logarithmic.

use crate::{
    curve::{Curve, Expected, figure},
    report::thousands,
};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 330.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
/// Powers of ten at the ends of the axes.
const SIZES: (f64, f64) = (1.0, 4.0);
const REQUESTS: (f64, f64) = (0.0, 4.0);
/// Seen on white and on black.
const COLOURS: [&str; 8] = ["#d9480f", "#1c7ed6", "#2f9e44", "#ae3ec9", "#e67700", "#0c8599", "#e03131", "#5c7cfa"];
const GREY: &str = "#868e96";
const STEP: f64 = 15.0;

pub(crate) fn of_requests(curves: &[Curve]) -> String {
    let mut svg = vec![
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">"#
        ),
        "<title>Requests of an operation by the size of what it works on</title>".to_owned(),
        format!(r#"<g stroke="{GREY}" stroke-opacity="0.35" fill="{GREY}">"#),
    ];
    for (power, label) in (0_u8..=4).zip(["1", "10", "100", "1,000", "10,000"]) {
        let power = f64::from(power);
        let (x, y) = (across(power), up(power));
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        if power >= SIZES.0 {
            svg.push(format!(r#"<path d="M{x:.1} {TOP}V{bottom}"/>"#));
            svg.push(words((x, bottom + 18.0), "middle", GREY, label));
        }
        svg.push(format!(r#"<path d="M{LEFT} {y:.1}H{right}"/>"#));
        svg.push(words((LEFT - 8.0, y + 4.0), "end", GREY, label));
    }
    svg.push("</g>".to_owned());
    svg.push(words((LEFT, TOP - 12.0), "start", GREY, "requests"));
    svg.push(words((WIDTH - RIGHT, HEIGHT - 12.0), "end", GREY, "size"));
    let (flat, growing): (Vec<&Curve>, Vec<&Curve>) = curves.iter().partition(|curve| !grows(curve));
    for curve in &flat {
        svg.push(line(curve, GREY, 0.45));
    }
    let mut labelled = Vec::new();
    for (number, curve) in growing.iter().enumerate() {
        let colour = COLOURS.get(number % COLOURS.len()).copied().unwrap_or(GREY);
        svg.push(line(curve, colour, 1.0));
        labelled.push((end(curve).1, colour, format!("{}, {}", curve.operation, curve.grows)));
    }
    let least = flat.iter().map(|curve| end(curve).1).fold(0.0, f64::max);
    labelled.push((least, GREY, format!("{} operations stay flat", flat.len())));
    labelled.sort_by(|one, other| one.0.total_cmp(&other.0));
    // Labels keep a distance.
    let mut below: f64 = TOP;
    let room = |left: usize| HEIGHT - BOTTOM - STEP * figure(left);
    let count = labelled.len();
    for (place, (y, colour, label)) in labelled.into_iter().enumerate() {
        below = y.min(room(count - 1 - place)).max(below);
        svg.push(words((WIDTH - RIGHT + 12.0, below + 4.0), "start", colour, &label));
        below += STEP;
    }
    svg.push("</svg>\n".to_owned());
    svg.join("\n")
}

fn grows(curve: &Curve) -> bool {
    let of = |point: Option<&(usize, _)>| point.map_or(0, |(_, cost): &(usize, crate::curve::Cost)| cost.requests);
    matches!(curve.expected, Expected::Linear(_)) && of(curve.points.last()) > of(curve.points.first())
}

fn line(curve: &Curve, colour: &str, opacity: f64) -> String {
    let points: Vec<String> = curve.points.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let (operation, grows) = (curve.operation, curve.grows);
    let shown: Vec<String> = curve
        .points
        .iter()
        .map(|(size, cost)| format!("{} at {}", thousands(cost.requests), thousands(*size)))
        .collect();
    format!(
        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-opacity="{opacity}"><title>{operation}, {grows}: {}</title></polyline>"#,
        points.join(" "),
        shown.join(", ")
    )
}

fn place((size, cost): &(usize, crate::curve::Cost)) -> (f64, f64) {
    (across(figure(*size).log10()), up(figure(cost.requests.max(1)).log10()))
}

fn end(curve: &Curve) -> (f64, f64) {
    curve.points.last().map_or((LEFT, HEIGHT - BOTTOM), place)
}

fn across(power: f64) -> f64 {
    LEFT + (power - SIZES.0) / (SIZES.1 - SIZES.0) * (WIDTH - LEFT - RIGHT)
}

fn up(power: f64) -> f64 {
    HEIGHT - BOTTOM - (power - REQUESTS.0) / (REQUESTS.1 - REQUESTS.0) * (HEIGHT - TOP - BOTTOM)
}

fn words((x, y): (f64, f64), anchor: &str, colour: &str, text: &str) -> String {
    format!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{colour}" stroke="none">{text}</text>"#)
}
