//! The layers: a file in `lib/` imports only from its own layer and lower ones, and no two files import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The layers, the lowest first.
const LAYERS: &[&str] = &[
    "base", "harness", "config", "store", "provider", "prompt", "agent", "memory", "schedule", "program",
    "fuzz",
];

/// The module path of each file, with its code without that of tests.
fn modules() -> BTreeMap<String, String> {
    fn walk(dir: &Path, module: &str, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if stem == "tests" {
                continue;
            }
            if path.is_dir() {
                walk(&path, &format!("{module}{stem}::"), into);
                continue;
            }
            let name = match stem.as_str() {
                "lib" => continue,
                "mod" => module.trim_end_matches("::").to_owned(),
                stem => format!("{module}{stem}"),
            };
            let text = fs::read_to_string(&path).unwrap();
            into.insert(name, text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned());
        }
    }
    let mut all = BTreeMap::new();
    walk(Path::new("lib"), "", &mut all);
    // The library includes it for tests and fuzzers.
    walk(Path::new("tests/properties"), "fuzz::", &mut all);
    all
}

/// The modules that each file names.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    /// `base::{cli, exec}` → `base::cli`, `base::exec`; `base::cli::Reporter` → itself.
    fn paths(rest: &str) -> Vec<String> {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_:{}, ".contains(c))).unwrap_or(rest.len());
        match rest[..end].split_once("::{") {
            Some((base, list)) => list
                .trim_end_matches(['}', ' '])
                .split(',')
                .map(|name| format!("{base}::{}", name.trim().trim_end_matches('}')))
                .collect(),
            None => {
                let path = rest[..end].split([' ', ',', '{', '}']).next().unwrap_or("");
                vec![path.trim_end_matches(':').to_owned()]
            }
        }
    }
    let used = |(name, code): (String, String)| {
        let mut used = BTreeSet::new();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            used.extend(line.split("crate::").skip(1).flat_map(paths));
            assert!(!line.contains("super::"), "{name}: write crate:: paths, so that this test sees them");
        }
        (name, used)
    };
    modules().into_iter().map(used).collect()
}

fn layer(module: &str) -> usize {
    let name = module.split("::").next().unwrap();
    LAYERS.iter().position(|layer| *layer == name).unwrap_or_else(|| panic!("{module}: no such layer"))
}

#[test]
fn nothing_is_imported_from_a_layer_above() {
    let imports = imports();
    assert!(imports.len() > 20 && imports.values().any(|used| used.len() > 5), "{imports:?}");
    assert!(imports.keys().filter(|module| layer(module) == LAYERS.len() - 1).count() > 15, "{imports:?}");
    for (module, used) in &imports {
        for other in used {
            assert!(layer(other) <= layer(module), "{module} imports {other}, which is in a higher layer");
        }
    }
}

#[test]
fn no_two_files_import_each_other() {
    let imports = imports();
    // `a::b::Thing` is the file `a::b`: the longest module that its path begins with.
    let file_of = |path: &str| {
        let mut path = path;
        loop {
            if imports.contains_key(path) {
                return Some(path.to_owned());
            }
            path = path.rsplit_once("::")?.0;
        }
    };
    let needs: BTreeMap<&String, BTreeSet<String>> = imports
        .iter()
        .map(|(module, used)| {
            let files = used.iter().filter_map(|path| file_of(path)).filter(|file| file != module);
            (module, files.collect())
        })
        .collect();
    fn visit<'a>(
        module: &'a String,
        needs: &'a BTreeMap<&String, BTreeSet<String>>,
        trail: &mut Vec<&'a String>,
        done: &mut BTreeSet<&'a String>,
    ) {
        if let Some(start) = trail.iter().position(|seen| *seen == module) {
            panic!("a circle: {:?}", &trail[start..]);
        }
        if done.contains(module) {
            return;
        }
        trail.push(module);
        for next in &needs[module] {
            visit(next, needs, trail, done);
        }
        trail.pop();
        done.insert(module);
    }
    let mut done = BTreeSet::new();
    for module in needs.keys() {
        visit(module, &needs, &mut Vec::new(), &mut done);
    }
}

#[test]
fn every_dependency_says_why_it_is_here() {
    let manifest = fs::read_to_string("Cargo.toml").unwrap();
    let mut section = "";
    let mut seen = 0;
    for line in manifest.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]") {
            let reason = line.split_once(" # ").map_or("", |(_, reason)| reason.trim());
            assert!(reason.split(' ').count() >= 2, "Cargo.toml: no reason for this dependency: {line}");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} dependencies were seen");
}

#[test]
fn a_name_stands_for_one_type() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (module, code) in modules().iter().filter(|(module, _)| !module.starts_with("fuzz")) {
        for line in code.lines() {
            let line =
                line.strip_prefix("pub").and_then(|rest| rest.split_once(' ')).map_or(line, |(_, rest)| rest);
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            if ["struct", "enum", "trait", "type"].contains(&kind) {
                let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap();
                places.entry(name.to_owned()).or_default().push(module.clone());
            }
        }
    }
    assert!(places.len() > 400, "{}", places.len());
    places.retain(|_, modules| modules.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}
