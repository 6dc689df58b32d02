//! A table of names as coloured cells, with a legend: which algorithm is chosen where.

use super::colours::FILLS;
use super::legend::in_order;
use super::svg::{room_of, Anchor, Svg};
use super::{INK, INK_ON_PALE, PAPER, SOFT};

const TOP: f64 = 74.0;
const CELL: (f64, f64) = (58.0, 30.0);

/// One cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Name that decides the colour of the cell; `None` is white.
    pub name: Option<String>,
    /// Tooltip of the cell.
    pub about: String,
}

/// Draws rows of cells, under the names of the columns and beside those of the rows. A number in each cell is the
/// name's in the legend.
pub fn map(title: &str, detail: &str, columns: &[String], rows: &[(String, Vec<Cell>)]) -> String {
    let names = in_order(rows.iter().flat_map(|r| &r.1).filter_map(|c| c.name.as_deref()));
    let left = rows.iter().map(|r| room_of(&r.0, 11.0)).fold(40.0, f64::max) + 24.0;
    let mut svg = Svg::default();
    svg.heading(title, detail);
    for (i, column) in columns.iter().enumerate() {
        let x = left + (i as f64 + 0.5) * CELL.0;
        svg.text((x, TOP - 6.0), 11.0, SOFT, Anchor::Middle, false, column);
    }
    for (j, (row, cells)) in rows.iter().enumerate() {
        let y = TOP + j as f64 * CELL.1;
        svg.text((left - 8.0, y + CELL.1 / 2.0 + 4.0), 11.0, SOFT, Anchor::End, false, row);
        for (i, cell) in cells.iter().enumerate() {
            let number = cell.name.as_deref().and_then(|n| names.iter().position(|m| *m == n));
            let fill = number.map_or(PAPER, |n| FILLS[n % FILLS.len()]);
            let x = left + i as f64 * CELL.0;
            svg.open(&cell.about);
            svg.rect((x, y), (CELL.0 - 1.5, CELL.1 - 1.5), fill, 3.0);
            let text = number.map_or_else(|| "\u{2013}".to_owned(), |n| (n + 1).to_string());
            let ink = if number.is_some() { INK_ON_PALE } else { INK };
            svg.text((x + CELL.0 / 2.0, y + CELL.1 / 2.0 + 4.0), 11.0, ink, Anchor::Middle, false, &text);
            svg.close();
        }
    }
    let bottom = TOP + rows.len() as f64 * CELL.1 + 14.0;
    for (i, name) in names.iter().enumerate() {
        let (x, y) = (left + (i % 2) as f64 * 300.0, bottom + (i / 2) as f64 * 20.0);
        svg.rect((x, y), (22.0, 15.0), FILLS[i % FILLS.len()], 3.0);
        svg.text((x + 11.0, y + 11.5), 11.0, INK_ON_PALE, Anchor::Middle, false, &(i + 1).to_string());
        svg.text((x + 30.0, y + 11.5), 12.0, INK, Anchor::Start, false, name);
    }
    let height = bottom + names.len().div_ceil(2) as f64 * 20.0 + 14.0;
    let width = (left + columns.len() as f64 * CELL.0 + 20.0).max(Svg::heading_width(title, detail));
    svg.finish(width.max(left + 600.0), height, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_drawn_and_every_name_is_in_the_legend_once() {
        let cell = |name: Option<&str>| Cell { name: name.map(str::to_owned), about: "a & b".to_owned() };
        let rows = [
            ("2".to_owned(), vec![cell(Some("flat")), cell(Some("chain"))]),
            ("4".to_owned(), vec![cell(Some("flat")), cell(None)]),
        ];
        let svg = map("t", "d", &["8 B".to_owned(), "1 KiB".to_owned()], &rows);
        assert_eq!(svg.matches("<title>a &amp; b</title>").count(), 4);
        assert_eq!((svg.matches(">flat<").count(), svg.matches(">chain<").count()), (1, 1));
        assert_eq!(svg.matches(">\u{2013}<").count(), 1);
        assert!(map("t", "d", &[], &[]).ends_with("</svg>\n"));
    }
}
