import { asText, option } from "./option-spec.js";
import { textSchema, trustedProxiesSchema } from "./value-schemas.js";

/** Options that say which clients may read, and which proxies are trusted. */
export const ACCESS_OPTIONS = {
  trustedProxies: option({
    placeholder: "addresses",
    summary:
      "Proxies whose X-Forwarded-… headers are trusted: addresses, networks such as 10.0.0.0/8, loopback, private",
    schema: trustedProxiesSchema,
    fromText: asText,
    defaultValue: () => "",
  }),
  tlsCert: option({
    placeholder: "file",
    summary: "Certificate chain (PEM) for HTTPS; read again at HUP",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
  tlsKey: option({
    placeholder: "file",
    summary: "Private key (PEM) of the certificate",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
  tokenFile: option({
    placeholder: "file",
    summary: "File of bearer tokens, one per line; requests without one get 401, except /healthz and /readyz",
    schema: textSchema("a file"),
    fromText: asText,
    defaultValue: (): string | null => null,
    defaultText: "",
    isPath: true,
  }),
};
