//! An open connection, handed to minreq as if it were a proxy.
//!
//! minreq always reads the lower-case proxy variables, ignores NO_PROXY, and cannot parse IPv6
//! addresses. So where one of these matters, we connect, and minreq gets a proxy on this machine that lasts for
//! one connection: it accepts minreq's `CONNECT` and passes the bytes on. Without TLS it does so for every connection: it
//! sees whether a chunked body came to its end, which minreq does not.

use crate::base::deadline::Deadline;
use crate::base::http::chunks::ChunkWatch;
use crate::base::http::url::Url;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// The longest head that a proxy's answer may have, in bytes.
const HEAD_CAP: usize = 16 * 1024;

/// Stands in for an IPv6 address in the URL that minreq gets.
pub(super) const STAND_IN: &str = "ipv6.invalid";

/// Relays one connection from 127.0.0.1 to `far`; returns the port to connect to, and what tells, when a body has ended,
/// whether its last chunk is missing. Nobody can tell with TLS.
pub(super) fn relay(far: TcpStream, url: &Url, deadline: Deadline) -> io::Result<(u16, Arc<AtomicBool>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let url = url.clone();
    let is_cut = Arc::new(AtomicBool::new(false));
    let ours = Arc::clone(&is_cut);
    Builder::new()
        .spawn(move || listener.accept().and_then(|(near, _)| pass(near, far, &url, &ours, deadline)))?;
    Ok((port, is_cut))
}

/// Both ways, until the far side has sent everything or minreq is gone.
fn pass(
    mut near: TcpStream,
    mut far: TcpStream,
    url: &Url,
    is_cut: &Arc<AtomicBool>,
    deadline: Deadline,
) -> io::Result<()> {
    read_head(&mut near, deadline)?;
    near.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from_far, mut to_near) = (far.try_clone()?, near.try_clone()?);
    let (is_cut, watch) = (Arc::clone(is_cut), (!url.https).then(ChunkWatch::default));
    Builder::new().spawn(move || {
        match watch {
            Some(mut watch) => {
                let _ = copy_watched(&mut from_far, &mut to_near, &mut watch);
                // Before the end that minreq sees.
                is_cut.store(watch.is_cut(), Ordering::SeqCst);
            }
            None => drop(io::copy(&mut from_far, &mut to_near)),
        }
        let _ = to_near.shutdown(Shutdown::Write);
    })?;
    let sent = send(&mut near, &mut far, url, deadline);
    // minreq closes when it has its answer, or has given up on it.
    let _ = far.shutdown(Shutdown::Both);
    sent
}

fn copy_watched(from: &mut TcpStream, to: &mut TcpStream, watch: &mut ChunkWatch) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        watch.take(&buffer[..n]);
        to.write_all(&buffer[..n])?;
    }
}

fn send(near: &mut TcpStream, far: &mut TcpStream, url: &Url, deadline: Deadline) -> io::Result<()> {
    if url.is_ipv6() {
        let head = String::from_utf8_lossy(&read_head(near, deadline)?).into_owned();
        let sent = format!("\r\nHost: {STAND_IN}:{}\r\n", url.port);
        let correct = format!("\r\nHost: {}\r\n", url.authority());
        far.write_all(head.replacen(&sent, &correct, 1).as_bytes())?;
    }
    near.set_read_timeout(None)?;
    io::copy(near, far).map(drop)
}

/// Connects to the first address of `host` that answers.
pub(super) fn reach(host: &str, port: u16, deadline: Deadline) -> io::Result<TcpStream> {
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

/// Reads byte by byte: what follows the empty line is for another reader.
pub(super) fn read_head(stream: &mut TcpStream, deadline: Deadline) -> io::Result<Vec<u8>> {
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
    Ok(head)
}
