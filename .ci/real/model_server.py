"""A model server on 127.0.0.1 that answers every request with one sentence, in the format of the API that was called.

It speaks enough of Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's generateContent for a
turn of a coding agent, and keeps the body of each request. `answer` changes what it says, `hands` makes it call tools,
and `status` makes every call fail.
"""

import itertools
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SAID = "Noted."
FAILED = "this is a scripted failure"
KEYS = ("Authorization", "X-Api-Key", "X-Goog-Api-Key")


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.received = []  # (path, body) of every POST, in order
        self.fetched = []  # the paths of what was got
        self.keys = set()  # the credentials of every POST
        self.answer = lambda body: SAID
        self.hands = None  # a function from a request's body to tool calls: (name, arguments)
        self.status = 200
        self.numbers = itertools.count(1)  # of the tool calls: a program may ignore a call whose id it has seen
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        # A program that ends lets its connections go.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take(self):
        """What was received since the last call."""
        with self.lock:
            taken, self.received = self.received, []
        return taken

    def calls(self, body):
        return self.hands(body) if self.hands else []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(b"", "application/json")

    def do_GET(self):
        self.server.fetched.append(self.path)
        models = [{"id": name, "object": "model", "type": "model"} for name in ("m", "gpt-4.1")]
        self.json({"object": "list", "data": models})

    def do_POST(self):
        raw = self.body()
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {"raw": raw.decode(errors="replace")}
        path = self.path.split("?")[0]
        with self.server.lock:
            self.server.received.append((path, body))
            self.server.keys |= {value for name in KEYS for value in self.headers.get_all(name, [])}
        if self.server.status != 200:
            error = {"type": "error", "message": FAILED, "code": self.server.status, "status": "FAILED"}
            self.answer(json.dumps({"type": "error", "error": error}).encode(), "application/json", self.server.status)
        elif path.endswith("/count_tokens"):
            self.json({"input_tokens": 10})
        elif path.endswith(":countTokens"):
            self.json({"totalTokens": 10})
        elif path.endswith("/messages"):
            self.message(body)
        elif path.endswith("/responses"):
            self.response(body)
        elif path.endswith("/chat/completions"):
            self.completion(body)
        elif path.endswith("enerateContent"):
            self.content(path, body)
        else:
            self.json({})

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def answer(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def json(self, value):
        self.answer(json.dumps(value).encode(), "application/json")

    def events(self, events, named=True, last=""):
        lines = []
        for event in events:
            name = f"event: {event['type']}\n" if named else ""
            lines.append(f"{name}data: {json.dumps(event)}\n\n")
        self.answer(("".join(lines) + last).encode(), "text/event-stream")

    def message(self, body):
        """Anthropic Messages."""
        parts = [
            {"type": "tool_use", "id": f"toolu_{next(self.server.numbers)}", "name": name, "input": arguments}
            for name, arguments in self.server.calls(body)
        ]
        end = "tool_use" if parts else "end_turn"
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "m"),
            "stop_reason": end, "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
        parts = parts or [{"type": "text", "text": self.server.answer(body)}]
        if not body.get("stream"):
            return self.json({**message, "content": parts})
        events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
        for index, part in enumerate(parts):
            is_text = part["type"] == "text"
            empty = {**part, "text": ""} if is_text else {**part, "input": {}}
            delta = {"type": "text_delta", "text": part["text"]} if is_text else {
                "type": "input_json_delta", "partial_json": json.dumps(part["input"]),
            }
            events += [
                {"type": "content_block_start", "index": index, "content_block": empty},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        delta = {"stop_reason": end, "stop_sequence": None}
        end = {"type": "message_delta", "usage": {"output_tokens": 2}, "delta": delta}
        self.events([*events, end, {"type": "message_stop"}])

    def response(self, body):
        """OpenAI Responses."""
        usage = {
            "input_tokens": 10, "output_tokens": 2, "total_tokens": 12,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }
        response = {"id": "resp_1", "object": "response", "created_at": 0, "model": "m", "output": []}
        events = [{"type": "response.created", "response": {**response, "status": "in_progress"}}]
        items = []
        for name, arguments in self.server.calls(body):
            number = next(self.server.numbers)
            call = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": name, "status": "completed"}
            if "/" in name:
                call["namespace"], call["name"] = name.split("/")
            # A tool that takes no JSON.
            kind = {"type": "custom_tool_call", "input": arguments} if isinstance(arguments, str) else {
                "type": "function_call", "arguments": json.dumps(arguments),
            }
            items.append(call | kind)
        for number, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": number, "item": item})
            events.append({"type": "response.output_item.done", "output_index": number, "item": item})
        if not items:
            said = self.server.answer(body)
            part = {"type": "output_text", "text": said, "annotations": []}
            item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
            items, place = [item], {"item_id": "msg_1", "output_index": 0, "content_index": 0}
            events += [
                {
                    "type": "response.output_item.added", "output_index": 0,
                    "item": {**item, "status": "in_progress", "content": []},
                },
                {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
                {"type": "response.output_text.delta", **place, "delta": said},
                {"type": "response.output_text.done", **place, "text": said},
                {"type": "response.content_part.done", **place, "part": part},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
            ]
        done = {**response, "status": "completed", "output": items, "usage": usage}
        self.events([*events, {"type": "response.completed", "response": done}])

    def completion(self, body):
        """OpenAI Chat Completions."""
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        base = {"id": "c1", "created": 0, "model": body.get("model", "m")}
        calls = [
            {
                "index": index, "id": f"call_{next(self.server.numbers)}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(self.server.calls(body))
        ]
        said = {"content": None, "tool_calls": calls} if calls else {"content": self.server.answer(body)}
        message, end = {"role": "assistant", **said}, "tool_calls" if calls else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": end}
            return self.json({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunk = {**base, "object": "chat.completion.chunk"}
        first = {"index": 0, "delta": message, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": end}
        self.events(
            [
                {**chunk, "choices": [first]},
                {**chunk, "choices": [end], "usage": usage},
            ],
            named=False, last="data: [DONE]\n\n",
        )

    def content(self, path, body):
        """Gemini generateContent."""
        calls = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in self.server.calls(body)]
        answer = {
            "candidates": [{
                "index": 0, "finishReason": "STOP",
                "content": {"role": "model", "parts": calls or [{"text": self.server.answer(body)}]},
            }],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12},
        }
        if "streamGenerateContent" in path:
            return self.events([answer], named=False)
        self.json(answer)
