//! A file system that is really full, of bytes or of files: what was acknowledged before is there and whole, and when
//! there is room again the work goes on.

use crate::say;
use crate::support::{Sandbox, binary, tools};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Mounts a small file system over `$1`, in a name space of its own, and captures until it is full and the other
/// programs have tried; then makes room, and consolidates. What is there in the end is copied out to `$2`.
const SCRIPT: &str = r#"
mount -t tmpfs -o "$OPTIONS" none "$1" || exit 99
mkdir -p "$1/home/.config/agent-memory" && cd "$1" || exit 98
HOME=$1/home; export HOME
unset XDG_DATA_HOME XDG_CONFIG_HOME
memory-capture --direct --title 'The first' --body 'It stands.' > first || exit 97
id=$(sed 's/.*\(id__......\).*/\1/' first)
head -c 1700000 /dev/zero > room && for n in $(seq 250); do : > "room$n"; done
body=$(head -c 1000 /dev/zero | tr '\0' x)
refused=0
for n in $(seq 300); do
    if path=$(memory-capture --title "Note $n" --body "$body" 2>> "$2/refusals"); then
        echo "$path" >> "$2/acknowledged"
    else
        refused=$((refused + 1))
        [ $refused -lt 3 ] || break
    fi
done
[ $refused -gt 0 ] || exit 96
echo "$body$body$body" | memory-update "$id" --body - > /dev/null 2>> "$2/refusals" && echo updated >> "$2/updated"
memory-read "$id" > "$2/read" 2>> "$2/refusals" || exit 95
memory-consolidate --quiet >> "$2/refusals" 2>&1
rm room room?*
memory-consolidate --quiet 2>> "$2/after" || exit 94
memory-consolidate --quiet 2>> "$2/after" || exit 93
memory-capture --title 'The last' --body b > /dev/null || exit 92
cp -r "$1/home/.local/share/agent-memory" "$2/store"
"#;

fn captured_until_full(sandbox: &Sandbox, options: &str) -> Output {
    let (mount, out) = (sandbox.work().join("small"), sandbox.work().join("out"));
    for dir in [&mount, &out] {
        fs::create_dir_all(dir).unwrap();
    }
    let programs = binary("memory-capture").parent().unwrap().display().to_string();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", SCRIPT, "sh"]).arg(mount).arg(out);
    command.env_clear().env("PATH", format!("{programs}:{}", tools())).env("OPTIONS", options);
    command.output().unwrap()
}

#[test]
fn a_full_file_system_costs_nothing_that_was_acknowledged() {
    for (what, options) in
        [("bytes", "size=2m,nr_inodes=1000,mode=700"), ("files", "size=20m,nr_inodes=330,mode=700")]
    {
        let sandbox = Sandbox::new();
        let output = captured_until_full(&sandbox, options);
        let said = String::from_utf8_lossy(&output.stderr);
        // A name space of one's own is not to be had everywhere.
        if output.status.code() == Some(99) || said.contains("unshare") {
            say(&format!(
                "a file system without {what}: NOT tried, none can be mounted here: {}",
                said.trim_end()
            ));
            continue;
        }
        let out = sandbox.work().join("out");
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
        assert_eq!(output.status.code(), Some(0), "{what}: {said}{}{}", read("refusals"), read("after"));
        let acknowledged = read("acknowledged");
        assert!(acknowledged.lines().count() > 5, "{what}: {acknowledged}");
        assert!(read("refusals").contains("No space left on device"), "{what}: {}", read("refusals"));
        assert!(read("read").contains("It stands.") || !read("updated").is_empty(), "{what}");
        let files = |dir: &str| -> Vec<String> {
            let entries = fs::read_dir(out.join("store").join(dir)).unwrap();
            let is_whole = |path: &Path| !path.file_name().unwrap().to_string_lossy().starts_with('.');
            let paths =
                entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file() && is_whole(path));
            paths.map(|path| fs::read_to_string(path).unwrap()).collect()
        };
        let notes = files("topics");
        for n in 0..acknowledged.lines().count() {
            let name = Path::new(acknowledged.lines().nth(n).unwrap()).file_name().unwrap();
            let entry = fs::read_to_string(out.join("store/inbox/.processed").join(name)).unwrap();
            let entry: Value = serde_json::from_str(&entry).unwrap();
            let title = format!("title: {}\n", entry["retrieval"]["title"].as_str().unwrap());
            assert_eq!(notes.iter().filter(|note| note.contains(&title)).count(), 1, "{what}: {title}");
        }
        assert!(notes.iter().any(|note| note.contains("title: The first\n")), "{what}");
        say(&format!(
            "a file system without {what}: {} acknowledged, all are there",
            acknowledged.lines().count()
        ));
    }
}
