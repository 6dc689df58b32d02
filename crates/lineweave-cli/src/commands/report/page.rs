//! Answers and sections as one page of HTML, one picture, or text with tables.

use super::answers::Answer;
use super::{Figure, Section};
use lineweave_lab::draw::{dark_style, escape};
use std::fmt::Write as _;

/// The style of the page: no fonts, scripts or pictures from elsewhere.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2937;--soft:#5b6472;--paper:#f6f7f9;--card:#fff;--rule:#e2e5ea;--link:#0060a8}\
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,Helvetica,Arial,sans-serif;overflow-wrap:anywhere}\
main{max-width:76rem;margin:0 auto;padding:1.5rem 1.25rem 4rem}h1{font-size:1.7rem;line-height:1.25;margin:0 0 .25rem}\
h2{font-size:1.15rem;margin:0 0 .5rem}summary h2{display:inline}\
p{max-width:50rem;margin:.5rem 0}.soft,.missing,figcaption,legend{color:var(--soft);font-size:.85rem}\
.missing{border-left:3px solid var(--rule);padding-left:.75rem}a{color:var(--link)}\
nav a{display:inline-block;margin:0 1.1rem .25rem 0}\
.answers{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1rem;margin:1rem 0}\
.answer,.part{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:.8rem 1rem;min-width:0}\
.part{margin:.75rem 0}.part>summary{cursor:pointer;padding:.1rem 0}\
figure{margin:.75rem 0}.view{overflow:auto;max-height:90vh}.view:focus-visible{outline:2px solid var(--link)}\
.view svg{display:block;max-width:100%;height:auto}.answer figure svg{width:100%}\
.answer figcaption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.answer{position:relative}\
figure:has(.z2:checked) svg{width:200%;max-width:none}figure:has(.z4:checked) svg{width:400%;max-width:none}\
fieldset{border:0;padding:0;margin:.25rem 0;font-size:.85rem}fieldset label{margin-right:.9rem}legend{float:left;margin-right:.9rem}\
.wide{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;\
overflow-wrap:normal}\
th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--rule);vertical-align:top}\
th{color:var(--soft);font-weight:600}.rows>summary{cursor:pointer;color:var(--link)}\
@media(max-width:640px){main{padding:1rem .75rem 3rem}.zooms svg{min-width:36rem}}\
@media print{body{background:#fff;font-size:11pt}nav,fieldset{display:none}.view{overflow:visible;max-height:none}\
.view svg{min-width:0!important;width:auto!important;max-width:100%!important;max-height:22cm}\
.answer,figure,tr{break-inside:avoid}.answers{grid-template-columns:1fr 1fr}.part:not([open]){display:none}.wide{overflow:visible}}";
/// Colours for readers who prefer dark pages; paper stays white.
const DARK: &str =
    ":root{--ink:#e5e7eb;--soft:#a3acb9;--paper:#14171c;--card:#1c2027;--rule:#333a45;--link:#7cc0f5}";
/// Number of rows from which a table is folded.
const LONG: usize = 9;
/// Width from which a picture can be enlarged.
const WIDE: f64 = 700.0;
/// The section that is not folded.
const OPEN: &str = "map";

/// Returns one self-contained page: the answers, and everything else folded.
pub fn html(title: &str, origin: &str, answers: &[Answer], sections: &[Section]) -> String {
    let name = escape(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>lineweave: {name}</title>\n<style>{STYLE}@media screen and (prefers-color-scheme:dark){{{DARK}{}}}</style>\n\
         </head>\n<body>\n<main>\n\
         <h1>{name}</h1>\n<p class=\"soft\">Costs by {}. Written by lineweave {}.</p>\n<div class=\"answers\">\n",
        dark_style(".view"),
        escape(origin),
        env!("CARGO_PKG_VERSION")
    );
    let mut figures = 0;
    for answer in answers {
        let _ = writeln!(
            out,
            "<section class=\"answer\" id=\"{}\">\n<h2>{}</h2>",
            answer.id,
            escape(answer.question)
        );
        let _ = writeln!(out, "<p>{}</p>", escape(&answer.sentence));
        figure(&mut out, &answer.figure, &mut figures);
        for more in &answer.more {
            let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(more));
        }
        out.push_str("</section>\n");
    }
    out.push_str("</div>\n<nav aria-label=\"More about it\">\n");
    for s in sections {
        let _ = writeln!(out, "<a href=\"#{}\">{}</a>", s.id, escape(s.title));
    }
    out.push_str("</nav>\n");
    for s in sections {
        let open = if s.id == OPEN { " open" } else { "" };
        // The anchor is within the folded part, so that a link to it unfolds that part.
        let _ = writeln!(
            out,
            "<details class=\"part\"{open}>\n<summary><h2>{title}</h2></summary>\n<section id=\"{}\" aria-label=\"{title}\">",
            s.id,
            title = escape(s.title)
        );
        for paragraph in &s.text {
            let _ = writeln!(out, "<p>{}</p>", escape(paragraph));
        }
        if let Some(why) = &s.missing {
            let _ = writeln!(out, "<p class=\"missing\">{}</p>", escape(why));
        }
        for f in &s.figures {
            figure(&mut out, f, &mut figures);
        }
        for (head, rows) in &s.tables {
            table(&mut out, head, rows);
        }
        out.push_str("</section>\n</details>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Adds a picture with its words; a wide one can be enlarged, and moved with the keyboard.
fn figure(out: &mut String, figure: &Figure, number: &mut usize) {
    *number += 1;
    let wide = size(&figure.svg).0 > WIDE;
    let _ = writeln!(out, "<figure{}>", if wide { " class=\"zooms\"" } else { "" });
    if wide {
        out.push_str("<fieldset><legend>Size</legend>");
        for (class, text, checked) in
            [("z1", "fit", " checked=\"\""), ("z2", "2 \u{d7}", ""), ("z4", "4 \u{d7}", "")]
        {
            let _ = write!(
                out,
                "<label><input type=\"radio\" name=\"z{number}\" class=\"{class}\"{checked}/> {text}</label>"
            );
        }
        out.push_str("</fieldset>\n");
    }
    let _ = writeln!(
        out,
        "<div class=\"view\" tabindex=\"0\">\n{}</div>\n<figcaption>{}</figcaption>\n</figure>",
        figure.svg,
        escape(&figure.says)
    );
}

fn table(out: &mut String, head: &[&str], rows: &[Vec<String>]) {
    let long = rows.len() >= LONG;
    if long {
        let _ = writeln!(out, "<details class=\"rows\">\n<summary>{} rows</summary>", rows.len());
    }
    out.push_str("<div class=\"wide\" tabindex=\"0\">\n<table>\n<thead><tr>");
    head.iter().for_each(|h| out.push_str(&format!("<th>{}</th>", escape(h))));
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        row.iter().for_each(|c| out.push_str(&format!("<td>{}</td>", escape(c))));
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    if long {
        out.push_str("</details>\n");
    }
}

/// Returns a picture's size, as its first tag gives it.
fn size(svg: &str) -> (f64, f64) {
    let number = |key: &str| {
        let rest = svg.split_once(key)?.1;
        rest.split_once('"')?.0.parse::<f64>().ok()
    };
    (number(" width=\"").unwrap_or(0.0), number(" height=\"").unwrap_or(0.0))
}

/// Returns all pictures, one above the other.
pub fn svg(title: &str, answers: &[Answer], sections: &[Section]) -> String {
    let of_answers = answers.iter().map(|a| &a.figure);
    let figures: Vec<&String> =
        of_answers.chain(sections.iter().flat_map(|s| &s.figures)).map(|f| &f.svg).collect();
    let width = figures.iter().map(|f| size(f).0).fold(420.0, f64::max);
    let (mut y, mut body) = (0.0, String::new());
    for figure in figures {
        body.push_str(&figure.replacen("<svg ", &format!("<svg y=\"{y:.0}\" "), 1));
        y += size(figure).1 + 16.0;
    }
    let name = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{y:.0}\" \
         viewBox=\"0 0 {width:.0} {y:.0}\" style=\"max-width:100%;height:auto\" role=\"img\" aria-label=\"{name}\">\n<title>{name}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// Returns the text and the tables, without pictures.
pub fn md(title: &str, origin: &str, answers: &[Answer], sections: &[Section]) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out = format!("# {}\n\nCosts by {}.\n", plain(title), plain(origin));
    for answer in answers {
        let _ = write!(out, "\n## {}\n\n{}\n", answer.question, answer.sentence);
        for more in &answer.more {
            let _ = write!(out, "\n{more}\n");
        }
    }
    for s in sections {
        let _ = write!(out, "\n## {}\n", s.title);
        for paragraph in s.text.iter().chain(&s.missing) {
            let _ = write!(out, "\n{paragraph}\n");
        }
        for (head, rows) in &s.tables {
            let _ = write!(out, "\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
            for row in rows {
                let cells: Vec<String> = row.iter().map(|c| plain(c)).collect();
                let _ = writeln!(out, "| {} |", cells.join(" | "));
            }
        }
    }
    out
}
