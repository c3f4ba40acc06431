import t from "tap";
import { explainLoadError, loadUws } from "../../../src/http/listening/uws-listener.js";
import { isNodeHttp } from "../../support/servers/serve-routes.js";

t.test("says in one line that a system is too old", async (t) => {
  const text =
    "This version of uWS.js supports only Node.js versions 16 to 25 on (glibc) Linux.\n\nError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /srv/node_modules/uWebSockets.js/uws_linux_x64_127.node)";
  const message = explainLoadError(new Error(text));
  t.match(message, /needs glibc 2\.38 or newer, which this system does not have$/);
  t.notMatch(message, "\n");
});

t.test("gives any other reason in one line", async (t) => {
  const message = explainLoadError(
    new Error(
      "This version of uWS.js supports only …\n\nError: Cannot find module './uws_linux_x64_99.node'\nRequire stack:\n- /srv/uws.js",
    ),
  );
  t.match(message, /^uWebSockets\.js cannot be loaded with Node\.js .*: /);
  t.notMatch(message, "\n");
  t.match(message, "uws_linux_x64_99.node");
});

t.test(
  "loads once",
  { skip: isNodeHttp && "skipped, because uWebSockets.js cannot be loaded" },
  async (t) => {
    t.equal(loadUws(), loadUws());
    t.type((await loadUws()).App, "function");
  },
);
