//! The values that settings take, and how they are written. Errors say what was found; the table says what
//! was expected.

use crate::sysfile::parse_cpus_in_order;
use lineweave_core::algorithm::spec::{self, Spec};
use lineweave_core::collective::Collective;
use lineweave_core::names::did_you_mean;
use lineweave_core::plan::Params;
use lineweave_core::units::Bytes;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Way in which a rank waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Wait {
    /// Keeps looking at the flag.
    Spin,
    /// Hands the CPU over between looks.
    Yield,
    /// Sleeps in the kernel until woken.
    Sleep,
    /// All three in turn, with budgets from the profile.
    #[default]
    Auto,
}

/// Threads that work beside a program's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HelperThreads {
    /// One carries started calls on.
    pub progress: bool,
    /// One chooses the plans of calls, which run simple plans until it is done.
    pub choose: bool,
}

/// Binding of ranks to CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Bind {
    /// A CPU each; when ranks outnumber CPUs, neighbours share one. Nowhere when a quota allows fewer CPUs to
    /// be busy than there are.
    #[default]
    Auto,
    /// Nowhere.
    None,
    /// Rank i on the i-th, from the start again when ranks are more.
    Cpus(Vec<usize>),
}

impl Bind {
    /// The CPU of each rank, or nothing where the scheduler shall decide. `usable` is in the order in which
    /// ranks are placed; `busy` is how many of them can be busy at once (`UsableCpus::effective`).
    pub fn place(&self, ranks: usize, usable: &[usize], busy: usize) -> Vec<Option<usize>> {
        match self {
            Bind::None => vec![None; ranks],
            Bind::Cpus(cpus) if !cpus.is_empty() => {
                (0..ranks).map(|rank| Some(cpus[rank % cpus.len()])).collect()
            }
            Bind::Auto if ranks <= usable.len().min(busy.max(1)) => {
                usable[..ranks].iter().copied().map(Some).collect()
            }
            // Blocks of neighbours on one CPU: ranks dealt out in turn, or left to the scheduler, made barriers
            // beyond the CPUs slower (`LINEWEAVE_BIND=0,1,0,1` beside `auto` in a bench of 4 ranks on 2 CPUs).
            Bind::Auto if ranks > usable.len() && busy >= usable.len() && !usable.is_empty() => {
                (0..ranks).map(|rank| Some(usable[rank * usable.len() / ranks])).collect()
            }
            Bind::Auto | Bind::Cpus(_) => vec![None; ranks],
        }
    }
}

/// An algorithm that is used whatever the model says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Forced {
    /// For this collective.
    pub collective: Collective,
    /// Name of the algorithm, which is in the table.
    pub algorithm: String,
    /// Its parameters; those not given have their defaults. Values are checked when a plan is made.
    pub params: Params,
    /// Bytes of a window; the largest that fits, where it is not given or does not fit.
    #[serde(default)]
    pub window: Option<usize>,
}

/// Condition under which large messages are copied between processes by cross-memory attach.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Attach {
    /// Used where the kernel permits it and the profile says that it wins.
    #[default]
    Auto,
    /// Used where the kernel permits it; without a profile as if it took as long as any copy.
    On,
    /// Never.
    Off,
}

/// Places where something may be done that takes long: in a thread beside the program's calls, or within one.
#[derive(PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    Beside,
    Within,
}

/// One of the names that a type's variants have.
pub(super) fn named<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = text.into_deserializer();
    T::deserialize(name).map_err(|_| format!("`{text}`"))
}

pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("`{text}`")),
    }
}

/// A whole number, such as of ranks.
pub(super) fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}`"))
}

/// A size within bounds, in bytes.
pub(super) fn size(text: &str, least: u64, most: u64) -> Result<usize, String> {
    let Bytes(bytes) = text.parse()?;
    if bytes > most {
        return Err("too large a size".to_owned());
    }
    if bytes < least {
        return Err(format!("{bytes} bytes, too small a size"));
    }
    usize::try_from(bytes).map_err(|_| "more than this machine can address".to_owned())
}

pub(super) fn bind(text: &str) -> Result<Bind, String> {
    match text {
        "auto" => Ok(Bind::Auto),
        "none" => Ok(Bind::None),
        _ => match parse_cpus_in_order(text) {
            Ok(cpus) if !cpus.is_empty() => Ok(Bind::Cpus(cpus)),
            Ok(_) => Err("no CPU".to_owned()),
            Err(part) => Err(format!("`{part}`")),
        },
    }
}

pub(super) fn timeout(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    let seconds: f64 = text.trim_end_matches('s').parse().map_err(|_| format!("`{text}`"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(Some(duration)),
        _ => Err(format!("{seconds} seconds")),
    }
}

/// Forced algorithms: `barrier=exchange(layout=paired);reduce=tree degrees=2,2,1 by 4 KiB`, or `reduce/tree ...` as a listing has it.
pub(super) fn forced(text: &str) -> Result<Vec<Forced>, String> {
    let mut all: Vec<Forced> = Vec::new();
    for (_, part) in spec::parts(text, &[';']) {
        let (name, choice) =
            part.split_once(['=', '/']).ok_or_else(|| format!("`{}`, which has no `=`", part.trim()))?;
        let collective: Collective = name.trim().parse().map_err(|_| {
            let known: Vec<&str> = Collective::ALL.into_iter().map(Collective::name).collect();
            let (name, meant) = (name.trim(), did_you_mean(name.trim(), known.iter().copied()));
            format!("the collective `{name}`{meant}, which is none of {}", known.join(", "))
        })?;
        if all.iter().any(|f| f.collective == collective) {
            return Err(format!("two algorithms for {collective}"));
        }
        let spec: Spec = choice.parse()?;
        spec.algorithm(collective).map_err(|e| e.to_string())?;
        all.push(Forced { collective, algorithm: spec.name, params: spec.params, window: spec.window });
    }
    if all.is_empty() {
        return Err("no algorithm".to_owned());
    }
    Ok(all)
}
