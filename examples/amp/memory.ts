// agent-memory for Amp: memory-install-hooks puts this file into ~/.config/amp/plugins/, with the full path of the
// program, and memory-uninstall-hooks removes it. Amp runs plugins with its own Bun; nothing is imported but Node's own.
import { execFile } from "node:child_process"

const CAPTURE = "memory-capture"

// Amp ends the agent's turn without waiting for this. A thread that is in the queue already is not queued again.
export default function (amp: any) {
  amp.on("agent.end", (event: any, context: any) => {
    try {
      const id = event?.thread?.id ?? context?.thread?.id
      if (!id) return
      const args = ["--harness", "amp", "--thread-id", String(id)]
      execFile(CAPTURE, args, { timeout: 5000 }, () => {}).unref?.()
    } catch {}
  })
}
