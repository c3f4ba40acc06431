import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import t from "tap";

t.test("a thread that could not load a codec is worn out, and not wrong for ever", async (t) => {
  const program = fileURLToPath(new URL("../support/codec/exhaust-descriptors.js", import.meta.url));
  const { stdout } = await promisify(execFile)("sh", [
    "-c",
    'ulimit -n 64; exec "$1" "$2"',
    "sh",
    process.execPath,
    program,
  ]);
  const { without, isWornOut } = JSON.parse(stdout);
  t.not(without, "loaded", without);
  t.ok(isWornOut);
});
