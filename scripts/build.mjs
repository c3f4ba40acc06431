import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// What `npm run build` and `npm start` run: the steps whose inputs have changed since they last succeeded. Arguments name steps that
// run in any case. It is JavaScript, since nothing is compiled before it.

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const TSC = "node_modules/typescript-native/bin/tsc";
/** Fingerprints of the inputs of each step's last success. */
const STATE = "dist/build-state.json";
/** Written with the bundle: the files that it is made of. */
const BUNDLED = "dist/explore-inputs.json";

const steps = {
  code: {
    text: "TypeScript",
    commands: [[TSC, "-p", "tsconfig.json"]],
    inputs: () => ["tsconfig.json", "src", "workers", "bench", "test", "scripts"],
    output: "dist/src/zpublish.cjs",
  },
  kernel: {
    text: "the codecs' kernel (WebAssembly)",
    commands: [
      [
        ...["node_modules/assemblyscript/bin/asc.js", "--config", "src/codec/kernel/asconfig.json"],
        ...["--outFile", "dist/src/codec/kernel/kernel.wasm"],
      ],
    ],
    inputs: () => ["src/codec/kernel/asconfig.json", "src/codec/kernel/assembly"],
    output: "dist/src/codec/kernel/kernel.wasm",
  },
  types: {
    text: "the explorer's types",
    commands: [[TSC, "-p", "src/explore/tsconfig.json"]],
    inputs: () => ["tsconfig.json", "src"],
    output: "dist/explore.tsbuildinfo",
  },
  explorer: {
    text: "the explorer",
    commands: [["dist/scripts/explore/build-explore.js"]],
    inputs: () => ["scripts/explore", ...(readJson(BUNDLED) ?? ["src"])],
    output: "dist/src/explore/assets/assets.json",
  },
};

/** Steps that can run at a time, in order: the explorer is bundled by a script that is compiled. */
const ROUNDS = [["code", "kernel", "types"], ["explorer"]];

const named = process.argv.slice(2);
mkdirSync("dist", { recursive: true });
const state = readJson(STATE) ?? {};
let count = 0;
for (const round of ROUNDS) {
  const asked = round.filter((name) => named.length === 0 || named.includes(name));
  const results = await Promise.all(asked.map(build));
  if (results.includes(false)) process.exit(1);
}
if (existsSync(steps.code.output)) chmodSync(steps.code.output, 0o755);
if (count === 0) say("Nothing has changed since the last build.");

/** Runs a step if it has to. @returns False if it failed. */
async function build(name) {
  const { text, commands, inputs, output } = steps[name];
  const before = fingerprint(inputs());
  if (named.length === 0 && state[name] === before && existsSync(output)) return true;
  count++;
  say(`Compiling ${text} …`);
  const began = performance.now();
  for (const command of commands) if (!(await run(command))) return false;
  say(`Compiled ${text} in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  // The bundle itself says what it is made of.
  state[name] = name === "explorer" ? fingerprint(inputs()) : before;
  writeFileSync(STATE, JSON.stringify(state));
  return true;
}

/** Runs a script with this Node.js. @returns Whether it succeeded. */
function run(command) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, command, { stdio: "inherit" });
    child.once("error", (error) => resolve(say(error.message) ?? false));
    child.once("close", (code) => resolve(code === 0));
  });
}

/** Names, sizes and times of files and of all files below folders, and the versions of packages, as one text. */
function fingerprint(paths) {
  const hash = createHash("sha256");
  for (const path of ["package-lock.json", ...paths]) {
    if (!existsSync(path)) continue;
    const isFolder = statSync(path).isDirectory();
    const names = isFolder ? readdirSync(path, { recursive: true }).sort() : [""];
    for (const name of names) {
      const file = join(path, name);
      const { size, mtimeMs } = statSync(file);
      hash.update(JSON.stringify([file, size, mtimeMs]));
    }
  }
  return hash.digest("hex");
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

function say(text) {
  process.stderr.write(`${text}\n`);
}
