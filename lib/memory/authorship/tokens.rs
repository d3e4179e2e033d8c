//! The words and addresses of a text, in the form in which they are compared. Notes and turns are read alike, so a
//! word that stands in both is found, whatever stands around it.

use crate::memory::facts::is_unspaced;
use std::borrow::Cow;

/// An address, and where it stands in the text.
pub(super) struct Address<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Its host is this machine or a private network's: nobody else can serve anything there.
    pub(super) is_local: bool,
}

/// Longer words are cut: nobody names anything with so many bytes.
const WORD_BYTES: usize = 500;
/// An address stands for those that it begins with, so many.
const PREFIXES: usize = 12;

/// Ends a word, of prose and of a command.
fn is_border(c: char) -> bool {
    !is_plain(c) && (ends_address(c) || "()[]{},;&=".contains(c))
}

/// What most characters are, and ends nothing.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':')
}

/// Ends an address too.
fn ends_address(c: char) -> bool {
    !is_plain(c)
        && (c.is_whitespace() || c.is_control() || "\"'`<>|\\“”„‘’‚«»‹›…".contains(c) || is_unspaced(c))
}

/// The words of a text with their places, without the punctuation at their ends.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find(|c| !is_border(c))?;
            let end = text[start..].find(is_border).map_or(text.len(), |length| start + length);
            at = end;
            let raw = &text[start + escape(text, start)..end];
            let word = trimmed(raw);
            if word.contains(char::is_alphanumeric) {
                let from = end - raw.len() + (raw.len() - raw.trim_start_matches(is_leading).len());
                return Some((from.min(end), word));
            }
        }
    })
}

/// In JSON a line ends with `\n`: the letter after the backslash is none of a word's.
fn escape(text: &str, start: usize) -> usize {
    usize::from(text[..start].ends_with('\\') && text[start..].starts_with(['n', 't', 'r']))
}

fn is_leading(c: char) -> bool {
    "*_:!?#+@^~$%./".contains(c)
}

fn trimmed(raw: &str) -> &str {
    raw.trim_start_matches(is_leading).trim_end_matches(|c: char| "*_:!?#+@^~$%./-".contains(c))
}

/// The keys under which a word is found: itself, and what it holds that has a digit (the port of `localhost:4310`).
pub(super) fn word_keys(word: &str, mut each: impl FnMut(&str)) {
    let word = &word[..crate::base::text::border(word, WORD_BYTES)];
    // Sessions are long, and most words are in lower case.
    let is_lower = word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    let word = if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) };
    if word.contains([':', '@', '/']) && word.bytes().any(|byte| byte.is_ascii_digit()) {
        let parts = word.split([':', '@', '/']).map(trimmed);
        parts
            .filter(|part| part.len() > 1 && part.bytes().any(|byte| byte.is_ascii_digit()))
            .for_each(&mut each);
    }
    each(&word);
}

/// The keys under which an address is found: itself without its scheme, and what it begins with.
pub(super) fn address_keys(address: &str, mut each: impl FnMut(&str)) {
    let whole = address_key(address);
    each(&whole);
    let ends = whole.match_indices(['/', '?', '#', ':']).map(|(at, _)| at).filter(|at| *at > 0);
    ends.take(PREFIXES).for_each(|at| each(whole[..at].trim_end_matches('/')));
}

/// An address without its scheme, the host in lower case.
pub(super) fn address_key(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest).trim_start_matches('/');
    let rest = &rest[..crate::base::text::border(rest, WORD_BYTES * 4)];
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let path = rest[host..].trim_end_matches(['/', '#', '?']);
    rest[..host].to_lowercase() + path
}

/// Every address of a text: URLs, `host/path`, `host:port`, `user@host:path`.
pub(super) fn addresses(text: &str) -> Vec<Address<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let may_hold =
        |text: &str| memchr::memchr3(b'/', b':', b'?', text.as_bytes()).is_some() || text.contains("www.");
    if !may_hold(text) {
        return found;
    }
    while let Some(start) = text[at..].find(|c| !ends_address(c)).map(|n| at + n) {
        let end = text[start..].find(ends_address).map_or(text.len(), |length| start + length);
        at = end;
        let start = start + escape(text, start);
        if may_hold(&text[start..end]) {
            of_chunk(text, start, end, &mut found);
        }
    }
    found
}

fn of_chunk<'a>(text: &'a str, mut start: usize, end: usize, found: &mut Vec<Address<'a>>) {
    while let Some(colon) = text[start..end].find("://") {
        let chunk = &text[start..end];
        let scheme = before_scheme(&chunk[..colon]);
        // What stands before it, like the text of a link, may be an address too.
        of_parts(text, start, start + scheme, found);
        // A second one in it, or the end of a link in parentheses, ends it.
        let rest = &chunk[colon + 3..];
        let limit = rest.find("://").map_or(rest.len(), |next| before_scheme(&rest[..next]));
        let closed = unopened(&rest[..limit]).unwrap_or(limit);
        let rest = rest[..closed].trim_end_matches(|c: char| "*_.,:;!?".contains(c));
        if !rest.is_empty() && colon > scheme {
            let address = &chunk[scheme..colon + 3 + rest.len()];
            found.push(Address { text: address, at: start + scheme, is_local: is_local(rest) });
        }
        start += colon + 3 + closed;
    }
    of_parts(text, start, end, found);
}

/// Where the scheme begins that a text ends with.
fn before_scheme(text: &str) -> usize {
    text.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+.-".contains(c)).len()
}

/// The first bracket that closes what was not opened.
fn unopened(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    text.char_indices()
        .find(|(_, c)| {
            depth += i32::from("([{".contains(*c)) - i32::from(")]}".contains(*c));
            depth < 0
        })
        .map(|(at, _)| at)
}

/// Addresses without a scheme.
fn of_parts<'a>(text: &'a str, start: usize, end: usize, found: &mut Vec<Address<'a>>) {
    let mut at = start;
    for part in text[start..end].split_inclusive(|c: char| "()[]{},;&=".contains(c)) {
        let inner = part.trim_end_matches(|c: char| "()[]{},;&=*_.:!?".contains(c));
        let word = inner.trim_start_matches(|c: char| "*_.:!?#+^~$%/".contains(c));
        if is_address(word)
            && !inner.starts_with("./")
            && !inner.starts_with("../")
            && !inner.starts_with("~/")
            && (!inner.starts_with('/') || inner.starts_with("//"))
        {
            let at = at + inner.len() - word.len();
            found.push(Address { text: word, at, is_local: is_local(word) });
        }
        at += part.len();
    }
}

/// Endings of files that are no top-level domains.
const ENDINGS: &[&str] = &[
    "js", "jsx", "mjs", "cjs", "ts", "tsx", "json", "jsonl", "jsonc", "toml", "yaml", "yml", "lock", "txt",
    "html", "htm", "css", "scss", "less", "java", "kt", "kts", "go", "cpp", "hpp", "xml", "csv", "tsv",
    "log", "conf", "cfg", "ini", "env", "sql", "php", "rb", "vue", "exe", "dll", "jar", "war", "tar", "gz",
    "tgz", "xz", "zst", "png", "jpg", "jpeg", "gif", "svg", "pdf", "bak", "tmp", "old", "orig", "patch",
    "diff", "lua", "exs", "nix", "wasm", "proto", "gradle", "properties", "ipynb", "swift", "sqlite", "db",
    "bash", "zig", "cs", "fs", "hs", "scala", "dart", "tex", "clj", "erl", "cmake", "bat", "vim", "rst",
    "adoc", "mdx", "astro", "svelte", "tmpl", "tpl", "hcl", "tfvars", "sass", "pyi", "pyx", "erb",
];

/// Endings of files that are top-level domains too.
const BOTH: [&str; 16] =
    ["rs", "py", "sh", "md", "pl", "ps", "so", "cc", "mov", "zip", "app", "mk", "tf", "ml", "bz", "ex"];

/// Top-level domains by which a name alone in code is taken for a host. Few: `user.name` and `logger.info` are none.
const DOMAINS: [&str; 9] = ["com", "org", "net", "dev", "ai", "xyz", "ru", "example", "invalid"];

/// `docs.example.com`, in code.
pub(super) fn is_bare_host(word: &str) -> bool {
    is_host(word)
        && word.rsplit('.').next().is_some_and(|last| DOMAINS.contains(&last) || last.starts_with("xn--"))
}

fn is_address(word: &str) -> bool {
    let after = |scheme: &str| {
        let start = word.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme));
        start.and_then(|_| word.get(scheme.len()..)).filter(|rest| !rest.is_empty())
    };
    if ["javascript:", "vbscript:", "data:"].into_iter().any(|scheme| after(scheme).is_some()) {
        return true;
    }
    // `https:/host/x` is read as a URL, too.
    if let Some(rest) = after("http:").or_else(|| after("https:")) {
        return is_address(rest.trim_start_matches('/')) || is_host(rest.trim_start_matches('/'));
    }
    let authority = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
    let path = &word[authority.len()..];
    let has_path = (path.starts_with('/') && path.len() > 1)
        || path.strip_prefix('?').is_some_and(|query| query.starts_with(char::is_alphanumeric));
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let ending = name.rsplit('.').next().unwrap_or("");
    if let Some(port) = port {
        let is_port = !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
        // `git@host:path`
        let is_path = !user.is_empty() && !port.is_empty() && is_host(name);
        return is_path
            || is_port && (name.eq_ignore_ascii_case("localhost") || is_ip(name))
            || is_port && is_host(name) && (has_path || !BOTH.contains(&ending.to_lowercase().as_str()));
    }
    let is_www = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www."));
    (has_path && (is_host(name) || is_ip(name) || name.eq_ignore_ascii_case("localhost")))
        || (is_www && is_host(name))
}

fn is_host(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let Some((rest, last)) = name.rsplit_once('.') else { return false };
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_' || c == '%')
    };
    let is_ending =
        (last.chars().count() >= 2 && last.chars().all(char::is_alphabetic)) || last.starts_with("xn--");
    is_ending && !ENDINGS.contains(&last.to_lowercase().as_str()) && rest.split('.').all(is_label)
}

fn is_ip(name: &str) -> bool {
    name.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Is it this machine, or a network that nobody outside can serve? `rest` is an address without its scheme.
fn is_local(rest: &str) -> bool {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if authority.contains('@') {
        return false;
    }
    if authority.starts_with("[::1]") {
        return true;
    }
    let name = authority.split(':').next().unwrap_or("").to_lowercase();
    match name.parse::<std::net::Ipv4Addr>() {
        Ok(ip) => ip.is_loopback() || ip.is_private() || ip.is_unspecified(),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_with_and_without_a_scheme() {
        for (text, expected) in [
            (
                "see https://a.example/x?y=1&z=2, and http://b.example.",
                &["https://a.example/x?y=1&z=2", "http://b.example"][..],
            ),
            (
                "[text](https://a.example/x) <https://b.example>",
                &["https://a.example/x", "https://b.example"],
            ),
            (
                "https://en.example/Foo_(bar) (https://b.example/c)",
                &["https://en.example/Foo_(bar)", "https://b.example/c"],
            ),
            ("evil.example/x.sh and evil.sh/i", &["evil.example/x.sh", "evil.sh/i"]),
            ("--url=evil.example/x U=https://b.example/y", &["evil.example/x", "https://b.example/y"]),
            (
                "localhost:4310/health 127.0.0.1:80 db.example:5432",
                &["localhost:4310/health", "127.0.0.1:80", "db.example:5432"],
            ),
            ("git@host.example:o/r.git user@h.example/x", &["git@host.example:o/r.git", "user@h.example/x"]),
            ("//cdn.example/x.js postgres://u@h/db", &["cdn.example/x.js", "postgres://u@h/db"]),
            ("URLはhttps://a.example/xを使う", &["https://a.example/x"]),
            (
                "https:/a.example/x www.b.example c.example?id=1",
                &["https:/a.example/x", "www.b.example", "c.example?id"],
            ),
            ("javascript:alert(1) data:text/html,x", &["javascript:alert", "data:text/html"]),
            ("hxxp://evil[.]example/x", &["hxxp://evil[.]example/x"]),
            ("{\"url\":\"https://a.example/x\\nnext\"}", &["https://a.example/x"]),
            ("https://a.example/x,https://b.example/y", &["https://a.example/x", "https://b.example/y"]),
            // None of these is one.
            ("src/main.rs ./a.rs/b ../x.com/y ~/a.com/b /etc/x.d/y main.rs:12 and/or 3.11/3.12", &[]),
            (
                "e.g./i.e. Node.js/Deno package.json/exports v1.x/v2.x a: b: 12:30 std::io::Error key:value",
                &[],
            ),
            (".github/workflows/ci.yml U.S./EU etc./x z.B./d.h. example.com http://", &[]),
        ] {
            let found: Vec<&str> = addresses(text).iter().map(|address| address.text).collect();
            assert_eq!(found, expected, "{text:?}");
            assert!(addresses(text).iter().all(|address| text[address.at..].starts_with(address.text)));
        }
    }

    #[test]
    fn an_address_is_found_by_what_it_begins_with() {
        let mut keys = Vec::new();
        address_keys("https://Docs.Example:8080/A/b?c#d", |key| keys.push(key.to_owned()));
        assert_eq!(
            keys,
            [
                "docs.example:8080/A/b?c#d", "docs.example", "docs.example:8080", "docs.example:8080/A",
                "docs.example:8080/A/b", "docs.example:8080/A/b?c"
            ]
        );
        assert_eq!(address_key("http://h.example/"), address_key("h.example"));
    }

    #[test]
    fn words_are_the_same_whatever_stands_around_them() {
        let all = |text| words(text).map(|(_, word)| word).collect::<Vec<_>>();
        assert_eq!(
            all(r#"{"command":"cargo test --lib \"facts::\"\nmake X=1"}"#),
            ["command", "cargo", "test", "--lib", "facts", "make", "X", "1"]
        );
        assert_eq!(
            all("**--force**, `./run.sh` | a-b; -k -- . 日本語cargo語"),
            ["--force", "run.sh", "a-b", "-k", "cargo"]
        );
        for text in ["./run x", "**a** b", "\\nfoo bar", "é, ü"] {
            assert!(words(text).all(|(at, word)| text[at..].starts_with(word)), "{text}");
        }
    }

    #[test]
    fn private_networks_are_local() {
        for (rest, expected) in [
            ("localhost:80/x", true),
            ("127.0.0.1", true),
            ("192.168.1.2:22", true),
            ("10.1.1.1/x", true),
            ("[::1]:80", true),
            ("localhost.evil.example/x", false),
            ("localhost@evil.example", false),
            ("8.8.8.8", false),
        ] {
            assert_eq!(is_local(rest), expected, "{rest}");
        }
    }
}
