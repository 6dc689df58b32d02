//! The committed header is what cbindgen makes of the sources.

use std::path::Path;

#[test]
fn the_header_is_made_from_the_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("a configuration");
    let mut builder = cbindgen::Builder::new().with_config(config);
    let sources = [
        "status",
        "types",
        "operators",
        "handle",
        "team",
        "communicators",
        "shared",
        "collectives",
        "uneven",
        "messages",
        "requests",
        "nonblocking",
        "persistent",
        "barrier",
    ];
    for file in sources {
        builder = builder.with_src(here.join(format!("src/{file}.rs")));
    }
    let mut made = Vec::new();
    builder.generate().expect("bindings").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let file = here.join("include/lineweave.h");
    if std::env::var_os("LINEWEAVE_WRITE_HEADER").is_some() {
        std::fs::write(&file, &made).expect("a writable header");
    }
    let kept = std::fs::read_to_string(&file).expect("the committed header");
    assert!(
        made == kept,
        "include/lineweave.h is out of date; write it with LINEWEAVE_WRITE_HEADER=1 cargo test -p lineweave-c --test header"
    );
}
