import { spawnSync } from "node:child_process";
import t from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { clientMissing } from "../support/clients/require-client.js";
import { deployPath, deployText, imageEnvironment, imageUser, parseYaml } from "./examples.js";

// biome-ignore lint/suspicious/noExplicitAny: a spec has as many shapes as there are kinds.
type Spec = any;

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Spec;
}

const FOLDER = "kubernetes/";
const skip = clientMissing("yaml");

/** Returns the variables of a container: those of its image, and its own. */
function environmentOf({ env }: Spec): Record<string, string> {
  return { ...imageEnvironment(), ...Object.fromEntries(env.map(({ name, value }: Spec) => [name, value])) };
}

interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly files: readonly string[] }[];
}

function read() {
  const [kustomization] = parseYaml(deployPath(`${FOLDER}kustomization.yaml`)) as [Kustomization];
  const manifests = parseYaml(
    ...kustomization.resources.map((name) => deployPath(FOLDER + name)),
  ) as Manifest[];
  const find = (kind: string, name: string): Manifest => {
    const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
    if (found === undefined) throw new Error(`expected a ${kind} ${name}`);
    return found;
  };
  const podOf = (kind: string, name: string) => find(kind, name).spec.template.spec;
  const pod = podOf("StatefulSet", "zpublish");
  const [container] = pod.containers;
  const config = resolveConfig({
    argv: ["--config", deployPath(`${FOLDER}config.json`)],
    env: environmentOf(container),
    cwd: "/",
  });
  return { kustomization, manifests, find, podOf, pod, container, config };
}

t.test("the times of Kubernetes leave a server the time that it takes to drain", { skip }, async (t) => {
  const { pod, container, config } = read();
  const { startupProbe, livenessProbe, readinessProbe } = container;
  for (const probe of [startupProbe, livenessProbe, readinessProbe]) t.equal(probe.httpGet.port, "admin");
  t.equal(startupProbe.httpGet.path, "/readyz");
  t.equal(livenessProbe.httpGet.path, "/healthz", "a slow source is no reason for a restart");
  t.equal(readinessProbe.httpGet.path, "/readyz");
  const { delayMs, timeoutMs } = config.drain;
  const unreadyMs = readinessProbe.periodSeconds * readinessProbe.failureThreshold * 1_000;
  t.ok(delayMs >= unreadyMs + 10_000, "until it is known everywhere that it is not ready");
  t.ok(pod.terminationGracePeriodSeconds * 1_000 >= delayMs + timeoutMs + 20_000, "and then to the end");
  t.ok(startupProbe.periodSeconds * startupProbe.failureThreshold >= 60);
});

t.test("ports, directories and users of the manifests are those of the image", { skip }, async (t) => {
  const { pod, container, config, kustomization, find } = read();
  const port = (wanted: string) => container.ports.find(({ name }: Spec) => name === wanted)?.containerPort;
  t.equal(port("http"), config.port);
  t.equal(port("admin"), config.observe.admin?.port);
  t.equal(pod.securityContext.runAsUser, imageUser().user);
  t.equal(pod.securityContext.runAsGroup, imageUser().group);
  const mounts: string[] = container.volumeMounts.map(({ mountPath }: Spec) => mountPath);
  t.ok(mounts.includes(config.cache?.directory ?? "none"));
  t.ok(config.datasets.every(({ location }) => mounts.some((path) => location.startsWith(`${path}/`))));
  t.ok(mounts.some((path) => config.access.tokenFile?.startsWith(`${path}/`)));
  t.ok(mounts.some((path) => container.args.includes(`${path}/config.json`)));
  const made = kustomization.configMapGenerator.map(({ name }) => name);
  for (const { configMap } of pod.volumes) if (configMap !== undefined) t.ok(made.includes(configMap.name));
  const [claim] = find("StatefulSet", "zpublish").spec.volumeClaimTemplates;
  const gib = Number(/^(\d+)Gi$/.exec(claim.spec.resources.requests.storage)?.[1]);
  t.ok(
    (config.cache?.maxBytes ?? Number.NaN) * 1.5 <= gib * 2 ** 30,
    "the file of the cache is at most 1.5 × as large",
  );
  t.equal(pod.enableServiceLinks, false, "ZPUBLISH_PORT would be set by Kubernetes");
});

t.test("pods run as nobody, with nothing they do not need", { skip }, async (t) => {
  const { podOf } = read();
  for (const pod of [podOf("StatefulSet", "zpublish"), podOf("Deployment", "zpublish-balancer")]) {
    t.match(pod.securityContext, { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    t.equal(pod.automountServiceAccountToken, false);
    t.match(pod.containers[0].securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  }
});

t.test("the balancer knows by name as many instances as there may be", { skip }, async (t) => {
  const { find, kustomization } = read();
  const { spec } = find("StatefulSet", "zpublish");
  const domain = `${spec.serviceName}.${kustomization.namespace}.svc.cluster.local`;
  t.equal(find("Service", spec.serviceName).spec.publishNotReadyAddresses, true);
  const autoscaler = find("HorizontalPodAutoscaler", "zpublish").spec;
  const names = Array.from({ length: autoscaler.maxReplicas }, (_, i) => `zpublish-${i}`);
  const config = deployText(`${FOLDER}haproxy.cfg`);
  for (const backend of config.split(/^backend /m).slice(1)) {
    const servers = [...backend.matchAll(/^ +server (\S+) (\S+)/gm)].map(([, name, address]) => [
      name,
      address,
    ]);
    t.strictSame(
      servers,
      names.map((name) => [name, `${name}.${domain}:9000`]),
    );
  }
  t.ok(autoscaler.minReplicas < autoscaler.maxReplicas);
  t.notOk("replicas" in spec, "which the autoscaler says");
});

/** Backends of a configuration without its comments, and without what says where instances are. */
function rules(text: string): string[] {
  return text
    .slice(text.indexOf("\nbackend zpublish\n"))
    .split("\n")
    .map((line) => line.trim().replace("resolvers cluster init-addr none", "").replace("port 9001 ", ""))
    .map((line) => line.replaceAll(/ +/g, " ").trim())
    .filter((line) => line !== "" && line !== "default-server" && !/^(#|server )/.test(line));
}

t.test(
  "HAProxy on Kubernetes does as the one that is tested",
  { skip: clientMissing("haproxy") },
  async (t) => {
    t.strictSame(rules(deployText(`${FOLDER}haproxy.cfg`)), rules(deployText("haproxy.cfg")));
    const run = spawnSync("/usr/sbin/haproxy", ["-c", "-f", deployPath(`${FOLDER}haproxy.cfg`)], {
      encoding: "utf8",
    });
    t.equal(run.status, 0, run.stdout + run.stderr);
    t.notMatch(run.stdout + run.stderr, /WARNING/);
  },
);

t.test("the examples over a bucket have no data on the machine", async (t) => {
  for (const name of ["bucket.json", "kubernetes-bucket/config.json"]) {
    const { datasets } = resolveConfig({ argv: ["--config", deployPath(name)], env: {}, cwd: "/" });
    t.ok(datasets.length > 0 && datasets.every(({ location }) => location.startsWith("s3://")), name);
  }
});
