import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { askPython } from "../support/clients/ask-python.js";

const FOLDER = fileURLToPath(new URL("../../../scripts/deploy/", import.meta.url));

/** Path of an example in `scripts/deploy/`. */
export function deployPath(name: string): string {
  return FOLDER + name;
}

/** Text of an example. @throws Error if it does not exist. */
export function deployText(name: string): string {
  return readFileSync(deployPath(name), "utf8");
}

/**
 * Returns the example with what its head says is to be changed.
 * @param changes From the literal text of the example to what a test needs: every occurrence.
 * @throws Error if the example has no such text: the test would run something else than the example.
 */
export function fillIn(text: string, changes: Readonly<Record<string, string>>): string {
  let filled = text;
  for (const [from, to] of Object.entries(changes)) {
    if (!filled.includes(from)) throw new Error(`expected ${JSON.stringify(from)} in the example`);
    filled = filled.replaceAll(from, to);
  }
  return filled;
}

/** An instruction of a Dockerfile. */
interface Instruction {
  /** In capitals: `RUN`. */
  readonly name: string;
  /** What follows, on one line. */
  readonly text: string;
}

/** Reads the stages of the Dockerfile: the image that each begins with, and its instructions. */
export function readDockerfile(): { readonly from: string; readonly instructions: Instruction[] }[] {
  const text = deployText("Dockerfile")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, " ");
  const stages: { from: string; instructions: Instruction[] }[] = [];
  for (const line of text.split("\n").filter((line) => line.trim() !== "")) {
    const [, name = "", text = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === "") throw new Error(`expected an instruction, received ${JSON.stringify(line)}`);
    if (name === "FROM") stages.push({ from: text.split(/\s+/)[0]!, instructions: [] });
    else stages.at(-1)?.instructions.push({ name, text });
  }
  return stages;
}

function lastStage(name: string): string {
  const { instructions } = readDockerfile().at(-1)!;
  return instructions.find((instruction) => instruction.name === name)?.text ?? "";
}

/** Returns the variables that a container is started with. */
export function imageEnvironment(): Record<string, string> {
  return Object.fromEntries(
    lastStage("ENV")
      .split(/\s+/)
      .map((pair) => pair.split("=") as [string, string]),
  );
}

/** Returns the numbers of the user and group that a container runs as. */
export function imageUser(): { readonly user: number; readonly group: number } {
  const [user = Number.NaN, group = Number.NaN] = lastStage("USER").split(":").map(Number);
  return { user, group };
}

/** Returns all documents of YAML files, in their order. @throws Error if one is not YAML, or has a key twice. */
export function parseYaml(...paths: readonly string[]): unknown[] {
  return JSON.parse(askPython(PARSE_YAML, null, paths)) as unknown[];
}

/** PyYAML takes the last of several equal keys; Kubernetes refuses them. */
const PARSE_YAML = `
import json, sys, yaml

class Loader(yaml.SafeLoader):
    pass

def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    if len(keys) != len(set(keys)):
        raise ValueError(f"a key twice: {node.start_mark}")
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)

Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
print(json.dumps([doc for path in sys.argv[1:] for doc in yaml.load_all(open(path), Loader)]))
`;
