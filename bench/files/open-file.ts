import { openSource } from "../../src/open/open-source.js";
import { runChild } from "../children.js";

/** Opens a file several times in a process of its own; returns the seconds of each opening. No index is kept. */
export async function timeOpening(location: string, times: number): Promise<number[]> {
  return JSON.parse(
    await runChild(process.execPath, [import.meta.filename, location, String(times)]),
  ) as number[];
}

async function main(location: string, times: number): Promise<void> {
  const seconds: number[] = [];
  for (let time = 0; time < times; time++) {
    const began = performance.now();
    const source = await openSource(location);
    const tree = await source.readTree();
    seconds.push((performance.now() - began) / 1_000);
    if (tree.refused.length > 0) throw new Error(`refused: ${JSON.stringify(tree.refused)}`);
    await source.close();
  }
  process.stdout.write(JSON.stringify(seconds));
}

const [, script, location = "", times = "1"] = process.argv;
if (script === import.meta.filename) await main(location, Number(times));
