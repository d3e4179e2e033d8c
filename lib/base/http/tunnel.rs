//! A proxy of our own on this machine, for one connection: it takes minreq's `CONNECT` and goes where we say.
//!
//! minreq ignores NO_PROXY, cannot connect to IPv6 addresses, and waits for a proxy without end. Here is done
//! what it cannot do; the bytes behind the `CONNECT`, TLS or not, pass through.

use crate::base::deadline::Deadline;
use crate::base::http::fault::{Fault, FaultKind, from_io};
use crate::base::http::proxy::Proxy;
use crate::base::http::url::Url;
use crate::base::text::one_line;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest head that a proxy's answer may have, in bytes.
const HEAD: usize = 16 * 1024;

/// Stands in the `Host` header for an IPv6 address, which minreq cannot write.
pub(crate) const STAND_IN: &str = "ipv6.invalid";

pub(crate) struct Tunnel {
    pub(crate) port: u16,
    fault: Arc<Mutex<Option<Fault>>>,
}

impl Tunnel {
    pub(crate) fn open(url: &Url, proxy: Option<&Proxy>, deadline: Deadline) -> io::Result<Tunnel> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let fault = Arc::new(Mutex::new(None));
        let (url, proxy, told) = (url.clone(), proxy.cloned(), Arc::clone(&fault));
        std::thread::Builder::new().spawn(move || {
            let Ok((mut near, _)) = listener.accept() else { return };
            drop(listener);
            if read_head(&mut near, deadline).is_err() {
                return;
            }
            match connect(&url, proxy.as_ref(), deadline) {
                Ok(far) => {
                    let _ = near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").and_then(|()| pass(near, far, &url));
                }
                Err(why) => {
                    *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    let _ = near.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
                }
            }
        })?;
        Ok(Tunnel { port, fault })
    }

    /// Why there was no connection, where that was it.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn connect(url: &Url, proxy: Option<&Proxy>, deadline: Deadline) -> Result<TcpStream, Fault> {
    let Some(proxy) = proxy else {
        return reach(&url.host, url.port, deadline).map_err(|e| from_io(&e, url));
    };
    let name = format!("proxy {}:{} (from {})", proxy.host, proxy.port, proxy.variable);
    let fault = |why: String| Fault { kind: FaultKind::Proxy, message: format!("{name}: {why}") };
    let told = |e: io::Error| match e.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            Fault { kind: FaultKind::Deadline, message: format!("no answer from {name} in time") }
        }
        _ => fault(e.to_string()),
    };
    let mut far = reach(&proxy.host, proxy.port, deadline).map_err(told)?;
    let to = url.authority();
    let mut head = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
    if let Some(login) = &proxy.login {
        head += &format!("Proxy-Authorization: Basic {}\r\n", login.expose());
    }
    head += "\r\n";
    far.write_all(head.as_bytes()).map_err(told)?;
    let answer = read_head(&mut far, deadline).map_err(told)?;
    let line = String::from_utf8_lossy(answer.split(|b| *b == b'\n').next().unwrap_or_default()).into_owned();
    match line.split_ascii_whitespace().nth(1).and_then(|code| code.parse::<u16>().ok()) {
        Some(200..=299) => {
            far.set_read_timeout(None).map_err(told)?;
            Ok(far)
        }
        Some(407) => Err(fault("it wants a user and password, or other ones".to_owned())),
        _ => Err(fault(format!("it does not connect to {to}: {}", one_line(&line, 100)))),
    }
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

/// What is left, never zero: a socket takes that for an error.
fn remaining(deadline: Deadline) -> io::Result<Duration> {
    match deadline.remaining() {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left.max(Duration::from_millis(1))),
    }
}

/// Byte by byte: what follows the empty line is not ours.
fn read_head(stream: &mut TcpStream, deadline: Deadline) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        stream.set_read_timeout(Some(remaining(deadline)?))?;
        if stream.read(&mut byte)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
        }
        if head.len() == HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer has no end"));
        }
        head.extend_from_slice(&byte);
    }
    Ok(head)
}

/// Both ways until the far side has said all, or minreq has gone.
fn pass(mut near: TcpStream, mut far: TcpStream, url: &Url) -> io::Result<()> {
    near.set_read_timeout(None)?;
    let (mut from_far, mut to_near) = (far.try_clone()?, near.try_clone()?);
    std::thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut from_far, &mut to_near);
        let _ = to_near.shutdown(Shutdown::Write);
    })?;
    let sent = send(&mut near, &mut far, url);
    // minreq closes when it has its answer, or when it has given up on it.
    let _ = far.shutdown(Shutdown::Both);
    sent
}

fn send(near: &mut TcpStream, far: &mut TcpStream, url: &Url) -> io::Result<()> {
    if url.host.contains(':') {
        let head = read_head(near, Deadline::after_seconds(60))?;
        let own = format!("\r\nHost: {STAND_IN}:{}\r\n", url.port);
        let right = format!("\r\nHost: {}\r\n", url.authority());
        far.write_all(String::from_utf8_lossy(&head).replacen(&own, &right, 1).as_bytes())?;
        near.set_read_timeout(None)?;
    }
    io::copy(near, far).map(drop)
}
