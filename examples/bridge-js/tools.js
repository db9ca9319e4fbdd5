// The tools of this bridge, by tool_id. A tool gets its arguments, a signal that
// tells it to stop, and the idempotency key of the call. It returns a text.
import { setTimeout as pause } from "node:timers/promises";

export const target = "text";

// ToolError is a failure that the tool can name: nothing happened.
export class ToolError extends Error {
  constructor(code, detail) {
    super(detail);
    this.code = code;
  }
}

export const tools = {
  "text.repeat": async ({ text, times = 1, pause_ms = 0 }, { signal }) => {
    if (typeof text !== "string") {
      throw new ToolError("invalid_arguments", "text must be a text");
    }
    await pause(pause_ms, undefined, { signal });
    return text.repeat(times);
  },
};
