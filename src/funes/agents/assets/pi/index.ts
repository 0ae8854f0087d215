// funes in pi: the tools of `funes mcp`, and a hook after each turn. Installed by `funes add pi`, taken away by
// `funes remove pi`; what it runs is in funes.json beside it. Works in pi 0.73 and newer, needs no package.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

const CALL_MS = 120_000;
const HOOK_MS = 1_000;
const settings = JSON.parse(readFileSync(new URL("./funes.json", import.meta.url), "utf8"));
const environment = { ...process.env, ...settings.env };

// ---- the server: started by the first call, again after it ended

let server: any;
let ready: Promise<unknown> | undefined;
let lastId = 0;
const waiting = new Map<number, { resolve: (result: any) => void; reject: (error: Error) => void }>();

function start(): void {
  const child = spawn(settings.command[0], settings.command.slice(1), { env: environment, stdio: ["pipe", "pipe", "ignore"] });
  server = child;
  // Nothing of it may keep pi from exiting; the server ends with its stdin.
  for (const part of [child, child.stdin, child.stdout] as any[]) part?.unref?.();
  const gone = (error?: Error) => {
    if (server !== child) return;
    server = ready = undefined;
    for (const call of waiting.values()) call.reject(error ?? new Error("the memory server has ended"));
    waiting.clear();
  };
  child.on("error", gone);
  child.on("exit", () => gone());
  child.stdin.on("error", () => gone());
  child.stdout.setEncoding("utf8");
  let pending = "";
  child.stdout.on("data", (text: string) => {
    const lines = (pending + text).split("\n");
    pending = lines.pop() ?? "";
    for (const line of lines) receive(line);
  });
}

function receive(line: string): void {
  let message: any;
  try {
    message = JSON.parse(line);
  } catch {
    return; // not the protocol's
  }
  const call = waiting.get(message?.id);
  if (!call) return;
  waiting.delete(message.id);
  if (message.error) call.reject(new Error(message.error.message));
  else call.resolve(message.result);
}

const send = (message: object) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

function request(method: string, params: object, signal?: AbortSignal): Promise<any> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    const giveUp = (reason: string) => {
      done();
      waiting.delete(id);
      if (server) send({ method: "notifications/cancelled", params: { requestId: id, reason } });
      reject(new Error(reason));
    };
    const aborted = () => giveUp("cancelled");
    const timer = setTimeout(() => giveUp(`the memory did not answer within ${CALL_MS / 1000} s`), CALL_MS);
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
    };
    waiting.set(id, {
      resolve: (result) => (done(), resolve(result)),
      reject: (error) => (done(), reject(error)),
    });
    signal?.addEventListener("abort", aborted);
    send({ id, method, params });
  });
}

async function call(name: string, args: object, signal?: AbortSignal) {
  if (signal?.aborted) throw new Error("cancelled");
  if (!server) start();
  ready ??= request("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "pi", version: "1" },
  }).then(() => send({ method: "notifications/initialized" }));
  await ready;
  const result = await request("tools/call", { name, arguments: args }, signal);
  const text = result.content.map((part: any) => part.text ?? "").join("\n");
  if (result.isError) throw new Error(text);
  return { content: [{ type: "text" as const, text }], details: {} };
}

// pi checks arguments against the schema before the server, which takes them as models write them, can see them.
const ALIASES: Record<string, string> = { session_id: "session", turn_uuid: "turn", turn_id: "turn", text: "literal" };

function prepare(schema: any, args: any): any {
  const prepared: Record<string, unknown> = {};
  for (const [given, value] of Object.entries(args ?? {})) {
    const name = given in schema.properties ? given : (ALIASES[given] ?? given);
    if (value === null || value === undefined || (name !== given && name in args)) continue;
    const type = schema.properties[name]?.type;
    if (type === "integer" && typeof value === "string" && /^-?\d+$/.test(value)) prepared[name] = Number(value);
    else if (type === "string" && Array.isArray(value)) prepared[name] = value.join(",");
    else prepared[name] = value;
  }
  return prepared;
}

// ---- the hooks: they return at once, the work is done by a process of its own

function notify(event: string, context: any, more: object = {}): Promise<void> {
  return new Promise((resolve) => {
    try {
      const sessions = context?.sessionManager;
      const payload = {
        hook_event_name: event,
        session_id: sessions?.getSessionId?.(),
        transcript_path: sessions?.getSessionFile?.(),
        cwd: context?.cwd,
        ...more,
      };
      const child = spawn(settings.hook[0], [...settings.hook.slice(1)], {
        env: environment,
        detached: true,
        stdio: ["pipe", "ignore", "ignore"],
      });
      const timer = setTimeout(resolve, HOOK_MS);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      child.on("error", done);
      child.on("exit", done);
      child.stdin.on("error", done);
      child.stdin.end(JSON.stringify(payload) + "\n");
      child.unref();
    } catch {
      resolve(); // the memory's trouble is not the session's
    }
  });
}

export default function funes(pi: any) {
  for (const tool of settings.tools) {
    pi.registerTool({
      name: `funes_${tool.name}`,
      label: tool.title,
      description: tool.description,
      parameters: tool.inputSchema,
      prepareArguments: (args: unknown) => prepare(tool.inputSchema, args),
      ...settings.prompts[tool.name],
      execute: (_id: string, args: object, signal?: AbortSignal) => call(tool.name, args ?? {}, signal),
    });
  }
  pi.on("session_start", (event: any, context: any) => notify("session_start", context, { reason: event?.reason }));
  pi.on("agent_end", (_event: any, context: any) => notify("agent_end", context));
  pi.on("session_shutdown", (event: any, context: any) =>
    notify("session_shutdown", context, { reason: event?.reason }),
  );
}
