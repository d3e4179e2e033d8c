// agent-memory for opencode: memory-install-hooks puts this file into ~/.config/opencode/plugin/, with the full paths
// of the programs, and memory-uninstall-hooks removes it.
import { spawn, spawnSync } from "node:child_process"

const CAPTURE = "memory-capture"
const RECALL = "memory-recall"

// Whatever happens here, the person's turn goes on: nothing is thrown, and nothing takes longer than this.
const PATIENCE_MS = 2000

const recall = (event, sessionID, cwd, more) =>
  new Promise((resolve) => {
    let text = ""
    try {
      const child = spawn(RECALL, ["--harness", "opencode"], { cwd, stdio: ["pipe", "pipe", "ignore"] })
      const late = setTimeout(() => {
        child.kill()
        resolve("")
      }, PATIENCE_MS)
      const done = (given) => {
        clearTimeout(late)
        resolve(given)
      }
      child.on("error", () => done(""))
      child.on("close", (code) => done(code === 0 ? text.trim() : ""))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (more) => (text += more))
      child.stdin.end(JSON.stringify({ hook_event_name: event, session_id: sessionID, cwd, ...more }))
    } catch {
      resolve("")
    }
  })

export const AgentMemory = async ({ client, directory }) => {
  // What a session was given at its start: opencode asks for it with every request.
  const started = new Map()
  const subAgents = new Set()
  return {
    "experimental.chat.system.transform": async (input, output) => {
      try {
        const id = input.sessionID
        if (!id || subAgents.has(id)) return
        if (!started.has(id)) started.set(id, recall("SessionStart", id, directory))
        const text = await started.get(id)
        if (text) output.system.push(text)
      } catch {}
    },
    "chat.message": async (input, output) => {
      try {
        if (subAgents.has(input.sessionID)) return
        const prompt = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
        const text = await recall("UserPromptSubmit", input.sessionID, directory, { prompt: prompt.join("\n") })
        if (!text) return
        // opencode sorts the parts by their ids.
        const last = output.parts.map((part) => part.id).sort().at(-1) ?? "prt_"
        const { id: messageID } = output.message
        output.parts.push({
          id: `${last}~memory`, messageID, sessionID: input.sessionID, type: "text", text, synthetic: true,
        })
      } catch {}
    },
    "tool.execute.after": async (input, output) => {
      try {
        if (subAgents.has(input.sessionID) || typeof output.output !== "string") return
        const call = { tool_name: input.tool, tool_input: input.args ?? {} }
        const text = await recall("PreToolUse", input.sessionID, directory, call)
        if (text) output.output += `\n\n${text}`
      } catch {}
    },
    event: async ({ event }) => {
      try {
        const session = event.properties?.info
        if (event.type.startsWith("session.") && session?.parentID) subAgents.add(session.id)
        const id = event.properties?.sessionID
        if (!id || subAgents.has(id)) return
        // What prompts were given before is no longer in the session.
        if (event.type === "session.compacted") started.set(id, recall("SessionStart", id, directory, { source: "compact" }))
        if (event.type !== "session.idle") return
        // At the end of `opencode run` there is no time to wait for an answer of the server.
        const args = ["--harness", "opencode", "--thread-id", id]
        spawnSync(CAPTURE, args, { cwd: directory, stdio: "ignore", timeout: PATIENCE_MS })
      } catch {}
    },
  }
}
