//! How a request reaches its server: directly, or through the proxy that the environment names.
//!
//! minreq always reads the lower-case proxy variables, ignores NO_PROXY, and misreads the answers of some proxies. Where
//! one of these matters, we connect, and minreq gets a proxy on this machine that lasts for one connection: it accepts
//! minreq's `CONNECT` and passes the bytes on.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::http::error::{HttpError, HttpResult};
use crate::base::http::url::{Url, host_and_port};
use crate::base::secret::Secret;
use crate::base::sync::spawn;
use crate::base::text::one_line;
use base64::prelude::{BASE64_STANDARD, Engine};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The longest head that a proxy's answer may have, in bytes.
const HEAD_CAP: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// minreq connects.
    Direct,
    /// We connect, to the proxy or, without one, to the service itself, and relay.
    Relayed(Option<Proxy>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    pub host: String,
    port: u16,
    /// `user:password` in base64, as `Proxy-Authorization` has it.
    pub login: Option<Secret>,
    /// The variable it came from.
    variable: &'static str,
}

impl Route {
    /// The route to `url`. An error names the variable that is wrong, but not its value: it may hold a password.
    ///
    /// `https_proxy` or `http_proxy` by the URL's scheme, then `all_proxy`, each in lower case first.
    /// Requests to this machine, and those that `NO_PROXY` excepts, go direct.
    pub fn to(url: &Url, env: &Env) -> Result<Route> {
        let names: [&'static str; 4] = match url.https {
            true => ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
            false => ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
        };
        let proxy = match names.into_iter().find_map(|name| Some((name, env.text(name)?))) {
            Some((name, value)) if !url.is_loopback() && !excepted(url, env) => Some(parse(name, value)?),
            _ => None,
        };
        let minreq_sees_one =
            ["http_proxy", "https_proxy", "all_proxy"].iter().any(|name| env.os(name).is_some());
        Ok(if proxy.is_some() || minreq_sees_one { Route::Relayed(proxy) } else { Route::Direct })
    }

    /// `request` by this route.
    pub(super) fn lead(
        &self,
        request: minreq::Request,
        url: &Url,
        deadline: Deadline,
    ) -> HttpResult<minreq::Request> {
        let far = match self {
            Route::Direct => return Ok(request),
            Route::Relayed(Some(proxy)) => proxy.connect(url, deadline)?,
            Route::Relayed(None) => {
                reach(&url.host, url.port, deadline).map_err(|e| HttpError::from_io(&e, url))?
            }
        };
        let port = relay(far, deadline).map_err(HttpError::not_sent)?;
        let proxy = minreq::Proxy::new(format!("127.0.0.1:{port}")).map_err(HttpError::not_sent)?;
        Ok(request.with_proxy(proxy))
    }
}

impl Proxy {
    /// A connection through this proxy to the host of `url`.
    fn connect(&self, url: &Url, deadline: Deadline) -> HttpResult<TcpStream> {
        let name = format!("proxy {}:{} (from {})", self.host, self.port, self.variable);
        let error = |why: &str| HttpError::other(format!("{name}: {why}"));
        let to = url.authority();
        match self.request_connection(&to, deadline) {
            Ok((stream, Some(200..=299), _)) => Ok(stream),
            Ok((_, Some(407), _)) => {
                Err(error("it requires authentication, or rejected this user and password"))
            }
            Ok((_, _, line)) => Err(error(&format!("it does not connect to {to}: {}", one_line(&line, 100)))),
            Err(e) if matches!(e.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => {
                Err(HttpError::late(&name))
            }
            Err(e) => Err(error(&e.to_string())),
        }
    }

    /// The connection, and the status and first line of the proxy's answer.
    fn request_connection(
        &self,
        to: &str,
        deadline: Deadline,
    ) -> io::Result<(TcpStream, Option<u16>, String)> {
        let login = self.login.as_ref().map(Secret::expose);
        let login = login.map(|login| format!("Proxy-Authorization: Basic {login}\r\n")).unwrap_or_default();
        let mut stream = reach(&self.host, self.port, deadline)?;
        stream.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{login}\r\n").as_bytes())?;
        let head = read_head(&mut stream, deadline)?;
        let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
        let status = line.split_ascii_whitespace().nth(1).and_then(|code| code.parse().ok());
        Ok((stream, status, line))
    }
}

/// Relays one connection from 127.0.0.1 to `far`; returns the port to connect to.
fn relay(mut far: TcpStream, deadline: Deadline) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    spawn(move || -> io::Result<()> {
        let mut near = listener.accept()?.0;
        // minreq's `CONNECT`.
        read_head(&mut near, deadline)?;
        near.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        let (mut from_far, mut to_near) = (far.try_clone()?, near.try_clone()?);
        spawn(move || {
            let _ = io::copy(&mut from_far, &mut to_near);
            let _ = to_near.shutdown(Shutdown::Write);
        })?;
        let sent = io::copy(&mut near, &mut far);
        // minreq closes when it has its answer, or has given up on it.
        let _ = far.shutdown(Shutdown::Both);
        sent.map(drop)
    })?;
    Ok(port)
}

/// Connects to the first address of `host` that answers.
fn reach(host: &str, port: u16, deadline: Deadline) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, remaining(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// What is left, never zero: a socket takes zero for an error.
fn remaining(deadline: Deadline) -> io::Result<Duration> {
    match deadline.remaining() {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left.max(Duration::from_millis(1))),
    }
}

/// Reads a head up to its empty line, byte by byte: what follows is for another reader.
fn read_head(stream: &mut TcpStream, deadline: Deadline) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        stream.set_read_timeout(Some(remaining(deadline)?))?;
        if stream.read(&mut byte)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
        }
        if head.len() == HEAD_CAP {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"));
        }
        head.extend_from_slice(&byte);
    }
    stream.set_read_timeout(None)?;
    Ok(head)
}

/// Schemes of proxies that are named in a message.
const SCHEMES: &[&str] = &["https", "socks", "socks4", "socks4a", "socks5", "socks5h", "ftp"];

/// `[http://][user:password@]host[:port]`
fn parse(variable: &'static str, value: &str) -> Result<Proxy> {
    let rest = match value.trim().split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some((scheme, _)) => {
            // In a value that is not an address, this may be part of a password.
            let known = SCHEMES.iter().find(|known| scheme.eq_ignore_ascii_case(known));
            let by = known.map(|scheme| format!(" by {scheme}://")).unwrap_or_default();
            return Err(Error::config(format!("{variable}: proxies{by} are not supported, only http://")));
        }
        None => value.trim(),
    };
    let rest = rest.split('/').next().unwrap_or_default();
    let (login, authority) = match rest.rsplit_once('@') {
        Some((login, authority)) => {
            (Some(Secret::new(BASE64_STANDARD.encode(percent_decoded(login)))), authority)
        }
        None => (None, rest),
    };
    let (host, port) =
        host_and_port(authority).map_err(|e| e.context(format!("{variable}: not a valid proxy address")))?;
    Ok(Proxy { host, port: port.unwrap_or(80), login, variable })
}

/// Whether `NO_PROXY` excepts this host. Its entries are host names, which include their subdomains, with or without a
/// leading dot and a port; `*` is every host.
fn excepted(url: &Url, env: &Env) -> bool {
    let list = env.text("no_proxy").or_else(|| env.text("NO_PROXY")).unwrap_or_default();
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        let name = entry.strip_prefix("*.").unwrap_or(&entry).trim_start_matches('.');
        if name == "*" {
            return true;
        }
        let Ok((name, port)) = host_and_port(name) else { return false };
        let host = url.host.trim_end_matches('.');
        let below = host.strip_suffix(&name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        below && port.is_none_or(|port| port == url.port)
    })
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        bytes.extend_from_slice(&part.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    fn route(url: &str, vars: &[(&str, &str)]) -> Result<Route> {
        Route::to(&Url::parse(url).unwrap(), &pretend(vars))
    }

    fn proxy_host(url: &str, vars: &[(&str, &str)]) -> Option<String> {
        match route(url, vars).unwrap() {
            Route::Relayed(Some(proxy)) => Some(format!("{}:{}", proxy.host, proxy.port)),
            _ => None,
        }
    }

    #[test]
    fn the_scheme_chooses_the_variable() {
        let vars = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "h:2"), ("ALL_PROXY", "a")];
        assert_eq!(proxy_host("https://x", &vars).as_deref(), Some("s:1"));
        assert_eq!(proxy_host("http://x", &vars).as_deref(), Some("h:2"));
        assert_eq!(proxy_host("http://x", &vars[2..]).as_deref(), Some("a:80"));
        assert_eq!(route("https://x", &[]).unwrap(), Route::Direct);
        assert_eq!(
            proxy_host("https://x", &[("https_proxy", "small"), vars[0]]).as_deref(),
            Some("small:80")
        );
    }

    #[test]
    fn what_minreq_would_take_by_itself_is_kept_from_it() {
        let vars = [("http_proxy", "http://p:1")];
        assert_eq!(route("http://localhost:1", &vars).unwrap(), Route::Relayed(None));
        assert_eq!(route("http://localhost:1", &[("HTTP_PROXY", "p")]).unwrap(), Route::Direct);
    }

    #[test]
    fn no_proxy_knows_suffixes_dots_ports_and_stars() {
        for (list, goes_straight) in [
            ("example.com", true),
            (".example.com", true),
            ("*.example.com", true),
            ("a, api.example.com", true),
            ("api.example.com:443", true),
            ("api.example.com:80", false),
            ("ample.com", false),
            ("*", true),
            ("com", true),
            ("b.api.example.com", false),
        ] {
            let vars = [("HTTPS_PROXY", "p"), ("NO_PROXY", list)];
            assert_eq!(proxy_host("https://api.example.com", &vars).is_none(), goes_straight, "{list}");
        }
    }

    #[test]
    fn other_kinds_of_proxy_are_refused_without_showing_the_password() {
        for value in ["socks5://u:secret@h", "https://u:secret@h", "http://u:secret@h:99999"] {
            let why = route("https://x", &[("ALL_PROXY", value)]).unwrap_err().line();
            assert!(why.starts_with("ALL_PROXY: ") && !why.contains("secret"), "{why}");
        }
        assert!(route("http://127.0.0.1", &[("ALL_PROXY", "socks5://h")]).is_ok());
    }

    #[test]
    fn a_login_is_decoded_and_encoded() {
        let vars = [("ALL_PROXY", "http://user:p%40ss@h:3128/")];
        let Ok(Route::Relayed(Some(proxy))) = route("https://x", &vars) else { panic!() };
        assert_eq!(proxy.login.unwrap().expose(), "dXNlcjpwQHNz");
    }
}
