// pi as far as the extension sees it: registers its tools and events, runs what a test asks for, and prints what came.
import { pathToFileURL } from "node:url";

const [extension, ...steps] = process.argv.slice(2);
const tools = new Map();
const events = new Map();
const load = (await import(pathToFileURL(extension).href)).default;
load({
  registerTool: (tool) => tools.set(tool.name, tool),
  on: (name, handler) => events.set(name, handler),
});
const context = {
  cwd: "/project",
  sessionManager: { getSessionId: () => "s1", getSessionFile: () => "/sessions/s1.jsonl" },
};

async function run(step) {
  const { tool, args, abort, event } = JSON.parse(step);
  if (event) {
    const began = Date.now();
    await events.get(event)({ reason: "quit" }, context);
    return { event, quick: Date.now() - began < 5000 };
  }
  const found = tools.get(tool);
  const controller = new AbortController();
  if (abort) setTimeout(() => controller.abort(), abort);
  try {
    const result = await found.execute("call", found.prepareArguments(args), controller.signal);
    return { text: result.content.map((part) => part.text).join("\n") };
  } catch (error) {
    return { error: error.message };
  }
}

const { name, label, description, parameters, promptSnippet, promptGuidelines } = tools.get("funes_recall");
console.log(JSON.stringify({ name, label, description, parameters, promptSnippet, promptGuidelines }));
for (const step of steps) console.log(JSON.stringify(await run(step)));
