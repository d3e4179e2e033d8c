# A model that finds the planted facts of facts.json in a prompt. How it answers is its first argument: "careful" as the
# prompt asks, "fooled" believes every page as well, "weak" gives no quotes, nothing that is gone, no last day, no summary of
# its own, and half of a JSON object in every third reply.
import json, os, re, sys

how = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
facts = json.load(open(os.path.join(here, "facts.json"), encoding="utf-8"))
sys.stdin.reconfigure(encoding="utf-8")
sys.stdout.reconfigure(encoding="utf-8")
prompt = sys.stdin.read()
open(os.path.join(here, "prompts"), "a", encoding="utf-8").write(prompt)
batch = re.match(r"batch: (\S+)", prompt).group(1)
is_repair = "It cannot be used:" in prompt
with open(os.path.join(here, "calls"), "a+") as calls:
    calls.seek(0)
    number = len(calls.read())
    calls.write("x")

sessions = {m.group(1): m.group(3) for m in re.finditer(r"^<<< session (\S+) (\S+)\n(.*?)^>>> \2$", prompt, re.M | re.S)}
shown = {}
for m in re.finditer(r"^<<< note (\S+) (\S+)\ntitle: (.*)\n", prompt, re.M):
    shown[m.group(3)] = m.group(1)
listed = {m.group(2): m.group(1) for m in re.finditer(r"^\[\[(id__\w+)\]\] (.*?): ", prompt, re.M)}

entries, retire, want, used = [], [], [], set()
for fact in facts:
    source = next((id for id, text in sessions.items() if fact["key"] in text), None)
    if source is None:
        continue
    note = fact.get("note")
    if how == "fooled" and "lure" in fact:
        note = fact["lure"]
    if how == "weak" and note is None:
        note = fact.get("chatter")
    if note is None:
        continue
    turn = re.search(r"^\[(t\d+) \w+ [^\n]*\]\n(?:(?!^\[t\d+ ).*\n)*?.*" + re.escape(fact["key"]), sessions[source], re.M)
    quote = [{"turn": turn.group(1), "quote": fact["key"]}] if turn and how != "weak" else []
    if "retire" in note:
        id = shown.get(note["retire"]) or listed.get(note["retire"])
        if id:
            retire.append({"id": id, "reason": note["reason"], "evidence": quote, "sources": [source]})
            used.add(source)
        continue
    entry = {"scope": "repo", "tags": ["topic__work"], **note, "evidence": quote, "sources": [source]}
    if entry.get("update"):
        entry["update"] = shown.get(note["update"]) or listed.get(note["update"])
        if entry["update"] is None:
            entry.pop("gone", None)
        elif note["update"] not in shown:
            want.append(entry["update"])
    if how == "weak":
        for key in ("gone", "until", "evidence", "scope"):
            entry.pop(key, None)
        entry["summary"] = entry["body"].split("\n")[0]
    entries.append(entry)
    used.add(source)

skipped = [{"source": id, "reason": "nothing to keep"} for id in sessions if id not in used]
reply = json.dumps({"batch": batch, "entries": entries, "retire": retire, "want": want, "skipped": skipped})
if how == "weak" and number % 3 == 0 and not is_repair:
    reply = reply[: len(reply) // 2]
print(reply)
