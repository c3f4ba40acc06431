import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { makeDirectory } from "../support/write-store.js";
import { deployPath, deployText } from "./examples.js";
import { startInstances } from "./instances.js";
import { fetchBody, prepareSite } from "./site.js";

/** Files that ask Prometheus something. */
const ASKING = ["prometheus-alerts.yml", "grafana-dashboard.json", "kubernetes/prometheus-adapter.yaml"];
/** That Prometheus or Kubernetes adds itself. */
const ADDED_LABELS = ["instance", "le", "pod", "namespace", "job"];

/** `sum by (a, b) (rate(metric…` as metric and labels; a metric without a sum has none. */
function questions(text: string): { metric: string; labels: string[] }[] {
  const found = text.matchAll(/(?:by \(([^)]*)\) \((?:\w+\()?)?\b((?:zpublish|process|nodejs)_[a-z0-9_]+)/g);
  return [...found].map(([, labels = "", metric = ""]) => ({
    metric,
    labels: labels
      .split(",")
      .map((label) => label.trim())
      .filter((label) => /^[a-z]+$/.test(label)),
  }));
}

const site = await prepareSite(t, { name: "noise", chunks: 4, chunkBytes: 2 ** 16 });
const [instance] = await startInstances(t, 1, { config: { datasets: site.datasets } });
for (let i = 0; i < 2; i++) await site.expected(instance!.port);
const { answer, body } = await fetchBody(instance!.port, "/metrics");

t.test("every metric that alerts, dashboard and autoscaler ask for is answered", async (t) => {
  t.equal(answer.statusCode, 200);
  const samples = body
    .toString()
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  // The name under which the autoscaler finds what its rule makes, and what only a server with TLS or with collections says.
  const absent = [
    "zpublish_pool_wait_seconds_average",
    "zpublish_tls_certificate_expiry_timestamp_seconds",
    "zpublish_provider_failed_lists_total",
  ];
  for (const file of ASKING) {
    const asked = questions(deployText(file));
    t.ok(asked.length > 1, `${file} asks`);
    for (const { metric, labels } of asked) {
      if (absent.includes(metric)) continue;
      const answered = samples.filter(
        (line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `),
      );
      t.ok(answered.length > 0, `${file}: ${metric}`);
      for (const label of labels.filter((label) => !ADDED_LABELS.includes(label)))
        t.ok(
          answered.some((line) => line.includes(`${label}="`)),
          `${file}: ${metric} by ${label}`,
        );
    }
  }
});

t.test(
  "promtool understands the configuration and what a server answers",
  { skip: clientMissing("promtool") },
  async (t) => {
    const promtool = (args: readonly string[], input = "") =>
      spawnSync("promtool", args, { encoding: "utf8", input });
    const checked = promtool(["check", "config", deployPath("prometheus.yml")]);
    t.equal(checked.status, 0, checked.stdout + checked.stderr);
    const metrics = promtool(["check", "metrics"], body.toString());
    // What prom-client itself counts in bytes and calls so is none of ours.
    const problems = metrics.stderr.split("\n").filter((line) => line.startsWith("zpublish_"));
    t.strictSame(problems, [], "names and units are as Prometheus wants them");
  },
);

/** Series of an instance that fails one request in a hundred, sheds, and whose worker died, source went and certificate expires. */
const SERIES = `
rule_files: [prometheus-alerts.yml]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      - { series: 'zpublish_http_requests_total{instance="a",status="200"}', values: "0+990x60" }
      - { series: 'zpublish_http_requests_total{instance="a",status="500"}', values: "0+10x60" }
      - { series: 'zpublish_http_requests_total{instance="b",status="200"}', values: "0+990x60" }
      - { series: 'zpublish_http_requests_total{instance="b",status="404"}', values: "0+500x60" }
      - { series: 'zpublish_shed_requests_total{instance="a"}', values: "0+1x60" }
      - { series: 'zpublish_shed_requests_total{instance="b"}', values: "0x60" }
      - { series: 'zpublish_dataset_failed_refreshes_total{instance="a"}', values: "0+1x60" }
      - { series: 'zpublish_dataset_failed_refreshes_total{instance="b"}', values: "3x60" }
      - { series: 'zpublish_provider_failed_lists_total{instance="a",provider="archive"}', values: "0+1x60" }
      - { series: 'zpublish_provider_failed_lists_total{instance="a",provider="other"}', values: "3x60" }
      - { series: 'zpublish_cache_errors_total{content="pictures",instance="a"}', values: "0x20 1x40" }
      - { series: 'zpublish_cache_errors_total{content="pictures",instance="b"}', values: "0x60" }
      - { series: 'zpublish_tls_certificate_expiry_timestamp_seconds{instance="a"}', values: "1000000x60" }
      - { series: 'zpublish_tls_certificate_expiry_timestamp_seconds{instance="b"}', values: "2000000x60" }
      - { series: 'up{instance="a",job="zpublish"}', values: "1x60" }
      - { series: 'up{instance="c",job="zpublish"}', values: "0x60" }
    alert_rule_test:
      - { eval_time: 14m, alertname: ZpublishFailures, exp_alerts: [{ exp_labels: { severity: page, instance: a } }] }
      - { eval_time: 14m, alertname: ZpublishShedding, exp_alerts: [{ exp_labels: { severity: page, instance: a } }] }
      - { eval_time: 14m, alertname: ZpublishDown, exp_alerts: [{ exp_labels: { severity: ticket, instance: c, job: zpublish } }] }
      - { eval_time: 14m, alertname: ZpublishAllDown, exp_alerts: [] }
      - { eval_time: 14m, alertname: ZpublishWorkersDie, exp_alerts: [] }
      - { eval_time: 14m, alertname: ZpublishLooksFail, exp_alerts: [{ exp_labels: { severity: ticket, instance: a } }] }
      - { eval_time: 14m, alertname: ZpublishListsFail, exp_alerts: [{ exp_labels: { severity: ticket, instance: a, provider: archive } }] }
      - { eval_time: 14m, alertname: ZpublishCacheFails, exp_alerts: [{ exp_labels: { severity: ticket, instance: a, content: pictures } }] }
      - { eval_time: 14m, alertname: ZpublishCertificateExpires, exp_alerts: [{ exp_labels: { severity: ticket, instance: a } }] }
`;

t.test(
  "alerts are given for what fails, and not for what is only absent",
  { skip: clientMissing("promtool") },
  async (t) => {
    const directory = await makeDirectory(t);
    // What they say is for people, and would have to be said again here.
    const rules = deployText("prometheus-alerts.yml").replaceAll(/ +annotations:\n(?: {10,}.*\n)+/g, "");
    t.notMatch(rules, /summary|description/);
    await writeFile(join(directory, "prometheus-alerts.yml"), rules);
    await writeFile(join(directory, "series.yml"), SERIES);
    const run = spawnSync("promtool", ["test", "rules", join(directory, "series.yml")], { encoding: "utf8" });
    t.equal(run.status, 0, run.stdout + run.stderr);
  },
);
