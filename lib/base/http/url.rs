//! The address of a service, as people write it in `base_url`, checked before a key is sent there.

use crate::base::error::{Error, Result};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub(super) https: bool,
    /// Lower case.
    pub host: String,
    pub(super) port: u16,
    /// Empty, or `/…` without a slash at its end.
    pub path: String,
}

impl Url {
    /// Reads a base URL. Without a scheme it is `http://`, as in `OLLAMA_HOST`. A slash or `/v1` at its end
    /// is dropped: the paths that are appended begin with `/v1`.
    ///
    /// The error says why, but never quotes the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Url> {
        let text = text.trim();
        if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(match c {
                c if c.is_control() => Error::config("it contains a control character"),
                ' ' => Error::config("it contains a space"),
                c => Error::config(format!("'{c}' is not ASCII; write it in its xn-- or %XX form")),
            });
        }
        let (https, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some(_) => return Err(Error::config("only http:// and https:// are supported")),
            None => (false, text),
        };
        if rest.contains(['?', '#']) {
            return Err(Error::config("it must not have a query (?) or a fragment (#)"));
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err(Error::config("it must not contain a user or password"));
        }
        let (host, port) = host_and_port(authority)?;
        let port = port.unwrap_or(if https { 443 } else { 80 });
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/').to_owned();
        Ok(Url { https, host, port, path })
    }

    /// This URL with `path`, which begins with a slash, appended.
    pub fn at(&self, path: &str) -> Url {
        Url { path: format!("{}{path}", self.path), ..self.clone() }
    }

    /// Whether it names this machine. Such requests never go through a proxy.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_end_matches('.');
        let ip = host.parse::<IpAddr>();
        host == "localhost" || host.ends_with(".localhost") || ip.is_ok_and(|ip| ip.is_loopback())
    }

    /// `host:port`, for messages and for `CONNECT`.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The value of a `Host` header: without the scheme's default port.
    fn host_header(&self) -> String {
        let authority = self.authority();
        let own = if self.https { ":443" } else { ":80" };
        authority.strip_suffix(own).map_or(authority.clone(), str::to_owned)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.host_header(), self.path)
    }
}

/// Not quoted: if a password contains a slash, that text is the start of it.
const NO_PORT: &str = "the text after the colon is not a port; ports are 1 to 65535";

/// `host` or `host:port`. minreq cannot reach the number of an IPv6 address; a name that leads to one works.
pub(super) fn host_and_port(authority: &str) -> Result<(String, Option<u16>)> {
    if authority.starts_with('[') || authority.parse::<Ipv6Addr>().is_ok() {
        return Err(Error::config("IPv6 addresses are not supported; use a host name"));
    }
    let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    if host.is_empty() {
        return Err(Error::config("it has no host"));
    }
    if let Some(c) = host.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.' | '_')) {
        return Err(Error::config(format!("a host name cannot contain '{c}'")));
    }
    let number = |port: &str| {
        let is_plain = port.bytes().all(|b| b.is_ascii_digit());
        port.parse().ok().filter(|port| is_plain && *port > 0).ok_or_else(|| Error::config(NO_PORT))
    };
    Ok((host.to_ascii_lowercase(), port.map(number).transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_read_as_people_write_them() {
        for (text, whole) in [
            ("https://api.openai.com", "https://api.openai.com"),
            ("https://api.openai.com/v1/", "https://api.openai.com"),
            ("HTTPS://Openrouter.ai/api/v1", "https://openrouter.ai/api"),
            (" http://h:80/a//", "http://h/a"),
            ("localhost:11434", "http://localhost:11434"),
            ("h", "http://h"),
            ("https://h:443", "https://h"),
            ("http://h:443", "http://h:443"),
            ("https://h/v1beta", "https://h/v1beta"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), whole, "{text}");
        }
        assert_eq!(Url::parse("h/v1").unwrap().at("/v1/x").to_string(), "http://h/v1/x");
    }

    #[test]
    fn bad_base_urls_are_refused_without_being_quoted() {
        for text in [
            "", "http://", "ftp://h", "socks5://h", "http://u:secret@h", "h:0", "h:65536", "h:", "h:+8",
            "h:8:9", "http://h/?secret", "http://h#secret", "http://h\n.x", "http://h h", "http://ö.de",
            "http://[::1", "http://[::1]x", "http://[fe80::1%eth0]", "https://[::1]", "[::1]:8", "::1",
            "http://a,b", "http://a\\b",
        ] {
            let why = Url::parse(text).unwrap_err().line();
            assert!(!why.contains("secret") && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn this_machine_is_known_by_name_and_by_number() {
        for text in ["localhost", "a.localhost", "127.9.9.9:1", "LOCALHOST."] {
            assert!(Url::parse(text).unwrap().is_loopback(), "{text}");
        }
        for text in ["localhost.example.com", "10.0.0.1", "127.0.0.1.example.com"] {
            assert!(!Url::parse(text).unwrap().is_loopback(), "{text}");
        }
    }
}
