//! A server's answer, byte for byte over a socket of this machine.

use crate::base::deadline::Deadline;
use crate::base::http::error::HttpErrorKind;
use crate::base::http::proxy::Route;
use crate::base::http::url::Url;
use crate::fuzz::is_told;
use crate::provider::retry::{backoff, retry_after};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::time::Duration;

pub fn holds(bytes: &[u8]) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let said = bytes.to_vec();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The whole request is read first: a connection closed with something unread is reset.
        let (mut request, mut block) = (Vec::new(), [0; 4096]);
        while !request.ends_with(b"{}") {
            match stream.read(&mut block) {
                Ok(n @ 1..) => request.extend_from_slice(&block[..n]),
                _ => return,
            }
        }
        let _ = stream.write_all(&said).and_then(|()| stream.shutdown(Shutdown::Write));
        let _ = stream.read(&mut block);
    });
    let deadline = Deadline::after(Duration::from_secs(5));
    let answer = Route::Direct.post(&url.at("/x"), &[], b"{}".to_vec(), deadline, None);
    assert!(!deadline.passed(), "the answer is over, and still waited for");
    server.join().unwrap();
    match answer {
        Ok(answer) => {
            assert!(matches!(answer.status, 200..=299 | 400..=599), "{}", answer.status);
            // A body is what was sent, and never more. (In chunks it is not sent in one piece.)
            assert!(answer.body.len() <= bytes.len());
            if !bytes.to_ascii_lowercase().windows(7).any(|word| word == b"chunked") {
                assert!(
                    bytes.ends_with(&answer.body)
                        || bytes.windows(answer.body.len().max(1)).any(|part| part == answer.body)
                );
            }
            let headers = ["retry-after", "request-id", "content-type"].map(|name| answer.header(name));
            assert!(
                headers
                    .into_iter()
                    .flatten()
                    .chain([answer.reason.clone()])
                    .all(|text| !text.contains(char::is_control))
            );
            if let Some(value) = &answer.header("retry-after") {
                let asked = retry_after(value, "2026-02-28T15:04:05Z".parse().unwrap());
                assert!(backoff(3, asked, 7) <= asked.unwrap_or(Duration::from_secs(30)));
            }
        }
        Err(error) => {
            is_told(&error.message);
            assert!(!error.message.contains(char::is_control), "{:?}", error.message);
            assert!(!matches!(error.kind, HttpErrorKind::Deadline | HttpErrorKind::Refused), "{error:?}");
        }
    }
}
