import type { ProviderStats } from "../dataset/providers/provider-handle.js";
import { counter, gauge, type MetricFamily } from "../observe/metric-family.js";

/** Returns the metrics of collections and of plugins that publish datasets; none if there are none. */
export function providerMetrics(providers: readonly ProviderStats[]): MetricFamily[] {
  if (providers.length === 0) return [];
  const each = (value: (stats: ProviderStats) => number) =>
    [...byName(providers)].map(
      ([provider, all]) => [{ provider }, all.reduce((sum, stats) => sum + value(stats), 0)] as const,
    );
  return [
    gauge(
      "zpublish_provider_datasets",
      "Datasets of a collection or plugin, as it listed them last.",
      each(({ known }) => known),
    ),
    gauge(
      "zpublish_provider_open_datasets",
      "Of those, datasets that are open.",
      each(({ open }) => open),
    ),
    gauge(
      "zpublish_provider_failed_datasets",
      "Of those, datasets that could not be opened when they were last asked for.",
      each(({ failed }) => failed),
    ),
    gauge(
      "zpublish_provider_list_seconds",
      "Time that the last list took.",
      each(({ listSeconds }) => listSeconds),
    ),
    counter(
      "zpublish_provider_failed_lists_total",
      "Lists that failed. The datasets of the list before are still served after one.",
      each(({ failedLists }) => failedLists),
    ),
  ];
}

/** Groups providers by their names: two samples of one metric with the same labels would be refused. */
function byName(providers: readonly ProviderStats[]): ReadonlyMap<string, readonly ProviderStats[]> {
  const groups = new Map<string, ProviderStats[]>();
  for (const stats of providers) groups.set(stats.name, [...(groups.get(stats.name) ?? []), stats]);
  return groups;
}
