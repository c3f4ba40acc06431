import type { Config } from "./config.js";
import type { OptionValues } from "./options.js";
import { NAMED_NETWORKS } from "./value-schemas.js";

/** Converts the values of all options to a configuration. */
export function optionConfig(values: OptionValues): Omit<Config, "datasets" | "collections" | "plugins"> {
  return {
    host: values.host,
    port: values.port,
    workers: values.workers,
    processes: values.processes,
    cache: values.cache ? { directory: values.cacheDir, maxBytes: values.cacheSize } : null,
    rootPath: values.rootPath,
    refreshSeconds: values.refresh,
    corsOrigin: values.corsOrigin,
    cacheControl: values.cacheControl,
    logLevel: values.logLevel,
    skipInvalid: values.skipInvalid,
    single: values.single,
    title: values.title,
    limits: {
      maxConnections: values.maxConnections,
      maxRequests: values.maxRequests,
      maxPages: values.maxPages,
      maxResponseBytes: values.maxResponseBytes,
      maxQueuedChunks: values.maxQueuedChunks,
      maxHeaderBytes: values.maxHeaderSize,
      maxUrlBytes: values.maxUrlLength,
      requestTimeoutMs: values.requestTimeout * 1000,
      stallTimeoutMs: values.stallTimeout * 1000,
      chunkTimeoutMs: values.chunkTimeout * 1000,
      sourceTimeoutMs: values.sourceTimeout * 1000,
      workerHeapBytes: values.workerMemory,
      maxOpenDatasets: values.maxOpenDatasets,
      maxChunkBytes: values.maxChunkSize,
    },
    drain: { delayMs: values.drainDelay * 1000, timeoutMs: values.drainTimeout * 1000 },
    access: {
      trustedProxies: networksOf(values.trustedProxies),
      tls:
        values.tlsCert === null || values.tlsKey === null
          ? null
          : { certFile: values.tlsCert, keyFile: values.tlsKey },
      tokenFile: values.tokenFile,
    },
    observe: {
      metrics: values.metrics,
      admin: values.adminPort === null ? null : { host: values.adminHost, port: values.adminPort },
      accessLogShare: values.accessLog,
      requestIdHeader: values.requestIdHeader,
    },
  };
}

function networksOf(text: string): readonly string[] {
  if (text === "") return [];
  return text.split(", ").flatMap((part) => NAMED_NETWORKS[part] ?? [part]);
}
