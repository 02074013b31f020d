//! Imports run downwards only: which room may use which is the table in this file.
//!
//! A scan of the source text, comments, strings and `#[cfg(test)]` items left out, for paths that
//! start with `crate::` (in the binary: `stripmill::` and `crate::`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each room with the rooms it may use.
const ROOMS: [(&str, &[&str]); 14] = [
    ("error", &[]),
    ("func", &[]),
    ("dense", &["func", "error"]),
    ("graph", &["dense", "func", "error"]),
    ("kernels", &["func", "error"]),
    ("io", &["dense", "error"]),
    ("trace", &["error", "graph"]),
    ("import", &["graph", "dense", "func", "io::mapped", "error"]),
    ("sweep", &["graph", "error"]),
    (
        "plan",
        &[
            "graph", "sweep", "trace", "kernels", "dense", "error", "func",
        ],
    ),
    (
        "exec",
        &[
            "plan", "sweep", "graph", "kernels", "dense", "io", "trace", "func", "error",
        ],
    ),
    ("report", &["plan", "trace", "graph", "error"]),
    // The binary sees the public API, and no room of the library from inside.
    ("cli", &["cli", "stripmill"]),
    ("main", &["cli", "stripmill"]),
];

#[test]
fn imports_run_downwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.into_iter().collect();
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for file in rust_files(&src) {
        let path = file.strip_prefix(&src).unwrap();
        let room = path.components().next().unwrap().as_os_str();
        let room = room.to_str().unwrap().trim_end_matches(".rs").to_owned();
        // The crate's root names every room.
        if room == "lib" {
            continue;
        }
        seen.insert(room.clone());
        let Some(allowed) = allowed.get(room.as_str()) else {
            faults.push(format!("{}: `{room}` is no room", path.display()));
            continue;
        };
        let text = std::fs::read_to_string(&file).unwrap();
        let depth = path.components().count() - usize::from(path.ends_with("mod.rs"));
        if climbs(&text) >= depth {
            faults.push(format!("{}: `super` leaves the room", path.display()));
        }
        for used in uses(&text) {
            let inside = used == room || used.starts_with(&format!("{room}::"));
            let public = used.starts_with("stripmill") && allowed.contains(&"stripmill");
            let is = |a: &&str| used == *a || used.starts_with(&format!("{a}::"));
            if !inside && !public && !allowed.iter().any(is) {
                faults.push(format!("{}: `{room}` uses `{used}`", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        seen.contains("graph") && seen.contains("kernels"),
        "{seen:?}"
    );
}

#[test]
fn unsafe_stands_behind_marked_doors() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let doors = ["kernels/arch", "exec/arena.rs", "io/mapped.rs", "cuda"];
    for file in rust_files(&src) {
        let path = file.strip_prefix(&src).unwrap();
        let text = code(&std::fs::read_to_string(&file).unwrap());
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let found = words.any(|word| word == "unsafe");
        let door = doors.iter().any(|door| path.starts_with(door));
        assert!(door || !found, "{}: unsafe", path.display());
    }
}

#[test]
fn the_scan_finds_what_it_should() {
    let found = |text: &str| uses(text).into_iter().collect::<Vec<_>>();
    assert_eq!(found("use crate::plan::{a, b};"), ["plan"]);
    assert_eq!(found("fn f() { crate::exec::run() }"), ["exec::run"]);
    assert_eq!(
        found("use crate::{error::Error, io, plan};"),
        ["error::Error", "io", "plan"]
    );
    assert_eq!(
        found("use crate::{\n  io::{self, A, mapped::B},\n};"),
        ["io"]
    );
    assert_eq!(found("use crate::Result;"), ["error::Result"]);
    assert_eq!(
        found("// crate::plan\n/* crate::io */ \"crate::exec\""),
        [""; 0]
    );
    assert_eq!(found("/// [`crate::plan`]\nfn f() {}"), [""; 0]);
    assert_eq!(
        found("#[cfg(test)]\nmod tests { use crate::plan; }\nuse crate::io;"),
        ["io"]
    );
    assert_eq!(found("#[cfg(test)]\nmod tests;\nuse crate::io;"), ["io"]);
    assert_eq!(found("use stripmill::plan::Plan;"), ["stripmill"]);
    assert_eq!(climbs("use super::{a, super::super::b};"), 2);
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs")
            && path.file_stem().unwrap() != "tests"
        {
            files.push(path);
        }
    }
    files
}

/// The rooms that `text` names, each with the next part of its path where there is one.
fn uses(text: &str) -> BTreeSet<String> {
    let code = without_tests(&code(text));
    let mut found = BTreeSet::new();
    if code.contains("stripmill::") {
        found.insert("stripmill".to_owned());
    }
    for (at, _) in code.match_indices("crate::") {
        let path: String = code[at + "crate::".len()..].chars().collect();
        if let Some(group) = path.strip_prefix('{') {
            let mut depth = 0;
            let end = group.find(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth < 0
            });
            let mut depth = 0;
            let parts = group[..end.unwrap()].split(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                c == ',' && depth == 0
            });
            found.extend(parts.filter_map(room));
        } else {
            found.extend(room(&path));
        }
    }
    found
}

/// The longest chain of `super::` in `text`.
fn climbs(text: &str) -> usize {
    let code = without_tests(&code(text));
    let chains = (1..).take_while(|&n| code.contains(&"super::".repeat(n)));
    chains.last().unwrap_or(0)
}

/// `room` or `room::next` at the start of a path. Names at the crate's root are the error's.
fn room(path: &str) -> Option<String> {
    let word = |s: &str| {
        let end = s.find(|c: char| !c.is_alphanumeric() && c != '_');
        s[..end.unwrap_or(s.len())].to_owned()
    };
    let path = path.trim_start();
    let first = word(path);
    let next = path[first.len()..]
        .strip_prefix("::")
        .map(word)
        .unwrap_or_default();
    match first.as_str() {
        "" => None,
        "Error" | "Result" => Some(format!("error::{first}")),
        _ if next.is_empty() => Some(first),
        _ => Some(format!("{first}::{next}")),
    }
}

/// `text` without comments and the insides of string literals.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            out.push_str("\"\"");
            rest = end.map_or("", |end| &rest[end + 2..]);
        } else if rest.starts_with("'\"'") {
            rest = &rest[3..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// `code` without the items that only tests compile.
fn without_tests(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        let item = &rest[at..];
        let mut depth = 0;
        let end = item.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            (c == '}' || c == ';') && depth == 0
        });
        rest = end.map_or("", |end| &item[end + 1..]);
    }
    out + rest
}
