//! Reading a plan's text form. Total: whatever the text, the answer is a plan or an error with its line.
//!
//! What is checked here is that the text means something: every rank, slot, flag and array that is named
//! exists, lengths agree, numbers are sane. Whether the plan is *right* is the checker's question.

mod blocks;

use super::cursor::Cursor;
use super::text::{move_verb, plain, plain_name, PlanTextError};
use super::{Carry, FlagArray, FlagKind, FlagRef, Op, Params, Plan, Region, Reuse, Space, Take};
use crate::collective::Collective;
use crate::units::Rank;
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

/// The most ranks a text may ask for: as many as algorithms make plans for (`algorithm::MAX_RANKS`).
const MOST_RANKS: usize = 16_384;
/// The most bytes of a message, slot or scratch area: 1 TiB, so that no sum of sizes overflows.
const MOST_BYTES: usize = 1 << 40;
/// The highest offset in a buffer: each of the most ranks' blocks of the largest message.
const MOST_OFFSET: usize = MOST_RANKS * MOST_BYTES;
/// The most slots, flag arrays, and flags of an array: what 16-bit indices tell apart.
const MOST_INDEXED: usize = 1 << 16;
/// The fields that end a header, in their order.
const FIELDS: [&str; 8] = ["p", "root", "bytes", "grain", "acc", "reuse", "direct", "slots"];

type Parsed<T> = Result<T, PlanTextError>;

impl FromStr for Plan {
    type Err = PlanTextError;

    fn from_str(text: &str) -> Parsed<Plan> {
        let mut lines = text.lines().enumerate().filter_map(|(n, line)| {
            let mut cursor = Cursor::new(n + 1, line);
            (!cursor.at_end()).then_some(cursor)
        });
        let past_end = Cursor::new(text.lines().count().max(1), "");
        let truncated = |expected: &str| past_end.mismatch(expected, "the end of the text");

        let mut reader = Reader {
            plan: header(lines.next().ok_or_else(|| truncated("`plan collective/algorithm ...`"))?)?,
            arrays: BTreeMap::new(),
        };
        let mut seen = vec![false; reader.plan.ranks];
        let mut rank = None;
        for mut line in &mut lines {
            let start = line;
            match line.keyword() {
                "end" => {
                    if let Some(missing) = seen.iter().position(|s| !s) {
                        return Err(line.mismatch(format!("`rank {missing}:`"), "`end`"));
                    }
                    line.finish()?;
                    if let Some(mut more) = lines.next() {
                        return Err(more.error("nothing after `end`"));
                    }
                    return Ok(reader.plan);
                }
                kind @ ("flags" | "counters") if rank.is_none() => reader.array(kind, line)?,
                "rank" => {
                    let r = reader.rank(&mut line)?;
                    line.expect(":")?;
                    if std::mem::replace(&mut seen[r], true) {
                        return Err(line.mismatch("each rank once", format!("a second `rank {r}:`")));
                    }
                    rank = Some(r);
                    reader.ops(r, line)?;
                }
                _ => match rank {
                    Some(r) => reader.ops(r, start)?,
                    None => return Err({ start }.error("`flags`, `counters`, `rank N:` or `end`")),
                },
            }
        }
        Err(truncated("an op, `rank N:` or `end`"))
    }
}

/// Reads `plan collective/algorithm name=value ... p=4 root=0 ...` into a plan without ops.
fn header(mut line: Cursor<'_>) -> Parsed<Plan> {
    line.expect("plan ")?;
    let mut before = line;
    let collective: Collective =
        line.name().parse().map_err(|_| before.error(format!("one of {}", Collective::names())))?;
    line.expect("/")?;
    let algorithm = line.word("the name of an algorithm", plain)?;
    let mut pairs: Vec<(String, String)> = Vec::new();
    while !line.at_end() {
        let key = line.word("`name=value`", plain)?;
        line.expect("=")?;
        pairs.push((key, line.word("a value", plain)?));
    }
    let block_fields = blocks::fields(&mut pairs);
    let split = pairs.len().saturating_sub(FIELDS.len());
    let (given, fields) = pairs.split_at(split);
    if !fields.iter().map(|(key, _)| key.as_str()).eq(FIELDS) {
        let keys: Vec<_> = fields.iter().map(|(key, _)| format!("{key}=")).collect();
        let expected = FIELDS.map(|key| format!("{key}=")).join(" ");
        return Err(line.mismatch(
            format!("a header that ends in `{expected}`"),
            format!("`{}`", keys.join(" ").escape_debug()),
        ));
    }
    let mut params = Params::new();
    for (key, value) in given {
        if params.0.insert(key.clone(), value.clone()).is_some() {
            return Err(line.mismatch("each parameter once", format!("`{}` again", key.escape_debug())));
        }
    }
    let field = |i: usize| line.at(&fields[i].1);
    let number = |i: usize, what: &str, range: Range<usize>| {
        let n = complete(field(i), |at| at.number(what, range.end - 1))?;
        if range.contains(&n) {
            return Ok(n);
        }
        Err(field(i).error(format!("{what} of at least {}", range.start)))
    };
    let ranks = number(0, "a number of ranks", 1..MOST_RANKS + 1)?;
    Ok(Plan {
        collective,
        algorithm,
        params,
        ranks,
        root: Rank::from(number(1, "a root", 0..ranks)?),
        bytes: number(2, "a message length", 0..MOST_BYTES + 1)?,
        blocks: blocks::read(&line, collective, ranks, block_fields)?,
        grain: number(3, "an element size", 1..MOST_BYTES + 1)?,
        acc: number(4, "a scratch size", 0..MOST_BYTES + 1)?,
        reuse: complete(field(5), |at| choice(at, [("same", Reuse::Same), ("ring", Reuse::Ring)]))?,
        direct: complete(field(6), |at| choice(at, [("yes", true), ("no", false)]))?,
        slots: complete(field(7), slots)?,
        flags: Vec::new(),
        programs: vec![Vec::new(); ranks],
    })
}

/// Returns the value that `read` makes of a field, which it must read to its end.
fn complete<'a, T>(mut at: Cursor<'a>, read: impl FnOnce(&mut Cursor<'a>) -> Parsed<T>) -> Parsed<T> {
    let value = read(&mut at)?;
    at.finish()?;
    Ok(value)
}

fn choice<T: Copy>(at: &mut Cursor<'_>, of: [(&str, T); 2]) -> Parsed<T> {
    let mut before = *at;
    let word = at.keyword();
    of.iter()
        .find(|(name, _)| *name == word)
        .map(|(_, value)| *value)
        .ok_or_else(|| before.error(format!("{} or {}", of[0].0, of[1].0)))
}

/// `none`, or sizes with an optional count: `8192x2,64`.
fn slots(at: &mut Cursor<'_>) -> Parsed<Vec<usize>> {
    let mut slots = Vec::new();
    if at.eat("none") {
        return Ok(slots);
    }
    loop {
        let size = at.number("`none` or a slot size", MOST_BYTES)?;
        let count = if at.eat("x") {
            at.number("how many slots are left to declare", MOST_INDEXED - slots.len())?
        } else if slots.len() < MOST_INDEXED {
            1
        } else {
            return Err(at.mismatch(format!("at most {MOST_INDEXED} slots"), "more"));
        };
        slots.resize(slots.len() + count, size);
        if !at.eat(",") {
            return Ok(slots);
        }
    }
}

/// A plan in the making and the index of each flag array.
struct Reader {
    plan: Plan,
    arrays: BTreeMap<String, u16>,
}

impl Reader {
    /// `flags NAME LAYOUT COUNT` after its keyword.
    fn array(&mut self, kind: &str, mut line: Cursor<'_>) -> Parsed<()> {
        let name = line.word("the name of a flag array", plain_name)?;
        let mut before = line;
        let layout = line
            .word("a flag layout", plain)?
            .parse()
            .map_err(|_| before.error("packed, paired, alone or spread2 .. spread255"))?;
        let count = line.number("flags at each home", MOST_INDEXED)?;
        let Ok(id) = u16::try_from(self.plan.flags.len()) else {
            return Err(line.mismatch(format!("at most {MOST_INDEXED} flag arrays"), "more"));
        };
        if self.arrays.insert(name.clone(), id).is_some() {
            return Err(line.mismatch("array names that differ", format!("`{}` again", name.escape_debug())));
        }
        let kind = if kind == "flags" { FlagKind::Signal } else { FlagKind::Counter };
        self.plan.flags.push(FlagArray { name, kind, layout, count });
        line.finish()
    }

    /// Ops separated by `;` up to the end of the line.
    fn ops(&mut self, rank: usize, mut line: Cursor<'_>) -> Parsed<()> {
        while !line.at_end() {
            let op = self.op(&mut line)?;
            self.plan.programs[rank].push(op);
            if !line.eat(";") {
                return line.finish();
            }
        }
        Ok(())
    }

    fn op(&self, line: &mut Cursor<'_>) -> Parsed<Op> {
        let mut start = *line;
        match line.keyword() {
            verb @ ("put" | "get" | "copy") => {
                let src = self.region(line)?;
                line.expect("->")?;
                let dst = self.region(line)?;
                let right = move_verb(src.space, dst.space);
                if verb != right {
                    return Err(line.mismatch(format!("`{right}` between these places"), format!("`{verb}`")));
                }
                same_length(line, &src, &dst)?;
                Ok(Op::Move { src, dst })
            }
            "fold" => {
                let a = self.region(line)?;
                line.expect("+")?;
                let b = self.region(line)?;
                line.expect("->")?;
                let dst = self.region(line)?;
                same_length(line, &a, &b)?;
                same_length(line, &a, &dst)?;
                Ok(Op::Fold { a, b, dst })
            }
            "set" => {
                let flag = self.flag(line, FlagKind::Signal)?;
                line.expect("=")?;
                let mut before = *line;
                let value = line.signed("the value to set")?;
                if value < 1 {
                    return Err(before.error("a value of at least 1"));
                }
                let carry = match line.eat("carrying") {
                    false => None,
                    true if line.eat("&") => Some(Carry::Address(self.own_buffer(line)?)),
                    true => Some(Carry::Bytes(self.region(line)?)),
                };
                Ok(Op::Set { flag, value, carry })
            }
            "wait" => {
                let flag = self.any_flag(line)?;
                line.expect(">=")?;
                let value = line.signed("a threshold")?;
                let take = match line.eat("taking") {
                    false => None,
                    true if line.eat("&") => Some(Take::Address(self.peer_buffer(line)?)),
                    true => Some(Take::Bytes(self.region(line)?)),
                };
                Ok(Op::Wait { flag, value, take })
            }
            "add" => Ok(Op::Add { flag: self.flag(line, FlagKind::Counter)? }),
            _ => Err(start.error("put, get, copy, fold, set, wait or add")),
        }
    }

    fn rank(&self, line: &mut Cursor<'_>) -> Parsed<usize> {
        line.number("a rank", self.plan.ranks - 1)
    }

    /// `in[a..b]`, `out@q[a..b]`, `box@q[slot]` or `box@q[slot][a..b]`.
    fn region(&self, line: &mut Cursor<'_>) -> Parsed<Region> {
        let space = self.space(line)?;
        if let Space::Slot { slot, .. } = space {
            let mut ahead = *line;
            if !ahead.eat("[") {
                return Ok(Region::new(space, 0..self.plan.slots[usize::from(slot)]));
            }
        }
        line.expect("[")?;
        let start = line.number("the first byte", MOST_OFFSET)?;
        line.expect("..")?;
        let mut before = *line;
        let end = line.number("one past the last byte", MOST_OFFSET)?;
        if end < start {
            return Err(before.error(format!("an end of at least {start}")));
        }
        line.expect("]")?;
        Ok(Region::new(space, start..end))
    }

    fn space(&self, line: &mut Cursor<'_>) -> Parsed<Space> {
        let mut start = *line;
        match line.keyword() {
            "acc" => Ok(Space::Acc),
            "in" if line.eat("@") => Ok(Space::PeerIn(Rank::from(self.rank(line)?))),
            "in" => Ok(Space::In),
            "out" if line.eat("@") => Ok(Space::PeerOut(Rank::from(self.rank(line)?))),
            "out" => Ok(Space::Out),
            "box" => {
                line.expect("@")?;
                let rank = Rank::from(self.rank(line)?);
                line.expect("[")?;
                let Some(last) = self.plan.slots.len().checked_sub(1) else {
                    return Err(line.error("no slot, because the plan declares none"));
                };
                let slot = line.number("a slot", last)?;
                line.expect("]")?;
                let slot = u16::try_from(slot).map_err(|_| line.error("a slot of at most 65535"))?;
                Ok(Space::Slot { rank, slot })
            }
            _ => Err(start.error("a region of in, out, acc, box@RANK[SLOT], in@RANK or out@RANK")),
        }
    }

    /// The space after `carrying &`.
    fn own_buffer(&self, line: &mut Cursor<'_>) -> Parsed<Space> {
        let mut start = *line;
        match self.space(line)? {
            space @ (Space::In | Space::Out) => Ok(space),
            Space::Acc | Space::Slot { .. } | Space::PeerIn(_) | Space::PeerOut(_) => {
                Err(start.error("`in` or `out`"))
            }
        }
    }

    /// The space after `taking &`.
    fn peer_buffer(&self, line: &mut Cursor<'_>) -> Parsed<Space> {
        let mut start = *line;
        match self.space(line)? {
            space @ (Space::PeerIn(_) | Space::PeerOut(_)) => Ok(space),
            Space::In | Space::Out | Space::Acc | Space::Slot { .. } => {
                Err(start.error("`in@RANK` or `out@RANK`"))
            }
        }
    }

    /// `name@home[index]`.
    fn any_flag(&self, line: &mut Cursor<'_>) -> Parsed<FlagRef> {
        let mut start = *line;
        let name = line.word("a flag", plain_name)?;
        let Some(&array) = self.arrays.get(&name) else {
            let known: Vec<&str> = self.arrays.keys().map(String::as_str).take(8).collect();
            let known = if known.is_empty() { "none is declared".to_owned() } else { known.join(", ") };
            return Err(start.error(format!("a declared flag array ({})", known.escape_debug())));
        };
        line.expect("@")?;
        let home = Rank::from(self.rank(line)?);
        line.expect("[")?;
        let mut before = *line;
        let index = line.number("a flag index", MOST_INDEXED - 1)?;
        let count = self.plan.flags[usize::from(array)].count;
        let index = u16::try_from(index)
            .ok()
            .filter(|&i| usize::from(i) < count)
            .ok_or_else(|| before.error(format!("an index below the {count} flags of `{name}`")))?;
        line.expect("]")?;
        Ok(FlagRef { array, home, index })
    }

    fn flag(&self, line: &mut Cursor<'_>, kind: FlagKind) -> Parsed<FlagRef> {
        let mut start = *line;
        let flag = self.any_flag(line)?;
        if self.plan.flags[usize::from(flag.array)].kind == kind {
            return Ok(flag);
        }
        Err(start.error(match kind {
            FlagKind::Signal => "a flag that is set, declared with `flags`",
            FlagKind::Counter => "a flag that is added to, declared with `counters`",
        }))
    }
}

fn same_length(line: &Cursor<'_>, one: &Region, other: &Region) -> Parsed<()> {
    if one.len == other.len {
        return Ok(());
    }
    Err(line.mismatch("regions of equal length", format!("{} and {} bytes", one.len, other.len)))
}
