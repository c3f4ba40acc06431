import { z } from "zod";
import { strictObject } from "./dataset-schema.js";
import { booleanSchema, textSchema } from "./value-schemas.js";

const variableSchema = strictObject('an object with "env"', { env: textSchema("the name of a variable") });

const headerSchema = z.custom<string | { readonly env: string }>(
  (value) => typeof value === "string" || variableSchema.safeParse(value).success,
  { error: 'expected a text, or {"env": "NAME"} with the name of a variable' },
);

const urlSchema = z.custom<string>(
  (value) => typeof value === "string" && /^(https?|s3):\/\/[^?#@\s]+$/.test(value),
  { error: "expected an https://, http:// or s3:// URL without user, query and fragment" },
);

const endpointSchema = z.custom<string>(
  (value) => typeof value === "string" && /^https?:\/\/[^?#@\s]+$/.test(value),
  { error: "expected an https:// or http:// URL without user, query and fragment" },
);

/** One store of the file: how a remote place is reached. */
export const storeSchema = strictObject("an object with a url", {
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
  headers: z.record(z.string(), headerSchema, { error: "expected an object of headers by name" }).optional(),
  redirect: booleanSchema.optional(),
});
