//! The costs at one distance.

use super::{FitError, Notes};
use crate::model::cells::{fitted, Cells};
use crate::model::{AlphaBeta, Fitted, LayoutCost, LevelCosts, MultiLine, Surface};
use crate::plan::Layout;
use crate::profile::Cell;
use crate::topology::Level;

fn layout_costs(cells: &Cells, probe: &str, found: &[&Cell]) -> Result<Vec<LayoutCost>, FitError> {
    let mut list: Vec<LayoutCost> = Vec::new();
    for cell in found.iter().filter(|c| c.probe == probe) {
        let layout: Layout = cells.factor(cell, "layout")?;
        if list.iter().all(|l| l.layout != layout) {
            list.push(LayoutCost { layout, cost: fitted(cell) });
        }
    }
    Ok(list)
}

pub(super) fn fit_level(
    cells: &Cells,
    level: Level,
    local: Fitted,
    notes: &mut Notes,
) -> Result<Option<LevelCosts>, FitError> {
    let line_at = |home: Option<&str>, access: &str, state: &str| {
        let found = cells.at("line", level, &[("access", access), ("state", state)]);
        let at_home = |c: &&&Cell| match (home, c.factors.get("home").map(String::as_str)) {
            (None, None | Some("owner")) => true,
            (wanted, is) => wanted == is,
        };
        found.iter().find(at_home).map(|c| fitted(c))
    };
    let line = |access: &str, state: &str| line_at(None, access, state);
    let one_poller: Vec<&Cell> = cells
        .at("signal", level, &[])
        .into_iter()
        .filter(|c| c.factors.get("pollers").is_none_or(|p| p == "1"))
        .collect();
    let mut signal = layout_costs(cells, "signal", &one_poller)?;
    let mut exchange = layout_costs(cells, "exchange", &cells.at("exchange", level, &[]))?;
    let single = cells.at("pingpong", level, &[("lines", "1")]).first().map(|c| fitted(c));

    // R_R, or else the least indirect of what contains it: a signal is an ownership transfer and a read.
    let read = line("read", "modified")
        .or_else(|| LevelCosts::by_layout(&signal, Layout::Alone).map(|s| s.inferred(0.5)))
        .or_else(|| single.map(|s| s.inferred(0.5)))
        .or_else(|| LevelCosts::by_layout(&exchange, Layout::Alone).map(|s| s.inferred(0.5)));
    let Some(read) = read else { return Ok(None) };
    let own = line("own", "shared").or_else(|| line("own", "modified")).unwrap_or_else(|| {
        notes.missing(
            format!("own@{level}"),
            "no cell takes ownership of a line; the read transfer stands in",
        );
        read.inferred(1.0)
    });
    let own_modified = match line("own", "modified") {
        None => super::crowd::writers(cells, level, notes)?.filter(|own| own.value > 0.0),
        measured => measured,
    };
    if signal.is_empty() {
        notes.missing(format!("signal@{level}"), "no cell; a read and an ownership transfer stand in");
        let both = read.plus(own).inferred(1.0);
        signal.push(LayoutCost { layout: Layout::Alone, cost: both });
    }
    if exchange.is_empty() {
        notes.missing(format!("exchange@{level}"), "no cell; the one-way signal stands in");
        exchange.extend(signal.iter().map(|s| LayoutCost { cost: s.cost.inferred(1.0), ..*s }));
    }
    let lines = fit_lines(cells, level, notes)?;
    let get_cells = cells.at("copy", level, &[("pattern", "get")]);
    let hockney = fit_hockney(cells, level, &get_cells, notes)?;
    let get = match (cells.copies(&get_cells)?, &lines) {
        (Some(surface), _) => surface,
        (None, Some(t)) => {
            notes.missing(format!("L_get@{level}"), "no cell; T_N's slope stands in");
            Surface::line(read.inferred(1.0), t.o.inferred(1.0 / 64.0))
        }
        (None, None) => {
            notes.missing(format!("L_get@{level}"), "no cell and no T_N; a quarter of R_R a line stands in");
            Surface::line(read.inferred(1.0), Fitted::assumed(read.value / 4.0 / 64.0))
        }
    };
    let put = match cells.copies(&cells.at("copy", level, &[("pattern", "put")]))? {
        Some(surface) => surface,
        None => {
            notes.missing(format!("L_put@{level}"), "no cell; the cost of reading stands in");
            let mut surface = get.clone();
            surface.cost.iter_mut().flatten().for_each(|c| *c = c.inferred(1.0));
            surface
        }
    };
    if get.taus == [1] {
        notes.missing(
            format!("L(m, tau > 1)@{level}"),
            "no cell has more than one copy at once: concurrent copies are costed as if alone",
        );
    }
    let stream = cells.surface(&cells.at("stream", level, &[]))?;
    let read_clean = line("read", "exclusive").or_else(|| line("read", "shared"));
    debug_assert!(local.value.is_finite());
    Ok(Some(LevelCosts {
        level,
        read,
        // Where it makes no difference, nobody has to look where lines are.
        away: line_at(Some(Level::Machine.name()), "read", "modified").filter(|a| a.ci_low > read.ci_high),
        read_clean,
        own,
        own_modified,
        signal,
        exchange,
        lines,
        hockney,
        get,
        put,
        stream,
    }))
}

/// T_N(N) = o N + q - p / N, Ramos & Hoefler Eq. 3.1.
fn fit_lines(cells: &Cells, level: Level, notes: &mut Notes) -> Result<Option<MultiLine>, FitError> {
    let mut found = Vec::new();
    for cell in cells.at("pingpong", level, &[]) {
        found.push((f64::from(cells.factor::<u32>(cell, "lines")?.max(1)), cell));
    }
    let Some(fit) = notes.fit(format!("T_N@{level}"), &found, |n| vec![n, 1.0, -1.0 / n]) else {
        let because = format!(
            "o, q and p need ping-pongs of at least 3 numbers of lines, and there are {}",
            found.len()
        );
        notes.missing(format!("T_N@{level}"), because);
        return Ok(None);
    };
    let [o, q, p] = fit.coefficients[..] else { return Ok(None) };
    Ok(Some(MultiLine { o, q, p }))
}

fn fit_hockney(
    cells: &Cells,
    level: Level,
    found: &[&Cell],
    notes: &mut Notes,
) -> Result<Option<AlphaBeta>, FitError> {
    let mut single = Vec::new();
    for cell in found.iter().filter(|c| c.factors.get("tau").is_none_or(|t| t == "1")) {
        single.push((cells.factor::<u32>(cell, "bytes").map(f64::from)?, *cell));
    }
    let Some(fit) = notes.fit(format!("alpha-beta@{level}"), &single, |m| vec![1.0, m]) else {
        notes.missing(format!("alpha-beta@{level}"), "needs single copies of at least 2 sizes");
        return Ok(None);
    };
    let [alpha, beta] = fit.coefficients[..] else { return Ok(None) };
    Ok(Some(AlphaBeta { alpha, beta }))
}
