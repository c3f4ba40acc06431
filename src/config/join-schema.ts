import { z } from "zod";
import type { Joining } from "../join/create-join-source.js";
import { strictObject, textSchema } from "./value-schemas.js";

const dimensionSchema = textSchema("the name of a dimension", 256);

/** Tells whether a text is a regular expression with exactly one group. */
function hasOneGroup(text: unknown): boolean {
  if (typeof text !== "string") return false;
  try {
    new RegExp(text, "u");
    // The empty alternative matches everything, so that the result has a place for each group.
    return new RegExp(`${text}|`, "u").exec("")?.length === 2;
  } catch {
    return false;
  }
}

const coordinateSchema = z.custom<string>(hasOneGroup, {
  error: "expected a regular expression with one group, such as run-(\\d+)",
});

const stackShape = strictObject("the name of a dimension, or an object of dimension, coordinate", {
  dimension: dimensionSchema,
  coordinate: coordinateSchema.optional(),
});

/** A new dimension. A text alone is short for `{"dimension": text}`. */
const stackSchema = z.unknown().transform((value, context) => {
  const { success, data, error } = stackShape.safeParse(
    typeof value === "string" ? { dimension: value } : value,
  );
  if (success) return data;
  for (const issue of error.issues)
    context.addIssue({ ...issue, ...(typeof value === "string" ? { path: [] } : {}) });
  return z.NEVER;
});

/** Keys of a dataset that is made of several files. */
export const joinShape = {
  concat: dimensionSchema.optional(),
  stack: stackSchema.optional(),
  overlap: z.literal("last", { error: 'expected "last"' }).optional(),
};

/** Checked values of {@link joinShape}. */
export type JoinKeys = { readonly [K in keyof typeof joinShape]?: z.output<(typeof joinShape)[K]> };

/**
 * Converts the keys of a dataset to how its files are joined; undefined if it is a single file or store.
 * @param problem Takes what is wrong with several keys together.
 */
export function joinConfigOf(
  { concat, stack, overlap }: JoinKeys,
  problem: (text: string) => void,
): Joining | undefined {
  if (concat !== undefined && stack !== undefined) problem("expected concat or stack, received both");
  else if (overlap !== undefined && concat === undefined)
    problem(`overlap: expected concat with it, received ${stack === undefined ? "none" : "stack"}`);
  if (concat !== undefined)
    return { kind: "concat", dimension: concat, ...(overlap === undefined ? {} : { overlap }) };
  if (stack === undefined) return undefined;
  const { dimension, coordinate } = stack;
  return { kind: "stack", dimension, ...(coordinate === undefined ? {} : { coordinate }) };
}
