//! The addresses of a text, with and without a scheme.

use crate::memory::facts::is_unspaced;

/// An address of a text.
pub(super) struct Address<'a> {
    pub(super) text: &'a str,
    /// Its host is this machine or a private network's: nobody else can serve anything there.
    pub(super) is_local: bool,
}

/// What most characters are, and ends nothing.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':')
}

/// Ends an address too.
fn ends_address(c: char) -> bool {
    !is_plain(c)
        && (c.is_whitespace() || c.is_control() || "\"'`<>|\\“”„‘’‚«»‹›…".contains(c) || is_unspaced(c))
}

/// In JSON a line ends with `\n`: the letter after the backslash is none of a word's.
fn escape(text: &str, start: usize) -> usize {
    usize::from(text[..start].ends_with('\\') && text[start..].starts_with(['n', 't', 'r']))
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
            found.push(Address { text: address, is_local: is_local(rest) });
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
    for part in text[start..end].split_inclusive(|c: char| "()[]{},;&=".contains(c)) {
        let inner = part.trim_end_matches(|c: char| "()[]{},;&=*_.:!?".contains(c));
        let word = inner.trim_start_matches(|c: char| "*_.:!?#+^~$%/".contains(c));
        if is_address(word)
            && !inner.starts_with("./")
            && !inner.starts_with("../")
            && !inner.starts_with("~/")
            && (!inner.starts_with('/') || inner.starts_with("//"))
        {
            found.push(Address { text: word, is_local: is_local(word) });
        }
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
const DOMAINS: [&str; 10] = ["com", "org", "net", "dev", "ai", "xyz", "ru", "example", "invalid", "test"];

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

/// Does a word name another machine?
pub(super) fn is_far(word: &str) -> bool {
    addresses(word).iter().any(|address| !address.is_local) || is_mail(word) || is_bare_host(word)
}

/// `somebody@host.example`
pub(super) fn is_mail(word: &str) -> bool {
    word.rsplit_once('@').is_some_and(|(name, host)| !name.is_empty() && is_host(host))
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
