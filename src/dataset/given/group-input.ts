import { z } from "zod";
import { problemsOf, strictObject } from "../../config/value-schemas.js";
import { ZpublishError } from "../../errors.js";
import type { JsonObject } from "../../json/json-value.js";
import type { MemoryArray } from "../../open/memory/memory-array.js";
import type { MemoryGroup } from "../../open/memory/memory-source.js";
import { printablePath } from "../../zarr/node-name.js";
import { copyAttrs } from "./copy-attrs.js";

/** An array of a tree in memory. */
export type VariableInput = Omit<MemoryArray, "name">;

/** A group of a tree in memory, with its child groups. */
export interface GroupInput {
  readonly attrs?: JsonObject;
  /** By name. */
  readonly variables?: Readonly<Record<string, VariableInput>>;
  /** By name. */
  readonly groups?: Readonly<Record<string, GroupInput>>;
}

const attrsSchema = z.unknown().transform((value, context): JsonObject => {
  const { attrs, problems } = copyAttrs(value);
  for (const { message, path } of problems) context.addIssue({ code: "custom", message, path: [...path] });
  return problems.length === 0 ? attrs : z.NEVER;
});

const byNameSchema = z
  .record(z.string(), z.unknown(), { error: "expected an object by name" })
  .superRefine((children, context) => {
    for (const name of Object.keys(children)) {
      if (!name.includes("/")) continue;
      context.addIssue({ code: "custom", message: "expected a name without a slash", path: [name] });
    }
  });

const groupSchema = strictObject("a group with attrs, variables and groups", {
  attrs: attrsSchema.optional(),
  variables: byNameSchema.optional(),
  groups: byNameSchema.optional(),
});

/** Checks only the type of each value. The memory source checks whether they fit together. */
const variableSchema = strictObject("a variable with data and shape", {
  data: z.custom((value) => ArrayBuffer.isView(value), { error: "expected a typed array" }),
  shape: z.custom(Array.isArray, { error: "expected an array of lengths" }),
  dtype: z.unknown().optional(),
  dims: z.custom(Array.isArray, { error: "expected an array of names" }).optional(),
  attrs: attrsSchema.optional(),
  fillValue: z.unknown().optional(),
  chunks: z.custom(Array.isArray, { error: "expected an array of lengths" }).optional(),
  compressor: z
    .custom((value) => typeof value === "object", {
      error: "expected a codec such as zstd by its id, or null",
    })
    .optional(),
});

/**
 * Reads a tree of groups into a list: parents before children, siblings sorted, attributes copied.
 * @throws ZpublishError `invalid-metadata`, naming the group or variable, if a value has the wrong type.
 */
export function readGroups(root: unknown): MemoryGroup[] {
  return [...walk("/", root)];
}

function* walk(path: string, said: unknown): Iterable<MemoryGroup> {
  const { attrs = {}, variables = {}, groups = {} } = parse(groupSchema, said, path);
  const prefix = path === "/" ? "" : path;
  const arrays = Object.keys(variables)
    .sort()
    .map((name) => {
      const variable = parse(variableSchema, variables[name], `${prefix}/${name}`.slice(1));
      return { ...(variable as VariableInput), name };
    });
  yield { path, attrs, arrays };
  for (const name of Object.keys(groups).sort()) yield* walk(`${prefix}/${name}`, groups[name]);
}

function parse<T>(schema: z.ZodType<T>, said: unknown, path: string): T {
  const result = schema.safeParse(said);
  if (result.success) return result.data;
  throw new ZpublishError(
    "invalid-metadata",
    problemsOf(result.error, said, `'${printablePath(path)}'`).join("\n"),
  );
}
