import t from "tap";
import { readDemo, SOCKET_RING } from "./pass-under.js";
import { passAll } from "./run-test-files.js";

const env = { ZPUBLISH_HTTP: "node" };

t.test("the socket ring passes with node:http under the present Node.js", async (t) => {
  await passAll(t, process.execPath, SOCKET_RING, env);
});

t.test("npm start is served by node:http if that is asked for", async (t) => {
  const { stderr } = await readDemo(t, process.execPath, [], env);
  t.match(stderr, /"msg":"ZPUBLISH_HTTP=node: served by node:http"/);
});
