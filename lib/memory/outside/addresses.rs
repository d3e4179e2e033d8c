//! Addresses in commands and arguments, and which of them are this machine's.

/// The hosts of all `scheme://` addresses in a text: lower case, without user and port.
pub(super) fn hosts(text: &str) -> Vec<String> {
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
pub(super) fn host_of(word: &str) -> Option<String> {
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

pub(super) fn is_loopback(host: &str) -> bool {
    let is_127 = || {
        let numbers: Vec<&str> = host.split('.').collect();
        numbers.len() == 4 && numbers[0] == "127" && numbers.iter().all(|number| number.parse::<u8>().is_ok())
    };
    ["localhost", "::1", "0.0.0.0"].contains(&host) || host.ends_with(".localhost") || is_127()
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
}
