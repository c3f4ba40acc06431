import { asBoolean, asNumber, asText, option } from "./option-spec.js";
import { booleanSchema, headerNameSchema, hostSchema, integerSchema, shareSchema } from "./value-schemas.js";

/** Options about metrics, the admin port and logging of requests. */
export const OBSERVE_OPTIONS = {
  metrics: option({
    placeholder: null,
    summary: "Answer /metrics for Prometheus",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => true,
  }),
  adminPort: option({
    placeholder: "port",
    summary:
      "Another port for /healthz, /readyz and /metrics, plain HTTP; 0 picks a free one. Default: the same port",
    schema: integerSchema(0, 65_535),
    fromText: asNumber,
    defaultValue: (): number | null => null,
    defaultText: "",
  }),
  adminHost: option({
    placeholder: "host",
    summary: "Address of --admin-port",
    schema: hostSchema,
    fromText: asText,
    defaultValue: () => "127.0.0.1",
  }),
  accessLog: option({
    placeholder: "share",
    summary: "Share of requests that are logged, 0 to 1; above 0, every 5xx is",
    schema: shareSchema,
    fromText: asNumber,
    defaultValue: () => 0,
  }),
  requestIdHeader: option({
    placeholder: "name",
    summary: "Header with the id that a balancer gave a request",
    schema: headerNameSchema,
    fromText: asText,
    defaultValue: () => "x-request-id",
  }),
};
