/**
 * A program that has numcodecs.js loaded while it has no descriptor left, and again when it has: prints what came of it as JSON. To be
 * run with a low limit (`ulimit -n`).
 */
import { closeSync, openSync } from "node:fs";
import { isNumcodecsWornOut, loadNumcodecsZstd } from "../../../src/codec/zstd.js";

const tryToLoad = () => loadNumcodecsZstd().then(() => "loaded", String);

const descriptors: number[] = [];
try {
  for (;;) descriptors.push(openSync("/dev/null", "r"));
} catch {
  // That was the last.
}
const without = await tryToLoad();
for (const descriptor of descriptors) closeSync(descriptor);
const isWornOut = isNumcodecsWornOut();
process.stdout.write(JSON.stringify({ without, isWornOut }));
