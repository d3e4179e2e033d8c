//! Requests and replies, in the one form that all providers share.

use crate::base::json_schema::Schema;
use crate::base::text::{BYTES_PER_TOKEN, one_line};
use crate::config::global::Api;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The limit of an answer that Anthropic's API needs, where the agent has none.
pub(super) const MAX_TOKENS: u64 = 4096;

/// Gets the text of a reply as it comes.
pub type OnText<'a> = &'a mut dyn FnMut(&str);

/// One request: the whole conversation so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// The model's name as its provider knows it.
    pub model: String,
    /// Empty: none.
    pub system: String,
    /// The length of its end that differs from run to run, in bytes.
    pub volatile: usize,
    pub repeats: Repeats,
    pub turns: Vec<ChatTurn>,
    #[serde(skip)]
    pub tools: Vec<Tool>,
    /// No further tool call can be answered: the model is asked for its answer.
    #[serde(skip)]
    pub is_closing: bool,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u64>,
    /// Further parameters, as the API names them.
    pub extra: Map<String, Value>,
    /// What the answer must match.
    #[serde(skip)]
    pub schema: Option<Schema>,
    /// Whether the reply shall come in pieces.
    #[serde(skip)]
    pub is_streamed: bool,
    /// Whether it was waited for until the model may be asked.
    #[serde(skip)]
    pub has_turn: bool,
}

impl Request {
    /// A request with nothing but a message and, unless it is empty, a system prompt.
    pub fn new(model: &str, system: String, message: ChatTurn) -> Request {
        Request { model: model.to_owned(), system, turns: vec![message], ..Request::default() }
    }

    /// How many tool calls were answered so far.
    pub(super) fn results(&self) -> usize {
        let results = |turn: &ChatTurn| if let ChatTurn::ToolResults(all) = turn { all.len() } else { 0 };
        self.turns.iter().map(results).sum()
    }

    /// How many tokens the model reads, about.
    pub fn tokens(&self) -> u64 {
        self.bytes() / BYTES_PER_TOKEN
    }

    /// The most output tokens that an answer may have, as far as that is known.
    pub fn most_output(&self, api: Option<Api>) -> u64 {
        let default = if api == Some(Api::Anthropic) { MAX_TOKENS } else { 0 };
        self.max_tokens.unwrap_or(default)
    }

    /// The length of everything that the model reads. A token has three to four bytes, rarely over six.
    pub fn bytes(&self) -> u64 {
        let turns = self.turns.iter().map(|turn| match turn {
            ChatTurn::User(text) | ChatTurn::Said(text) => text.len(),
            ChatTurn::Attached(text, all) => text.len() + all.iter().map(Attachment::weight).sum::<usize>(),
            ChatTurn::Assistant(raw) => raw.get().len(),
            ChatTurn::ToolResults(results) => results.iter().map(|result| result.content.len()).sum(),
        });
        let tools = self.tools.iter().map(|tool| tool.description.len() + tool.schema.to_string().len());
        (self.system.len() + turns.sum::<usize>() + tools.sum::<usize>()) as u64
    }
}

/// What a model does not accept, learned from its errors and remembered for the rest of the run.
pub type Dialect = BTreeSet<Unsupported>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unsupported {
    Temperature,
    /// It takes `max_completion_tokens` instead (openai).
    MaxTokens,
    /// The schema of the answer is described in the prompt.
    Schema,
    /// Then no stream tells the usage (openai).
    StreamOptions,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ChatTurn {
    User(String),
    /// A message with files.
    Attached(String, Vec<Attachment>),
    /// An answer of an earlier run, maybe of another model.
    Said(String),
    /// As it came, and sent back byte for byte: thinking blocks are signed.
    Assistant(Box<RawValue>),
    ToolResults(Vec<ToolResult>),
}

/// What will probably be sent again soon, for APIs whose cache needs marks. A loop of tools always repeats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repeats {
    #[default]
    Nothing,
    /// The tools and the system prompt.
    System,
    /// The whole conversation.
    Everything,
}

/// A file that the model is shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Attachment {
    /// Without its directory.
    pub name: String,
    /// The media type.
    pub media: Cow<'static, str>,
    /// In bytes.
    pub length: usize,
    /// The file in base64.
    pub data: String,
}

impl Attachment {
    /// About how much text takes as many tokens, in bytes. Services scale images down to some 1,600 tokens.
    fn weight(&self) -> usize {
        if self.media == PDF { self.length } else { 6400 }
    }

    /// `data:image/png;base64,…`
    pub(super) fn url(&self) -> String {
        format!("data:{};base64,{}", self.media, self.data)
    }
}

/// The media type that is no image.
pub const PDF: &str = "application/pdf";

/// A function that the model may call.
#[derive(Debug, Clone)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON Schema of its arguments, which are an object.
    pub schema: Value,
}

/// The model asks for a function to be called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    pub id: String,
    pub name: String,
    /// Models write malformed arguments now and then. The reason goes to the model; nothing is run with a guess.
    pub arguments: Result<Map<String, Value>, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub id: String,
    pub name: String,
    pub content: String,
    pub is_error: bool,
}

#[derive(Debug, Default)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<ToolRequest>,
    /// Whether its text was passed on as it came.
    pub was_streamed: bool,
    /// The assistant's turn, for [`ChatTurn::Assistant`].
    pub raw: Box<RawValue>,
    pub stop: StopReason,
    /// The provider's own name for it.
    pub stop_reason: String,
    /// The model that answered, as the reply names it.
    pub model: String,
    pub tokens: TokenUsage,
    /// What the user should know about how it was asked, one line each.
    pub warnings: Vec<String>,
    /// Retries that were needed.
    pub retries: u32,
}

impl Reply {
    /// A reply without tool calls and counts.
    pub fn new(text: String, stop: StopReason, stop_reason: &str, model: &str) -> Reply {
        let (stop_reason, model) = (stop_reason.to_owned(), model.to_owned());
        Reply { text, stop, stop_reason, model, ..Reply::default() }
    }

    /// The last step of reading any reply: calls decide whether this is a tool turn, whatever the stop reason says.
    pub(super) fn judged(mut self) -> Reply {
        self.stop_reason = one_line(&self.stop_reason, 100);
        self.stop = match self.stop {
            // Calls that the model began before it refused are not made.
            StopReason::Refused => {
                self.calls.clear();
                StopReason::Refused
            }
            stop if !self.calls.is_empty() => {
                if stop == StopReason::Cut {
                    let reason = &self.stop_reason;
                    if let Some(last) = self.calls.last_mut() {
                        last.arguments = Err(format!("the turn was cut off here (stop reason: {reason})"));
                    }
                    self.warnings.push(format!("a turn with tool calls was cut off (stop reason: {reason})"));
                }
                StopReason::ToolUse
            }
            StopReason::ToolUse => StopReason::Complete,
            other => other,
        };
        self
    }

    /// A line about retries, if there were any. They may be those of sub-agents, which may have failed in the end.
    pub fn tries(retries: u32) -> Option<String> {
        let retries_in_words = if retries == 1 { "retry was" } else { "retries were" };
        (retries > 0).then(|| format!("{retries} {retries_in_words} needed after temporary errors"))
    }

    /// What is wrong with the answer, if it is not what was asked for.
    pub fn flaw(&self) -> Option<String> {
        let what = match self.stop {
            StopReason::Cut => "the answer was cut off",
            StopReason::Refused => "the model refused to answer",
            StopReason::Complete if self.text.trim().is_empty() => "the answer is empty",
            StopReason::Complete | StopReason::ToolUse => return None,
        };
        Some(format!("{what} (stop reason: {})", self.stop_reason))
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StopReason {
    #[default]
    Complete,
    ToolUse,
    /// Out of tokens, or of context: the answer is cut off.
    Cut,
    Refused,
}

/// Token counts; 0 if the provider gives none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Everything that the model read, also from a cache.
    pub input: u64,
    pub output: u64,
    /// How many of the input tokens were read from a cache.
    pub cache_read: u64,
    /// How many of them were written to a cache.
    pub cache_write: u64,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, more: TokenUsage) {
        // The counts come from a server, which must not be able to overflow them.
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }
}
