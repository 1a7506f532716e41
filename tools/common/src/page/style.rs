//! Colours and lines. The colours are those of Okabe and Ito, which the colour-blind can distinguish; series also differ in
//! their marks and dashes.

/// Number of colours before they repeat.
const COLOURS: usize = 6;
/// Number of shapes of marks.
pub const MARKERS: usize = 5;
/// Number of kinds of dashes.
const DASHES: usize = 4;

/// Returns the class of the colour of a series.
pub fn colour(series: usize) -> String {
    format!("c{}", series % COLOURS)
}

/// Returns the class of the line of a series.
pub fn line(series: usize) -> String {
    format!("l k{} {}", series % DASHES, colour(series))
}

/// Style sheet of a picture, in a page or alone. Without variables, which not all programs that read SVG support.
pub const PICTURE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Arial,sans-serif;fill:#1b1b1b}\
.title{font-weight:600;font-size:14px}.quiet{fill:#555}\
.paper{fill:#fff}.axis{fill:none;stroke:#555;stroke-width:1}.grid{fill:none;stroke:#e2e2e2;stroke-width:1}\
.border{fill:none;stroke:#999;stroke-width:1;stroke-dasharray:2 3}.zero{fill:none;stroke:#1b1b1b;stroke-width:1.2}\
.c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#007a5a}.c3{color:#b0508a}.c4{color:#a87400}.c5{color:#3a8fc4}\
.l{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}\
.k1{stroke-dasharray:7 3}.k2{stroke-dasharray:2 3}.k3{stroke-dasharray:8 3 2 3}\
.m{fill:currentColor}.e{fill:none;stroke:currentColor;stroke-width:1.3}.thin{fill:none;stroke:currentColor;stroke-width:1}\
.area{fill:currentColor;fill-opacity:.22;stroke:currentColor;stroke-width:.8}\
.band{fill:none;stroke:currentColor;stroke-opacity:.35}.half{fill:currentColor;fill-opacity:.4;stroke:none}.above{fill:none;stroke:currentColor;stroke-width:2.4}.median{fill:none;stroke:#1b1b1b;stroke-width:1.6}.range{fill:none;stroke:#1b1b1b;stroke-width:1.1}\
.box{fill:#fff;fill-opacity:.75;stroke:#1b1b1b;stroke-width:1}\
.h1{fill:currentColor;fill-opacity:.18}.h2{fill:currentColor;fill-opacity:.36}\
.h4{fill:currentColor;fill-opacity:.78}.still{fill:#ebebeb}.tint{fill:currentColor;fill-opacity:.45;stroke:currentColor;stroke-width:.8}.rest{fill:#1b1b1b}.lack{fill:#d4d4d4}.cut{fill:none;stroke:#fff;stroke-width:.8;pointer-events:none}\
.deep.c0{fill:#003f66}.deep.c1{fill:#672a00}.deep.c2{fill:#004532}.deep.c3{fill:#60294a}.deep.c4{fill:#533700}.deep.c5{fill:#555}\
.dash{fill:#767676}.hit{fill:#fff;fill-opacity:0;stroke:none}\
.hatch{fill:none;stroke:#777;stroke-width:.7}.message{fill:none;stroke:#1b1b1b;stroke-width:.7;stroke-opacity:.7}";

/// Additional style sheet of a page.
pub const PAGE: &str = "\
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}\
body{margin:0 auto;max-width:78rem;padding:1rem;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Arial,\
sans-serif;color:#1b1b1b;background:#fff;overflow-wrap:anywhere}\
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}h2{font-size:1.3rem;margin:2.2rem 0 .5rem;border-bottom:1px solid #ccc}\
h3{font-size:1.05rem;margin:1.2rem 0 .3rem}p{max-width:46rem;margin:.4rem 0}.lead{font-size:1.1rem}.note{color:#555;font-size:.9rem}\
nav a{margin-right:1rem;display:inline-block;padding:.15rem 0}a{color:#005a8e}\
.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:1.2rem}\
figure{margin:0;min-width:0}figcaption{font-weight:600;font-size:.95rem;margin-bottom:.2rem}\
svg{display:block;width:100%;height:auto;max-width:44rem}\
.wide{grid-column:1/-1;overflow-x:auto}.wide svg{max-width:none;min-width:38rem}.wide figcaption{position:sticky;left:0}\
.zoom button{font:inherit;min-width:2.4rem;margin:0 .3rem .3rem 0;padding:.1rem .5rem}.hover{position:fixed;z-index:1;pointer-events:none;max-width:20rem;padding:.2rem .5rem;font-size:.85rem;color:#1b1b1b;background:#fffbe6;border:1px solid #999}\
.key{display:inline-block;width:.8em;height:.8em;margin-right:.45em}\
.scroll{overflow-x:auto;margin:.5rem 0}table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}\
caption{text-align:left;white-space:nowrap;font-weight:600;padding:.2rem 0}\
th,td{padding:.2rem .55rem;text-align:left;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:normal}\
td{max-width:28rem;overflow-wrap:break-word}th{font-weight:600;background:#f3f3f3}.n td,.n th{text-align:right;white-space:nowrap}.n th{white-space:normal;vertical-align:bottom}\
.n td:first-child,.n th:first-child{text-align:left}.d td,.d th{background:#fff3d6}\
th{position:relative}th button{all:unset;cursor:pointer;font:inherit}th button::after{position:absolute;right:0;bottom:.2rem;font-size:.8em}\
th[aria-sort=ascending] button::after{content:'\u{25b4}'}th[aria-sort=descending] button::after{content:'\u{25be}'}\
.filter{display:block;font-size:.88rem;margin:.6rem 0 -.2rem}.filter input{font:inherit;color:inherit;background:transparent;border:1px solid #767676;padding:.1rem .4rem;width:12rem;max-width:60%}\
summary{cursor:pointer;font-weight:600;padding:.3rem 0}summary:focus-visible,a:focus-visible,button:focus-visible,input:focus-visible{outline:2px solid #0072b2}\
@media(prefers-color-scheme:dark){@media screen{\
body{color:#e8e8e8;background:#161616}a{color:#7cc4f5}h2{border-color:#444}.note{color:#aaa}\
th{background:#262626}th,td{border-color:#3a3a3a}.d td,.d th{background:#4a3a10}\
text{fill:#e8e8e8}.paper{fill:#161616}.quiet{fill:#aaa}.axis{stroke:#aaa}.grid{stroke:#333}.border{stroke:#777}.zero,.median,.range{stroke:#f4f4f4}\
.box{fill:#161616;stroke:#f4f4f4}.rest{fill:#f4f4f4}.lack{fill:#4a4a4a}.still{fill:#2c2c2c}.cut{stroke:#161616}.hatch{stroke:#999}.message{stroke:#f4f4f4}\
.c0{color:#56b4e9}.c1{color:#ff8f3a}.c2{color:#2fc79a}.c3{color:#e29ac5}.c4{color:#e6b23c}.c5{color:#9ad2f6}\
.deep.c0{fill:#347194}.deep.c1{fill:#a15821}.deep.c2{fill:#19795d}.deep.c3{fill:#8b5d79}.deep.c4{fill:#86661f}.deep.c5{fill:#8c8c8c}\
.dash{fill:#8c8c8c}.hover{color:#1b1b1b}}}\
@media print{details::details-content{content-visibility:visible;block-size:auto}.filter,.hover{display:none}th button::after{content:none}body{font-size:10pt;max-width:none;padding:0}nav,.zoom{display:none}figure,tr{break-inside:avoid}\
h1,h2,h3,caption,figcaption,summary{break-after:avoid}.pictures{grid-template-columns:1fr 1fr;gap:.6rem}.scroll{overflow:visible}\
th{background:none}.d td,.d th{background:none;font-weight:600}a{color:inherit;text-decoration:none}table{font-size:7.5pt}\
th,td{padding:.1rem .3rem}}";

#[cfg(test)]
mod tests {
    use super::*;

    /// Style of pages in the light and the dark.
    fn sheets() -> [(&'static str, String); 2] {
        let dark = PAGE
            .split("@media(prefers-color-scheme:dark){@media screen{")
            .nth(1)
            .and_then(|rest| rest.split("}}").next())
            .expect("there is a dark style");
        [
            ("light", PICTURE.to_owned()),
            ("dark", format!("{PICTURE}{dark}}}")),
        ]
    }

    /// Returns the value of a property by the last rule for exactly this selector.
    fn value<'a>(sheet: &'a str, selector: &str, property: &str) -> Option<&'a str> {
        let rules = sheet.split('}').filter_map(|rule| rule.split_once('{'));
        let own = rules.filter(|(selectors, _)| selectors.split(',').any(|one| one == selector));
        let properties = own.flat_map(|(_, properties)| properties.split(';'));
        let values = properties.filter_map(|one| one.split_once(':'));
        let found = values.filter(|(name, _)| *name == property);
        found.map(|(_, value)| value).next_back()
    }

    /// Returns the relative luminance of a colour, as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let digits: Vec<u32> = colour
            .strip_prefix('#')
            .expect("a colour begins with #")
            .chars()
            .map(|digit| digit.to_digit(16).expect("a digit"))
            .collect();
        let channels: Vec<u32> = match digits.len() {
            3 => digits.iter().map(|digit| digit * 17).collect(),
            _ => digits.chunks(2).map(|two| two[0] * 16 + two[1]).collect(),
        };
        let linear = |channel: u32| match f64::from(channel) / 255.0 {
            dark if dark <= 0.040_45 => dark / 12.92,
            bright => ((bright + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * linear(channels[0]) + 0.7152 * linear(channels[1]) + 0.0722 * linear(channels[2])
    }

    fn contrast(one: &str, two: &str) -> f64 {
        let [one, two] = [one, two].map(luminance);
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// Returns the colours of all states of strips: groups of ranks, and cells without
    /// either.
    fn states(sheet: &str) -> Vec<(String, &str)> {
        let mut selectors = vec![];
        for series in 0..COLOURS {
            selectors.push((format!(".c{series}"), "color"));
            selectors.push((format!(".deep.c{series}"), "fill"));
        }
        selectors.push((".dash".to_owned(), "fill"));
        selectors.push((".rest".to_owned(), "fill"));
        let colour = |(selector, property): (String, &str)| {
            let found = value(sheet, &selector, property);
            (selector.clone(), found.expect("every state has a colour"))
        };
        selectors.into_iter().map(colour).collect()
    }

    #[test]
    fn states_of_strips_contrast_with_the_background_and_are_separated() {
        for (name, sheet) in &sheets() {
            let paper = value(sheet, ".paper", "fill").expect("there is a background");
            let line = value(sheet, ".cut", "stroke").expect("there are lines");
            let states = states(sheet);
            for (selector, colour) in &states {
                let found = contrast(colour, paper);
                assert!(found >= 3.0, "{name}: {selector}: {found:.2}");
            }
            for (one, first) in &states {
                for (two, second) in &states {
                    let direct = contrast(first, second);
                    let by_line = contrast(first, line).min(contrast(second, line));
                    let found = direct.max(by_line);
                    assert!(found >= 3.0, "{name}: {one} beside {two}: {found:.2}");
                }
            }
        }
    }

    #[test]
    fn texts_are_readable() {
        for (name, sheet) in &sheets() {
            let paper = value(sheet, ".paper", "fill").expect("there is a background");
            for selector in ["text", ".quiet"] {
                let colour = value(sheet, selector, "fill").expect("a text has a colour");
                assert!(contrast(colour, paper) >= 4.5, "{name}: {selector}");
            }
            let hatch = value(sheet, ".hatch", "stroke").expect("a colour");
            assert!(contrast(hatch, paper) >= 3.0, "{name}: hatch");
        }
        assert_eq!(contrast("#fff", "#000000"), 21.0);
    }
}
