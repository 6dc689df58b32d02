//! Files of the runtime import each other one way, but for circles of a few that belong together.

use crate::{crates_directory, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use syn::{Item, UseTree, Visibility};

/// The most files of one circle.
const MOST: usize = 3;

/// A module, or what is in one, from the crate's root.
type Path = Vec<String>;

/// What a file imports, by the names of the `use` declarations at its top.
#[derive(Default)]
struct Uses {
    /// What it uses itself.
    own: Vec<Path>,
    /// What it passes on to those who import it (`pub use`).
    passed_on: Vec<Path>,
}

fn uses(text: &str) -> Uses {
    let mut uses = Uses::default();
    for item in syn::parse_file(text).expect("Rust").items {
        let Item::Use(declaration) = item else { continue };
        let found = match declaration.vis {
            Visibility::Inherited => &mut uses.own,
            _ => &mut uses.passed_on,
        };
        leaves(&mut Vec::new(), &declaration.tree, found);
    }
    uses
}

/// The paths of a `use` tree; that of a glob ends with what holds the names.
fn leaves(above: &mut Path, tree: &UseTree, found: &mut Vec<Path>) {
    let mut leaf = |name: Option<String>| found.push(above.iter().cloned().chain(name).collect());
    match tree {
        UseTree::Path(path) => {
            above.push(path.ident.to_string());
            leaves(above, &path.tree, found);
            above.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(above, tree, found)),
        UseTree::Name(name) => leaf(Some(name.ident.to_string())),
        UseTree::Rename(rename) => leaf(Some(rename.ident.to_string())),
        _ => leaf(None),
    }
}

/// A path from the crate's root, or nothing where it leads out of the crate.
fn from_root(module: &[String], path: &[String], modules: &BTreeSet<Path>) -> Option<Path> {
    let up = path.iter().take_while(|part| *part == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(up)?], &path[up..]].concat()),
        child => {
            let below = [module, &[child.to_owned()]].concat();
            modules.contains(&below).then(|| [module, path].concat())
        }
    }
}

/// Which files import which, by module; what a module passes on is imported from where it is.
fn imports(name: &str) -> BTreeMap<Path, BTreeSet<Path>> {
    let source = crates_directory().join(name).join("src");
    let mut files = BTreeMap::new();
    for file in sources(&source) {
        let relative = file.strip_prefix(&source).expect("below src").with_extension("");
        let mut module: Path = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        module.retain(|part| part != "mod" && part != "lib");
        files.insert(module, uses(&fs::read_to_string(&file).expect("a readable source")));
    }
    let modules: BTreeSet<Path> = files.keys().cloned().collect();
    let mut passed_on = BTreeMap::new();
    for (module, uses) in &files {
        for target in uses.passed_on.iter().filter_map(|path| from_root(module, path, &modules)) {
            let name = [&module[..], &target[target.len() - 1..]].concat();
            passed_on.insert(name, target);
        }
    }
    let file_of = |mut target: Path| {
        // A name is passed on a few times at most: from its file to its folder to the crate's root.
        for _ in 0..8 {
            let on = (1..=target.len()).find_map(|n| Some((passed_on.get(&target[..n])?, n)));
            let Some((to, n)) = on else { break };
            target = [to, &target[n..]].concat();
        }
        (1..=target.len()).rev().map(|n| target[..n].to_vec()).find(|path| modules.contains(path))
    };
    let mut imports: BTreeMap<Path, BTreeSet<Path>> = BTreeMap::new();
    for (module, uses) in &files {
        let targets = uses.own.iter().filter_map(|path| from_root(module, path, &modules));
        let from = targets.filter_map(file_of).filter(|file| file != module);
        imports.insert(module.clone(), from.collect());
    }
    imports
}

/// Everything that is reached from a node.
fn reached<'a, T: Ord>(from: &'a T, edges: &'a BTreeMap<T, BTreeSet<T>>) -> BTreeSet<&'a T> {
    let mut found = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(next) = pending.pop() {
        for to in edges.get(next).into_iter().flatten() {
            if found.insert(to) {
                pending.push(to);
            }
        }
    }
    found
}

/// The circles of more than so many nodes.
fn circles<T: Ord>(edges: &BTreeMap<T, BTreeSet<T>>, most: usize) -> BTreeSet<Vec<&T>> {
    let all: BTreeMap<&T, BTreeSet<&T>> = edges.keys().map(|node| (node, reached(node, edges))).collect();
    let circle = |node: &&T| -> Vec<&T> {
        let mine = all[*node].iter().copied();
        mine.filter(|other| all.get(other).is_some_and(|theirs| theirs.contains(*node))).collect()
    };
    all.keys().map(circle).filter(|circle| circle.len() > most).collect()
}

#[test]
fn files_import_each_other_one_way() {
    let module = |path: &str| path.split('/').map(str::to_owned).collect::<Path>();
    for (name, files, from, to) in [
        ("lineweave", 100, "engine/windows", "engine/state"),
        ("lineweave-tune", 25, "trial/race", "trial/team"),
    ] {
        let imports = imports(name);
        assert!(imports.len() > files, "{name}: {} files import others, and there are more", imports.len());
        let followed = &imports[&module(from)];
        assert!(followed.contains(&module(to)), "imports are followed: {followed:?}");
        let found = circles(&imports, MOST);
        assert!(found.is_empty(), "circles of more than {MOST} files: {found:#?}");
    }
}

#[test]
fn a_circle_is_seen() {
    let edges = |pairs: &[(u32, u32)]| {
        let mut edges: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for &(from, to) in pairs {
            edges.entry(from).or_default().insert(to);
        }
        edges
    };
    let ring = edges(&[(1, 2), (2, 3), (3, 4), (4, 1), (4, 5)]);
    assert_eq!(circles(&ring, 3), BTreeSet::from([vec![&1, &2, &3, &4]]));
    assert_eq!(circles(&ring, 4), BTreeSet::new());
    assert_eq!(circles(&edges(&[(1, 2), (2, 3), (1, 3)]), 0), BTreeSet::new());
    let found = uses("use super::{a::{B, c}, d::E as F, g::*}; pub use h::I; fn f() { use j::K; }");
    let joined = |paths: &[Path]| paths.iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(joined(&found.own), ["super::a::B", "super::a::c", "super::d::E", "super::g"]);
    assert_eq!(joined(&found.passed_on), ["h::I"]);
}
