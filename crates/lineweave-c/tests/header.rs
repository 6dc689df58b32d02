//! The committed header equals the output of cbindgen for the sources, with enumerations in place of numbers. Every function in it
//! states its effect and its errors, and shows an example.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The sources in the order of the header. `rows` are the blocking functions of src/rows.rs, and `started` its other functions.
const SOURCES: [&str; 16] = [
    "status",
    "types",
    "operators",
    "handle",
    "progress",
    "team",
    "communicators",
    "shared",
    "collectives",
    "rows",
    "uneven",
    "messages",
    "requests",
    "started",
    "barrier",
    "planner",
];

/// Types that are numbers for the library, since C may pass any number, and enumerations for C, whose compilers tell them apart. The
/// least value of each makes it a signed number of 32 bits in every compiler, as the library takes it.
const ENUMERATIONS: [(&str, &str); 4] = [
    ("lw_type", "LW_TYPE_LEAST"),
    ("lw_op", "LW_OP_LEAST"),
    ("lw_level", "LW_LEVEL_LEAST"),
    ("lw_collective", "LW_COLLECTIVE_LEAST"),
];

/// An operator for C++, which otherwise turns two enumerators into a number.
const CPLUSPLUS: &str = "#ifdef __cplusplus
static inline lw_op operator|(lw_op a, lw_op b) { return (lw_op)((int32_t)a | (int32_t)b); }
#endif";

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Returns the sources, with the rows of src/rows.rs expanded to the functions that its macros make.
fn sources() -> [String; 16] {
    let read = |file: &str| std::fs::read_to_string(here(&format!("src/{file}.rs"))).expect("a source");
    let [blocks, started] = functions(&read("rows"));
    SOURCES.map(|file| match file {
        "rows" => blocks.clone(),
        "started" => started.clone(),
        _ => read(file),
    })
}

/// Returns the functions that the rows make: the blocking ones, and those that start or prepare a call, in the order of C's names.
fn functions(text: &str) -> [String; 2] {
    let (mut blocking, mut starts, mut inits) = (String::new(), String::new(), String::new());
    let (_, table) = text.split_once("\ncollectives! {\n").expect("the table");
    for row in table.split_inclusive(";\n") {
        let lines =
            || row.lines().map(str::trim).filter(|line| !line.starts_with('}') && !line.contains("! {"));
        let docs: Vec<&str> = lines().filter_map(|line| line.strip_prefix("/// ")).collect();
        let row: Vec<&str> = lines().filter(|line| !line.starts_with("///")).collect();
        let Some((blocks, row)) =
            row.join(" ").trim().split_once(": ").map(|(b, r)| (b.to_owned(), r.to_owned()))
        else {
            continue;
        };
        let (names, row) = row.split_once(", \"").expect("names");
        let (start, init) = names.split_once(", ").expect("two names");
        let (example, row) = row.split_once("\", (").expect("an example");
        let (parameters, _) = row.split_once(") = ").expect("parameters");
        let before = if parameters.is_empty() { "" } else { ", " };
        let function = |out: &mut String, name: &str, does: &str, more: [&str; 2]| {
            let [example_end, parameter] = more;
            write!(
                out,
                "\n/**\n * {does}\n *\n *     {name}({example}{example_end});\n */\n#[no_mangle]\n\
                 pub unsafe extern \"C\" fn {name}(comm: *mut lw_comm{before}{parameters}{parameter}) -> lw_status {{ 0 }}\n"
            )
            .expect("text");
        };
        if !docs.is_empty() {
            function(&mut blocking, &blocks, &docs.join("\n * "), ["", ""]);
        }
        let errors = format!("Errors: those of {blocks} that this rank can tell alone, LW_ERR_NULL.");
        let waited = format!(
            "Starts {blocks}; *request is to be waited for, which may fail as {blocks} does.\n * {errors}"
        );
        let more = [", &request", ", request: *mut *mut lw_request"];
        function(&mut starts, start, &waited, more);
        function(
            &mut inits,
            init,
            &format!("Prepares {blocks}; lw_start starts *request.\n * {errors}"),
            more,
        );
    }
    [blocking, starts + &inits]
}

/// Returns the names of the constants of a type, as the sources declare them.
fn constants(of: &str) -> Vec<String> {
    let sources = sources();
    let lines = sources.iter().flat_map(|text| text.lines());
    let declared = lines.filter_map(|line| line.strip_prefix("pub const ")?.split_once(": "));
    declared
        .filter(|(_, rest)| rest.starts_with(&format!("{of} =")))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Puts each comment of one line on one line.
fn shorter(text: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let [.., start, middle] = &out[..] else {
            out.push(line.to_owned());
            continue;
        };
        let lone = start.trim() == "/*" && line.trim() == "*/" && !middle.trim_start().starts_with('*');
        match lone {
            true => {
                let comment = format!("{}/* {} */", &start[..start.len() - 2], middle.trim());
                out.truncate(out.len() - 2);
                out.push(comment);
            }
            false => out.push(line.to_owned()),
        }
    }
    out.join("\n") + "\n"
}

/// Moves the constants of a type into an enumeration at the type's declaration.
fn enumerate(text: &str, name: &str, least: &str) -> String {
    let members = constants(name);
    assert!(members.len() > 2, "{name} has no constants");
    let is_member = |part: &&str| {
        let defined = part.lines().last().and_then(|line| line.strip_prefix("#define "));
        defined.is_some_and(|line| members.iter().any(|m| line.split(' ').next() == Some(m)))
    };
    let (of_type, others): (Vec<&str>, Vec<&str>) = text.split("\n\n").partition(is_member);
    assert_eq!(of_type.len(), members.len(), "{name}: a constant has no comment, or is not in the header");
    let mut list = format!("typedef enum {name} {{\n");
    for part in of_type {
        for line in part.trim_start().lines() {
            match line.strip_prefix("#define ").and_then(|line| line.split_once(' ')) {
                Some((member, value)) => writeln!(list, "  {member} = {value},"),
                None => writeln!(list, "  {line}"),
            }
            .expect("text");
        }
    }
    write!(list, "  /* None: makes each a signed number of 32 bits. */\n  {least} = INT32_MIN\n}} {name};")
        .expect("text");
    if name == "lw_op" {
        write!(list, "\n\n{CPLUSPLUS}").expect("text");
    }
    let declared = format!("typedef int32_t {name};");
    let text = others.join("\n\n");
    assert!(text.contains(&declared), "{name} is not declared");
    text.replace(&declared, &list)
}

#[test]
fn the_header_is_made_from_the_sources() {
    let config = cbindgen::Config::from_file(here("cbindgen.toml")).expect("a configuration");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for (file, text) in SOURCES.iter().zip(sources()) {
        let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{file}.rs"));
        std::fs::write(&written, text).expect("a file");
        builder = builder.with_src(written);
    }
    let mut made = Vec::new();
    builder.generate().expect("bindings").write(&mut made);
    let mut made = shorter(&String::from_utf8(made).expect("text"));
    for (name, least) in ENUMERATIONS {
        made = enumerate(&made, name, least);
    }
    let file = here("include/lineweave.h");
    if std::env::var_os("LINEWEAVE_WRITE_HEADER").is_some() {
        std::fs::write(&file, &made).expect("a writable header");
    }
    let kept = std::fs::read_to_string(&file).expect("the committed header");
    assert!(
        made == kept,
        "include/lineweave.h is out of date; write it with LINEWEAVE_WRITE_HEADER=1 cargo test -p lineweave-c --test header"
    );
}

#[test]
fn every_function_says_what_can_go_wrong_and_shows_an_example() {
    let header = std::fs::read_to_string(here("include/lineweave.h")).expect("the header");
    let mut functions = 0;
    for part in header.split("\n\n") {
        let (comment, declared) = part.rsplit_once("*/\n").unwrap_or(("", part));
        let name = declared.split('(').next().and_then(|head| head.rsplit([' ', '*']).next()).unwrap_or("");
        if !declared.trim_end().ends_with(");") || declared.starts_with("typedef") {
            continue;
        }
        functions += 1;
        let lines = || comment.lines().filter_map(|line| line.strip_prefix(" * "));
        let example = lines().any(|line| line.starts_with("    ") && line.contains(&format!("{name}(")));
        assert!(example, "{name} has no example");
        assert!(lines().next().is_some_and(|line| line.len() > 12), "{name} does not say what it does");
        let fails = declared.starts_with("lw_status ");
        assert!(!fails || comment.contains("Errors: "), "{name} does not say what can go wrong");
    }
    let declared: usize = sources().iter().map(|text| text.matches("extern \"C\" fn lw_").count()).sum();
    assert_eq!(functions, declared);
}
