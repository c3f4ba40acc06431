import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Test } from "tap";

/** Runs `npx zpublish serve` in a folder until the test ends. */
export async function npxZpublish(t: Test, cwd: string, args: readonly string[]) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(ZPUBLISH_(?!HTTP$)|TAP|NODE_OPTIONS)/.test(name)),
  );
  const serve = ["--no-install", "zpublish", "serve", "--port", "0", "--no-cache", ...args];
  // A group of its own: npx does not hand on every signal to the program.
  const child = spawn("npx", serve, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(child, "close");
  t.teardown(async () => {
    process.kill(-(child.pid as number), "SIGTERM");
    await closed;
  });
  let text = "";
  return new Promise<{ url: string; log: () => string }>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        const url = /zpublish ready on (\S+)/.exec(text)?.[1];
        if (url !== undefined) resolve({ url, log: () => text });
      });
    }
    void closed.then(() => reject(new Error(`the program ended: ${text}`)));
  });
}
