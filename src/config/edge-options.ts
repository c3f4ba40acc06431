import { asBoolean, asText, option } from "./option-spec.js";
import { booleanSchema, textSchema, trustedProxiesSchema } from "./value-schemas.js";

/** What stands between a server and the open network. */
export const EDGE_OPTIONS = {
  trustedProxies: option({
    placeholder: "addresses",
    summary:
      "Whose X-Forwarded-… headers and PROXY headers count: addresses, networks such as 10.0.0.0/8, loopback, private",
    schema: trustedProxiesSchema,
    fromText: asText,
    defaultValue: () => "",
  }),
  proxyProtocol: option({
    placeholder: null,
    summary:
      "Take the client's address from the PROXY protocol (versions 1 and 2) of trusted proxies; not with several processes",
    schema: booleanSchema,
    fromText: asBoolean,
    defaultValue: () => false,
  }),
  tlsCert: option({
    placeholder: "file",
    summary: "Certificate chain (PEM) for HTTPS; looked at again when it changes, and at HUP",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
  tlsKey: option({
    placeholder: "file",
    summary: "Its private key (PEM)",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
  tokenFile: option({
    placeholder: "file",
    summary: "Bearer tokens, one per line: without one of them nothing is answered but /healthz and /readyz",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
};
