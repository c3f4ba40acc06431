import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "../children.js";
import type { LoadRequest, LoadResult } from "./load.js";

const GENERATOR = fileURLToPath(new URL("node-generator.js", import.meta.url));

/** Requests from a Node process of its own, which may be slower than the server it asks. */
export async function runNodeLoad(load: LoadRequest): Promise<LoadResult> {
  const file = join(load.scratch, "load.json");
  writeFileSync(file, JSON.stringify(load));
  return JSON.parse(await runChild(process.execPath, [GENERATOR, file])) as LoadResult;
}
