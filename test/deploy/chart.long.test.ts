import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { packageVersion } from "../../src/observe/versions.js";
import { clientMissing } from "../support/clients/require-client.js";
import { makeDirectory } from "../support/write-store.js";
import { deployPath, deployText, imageEnvironment, imageUser, parseYaml } from "./examples.js";
import { renderTemplate } from "./render-chart.js";

// biome-ignore lint/suspicious/noExplicitAny: manifests have as many shapes as there are kinds.
type Spec = any;

const skip = clientMissing("yaml");

/** Renders the chart as `helm template zpublish` does. @param changes Values in place of those of values.yaml, at the top level. */
async function render(t: Test, changes: object = {}): Promise<Spec[]> {
  const [chart, values] = parseYaml(deployPath("helm/Chart.yaml"), deployPath("helm/values.yaml")) as Spec[];
  const root = {
    Values: { ...values, ...changes },
    Release: { Name: "zpublish" },
    Chart: { AppVersion: chart.appVersion, Name: chart.name },
  };
  const folder = await makeDirectory(t);
  await mkdir(folder, { recursive: true });
  const files: string[] = [];
  for (const name of await readdir(deployPath("helm/templates"))) {
    const path = join(folder, name);
    await writeFile(path, renderTemplate(deployText(`helm/templates/${name}`), root));
    files.push(path);
  }
  return (parseYaml(...files) as Spec[]).filter((manifest) => manifest !== null);
}

/** Every value that is empty by default, set. */
const EVERYTHING = {
  imagePullSecrets: [{ name: "registry" }],
  replicas: 3,
  credentialsSecret: "zpublish-bucket",
  tokensSecret: "zpublish-tokens",
  hasSigningKey: true,
  cache: { maxSize: "1GiB", volumeSize: "2Gi", storageClass: "fast" },
  ingress: { enabled: true, className: "nginx", host: "data.example", tlsSecret: "data-tls" },
  nodeSelector: { "kubernetes.io/arch": "arm64" },
  tolerations: [{ key: "data", operator: "Exists" }],
};

t.test(
  "the chart makes objects that Kubernetes takes, with and without what is optional",
  { skip },
  async (t) => {
    for (const changes of [{}, EVERYTHING, { dataClaim: "", resources: {}, env: {} }]) {
      const manifests = await render(t, changes);
      for (const manifest of manifests) await validate(manifest);
      const kinds = manifests.map(({ kind }: Spec) => kind);
      t.equal(new Set(kinds).size, kinds.length);
      t.equal(kinds.includes("Ingress"), changes === EVERYTHING);
    }
  },
);

/** @throws Error if the object is not as the schema of its kind has it. */
async function validate(manifest: Spec): Promise<void> {
  const module = await import(`kubernetes-models/${manifest.apiVersion}`);
  const Model = module[manifest.kind] as new (data: unknown) => { validate(): void };
  new Model(manifest).validate();
}

t.test(
  "the chart's pods have the ports, user and options of the image, and time to drain",
  { skip },
  async (t) => {
    for (const changes of [{}, EVERYTHING]) {
      const manifests = await render(t, changes);
      const find = (kind: string) => manifests.find((manifest: Spec) => manifest.kind === kind);
      const { spec } = find("StatefulSet");
      const pod = spec.template.spec;
      const [container] = pod.containers;
      t.equal(container.image, `registry.example/zpublish:${packageVersion}`);
      const folder = await makeDirectory(t);
      await writeFile(join(folder, "config.json"), find("ConfigMap").data["config.json"]);
      const env = Object.fromEntries(container.env.map(({ name, value }: Spec) => [name, value]));
      const config = resolveConfig({
        argv: ["--config", join(folder, "config.json")],
        env: { ...imageEnvironment(), ...env },
        cwd: "/",
      });
      const port = (wanted: string) =>
        container.ports.find(({ name }: Spec) => name === wanted)?.containerPort;
      t.equal(port("http"), config.port);
      t.equal(port("admin"), config.observe.admin?.port);
      t.equal(pod.securityContext.runAsUser, imageUser().user);
      const mounts: string[] = container.volumeMounts.map(({ mountPath }: Spec) => mountPath);
      t.ok(mounts.includes(config.cache?.directory ?? "none"));
      t.ok(config.datasets.every(({ location }) => mounts.some((path) => location.startsWith(`${path}/`))));
      const tokens = config.access.tokenFile;
      if (changes === EVERYTHING) t.ok(mounts.some((path) => tokens?.startsWith(`${path}/`)));
      else t.equal(tokens, null);
      t.equal(config.access.signingKeyFile, tokens?.replace(/tokens$/, "signing-key") ?? null);
      t.equal(pod.enableServiceLinks, false, "ZPUBLISH_PORT would be set by Kubernetes");
      const { delayMs, timeoutMs } = config.drain;
      const unreadyMs =
        container.readinessProbe.periodSeconds * container.readinessProbe.failureThreshold * 1_000;
      t.ok(delayMs >= unreadyMs + 10_000);
      t.ok(pod.terminationGracePeriodSeconds * 1_000 >= delayMs + timeoutMs + 20_000);
      const gib = Number(/^(\d+)Gi$/.exec(spec.volumeClaimTemplates[0].spec.resources.requests.storage)?.[1]);
      t.ok((config.cache?.maxBytes ?? Number.NaN) * 1.5 <= gib * 2 ** 30);
      t.strictSame(spec.selector.matchLabels, find("Service").spec.selector);
    }
  },
);

t.test("the chart has the version of the package", { skip }, async (t) => {
  const [chart] = parseYaml(deployPath("helm/Chart.yaml")) as Spec[];
  t.strictSame([chart.version, chart.appVersion], [packageVersion, packageVersion]);
});
