//! A server of the Model Context Protocol (2025-06-18) on its stdin and stdout: a JSON-RPC message a line.
//!
//! A server is a stranger. Each wait has a deadline, each message and list a cap, and whatever it sends is text for the
//! model or an error. It gets nothing from us but calls: what it asks for is refused, except a ping.

use crate::agent::tree::Scope;
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::exec::{CommandLine, Coprocess, ExecError, Invocation, how_it_ended};
use crate::base::json_rpc::{self, MESSAGE_CAP, Message, NO_METHOD, RpcError, VERSION, VERSIONS};
use crate::base::sync::lock;
use crate::base::text::{border, in_line, one_line, size};
use crate::config::mcp::{McpServer, Offer, Offers};
use crate::provider::command::{level, vars};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Mutex;

/// How much a server may send before the answer, in bytes and in messages.
const MOST_BYTES: usize = 16 << 20;
const MOST_MESSAGES: usize = 10_000;
const MOST_PAGES: usize = 50;
const MOST_TOOLS: usize = 1000;
/// The longest description and schema of a tool, in bytes: they are sent with each call of the model.
const OFFER_CAP: usize = 64 << 10;
/// How much of its stderr, or of the names of its tools, a message has, in bytes.
const SHOWN_CAP: usize = 600;

/// What the model is told of a call; an error is one for the model, too.
pub(super) type ToolAnswer = Result<String, String>;

/// The arguments of a call, by name.
pub(super) type Arguments = Map<String, Value>;

/// A server that runs. It ends when this is dropped.
pub struct Server(Mutex<Connection>);

struct Connection {
    session: Coprocess,
    /// That of the last request.
    id: u64,
    /// Why there is no answer any more.
    broken: Option<String>,
}

/// Tools with their names, in a server's order.
type Offered = Vec<(String, Offer)>;

/// A page of a list of tools, and the cursor of the next one.
pub fn page(result: &Value) -> Result<(Offered, Option<String>), String> {
    let tools = result.get("tools").and_then(Value::as_array);
    let tools = tools.ok_or("sent a list of tools that is none")?;
    let offer = |tool: &Value| {
        let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let schema = tool.get("inputSchema").cloned().unwrap_or_default();
        (text("name"), Offer { description: text("description"), schema })
    };
    let next = result.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
    Ok((tools.iter().map(offer).collect(), next.map(str::to_owned)))
}

/// What the model is told of a call's result; an error is one for the model.
pub fn told(result: &Value) -> ToolAnswer {
    let part = |block: &Value| {
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        let kind = text("type").unwrap_or("part");
        let resource = block.get("resource").unwrap_or(block);
        let uri = resource.get("uri").and_then(Value::as_str).map(|uri| format!(": {}", in_line(uri)));
        let inside = resource.get("text").and_then(Value::as_str).filter(|_| kind == "resource");
        let link = || format!("[{} left out{}]", one_line(kind, 40), uri.unwrap_or_default());
        text("text").filter(|_| kind == "text").or(inside).map_or_else(link, str::to_owned)
    };
    let parts: Option<Vec<String>> =
        result.get("content").and_then(Value::as_array).map(|parts| parts.iter().map(part).collect());
    let data = result.get("structuredContent").filter(|data| !data.is_null());
    let text = match (parts, data) {
        (Some(parts), None) => parts.join("\n"),
        (Some(parts), Some(_)) if !parts.is_empty() => parts.join("\n"),
        (_, Some(data)) => data.to_string(),
        (None, None) => return Err("sent a result without content".to_owned()),
    };
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    if is_error { Err(format!("failed: {text}")) } else { Ok(text) }
}

impl Server {
    /// Starts a server, and returns what it offers of the tools that the agent's file lists.
    pub fn start(server: &McpServer, workdir: &Path, scope: Scope) -> Result<(Server, Offers)> {
        let scope = scope.within(server.start_seconds());
        let session = Coprocess::start(Invocation {
            vars: vars(scope.env),
            is_heard: scope.reporter.is_verbose(),
            level: level(scope.env),
            ..Invocation::new(CommandLine::Words(&server.entry.command), workdir, MESSAGE_CAP, scope.deadline)
        });
        let name = &server.name;
        let next = format!("correct mcp.{name}.command");
        let session = session.map_err(|e| Error::config(format!("MCP server \"{name}\" {e}")).hint(next))?;
        let mut connection = Connection { session, id: 0, broken: None };
        let offered = connection.hello(scope.deadline);
        let offered = offered.map_err(|why| {
            let error = Error::api(format!("MCP server \"{name}\" {}", connection.end(&why)));
            let next = format!("raise mcp.{name}.start_timeout, or --timeout");
            if scope.deadline.passed() { error.hint(next) } else { error }
        })?;
        let offers = listed(server, offered)?;
        scope.reporter.verbose(&format!("MCP:      \"{name}\" offers {} tool(s)", offers.len()));
        Ok((Server(Mutex::new(connection)), offers))
    }

    /// Calls a tool, one call after another. The error is for the model.
    pub(super) fn call(&self, tool: &str, arguments: &Arguments, scope: Scope, seconds: u64) -> ToolAnswer {
        let mut connection = lock(&self.0);
        if scope.deadline.passed() {
            return Err("was not asked: the run is out of time".to_owned());
        }
        // The wait for another call does not count.
        let deadline = scope.within(seconds).deadline;
        let params = json!({ "name": tool, "arguments": arguments });
        told(&connection.ask("tools/call", params, deadline)?)
    }
}

/// What the server offers of the tools that the agent's file lists.
fn listed(server: &McpServer, offered: Offered) -> Result<Offers> {
    let name = &server.name;
    let mut offers = Offers::new();
    for tool in &server.entry.tools {
        let mut found = offered.iter().filter(|(offered, _)| offered == tool).map(|(_, offer)| offer);
        let shown = in_line(tool);
        let wrong = |why: &str| Err(Error::api(format!("MCP server \"{name}\": the tool \"{shown}\" {why}")));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => return wrong("is offered twice"),
            (Some(offer), None) => {
                if offer.schema.get("type").and_then(Value::as_str) != Some("object") {
                    return wrong("has no schema of an object for its arguments");
                }
                if offer.description.len() + offer.schema.to_string().len() > OFFER_CAP {
                    return wrong(&format!("has a description of more than {}", size(OFFER_CAP as u64)));
                }
                offers.insert(tool.clone(), offer.clone());
            }
            (None, _) => {
                let names: Vec<_> = offered.iter().map(|(name, _)| in_line(name)).collect();
                let names = one_line(&names.join(", "), SHOWN_CAP);
                let offers = if names.is_empty() { "nothing" } else { &names };
                let message = format!("MCP server \"{name}\" does not offer the tool \"{shown}\"");
                let next = format!("correct mcp.{name}.tools; it offers: {offers}");
                return Err(Error::config(message).hint(next));
            }
        }
    }
    Ok(offers)
}

impl Connection {
    /// Begins the conversation, and returns all that the server offers. The error follows the server's name.
    fn hello(&mut self, deadline: Deadline) -> Result<Offered, String> {
        let client = json!({ "name": "axe", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client });
        let begun = self.ask("initialize", params, deadline)?;
        let version = begun.get("protocolVersion").and_then(Value::as_str).unwrap_or("(none)");
        if !VERSIONS.contains(&version) {
            let version = one_line(&in_line(version), 40);
            return Err(format!("speaks version {version} of the protocol, which is not known here"));
        }
        self.send(json!({ "method": "notifications/initialized" }));
        let (mut tools, mut params) = (Vec::new(), json!({}));
        for _ in 0..MOST_PAGES {
            let (more, next) = page(&self.ask("tools/list", params, deadline)?)?;
            tools.extend(more);
            match next {
                _ if tools.len() > MOST_TOOLS => {
                    return Err(format!("offers more than {MOST_TOOLS} tools"));
                }
                None => return Ok(tools),
                Some(cursor) => params = json!({ "cursor": cursor }),
            }
        }
        Err(format!("sends its list of tools in more than {MOST_PAGES} pages"))
    }

    /// Sends a request and waits for its answer. Other answers are skipped: they are late, or nobody asked for them.
    fn ask(&mut self, method: &str, params: Value, deadline: Deadline) -> Result<Value, String> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        self.id += 1;
        let id = self.id;
        self.send(json!({ "id": id, "method": method, "params": params }));
        let mut bytes = 0;
        for _ in 0..MOST_MESSAGES {
            let line = match self.session.line(deadline) {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.end("")),
                Err(ExecError::Deadline) if self.session.is_behind() => {
                    return Err(self.end("did not read what it was sent"));
                }
                Err(ExecError::Deadline) => {
                    self.send(json!({ "method": "notifications/cancelled", "params": { "requestId": id } }));
                    return Err("did not answer in time".to_owned());
                }
                Err(ExecError::TooMuchOutput(cap)) => {
                    return Err(self.end(&format!("sent a message of more than {}", size(cap as u64))));
                }
                Err(fault) => return Err(self.end(&fault.to_string())),
            };
            bytes += line.len();
            if bytes > MOST_BYTES {
                break;
            }
            // Some programs print a greeting.
            if !line.trim_ascii_start().starts_with(b"{") {
                continue;
            }
            match json_rpc::parse(&line).map_err(|fault| format!("sent {}", fault.text))? {
                Message::Answer(theirs, answer) if theirs == id => {
                    return answer.map_err(|why| format!("answered with an error: {why}"));
                }
                Message::Request { id, method, .. } => self.answer(id, &method),
                Message::Answer(..) | Message::Notification(_) => {}
            }
        }
        Err(self.end("sends more and more, and no answer"))
    }

    /// We offer nothing.
    fn answer(&mut self, id: Value, method: &str) {
        let is_ping = method == "ping";
        let outcome = is_ping.then(|| json!({})).ok_or_else(|| RpcError::new(NO_METHOD, "Method not found"));
        self.send(json_rpc::answer(id, outcome));
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.session.send(format!("{message}\n").as_bytes());
    }

    /// Ends the server for good. What to say of it, with the end of its stderr; without a reason, it has ended itself.
    fn end(&mut self, why: &str) -> String {
        let (status, stderr) = self.session.end();
        let stderr = String::from_utf8_lossy(&stderr);
        let start = border(&stderr, stderr.len().saturating_sub(SHOWN_CAP));
        let stderr = one_line(&stderr[start..], SHOWN_CAP);
        let colon = if stderr.is_empty() { "" } else { ": " };
        let why = match status {
            Some(status) if why.is_empty() => format!("has ended ({})", how_it_ended(status)),
            None if why.is_empty() => "has ended".to_owned(),
            _ => why.to_owned(),
        };
        self.broken.insert(format!("{why}{colon}{stderr}")).clone()
    }
}
