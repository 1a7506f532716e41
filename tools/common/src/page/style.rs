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
.title{font-weight:600;font-size:14px}.small{font-size:11px}.quiet{fill:#555}\
.paper{fill:#fff}.axis{fill:none;stroke:#555;stroke-width:1}.grid{fill:none;stroke:#e2e2e2;stroke-width:1}\
.border{fill:none;stroke:#999;stroke-width:1;stroke-dasharray:2 3}.zero{fill:none;stroke:#1b1b1b;stroke-width:1.2}\
.c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#007a5a}.c3{color:#b0508a}.c4{color:#a87400}.c5{color:#3a8fc4}\
.l{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}\
.k1{stroke-dasharray:7 3}.k2{stroke-dasharray:2 3}.k3{stroke-dasharray:8 3 2 3}\
.m{fill:currentColor}.e{fill:none;stroke:currentColor;stroke-width:1.3}.thin{fill:none;stroke:currentColor;stroke-width:1}\
.area{fill:currentColor;fill-opacity:.22;stroke:currentColor;stroke-width:.8}\
.band{fill:none;stroke:currentColor;stroke-opacity:.35}.half{fill:currentColor;fill-opacity:.4;stroke:none}.above{fill:none;stroke:currentColor;stroke-width:2.4}.median{fill:none;stroke:#1b1b1b;stroke-width:1.6}.range{fill:none;stroke:#1b1b1b;stroke-width:1.1}\
.box{fill:#fff;fill-opacity:.75;stroke:#1b1b1b;stroke-width:1}\
.h1{fill:currentColor;fill-opacity:.18}.h2{fill:currentColor;fill-opacity:.36}.h3{fill:currentColor;fill-opacity:.56}\
.h4{fill:currentColor;fill-opacity:.78}.still{fill:#ebebeb}.tint{fill:currentColor;fill-opacity:.45}.rest{fill:#1b1b1b}.lack{fill:#d4d4d4}.cut{fill:none;stroke:#fff;stroke-width:.8}\
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
.zoom button{font:inherit;min-width:2.4rem;margin:0 .3rem .3rem 0;padding:.1rem .5rem}.hover{position:fixed;pointer-events:none;max-width:20rem;padding:.2rem .5rem;font-size:.85rem;color:#1b1b1b;background:#fffbe6;border:1px solid #999}\
.key{display:inline-block;width:.8em;height:.8em;margin-right:.45em}\
.scroll{overflow-x:auto;margin:.5rem 0}table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}\
caption{text-align:left;white-space:nowrap;font-weight:600;padding:.2rem 0}\
th,td{padding:.2rem .55rem;text-align:left;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:normal}\
td{max-width:28rem;overflow-wrap:break-word}th{font-weight:600;background:#f3f3f3}.n td,.n th{text-align:right;white-space:nowrap}\
.n td:first-child,.n th:first-child{text-align:left}.d td,.d th{background:#fff3d6}\
summary{cursor:pointer;font-weight:600;padding:.3rem 0}summary:focus-visible,a:focus-visible{outline:2px solid #0072b2}\
@media(prefers-color-scheme:dark){@media screen{\
body{color:#e8e8e8;background:#161616}a{color:#7cc4f5}h2{border-color:#444}.note{color:#aaa}\
th{background:#262626}th,td{border-color:#3a3a3a}.d td,.d th{background:#4a3a10}\
text{fill:#e8e8e8}.paper{fill:#161616}.quiet{fill:#aaa}.axis{stroke:#aaa}.grid{stroke:#333}.border{stroke:#777}.zero,.median,.range{stroke:#f4f4f4}\
.box{fill:#161616;stroke:#f4f4f4}.rest{fill:#f4f4f4}.lack{fill:#4a4a4a}.still{fill:#2c2c2c}.cut{stroke:#161616}.hatch{stroke:#999}.message{stroke:#f4f4f4}\
.c0{color:#56b4e9}.c1{color:#ff8f3a}.c2{color:#2fc79a}.c3{color:#e29ac5}.c4{color:#e6b23c}.c5{color:#9ad2f6}}}\
@media print{body{font-size:10pt;max-width:none;padding:0}nav,.zoom{display:none}figure,tr{break-inside:avoid}\
h1,h2,h3,caption,figcaption,summary{break-after:avoid}.pictures{grid-template-columns:1fr 1fr;gap:.6rem}.scroll{overflow:visible}\
th{background:none}.d td,.d th{background:none;font-weight:600}a{color:inherit;text-decoration:none}table{font-size:7.5pt}\
th,td{padding:.1rem .3rem}}";
