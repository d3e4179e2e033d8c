"""A model server on 127.0.0.1 that answers every request with one sentence, in the format of the API that was called.

It speaks enough of Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's generateContent for a
turn of a coding agent, and keeps the body of each request.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SAID = "Noted."


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.received = []  # (path, body) of every POST, in order
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take(self):
        """What was received since the last call."""
        with self.lock:
            taken, self.received = self.received, []
        return taken


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(b"", "application/json")

    def do_GET(self):
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
        if path.endswith("/count_tokens"):
            self.json({"input_tokens": 10})
        elif path.endswith(":countTokens"):
            self.json({"totalTokens": 10})
        elif path.endswith("/messages"):
            self.message(body)
        elif path.endswith("/responses"):
            self.response()
        elif path.endswith("/chat/completions"):
            self.completion(body)
        elif path.endswith("enerateContent"):
            self.content(path)
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

    def answer(self, body, kind):
        self.send_response(200)
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
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "m"),
            "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
        text = {"type": "text", "text": SAID}
        if not body.get("stream"):
            return self.json({**message, "content": [text]})
        self.events([
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta", "usage": {"output_tokens": 2},
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            },
            {"type": "message_stop"},
        ])

    def response(self):
        """OpenAI Responses."""
        part = {"type": "output_text", "text": SAID, "annotations": []}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        usage = {
            "input_tokens": 10, "output_tokens": 2, "total_tokens": 12,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }
        response = {"id": "resp_1", "object": "response", "created_at": 0, "model": "m", "output": []}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        self.events([
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {
                "type": "response.output_item.added", "output_index": 0,
                "item": {**item, "status": "in_progress", "content": []},
            },
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **place, "delta": SAID},
            {"type": "response.output_text.done", **place, "text": SAID},
            {"type": "response.content_part.done", **place, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {
                "type": "response.completed",
                "response": {**response, "status": "completed", "output": [item], "usage": usage},
            },
        ])

    def completion(self, body):
        """OpenAI Chat Completions."""
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        base = {"id": "c1", "created": 0, "model": body.get("model", "m")}
        message = {"role": "assistant", "content": SAID}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return self.json({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunk = {**base, "object": "chat.completion.chunk"}
        first = {"index": 0, "delta": message, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self.events(
            [
                {**chunk, "choices": [first]},
                {**chunk, "choices": [end], "usage": usage},
            ],
            named=False, last="data: [DONE]\n\n",
        )

    def content(self, path):
        """Gemini generateContent."""
        answer = {
            "candidates": [{
                "index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": SAID}]},
            }],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12},
        }
        if "streamGenerateContent" in path:
            return self.events([answer], named=False)
        self.json(answer)
