//! Requests and replies, in the one form that all providers share.

use crate::base::json_schema::Schema;
use crate::base::text::one_line;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// One request: the whole conversation so far.
#[derive(Debug)]
pub(crate) struct Request {
    /// The model's name as its provider knows it.
    pub(crate) model: String,
    /// Empty: none.
    pub(crate) system: String,
    /// The length of its end that differs from run to run, in bytes.
    pub(crate) volatile: usize,
    pub(crate) repeats: Repeats,
    pub(crate) turns: Vec<ChatTurn>,
    pub(crate) tools: Vec<Tool>,
    /// No further tool call can be answered: the model is asked for its answer.
    pub(crate) is_closing: bool,
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    /// Further parameters, as the API names them.
    pub(crate) extra: Map<String, Value>,
    /// What the answer must match.
    pub(crate) schema: Option<Schema>,
    /// Whether the reply shall come in pieces.
    pub(crate) is_streamed: bool,
}

impl Request {
    /// How many tool calls were answered so far.
    pub(super) fn results(&self) -> usize {
        let results = |turn: &ChatTurn| if let ChatTurn::ToolResults(all) = turn { all.len() } else { 0 };
        self.turns.iter().map(results).sum()
    }

    /// The length of everything that the model reads. A token has three to four bytes, rarely over six.
    pub(crate) fn bytes(&self) -> u64 {
        let turns = self.turns.iter().map(|turn| match turn {
            ChatTurn::User(text) | ChatTurn::Said(text) => text.len(),
            ChatTurn::Attached(text, files) => {
                text.len() + files.iter().map(Attachment::weight).sum::<usize>()
            }
            ChatTurn::Assistant(raw) => raw.get().len(),
            ChatTurn::ToolResults(results) => results.iter().map(|result| result.content.len()).sum(),
        });
        let tools = self.tools.iter().map(|tool| tool.description.len() + tool.schema.to_string().len());
        (self.system.len() + turns.sum::<usize>() + tools.sum::<usize>()) as u64
    }
}

/// What a model does not accept, learned from its errors and remembered for the rest of the run.
pub(crate) type Dialect = BTreeSet<Unsupported>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unsupported {
    Temperature,
    /// It takes `max_completion_tokens` instead (openai).
    MaxTokens,
    /// The schema of the answer is described in the prompt.
    Schema,
    /// Then no stream tells the usage (openai).
    StreamOptions,
}

#[derive(Debug)]
pub(crate) enum ChatTurn {
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Repeats {
    #[default]
    Nothing,
    /// The tools and the system prompt.
    System,
    /// The whole conversation.
    Everything,
}

/// A file that the model is shown.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    /// Without its directory.
    pub(crate) name: String,
    /// The media type.
    pub(crate) media: &'static str,
    /// In bytes.
    pub(crate) length: usize,
    /// The file in base64.
    pub(crate) data: String,
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
pub(crate) const PDF: &str = "application/pdf";

/// A function that the model may call.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    /// A JSON Schema of its arguments, which are an object.
    pub(crate) schema: Value,
}

/// The model asks for a function to be called.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: CallArguments,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallArguments {
    Object(Map<String, Value>),
    /// Models write malformed arguments now and then. The reason goes to the model; nothing is run with a guess.
    Malformed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolResult {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    /// Whether its text was passed on as it came.
    pub(crate) was_streamed: bool,
    /// The assistant's turn, for [`ChatTurn::Assistant`].
    pub(crate) raw: Box<RawValue>,
    pub(crate) stop: Stop,
    /// The provider's own name for it.
    pub(crate) stop_reason: String,
    /// The model that answered, as the reply names it.
    pub(crate) model: String,
    pub(crate) tokens: TokenUsage,
    /// What the user should know about how it was asked, one line each.
    pub(crate) warnings: Vec<String>,
    /// Retries that were needed.
    pub(crate) retries: u32,
}

impl Reply {
    /// A reply without tool calls and counts.
    pub(crate) fn new(text: String, stop: Stop, stop_reason: &str, model: &str) -> Reply {
        Reply {
            text,
            calls: Vec::new(),
            was_streamed: false,
            raw: RawValue::NULL.to_owned(),
            stop,
            stop_reason: stop_reason.to_owned(),
            model: model.to_owned(),
            tokens: TokenUsage::default(),
            warnings: Vec::new(),
            retries: 0,
        }
    }

    /// The last step of reading any reply: calls decide whether this is a tool turn, whatever the stop reason says.
    pub(super) fn judged(mut self) -> Reply {
        self.stop_reason = one_line(&self.stop_reason, 100);
        self.stop = match self.stop {
            // Calls that the model began before it refused are not made.
            Stop::Refused => {
                self.calls.clear();
                Stop::Refused
            }
            stop if !self.calls.is_empty() => {
                if stop == Stop::Cut {
                    let reason = &self.stop_reason;
                    self.warnings.push(format!("a turn with tool calls was cut off (stop reason: {reason})"));
                }
                Stop::ToolUse
            }
            Stop::ToolUse => Stop::Complete,
            other => other,
        };
        self
    }

    /// A line about retries, if there were any. They may be those of sub-agents, which may have failed in the end.
    pub(crate) fn tries(retries: u32) -> Option<String> {
        let retries_in_words = if retries == 1 { "retry was" } else { "retries were" };
        (retries > 0).then(|| format!("{retries} {retries_in_words} needed after temporary errors"))
    }

    /// What is wrong with the answer, if it is not what was asked for.
    pub(crate) fn flaw(&self) -> Option<String> {
        let what = match self.stop {
            Stop::Cut => "the answer was cut off",
            Stop::Refused => "the model refused to answer",
            Stop::Complete if self.text.trim().is_empty() => "the answer is empty",
            Stop::Complete | Stop::ToolUse => return None,
        };
        Some(format!("{what} (stop reason: {})", self.stop_reason))
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Complete,
    ToolUse,
    /// Out of tokens, or of context: the answer is cut off.
    Cut,
    Refused,
}

/// Token counts; 0 if the provider gives none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TokenUsage {
    /// Everything that the model read, also from a cache.
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// How many of the input tokens were read from a cache.
    pub(crate) cache_read: u64,
    /// How many of them were written to a cache.
    pub(crate) cache_write: u64,
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
