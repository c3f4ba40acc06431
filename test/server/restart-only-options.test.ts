import t from "tap";
import type { Config } from "../../src/config/config.js";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { keepRestartOnlyOptions } from "../../src/server/restart-only-options.js";

const defaults = optionConfig(defaultValues({}));
const cache = { directory: "/cache", maxBytes: 1_000 };
const tls = { certFile: "/tls.crt", keyFile: "/tls.key" };
const admin = { host: "127.0.0.1", port: 1 };
const current: Omit<Config, "datasets" | "collections" | "plugins"> = {
  ...defaults,
  cache,
  access: { ...defaults.access, tls },
  observe: { ...defaults.observe, admin },
};

t.test("options that can change do, and none is named", (t) => {
  const next = { ...current, title: "other", limits: { ...current.limits, maxRequests: 7 } };
  t.strictSame(keepRestartOnlyOptions(current, next), { config: next, ignored: [] });
  t.end();
});

t.test("of options that belong together, the changed ones are named, and all stay", (t) => {
  const next = {
    ...current,
    port: current.port + 1,
    cache: { ...cache, maxBytes: 2_000 },
    access: { ...current.access, tls: { ...tls, keyFile: "/other.key" } },
    observe: { ...current.observe, admin: { ...admin, port: 2 } },
  };
  const { config, ignored } = keepRestartOnlyOptions(current, next);
  t.strictSame(ignored, ["port", "cacheSize", "tlsKey", "adminPort"]);
  t.strictSame(config, current);
  t.end();
});

t.test("all of them are named if they are added or removed together", (t) => {
  const next = {
    ...current,
    cache: null,
    access: { ...current.access, tls: null },
    observe: { ...current.observe, admin: null },
  };
  const names = ["cacheDir", "cacheSize", "tlsCert", "tlsKey", "adminPort", "adminHost"];
  t.strictSame(keepRestartOnlyOptions(current, next), { config: current, ignored: names });
  t.strictSame(keepRestartOnlyOptions<typeof current>(next, current), { config: next, ignored: names });
  t.end();
});
