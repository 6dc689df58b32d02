//! Sections as one page of HTML, one picture, or text with tables.

use super::Section;
use lineweave_lab::draw::escape;
use std::fmt::Write as _;

/// The page's own looks: no fonts, scripts or pictures from elsewhere. Pictures stand on white in dark rooms too.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2937;--soft:#5b6472;--paper:#f6f7f9;--card:#fff;--rule:#e2e5ea;--link:#0060a8}\
@media(prefers-color-scheme:dark){:root{--ink:#e5e7eb;--soft:#a3acb9;--paper:#14171c;--card:#1c2027;--rule:#333a45;\
--link:#7cc0f5}}\
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);\
font:16px/1.55 system-ui,Helvetica,Arial,sans-serif}\
main{max-width:74rem;margin:0 auto;padding:2rem 1.25rem 4rem}h1{font-size:1.9rem;line-height:1.25;margin:0 0 .25rem}\
h2{font-size:1.35rem;margin:3rem 0 .75rem}\
p{max-width:50rem;margin:.5rem 0}.soft,.missing{color:var(--soft)}.missing{border-left:3px solid var(--rule);\
padding-left:.75rem}a{color:var(--link)}\
nav{margin:1rem 0}nav a{display:inline-block;margin:0 1.1rem .25rem 0}\
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(12rem,1fr));gap:.75rem;margin:1.25rem 0}\
dl div{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:.6rem .9rem;display:flex;\
flex-direction:column-reverse;justify-content:flex-end}\
dt{color:var(--soft);font-size:.8rem;line-height:1.3}dd{margin:0;font-size:1.3rem;font-weight:600;\
font-variant-numeric:tabular-nums}\
figure{margin:1rem 0;padding:.5rem;background:#fff;border:1px solid var(--rule);border-radius:10px;overflow-x:auto}\
figure svg{display:block;max-width:100%;height:auto;margin:0 auto}\
.wide{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\
th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--rule);vertical-align:top}\
th{color:var(--soft);font-weight:600}details>summary{cursor:pointer;color:var(--link)}";
/// Rows from which a table is folded away.
const LONG: usize = 9;

/// One self-contained page.
pub fn html(title: &str, origin: &str, facts: &[(String, String)], sections: &[Section]) -> String {
    let name = escape(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>lineweave: {name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{name}</h1>\n<p class=\"soft\">Costs by {}. Written by lineweave {}.</p>\n<dl>\n",
        escape(origin),
        env!("CARGO_PKG_VERSION")
    );
    for (what, value) in facts {
        let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(what), escape(value));
    }
    out.push_str("</dl>\n<nav>\n");
    for s in sections {
        let _ = writeln!(out, "<a href=\"#{}\">{}</a>", s.id, escape(s.title));
    }
    out.push_str("</nav>\n");
    for s in sections {
        let _ = writeln!(out, "<section id=\"{}\">\n<h2>{}</h2>", s.id, escape(s.title));
        for paragraph in &s.text {
            let _ = writeln!(out, "<p>{}</p>", escape(paragraph));
        }
        if let Some(why) = &s.missing {
            let _ = writeln!(out, "<p class=\"missing\">{}</p>", escape(why));
        }
        for figure in &s.figures {
            let _ = writeln!(out, "<figure>\n{figure}</figure>");
        }
        for (head, rows) in &s.tables {
            table(&mut out, head, rows);
        }
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn table(out: &mut String, head: &[&str], rows: &[Vec<String>]) {
    let long = rows.len() >= LONG;
    if long {
        let _ = writeln!(out, "<details>\n<summary>{} rows</summary>", rows.len());
    }
    out.push_str("<div class=\"wide\">\n<table>\n<thead><tr>");
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

/// A picture's size, as its first tag says.
fn size(svg: &str) -> (f64, f64) {
    let number = |key: &str| {
        let rest = svg.split_once(key)?.1;
        rest.split_once('"')?.0.parse::<f64>().ok()
    };
    (number(" width=\"").unwrap_or(0.0), number(" height=\"").unwrap_or(0.0))
}

/// All pictures, one above the other.
pub fn svg(title: &str, sections: &[Section]) -> String {
    let figures: Vec<&String> = sections.iter().flat_map(|s| &s.figures).collect();
    let width = figures.iter().map(|f| size(f).0).fold(420.0, f64::max);
    let (mut y, mut body) = (0.0, String::new());
    for figure in figures {
        body.push_str(&figure.replacen("<svg ", &format!("<svg y=\"{y:.0}\" "), 1));
        y += size(figure).1 + 16.0;
    }
    let name = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{y:.0}\" \
         viewBox=\"0 0 {width:.0} {y:.0}\" role=\"img\" aria-label=\"{name}\">\n<title>{name}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// Text and tables, without pictures.
pub fn md(title: &str, origin: &str, sections: &[Section]) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out = format!("# {}\n\nCosts by {}.\n", plain(title), plain(origin));
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
