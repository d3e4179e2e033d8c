//! A scripted HTTP server on 127.0.0.1. It records every request, and sends the answers that a test gives it, valid or
//! not.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The bytes that answer a request, and what happens to the connection afterwards.
#[derive(Clone)]
pub(crate) struct Answer {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Clone)]
enum Then {
    Close,
    /// Sends nothing more, and keeps the connection open until the test ends.
    Stall,
    /// Sends this again and again.
    Trickle(Vec<u8>),
    /// Has sent the bytes a few at a time.
    Drip,
}

pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Answer {
    Answer { bytes: bytes.into(), then: Then::Close }
}

/// `head` is a status with its reason and further headers: `429 Slow down\r\nRetry-After: 0`.
pub(crate) fn http(head: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    raw(bytes)
}

pub(crate) fn json(status: u16, body: Value) -> Answer {
    http(&format!("{status} Reason\r\nContent-Type: application/json"), body.to_string())
}

impl Answer {
    pub(crate) fn stall(self) -> Answer {
        Answer { then: Then::Stall, ..self }
    }

    /// The bytes come a few at a time.
    pub(crate) fn drip(self) -> Answer {
        Answer { then: Then::Drip, ..self }
    }

    pub(crate) fn trickle(self, piece: impl Into<Vec<u8>>) -> Answer {
        Answer { then: Then::Trickle(piece.into()), ..self }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body as it came.
    pub(crate) text: String,
    /// The body as JSON; null if it is not JSON.
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The system prompt, wherever the API puts it.
    pub(crate) fn system(&self) -> &str {
        let first = self.messages().first().filter(|message| message["role"] == "system");
        let places = [&self.body["system"], &self.body["system"][0]["text"]];
        let mut all = places.into_iter().chain(first.map(|message| &message["content"]));
        all.find_map(Value::as_str).unwrap_or("")
    }

    /// The first message of the user.
    pub(crate) fn user(&self) -> &str {
        let first = self.messages().iter().find(|message| message["role"] == "user");
        first.and_then(|message| message["content"].as_str()).unwrap_or("")
    }

    /// The results of tools in this request, of all turns.
    pub(crate) fn results(&self) -> Vec<String> {
        let mut all = Vec::new();
        for message in self.messages() {
            let blocks = message["content"].as_array().into_iter().flatten();
            let told: Vec<&Value> = match message["role"].as_str() {
                Some("tool") => vec![message],
                _ => blocks.filter(|block| block["type"] == "tool_result").collect(),
            };
            all.extend(told.iter().map(|result| result["content"].as_str().unwrap().to_owned()));
        }
        all
    }
}

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// What the server and its threads share.
struct Shared {
    handler: Box<Handler>,
    /// Does not read requests: closing such a connection resets it.
    deaf: bool,
    requests: Mutex<Vec<Request>>,
    /// Connections to close when the test ends.
    waiting: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Sends `answers` one after another, and an error to any further request.
    pub(crate) fn playing(answers: impl IntoIterator<Item = Answer>) -> Server {
        let answers = Mutex::new(answers.into_iter().collect::<Vec<_>>().into_iter());
        Server::answering(move |_| {
            let next = answers.lock().unwrap().next();
            next.unwrap_or_else(|| json(400, json!({ "error": "the script is over" })))
        })
    }

    /// Calls `handler` for each request. Each connection has its own thread.
    pub(crate) fn answering(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Server {
        Server::open("127.0.0.1:0", false, Box::new(handler)).unwrap()
    }

    /// Sends `answer` without reading the request.
    pub(crate) fn deaf(answer: Answer) -> Server {
        Server::open("127.0.0.1:0", true, Box::new(move |_| answer.clone())).unwrap()
    }

    fn open(address: &str, deaf: bool, handler: Box<Handler>) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            handler,
            deaf,
            requests: Mutex::default(),
            waiting: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let ours = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut threads = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                if ours.over.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&ours);
                threads.push(std::thread::spawn(move || shared.serve(stream)));
            }
            for thread in threads {
                thread.join().unwrap();
            }
        });
        Ok(Server { address, shared, thread: Some(thread) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The only request; fails if there were more.
    pub(crate) fn request(&self) -> Request {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "requests");
        requests.remove(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for stream in self.shared.waiting.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "a thread of the server panicked");
    }
}

impl Shared {
    /// Serves one connection. A request inside an accepted `CONNECT` tunnel is answered from the same script.
    fn serve(&self, mut stream: TcpStream) {
        loop {
            let mut first = [0];
            if !matches!(stream.peek(&mut first), Ok(1)) {
                return;
            }
            let request = match self.deaf {
                true => Request::default(),
                false => match read(&mut BufReader::new(&stream)) {
                    Ok(request) => request,
                    Err(_) => return,
                },
            };
            self.requests.lock().unwrap().push(request.clone());
            let answer = (self.handler)(&request);
            let written = match answer.then {
                Then::Drip => {
                    let _ = stream.set_nodelay(true);
                    answer.bytes.chunks(40).try_for_each(|few| stream.write_all(few))
                }
                _ => stream.write_all(&answer.bytes),
            };
            if request.method == "CONNECT" && answer.bytes.starts_with(b"HTTP/1.1 200") {
                continue;
            }
            match answer.then {
                Then::Close => {}
                Then::Stall if self.keeps(&stream) => while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {},
                Then::Trickle(piece) if self.keeps(&stream) && written.is_ok() => {
                    while stream.write_all(&piece).is_ok() {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
                Then::Stall | Then::Trickle(_) | Then::Drip => {}
            }
            return;
        }
    }

    /// Closes `stream` when the test ends; false if it has ended already.
    fn keeps(&self, stream: &TcpStream) -> bool {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.push(stream.try_clone().unwrap());
        !self.over.load(Ordering::SeqCst)
    }
}

fn read(stream: &mut impl BufRead) -> io::Result<Request> {
    let mut line = || -> io::Result<String> {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    let start = line()?;
    let mut words = start.split(' ').map(str::to_owned);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        ..Request::default()
    };
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(':') else { break };
        request.headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    request.text = String::from_utf8(body).unwrap();
    request.body = serde_json::from_str(&request.text).unwrap_or_default();
    Ok(request)
}
