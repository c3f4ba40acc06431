import t from "tap";
import { passAll, readDemo, socketTests, someOf } from "./pass-under.js";

t.setTimeout(600_000);

const env = { ZPUBLISH_HTTP: "node" };

// Tests of the whole server run with it under Node.js 26, for which uWebSockets.js has no binary.
t.test("tests of HTTP pass with node:http under the present Node.js", async (t) => {
  await passAll(t, process.execPath, someOf(socketTests(), 1), env);
});

t.test("npm start is served by node:http if that is asked for", async (t) => {
  const { stderr } = await readDemo(t, process.execPath, [], env);
  t.match(stderr, /"msg":"ZPUBLISH_HTTP=node: served by node:http"/);
});
