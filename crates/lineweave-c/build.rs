//! Gives the shared library its soname: while the version is 0.x, each x is an interface of its own. And it keeps the library loaded after `dlclose`:
//! threads of its own may be at work when the last communicator is freed.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let part = |name: &str| std::env::var(name).unwrap_or_default();
    let [major, minor] = ["CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_MINOR"].map(part);
    if part("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblineweave.so.{major}.{minor}");
    }
}
