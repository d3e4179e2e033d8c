//! Where a call goes: addresses that are none, keys that no header takes, proxies, TLS, IPv6.

use crate::http_faults::one_line;
use crate::support::api::{Anthropic, KEY, KINDS, OpenAi};
use crate::support::processes::LONG;
use crate::support::server::{Server, http, raw};
use crate::support::{Said, Sandbox};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "[memory]\nenabled = true");
    sandbox
}

#[test]
fn bad_base_urls_are_configuration_errors() {
    for (url, says) in [
        ("ftp://h", "only http:// and https://"),
        ("http://", "no host"),
        ("http://:80", "no host"),
        ("http://h:0", "not a port"),
        ("http://h:65536", "not a port"),
        ("http://h:x", "not a port"),
        ("http://u:sk-secret-0123@h", "user or password"),
        ("http://h?key=sk-secret-0123", "query"),
        ("http://h/#x", "fragment"),
        ("http://[::1", "IPv6"),
        ("http://[::1]:8080", "IPv6 addresses are not supported; use a host name"),
        ("[::1]", "IPv6"),
        ("http://[::g]", "IPv6"),
        ("https://[::1]", "IPv6"),
        ("http://a b", "space"),
        ("http://a\nb", "control character"),
        ("http://\u{fc}.example", "ASCII"),
        ("http://a|b", "'|'"),
    ] {
        for kind in KINDS {
            let sandbox = Sandbox::new();
            sandbox.model("a", kind, "[memory]\nenabled = true");
            let output = sandbox.asking("a", url).output().unwrap();
            one_line(&output, 2, url);
            assert!(
                output.err().contains("base URL") && output.err().contains(says),
                "{url}: {}",
                output.err()
            );
            assert!(!sandbox.log_path("a").exists());
        }
    }
}

#[test]
fn a_key_that_no_header_takes_is_a_configuration_error() {
    for kind in KINDS {
        for key in
            ["sk-secret-0123\nHost: evil", "sk-secret-0123\rx", "sk-secret-0123\u{e4}", "sk-secret-0123\tx"]
        {
            let sandbox = Sandbox::new();
            sandbox.model("a", kind, "[memory]\nenabled = true");
            let server = Server::playing([kind.says("x")]);
            let mut command = sandbox.asking("a", &server.url());
            let output =
                command.env(format!("{}_API_KEY", kind.name().to_uppercase()), key).output().unwrap();
            one_line(&output, 2, key);
            assert!(server.requests().is_empty() && !sandbox.log_path("a").exists());
        }
    }
}

#[test]
fn a_key_may_have_a_line_break_at_its_end() {
    let server = Server::playing([Anthropic.says("x")]);
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "");
    let mut command = sandbox.asking("a", &server.url());
    let output = command.env("ANTHROPIC_API_KEY", format!("{KEY}\r\n")).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    assert_eq!(server.request().header("x-api-key"), Some(KEY));
    assert_eq!(server.request().body["model"], "m-1");
}

#[test]
fn nobody_there_is_told_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    drop(listener);
    for scheme in ["http", "https"] {
        let output = sandbox().asking("a", &format!("{scheme}://{at}")).output().unwrap();
        one_line(&output, 3, scheme);
        assert!(output.err().contains(&format!("server: connection refused: {at}")), "{}", output.err());
    }
}

#[test]
fn a_redirect_to_another_host_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let other = Server::playing([OpenAi.says("stolen")]);
        let to = format!("{status} Elsewhere\r\nLocation: {}/v1/chat/completions", other.url());
        let server = Server::playing([http(&to, "")]);
        let output = sandbox().asking("a", &server.url()).output().unwrap();
        one_line(&output, 3, &to);
        assert!(output.err().contains(&other.url()), "{}", output.err());
        assert!(other.requests().is_empty(), "{status}");
    }
}

#[test]
fn a_proxy_is_asked_to_connect() {
    let proxy = Server::playing([raw("HTTP/1.1 200 Connection established\r\n\r\n"), OpenAi.says("hello")]);
    let sandbox = sandbox();
    let mut command = sandbox.asking("a", "http://model.invalid:8080");
    let at = format!("http://user:pa%40ss@127.0.0.1:{}/", proxy.port());
    let output = command.env("HTTP_PROXY", at).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "hello"), "{}", output.err());
    let asked = proxy.requests();
    assert_eq!((asked[0].method.as_str(), asked[0].path.as_str()), ("CONNECT", "model.invalid:8080"));
    // user:pa@ss
    assert_eq!(asked[0].header("proxy-authorization"), Some("Basic dXNlcjpwYUBzcw=="));
    assert_eq!(asked[0].header("authorization"), None);
    assert_eq!((asked[1].method.as_str(), asked[1].path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(asked[1].header("host"), Some("model.invalid:8080"));
    assert_eq!(asked[1].header("proxy-authorization"), None);
}

#[test]
fn no_proxy_and_this_machine_go_straight() {
    for (host, variable, exceptions) in [
        ("127.0.0.1", "http_proxy", ""),
        ("localhost", "ALL_PROXY", ""),
        ("0.0.0.0", "http_proxy", "0.0.0.0"),
        ("0.0.0.0", "HTTP_PROXY", "x, *"),
    ] {
        let proxy = Server::playing([]);
        let server = Server::playing([OpenAi.says("hello")]);
        let sandbox = sandbox();
        let mut command = sandbox.asking("a", &format!("http://{host}:{}", server.port()));
        let output = command.env(variable, proxy.url()).env("NO_PROXY", exceptions).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "hello"), "{host}: {}", output.err());
        assert!(proxy.requests().is_empty(), "{host}");
    }
}

#[test]
fn proxies_that_fail_are_named_without_their_password() {
    for (answer, timeout, says) in [
        (http("407 Proxy Authentication Required", ""), 30, "requires authentication"),
        (http("502 Bad Gateway", ""), 600, "does not connect to model.invalid:80"),
        (raw(""), 600, "closed the connection"),
        (raw("").stall(), 1, "in time"),
        (raw("HTTP/1.1 200 OK\r\n").trickle("x: y\r\n"), 1, "in time"),
    ] {
        let proxy = Server::playing([answer]);
        let sandbox = sandbox();
        let mut command = sandbox.asking("a", "http://model.invalid");
        let at = format!("http://user:sk-secret-0123@127.0.0.1:{}", proxy.port());
        let start = Instant::now();
        let output =
            command.env("http_proxy", at).args(["--timeout", &timeout.to_string()]).output().unwrap();
        assert!(start.elapsed() < LONG, "{says}");
        one_line(&output, 3, says);
        assert!(output.err().contains(says), "{says}: {}", output.err());
        assert_eq!(proxy.requests().len(), 1);
        assert!(!sandbox.log_path("a").exists());
    }
}

#[test]
fn other_kinds_of_proxy_are_refused() {
    for proxy in ["socks5://u:sk-secret-0123@127.0.0.1:9", "socks5h://127.0.0.1:9", "https://127.0.0.1:9"] {
        let output = sandbox().asking("a", "http://model.invalid").env("ALL_PROXY", proxy).output().unwrap();
        one_line(&output, 2, proxy);
        assert!(
            output.err().contains("ALL_PROXY") && output.err().contains("not supported"),
            "{}",
            output.err()
        );
    }
}

#[test]
fn https_to_a_server_without_tls_fails_clearly() {
    for answer in [http("400 Bad Request", "plain"), raw("")] {
        let server = Server::deaf(answer);
        let sandbox = sandbox();
        let url = server.url().replace("http://", "https://");
        let output = sandbox.asking("a", &url).args(["--timeout", "30"]).output().unwrap();
        one_line(&output, 3, "plain");
        assert!(!sandbox.log_path("a").exists());
    }
    let server = Server::deaf(raw("").stall());
    let url = server.url().replace("http://", "https://");
    let output = sandbox().asking("a", &url).args(["--timeout", "1"]).output().unwrap();
    one_line(&output, 3, "silence");
    assert!(output.err().contains("timeout: "), "{}", output.err());
}

/// `openssl s_server`, with a certificate that it signed itself.
struct Tls {
    child: Child,
    port: u16,
}

impl Tls {
    /// `None` on a machine without openssl.
    fn start(sandbox: &Sandbox, answer: &str) -> Option<Tls> {
        let config = "[req]\ndistinguished_name = n\nx509_extensions = e\nprompt = no\n[n]\nCN = localhost\n\
                      [e]\nsubjectAltName = DNS:localhost\nbasicConstraints = critical,CA:FALSE\n";
        sandbox.file("tls.cnf", config);
        let make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -config tls.cnf -keyout key.pem -out cert.pem";
        let openssl = || {
            let mut command = Command::new("openssl");
            command.current_dir(sandbox.work()).stderr(Stdio::null());
            command
        };
        let made = openssl().args(make.split(' ')).output().ok()?;
        assert!(made.status.success());
        let serve = "s_server -accept 127.0.0.1:0 -cert cert.pem -key key.pem -naccept 1";
        let child =
            openssl().args(serve.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut tls = Tls { child, port: 0 };
        let mut lines = BufReader::new(tls.child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| Some(line.strip_prefix("ACCEPT 127.0.0.1:")?.to_owned()));
        tls.port = port.unwrap().parse().unwrap();
        // What it prints of the connection must go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        tls.child.stdin.as_mut().unwrap().write_all(answer.as_bytes()).unwrap();
        Some(tls)
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_certificate_counts_only_if_it_is_trusted() {
    let body = OpenAi.stops("hello", "stop").to_string();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for trusted in [false, true] {
        let sandbox = sandbox();
        let Some(tls) = Tls::start(&sandbox, &answer) else { return };
        let mut command = sandbox.asking("a", &format!("https://localhost:{}", tls.port));
        command.args(["--timeout", "30"]);
        if trusted {
            let output = command.env("SSL_CERT_FILE", sandbox.work().join("cert.pem")).output().unwrap();
            assert_eq!((output.code(), output.out().as_str()), (Some(0), "hello"), "{}", output.err());
        } else {
            let output = command.output().unwrap();
            one_line(&output, 3, "untrusted");
            assert!(
                output.err().contains(&format!("TLS with localhost:{} failed: ", tls.port)),
                "{}",
                output.err()
            );
            assert!(!sandbox.log_path("a").exists());
        }
    }
}

#[test]
fn without_certificates_the_message_says_where_to_get_some() {
    let sandbox = sandbox();
    let mut command = sandbox.asking("a", "https://localhost:9");
    let output = command.env("SSL_CERT_FILE", sandbox.work().join("none.pem")).output().unwrap();
    let what = "TLS with localhost:9 failed: no certificates of authorities were found; install ca-certificates, \
                or set SSL_CERT_FILE";
    one_line(&output, 3, "no certificates");
    assert!(output.err().contains(what), "{}", output.err());
}
