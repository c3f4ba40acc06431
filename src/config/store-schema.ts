import { z } from "zod";
import type { StoreSettings } from "../stores/store-settings.js";
import { type Problem, problemsOf } from "./problem.js";
import { booleanSchema, strictObject, textSchema } from "./value-schemas.js";

/** Name of an HTTP header (RFC 9110 §5.6.2). */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

const variableSchema = strictObject('an object with "env"', { env: textSchema("the name of a variable") });

const headerSchema = z.custom<string | { readonly env: string }>(
  (value) =>
    (typeof value === "string" && !/[^\t\x20-\x7e\x80-\xff]/.test(value)) ||
    variableSchema.safeParse(value).success,
  { error: 'expected a text of one line, or {"env": "NAME"} with the name of a variable' },
);

const urlSchema = z.custom<string>(
  (value) => typeof value === "string" && /^(https?|s3):\/\/[^?#@\s]+$/.test(value),
  { error: "expected an https://, http:// or s3:// URL without user, query and fragment" },
);

const endpointSchema = z.custom<string>(
  (value) => typeof value === "string" && /^https?:\/\/[^?#@\s]+$/.test(value),
  { error: "expected an https:// or http:// URL without user, query and fragment" },
);

/** One store: how a remote place is reached. */
const storeSchema = strictObject("an object with a url", {
  url: urlSchema,
  endpoint: endpointSchema.optional(),
  region: textSchema("the name of a region").optional(),
  forcePathStyle: booleanSchema.optional(),
  anonymous: booleanSchema.optional(),
  profile: textSchema("the name of a profile").optional(),
  credentials: strictObject("an object of accessKeyId, secretAccessKey, sessionToken", {
    accessKeyId: variableSchema,
    secretAccessKey: variableSchema,
    sessionToken: variableSchema.optional(),
  }).optional(),
  requesterPays: booleanSchema.optional(),
  missing: z.enum(["404", "404+403"], { error: 'expected "404" or "404+403"' }).optional(),
  headers: z
    .record(z.string(), headerSchema, { error: "expected an object of headers by name" })
    .refine((headers) => Object.keys(headers).every((name) => HEADER_NAME.test(name)), {
      error: "expected names of headers, of letters, digits and hyphens",
    })
    .optional(),
  redirect: booleanSchema.optional(),
});

/**
 * Checks a store of the configuration.
 * @param place Begins the lines that are added to `problems`.
 * @returns The store, or none if something is wrong with it.
 */
export function checkStore(
  name: string,
  said: unknown,
  place: string,
  problems: Problem[],
): readonly StoreSettings[] {
  const result = storeSchema.safeParse(said);
  if (result.success) return [{ name, ...result.data }];
  problems.push(...problemsOf(result.error, withoutSecrets(said), place, ["stores", name]));
  return [];
}

/** Returns a store as a message may show it: without what may be a secret, though it belongs elsewhere. */
function withoutSecrets(store: unknown): unknown {
  if (typeof store !== "object" || store === null || Array.isArray(store)) return store;
  const entries = Object.entries(store).map(([key, value]) => {
    if (key === "headers" || key === "credentials") return [key, hidden(value)];
    const isUrl = typeof value === "string" && value.includes("//");
    return [key, isUrl ? value.replace(/\/\/[^/]*@/, "//…@").replace(/[?#].*/s, "?…") : value];
  });
  return Object.fromEntries(entries);
}

/** Replaces all texts of a value. */
function hidden(value: unknown): unknown {
  if (typeof value === "string") return "…";
  if (Array.isArray(value)) return value.map(hidden);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, hidden(each)]));
}
