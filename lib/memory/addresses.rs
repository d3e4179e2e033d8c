//! Addresses: the hosts in commands, the addresses of a text with and without a scheme, and which of them are near.

use crate::memory::facts::is_unspaced;
use crate::memory::lists::List;

/// Endings of files that are no top-level domains, and those that are both.
const ENDINGS: List = List("file endings");
const BOTH: List = List("endings of both");
/// Top-level domains by which a name alone in code is taken for a host.
const DOMAINS: List = List("domains");

/// The hosts of all `scheme://` addresses in a text: lower case, without user and port.
pub fn hosts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '+';
        let scheme = &rest[rest[..at].trim_end_matches(is_letter).len()..at];
        let is_address =
            scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && !scheme.eq_ignore_ascii_case("file");
        rest = &rest[at + 3..];
        if is_address && let Some(host) = authority(rest) {
            found.push(host);
        }
    }
    found
}

/// The host at the start of what follows `://`, or of an address without a scheme.
fn authority(text: &str) -> Option<String> {
    let end = text
        .find(|c: char| c.is_whitespace() || c.is_control() || "/?#\"'`<>(){}|;,、。".contains(c))
        .unwrap_or(text.len());
    let host = text[..end].rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_lowercase();
    (!host.is_empty()).then_some(host)
}

/// The host of an argument of a network program: an address, `host/path`, `user@host`, `host:path`, `:8080`.
pub fn host_of(word: &str) -> Option<String> {
    if word.contains("://") {
        return hosts(word).into_iter().next();
    }
    // As httpie has it.
    if word.strip_prefix(':').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '/')) {
        return Some("localhost".to_owned());
    }
    let host = authority(word)?;
    let is_name = host.chars().all(|c| c.is_alphanumeric() || ".-_:".contains(c));
    let is_host = host.contains('.') || host.contains(':') || is_loopback(&host);
    let is_path = word.starts_with(['.', '/', '~', '-']) || (word.starts_with('@') && !word.contains(':'));
    (is_name && is_host && !is_path).then_some(host)
}

/// Is it this machine?
pub fn is_loopback(host: &str) -> bool {
    ["localhost", "::1", "0.0.0.0"].contains(&host)
        || host.ends_with(".localhost")
        || ip(host).is_some_and(|ip| ip.is_loopback())
}

fn ip(host: &str) -> Option<std::net::Ipv4Addr> {
    host.parse().ok()
}

/// An address of a text.
pub struct Address<'a> {
    pub text: &'a str,
    /// Its host is this machine or a private network's: nobody else can serve anything there.
    is_local: bool,
}

/// What most characters are, and ends nothing.
pub fn is_plain(c: char) -> bool {
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
pub fn addresses(text: &str) -> Vec<Address<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let may_hold =
        |text: &str| memchr::memchr3(b'/', b':', b'?', text.as_bytes()).is_some() || text.contains("www.");
    // Most texts have none.
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
    text.find(|c| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        depth < 0
    })
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

/// `docs.example.com`, in code.
pub fn is_bare_host(word: &str) -> bool {
    is_host(word) && word.rsplit('.').next().is_some_and(|last| DOMAINS.has(last) || last.starts_with("xn--"))
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
            || is_port && (name.eq_ignore_ascii_case("localhost") || ip(name).is_some())
            || is_port && is_host(name) && (has_path || !BOTH.has(&ending.to_lowercase()));
    }
    let is_www = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www."));
    (has_path && (is_host(name) || ip(name).is_some() || name.eq_ignore_ascii_case("localhost")))
        || (is_www && is_host(name))
}

/// Does a word name another machine?
pub fn is_far(word: &str) -> bool {
    addresses(word).iter().any(|address| !address.is_local) || is_mail(word) || is_bare_host(word)
}

/// `somebody@host.example`
fn is_mail(word: &str) -> bool {
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
    is_ending && !ENDINGS.has(&last.to_lowercase()) && rest.split('.').all(is_label)
}

/// Is it this machine, or a network that nobody outside can serve? `rest` is an address without its scheme.
fn is_local(rest: &str) -> bool {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let name = authority.split(':').next().unwrap_or("").to_lowercase();
    let is_near = is_loopback(&name) || ip(&name).is_some_and(|ip| ip.is_private());
    !authority.contains('@') && (authority.starts_with("[::1]") || is_near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_a_program_would_ask() {
        for (text, expected) in [
            ("https://User:pw@Example.COM:8443/x?y", "example.com"),
            ("http://localhost@evil.example/", "evil.example"),
            ("http://evil.example#@localhost", "evil.example"),
            ("http://[::1]:80/x", "::1"),
            ("see <http://a.example>.", "a.example"),
            ("(ftp://a.example.)", "a.example"),
            ("見てhttps://a.example、", "a.example"),
        ] {
            assert_eq!(hosts(text), [expected], "{text}");
        }
        assert!(hosts("file:///etc/passwd ://x a:b").len() <= 1);
        for (word, expected) in [
            ("example.com/x", Some("example.com")),
            ("me@host.example:dir", Some("host.example")),
            ("localhost:8080/health", Some("localhost")),
            (":8080/health", Some("localhost")),
            ("./x.y", None),
            ("GET", None),
        ] {
            assert_eq!(host_of(word).as_deref(), expected, "{word}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["127.0.0.1.evil.example", "localhost.evil.example", "127.1.1", "10.0.0.1", "1270.0.0.1"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

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
