// LangGraph JS as a peer: reads one request a line, answers with one line. The Go side (langgraph.go) starts it, says which saver
// and durability mode to use, and keeps the time limits; nothing here opens a connection.

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

import { Annotation, Command, END, INTERRUPT, MemorySaver, START, StateGraph, interrupt } from "@langchain/langgraph";

const require = createRequire(import.meta.url);
const payload = "x".repeat(1024); // the state of every peer

// A graph of one node that asks which of two colours to deploy, and deploys it. deployed counts how often it did which.
function open({ saver, synchronous, file }) {
  const deployed = { blue: 0, green: 0 };
  const state = Annotation.Root({ payload: Annotation(), colour: Annotation() });
  const node = () => {
    const colour = interrupt({ question: "which colour?", choices: ["blue", "green"] });
    deployed[colour]++;
    return { colour };
  };
  const [checkpointer, setting, close] = savers[saver](file, synchronous);
  const graph = new StateGraph(state).addNode("ask", node).addEdge(START, "ask").addEdge("ask", END).compile({ checkpointer });
  return { graph, deployed, setting, close };
}

const savers = {
  memory: () => [new MemorySaver(), "in memory", () => {}],
  sqlite: (file, synchronous) => {
    const { SqliteSaver } = require("@langchain/langgraph-checkpoint-sqlite");
    const saver = SqliteSaver.fromConnString(file); // as its documentation opens it
    saver.setup();
    if (synchronous) saver.db.pragma(`synchronous=${synchronous}`);
    const level = ["OFF", "NORMAL", "FULL", "EXTRA"][saver.db.pragma("synchronous", { simple: true })];
    const mode = saver.db.pragma("journal_mode", { simple: true });
    return [saver, `${mode}, synchronous=${level}`, () => saver.db.close()];
  },
};

async function raise(graph, durability) {
  const config = { configurable: { thread_id: randomUUID() }, durability };
  const raised = await graph.invoke({ payload }, config);
  if (raised[INTERRUPT]?.length !== 1) throw new Error("the graph did not ask");
  return config;
}

async function answer(graph, config, colour) {
  return (await graph.invoke(new Command({ resume: colour }), config)).colour;
}

const operations = {
  // How many cycles, a question raised and answered, that many callers do in that time; or one caller, exactly that many.
  async cycles({ callers, warmup, duration, count, ...how }) {
    const { graph, deployed, setting, close } = open(how);
    const cycle = async () => {
      const config = await raise(graph, how.durability);
      if ((await answer(graph, config, "blue")) !== "blue") throw new Error("the answer did not arrive");
    };
    const during = async (ms) => {
      let cycles = 0;
      const begin = performance.now();
      const caller = async () => {
        for (; performance.now() - begin < ms; cycles++) await cycle();
      };
      await Promise.all(Array.from({ length: callers }, caller));
      return { cycles, seconds: (performance.now() - begin) / 1000 };
    };
    try {
      for (let i = 0; i < (count ?? 0); i++) await cycle();
      if (count !== undefined) return { cycles: count, seconds: 0, setting };
      globalThis.gc?.();
      const warm = await during(warmup);
      const measured = await during(duration);
      if (deployed.blue !== warm.cycles + measured.cycles || deployed.green) throw new Error("the node ran more often than it was answered");
      return { ...measured, setting };
    } finally {
      close();
    }
  },

  // What becomes of a second answer to one question.
  async second({ when, trials, ...how }) {
    const { graph, deployed, close } = open(how);
    const reply = (promise) =>
      promise.then((value) => ({ value: value ?? "nothing" }), (error) => ({ refused: error.name ?? String(error) }));
    const once = async () => {
      const before = { ...deployed };
      const config = await raise(graph, how.durability);
      const replies =
        when === "at once"
          ? await Promise.all(["blue", "green"].map((colour) => reply(answer(graph, config, colour))))
          : [await reply(answer(graph, config, "blue")), await reply(answer(graph, config, when === "late" ? "green" : "blue"))];
      return { replies, effects: deployed.blue + deployed.green - before.blue - before.green };
    };
    try {
      const seen = [];
      for (let i = 0; i < trials; i++) seen.push(await once());
      return seen;
    } finally {
      close();
    }
  },

  async versions() {
    const version = (name) => {
      try {
        return require(`./node_modules/${name}/package.json`).version;
      } catch {
        return "missing";
      }
    };
    const names = ["@langchain/langgraph", "@langchain/core", "@langchain/langgraph-checkpoint-sqlite", "better-sqlite3"];
    return { node: process.version.slice(1), ...Object.fromEntries(names.map((name) => [name, version(name)])) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...parameters } = JSON.parse(line);
  const response = await operations[op](parameters).then(
    (value) => ({ value }),
    (error) => ({ error: String(error.message ?? error).split("\n")[0] }),
  );
  process.stdout.write(`${JSON.stringify(response)}\n`);
}
