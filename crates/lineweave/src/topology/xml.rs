//! Topologies from the XML files that hwloc writes (`lstopo --of xml`), version 1 or 2 of the format.
//!
//! Read here and not by hwloc: it aborts the process on files whose sets contradict each other, and a file
//! that a person gives must end in an error with a line. Every object carries its CPU set, so that a flat
//! pass over the elements is enough.

use super::synthetic::MOST_CPUS;
use super::{Cache, CacheKind, CoreKind, Hardware, MemoryNode, Sets, Source, TopologyError};
use std::io::ErrorKind;
use std::path::Path;

/// A description of some hundred sockets takes a few megabytes.
const LARGEST: u64 = 256 << 20;

/// The topology of a file.
pub fn read(path: &Path) -> Result<Hardware, TopologyError> {
    let unreadable = |reason: String| TopologyError::File { path: path.to_owned(), reason };
    let wrong = |found: String| TopologyError::Xml { path: path.to_owned(), found };
    let length = std::fs::metadata(path).map_err(|e| unreadable(e.to_string()))?.len();
    if length > LARGEST {
        return Err(wrong(format!("{length} bytes, more than any machine's topology takes")));
    }
    let text = crate::cache::named(path).map_err(|e| match e.kind() {
        // Not UTF-8.
        ErrorKind::InvalidData => wrong(e.to_string()),
        _ => unreadable(e.to_string()),
    })?;
    if text.trim().is_empty() {
        return Err(wrong("an empty file".to_owned()));
    }
    let mut reader = Reader { text: &text, at: 0 };
    let mut machine = Machine::default();
    loop {
        let step = reader.next().and_then(|tag| match tag {
            Some(tag) => machine.take(&tag).map(|()| true),
            None => machine.end().map(|()| false),
        });
        match step {
            Ok(true) => {}
            Ok(false) => return Ok(machine.hardware(path)),
            Err(found) => return Err(wrong(format!("line {}: {found}", reader.line()))),
        }
    }
}

/// A start, an end, or both at once.
struct Tag<'a> {
    name: &'a str,
    closes: bool,
    empty: bool,
    attributes: Vec<(&'a str, String)>,
}

impl Tag<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let wrong = |text: &str| format!("{name}=\"{text}\" where a number was expected");
        self.get(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The line being read, from 1.
    fn line(&self) -> usize {
        self.text[..self.at].matches('\n').count() + 1
    }

    /// The next tag; text between tags, comments, declarations and instructions mean nothing here.
    fn next(&mut self) -> Result<Option<Tag<'a>>, String> {
        loop {
            let rest = &self.text[self.at..];
            let Some(start) = rest.find('<') else { return Ok(None) };
            self.at += start;
            let rest = &rest[start..];
            let (skips, end) = match rest {
                r if r.starts_with("<!--") => (true, "-->"),
                r if r.starts_with("<?") => (true, "?>"),
                r if r.starts_with("<!") => (true, ">"),
                _ => (false, ">"),
            };
            // A `>` within quotes is written `&gt;` by every writer of these files.
            let length = rest.find(end).ok_or("a tag that is never closed: the file is truncated")?;
            let inside = &rest[1..length];
            let tag = if skips { None } else { Some(parse(inside)?) };
            self.at += length + end.len();
            if tag.is_some() {
                return Ok(tag);
            }
        }
    }
}

fn parse(inside: &str) -> Result<Tag<'_>, String> {
    let (inside, closes) = inside.strip_prefix('/').map_or((inside, false), |rest| (rest, true));
    let (inside, empty) = inside.strip_suffix('/').map_or((inside, false), |rest| (rest, true));
    let inside = inside.trim();
    let end = inside.find(char::is_whitespace).unwrap_or(inside.len());
    let (name, mut rest) = inside.split_at(end);
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(Tag { name, closes, empty, attributes });
        }
        let malformed = || format!("`{}` where name=\"value\" was expected", shorten(rest));
        let (key, after) = rest.split_once('=').ok_or_else(malformed)?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\'')).ok_or_else(malformed)?;
        let (value, after) = after[1..].split_once(quote).ok_or_else(malformed)?;
        attributes.push((key.trim(), unescape(value)));
        rest = after;
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

fn unescape(text: &str) -> String {
    [("&quot;", "\""), ("&apos;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |t, (entity, plain)| t.replace(entity, plain))
}

/// A set as hwloc writes it: words of 32 bits in hexadecimal, the highest first, zeros possibly left out.
fn set(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("the set \"{}\" where words such as 0x0000000f were expected", shorten(text));
    let words: Vec<&str> = text.split(',').collect();
    if words.len() * 32 > 2 * MOST_CPUS {
        return Err(wrong());
    }
    let mut members = Vec::new();
    for (index, word) in words.iter().rev().enumerate() {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let bits =
            if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).map_err(|_| wrong())? };
        members.extend((0..32).filter(|b| bits >> b & 1 == 1).map(|b| index * 32 + b));
    }
    Ok(members)
}

/// An element that is open.
struct Open {
    name: String,
    /// The set of an object that has CPUs; others pass on their parent's.
    cpus: Option<Vec<usize>>,
}

#[derive(Default)]
struct Machine {
    open: Vec<Open>,
    complete: bool,
    sets: Sets,
    model: Option<String>,
}

impl Machine {
    fn take(&mut self, tag: &Tag) -> Result<(), String> {
        if self.complete {
            return Err(format!("<{}> after </topology>", tag.name));
        }
        if tag.closes {
            return match self.open.pop() {
                Some(open) if open.name == tag.name => {
                    self.complete = self.open.is_empty();
                    Ok(())
                }
                Some(open) => Err(format!("</{}> where </{}> was expected", tag.name, open.name)),
                None => Err(format!("</{}> that closes nothing", tag.name)),
            };
        }
        if self.open.is_empty() && tag.name != "topology" {
            return Err(format!("no <topology> element but <{}>", tag.name));
        }
        let cpus = match tag.name {
            "object" => self.object(tag)?,
            "cpukind" => self.kind(tag)?,
            "info" => self.info(tag),
            // Distances, page types, memory attributes, support: nothing that places a CPU.
            _ => None,
        };
        if !tag.empty {
            self.open.push(Open { name: tag.name.to_owned(), cpus });
        }
        Ok(())
    }

    /// Takes an object, whose CPUs must be among its parent's.
    fn object(&mut self, tag: &Tag) -> Result<Option<Vec<usize>>, String> {
        let kind = tag.get("type").ok_or("an <object> without a type")?;
        let Some(cpus) = tag.get("cpuset").map(set).transpose()? else { return Ok(None) };
        let around = self.open.iter().rev().find_map(|o| o.cpus.as_ref());
        // Memory lies beside the objects it is near to.
        let memory = matches!(kind, "NUMANode" | "MemCache");
        if let Some(stray) = around.and_then(|a| cpus.iter().find(|c| a.binary_search(c).is_err())) {
            if !memory {
                return Err(format!("CPU {stray} in a {kind} but not in what is around it"));
            }
        }
        let os: Option<usize> = tag.number("os_index")?;
        match kind {
            "PU" => {
                let os = os.ok_or("a PU without an os_index")?;
                if cpus != [os] {
                    return Err(format!("PU {os} with the CPU set {cpus:?}"));
                }
                if self.sets.cpus.len() == MOST_CPUS {
                    return Err(format!("more than {MOST_CPUS} CPUs"));
                }
                self.sets.cpus.push(os);
            }
            "Core" => self.sets.cores.push(cpus.clone()),
            "Package" | "Socket" => self.sets.packages.push(cpus.clone()),
            "NUMANode" => self.sets.memory.push(MemoryNode {
                os: os.unwrap_or(self.sets.memory.len()),
                size_bytes: tag.number("local_memory")?.filter(|&b| b > 0),
                cpus: cpus.clone(),
            }),
            _ if kind.ends_with("Cache") && !memory => self.cache(tag, cpus.clone())?,
            // Machine, groups, dies and whatever later versions add.
            _ => {}
        }
        Ok(Some(cpus))
    }

    fn cache(&mut self, tag: &Tag, cpus: Vec<usize>) -> Result<(), String> {
        let kind = match tag.get("cache_type") {
            Some("1") => CacheKind::Data,
            // Instruction caches play no part in moving data.
            Some("2") => return Ok(()),
            _ => CacheKind::Unified,
        };
        self.sets.caches.push(Cache {
            level: tag.number("depth")?.ok_or("a cache without a depth")?,
            kind,
            size_bytes: tag.number("cache_size")?.filter(|&b| b > 0),
            line_bytes: tag.number("cache_linesize")?.filter(|&b| b > 0),
            cpus,
        });
        Ok(())
    }

    fn kind(&mut self, tag: &Tag) -> Result<Option<Vec<usize>>, String> {
        let cpus = set(tag.get("cpuset").ok_or("a <cpukind> without a cpuset")?)?;
        // Kinds are listed slowest first; a file may rank them otherwise.
        let rank: Option<i64> = tag.number("forced_efficiency")?;
        let kind = rank.and_then(|r| usize::try_from(r).ok()).unwrap_or(self.sets.kinds.len());
        self.sets.kinds.push(CoreKind { kind, about: String::new(), cpus });
        Ok(None)
    }

    fn info(&mut self, tag: &Tag) -> Option<Vec<usize>> {
        let (name, value) = (tag.get("name")?, tag.get("value")?);
        if self.open.last().is_some_and(|o| o.name == "cpukind") {
            if let Some(kind) = self.sets.kinds.last_mut() {
                let comma = if kind.about.is_empty() { "" } else { ", " };
                kind.about += &format!("{comma}{name} {value}");
            }
        } else if name == "CPUModel" && self.model.is_none() {
            self.model = Some(value.to_owned());
        }
        None
    }

    fn end(&mut self) -> Result<(), String> {
        if let Some(open) = self.open.last() {
            return Err(format!("the end where </{}> was expected: the file is truncated", open.name));
        }
        if !self.complete {
            return Err("no <topology> element".to_owned());
        }
        self.sets.cpus.sort_unstable();
        if let Some(pair) = self.sets.cpus.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("CPU {} twice", pair[0]));
        }
        if self.sets.cpus.is_empty() {
            return Err("no PU object".to_owned());
        }
        Ok(())
    }

    fn hardware(self, path: &Path) -> Hardware {
        let Machine { mut sets, model, .. } = self;
        // Sets may name CPUs that are offline or withheld.
        let online = |set: &mut Vec<usize>| set.retain(|c| sets.cpus.binary_search(c).is_ok());
        sets.cores.iter_mut().chain(&mut sets.packages).for_each(online);
        sets.caches.iter_mut().map(|c| &mut c.cpus).for_each(online);
        sets.memory.iter_mut().map(|n| &mut n.cpus).for_each(online);
        sets.kinds.iter_mut().map(|k| &mut k.cpus).for_each(online);
        sets.caches.sort_by_key(|c| std::cmp::Reverse(c.level));
        sets.kinds.sort_by_key(|k| k.kind);
        if sets.kinds.len() < 2 {
            sets.kinds.clear();
        }
        sets.hardware(Source::Xml(path.to_owned()), "xml", model)
    }
}
