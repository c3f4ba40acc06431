import t from "tap";
import { packageVersion } from "../../src/observe/versions.js";
import datasetInfo from "../../src/plugins/dataset-info-plugin.js";
import moduleVersion from "../../src/plugins/module-version.js";
import pluginInfo from "../../src/plugins/plugin-info.js";
import { fakeContext } from "../support/datasets/fake-context.js";
import { fakeService } from "../support/datasets/fake-service.js";

t.test("/versions is a flat object of strings", async (t) => {
  const { text } = fakeService(await moduleVersion.routes(fakeContext({})));
  t.strictSame(JSON.parse(await text("/versions")), { zpublish: "0.1.0", node: "20.20.2", LANG: "C.UTF-8" });
});

t.test("/plugins has path and version of every loaded plugin", async (t) => {
  const { text } = fakeService(await pluginInfo.routes(fakeContext({ plugins: ["dataset_info"] })));
  t.strictSame(JSON.parse(await text("/plugins")), {
    dataset_info: { path: "zpublish/plugins/dataset_info", version: "0.1.0" },
  });
});

t.test("plugins name themselves, their module and this package's version", async (t) => {
  t.match(packageVersion, /^\d+\.\d+\.\d+/);
  for (const plugin of [datasetInfo, moduleVersion, pluginInfo]) {
    t.match(plugin.name, /^[a-z][a-z0-9_]*$/);
    t.equal(plugin.version, packageVersion);
    t.match(plugin.path, /^zpublish\/plugins\/[a-z-]+$/);
  }
});
