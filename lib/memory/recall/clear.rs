//! Which notes clearly answer a prompt. Most prompts are answered by none, and a note that does not fit costs more than it
//! gives: it takes room in the session for good.

use crate::memory::search::Strength;

/// Does a note with this strength clearly answer?
///
/// The numbers were chosen on one half of the prompts of `tests/recall/prompts.txt`; a test holds them on the other.
pub(super) fn is_clear(strength: &Strength) -> bool {
    strength.line >= 1.2 && strength.share >= 0.3
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, clippy::print_stdout, reason = "tuning")]
mod tuning {
    use crate::memory::recall::matching::matching;
    use crate::memory::search::{Cache, Query};
    use crate::store::place::Root;

    #[test]
    fn table() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(&dir.path().join("s"));
        root.make().unwrap();
        let notes = std::fs::read_to_string("tests/recall/notes.txt").unwrap();
        let digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".as_bytes();
        for (n, line) in notes.lines().filter(|l| !l.starts_with('#')).enumerate() {
            let mut parts = line.splitn(3, " | ");
            let (key, title, text) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let id = format!("AAAA{}{}", digits[n / 58] as char, digits[n % 58] as char);
            std::fs::write(
                root.topics().join(format!("{key} -- id__{id}.md")),
                format!("---\nid: id__{id}\ntitle: {:?}\n---\n\n{text}\n", title),
            )
            .unwrap();
        }
        let cache = Cache::none();
        let mut out = String::new();
        for line in std::fs::read_to_string("tests/recall/prompts.txt").unwrap().lines().filter(|l| !l.starts_with('#')) {
            let mut parts = line.splitn(3, " | ");
            let (half, keys, prompt) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let query = Query::of_prompt(prompt);
            let found = matching(&root, &cache, &query, None, jiff::civil::date(2026, 1, 1), 4).unwrap();
            assert!(found.broken.is_empty(), "{:?}", found.broken);
            for f in found.found {
                let name = f.path.file_name().unwrap().to_str().unwrap().split(' ').next().unwrap().to_owned();
                let s = f.strength;
                out += &format!("{half}\t{keys}\t{name}\t{:.3}\t{:.3}\t{:.3}\t{:.3}\t{}\t{:.3}\t{}\n", s.all, s.subject, s.line, s.share, s.terms, f.score, &prompt.chars().take(50).collect::<String>());
            }
        }
        std::fs::write("/tmp/h17a_table.tsv", out).unwrap();
    }
}
