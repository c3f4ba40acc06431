import type { z } from "zod";
import { ZpublishError } from "../errors.js";

/** One line that says what is wrong and where. */
export type Problem = string;

/** Writes a value as JSON for a message, at most 80 characters. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = textOf(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** Writes a value as JSON, or as text if it has none. A program may give functions, NaN, big integers or cycles. */
function textOf(value: unknown): string {
  if (typeof value === "number") return String(value);
  try {
    return JSON.stringify(value) ?? String(value).replace(/\s+/g, " ");
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/**
 * Converts zod's issues to lines. Each begins with `place`: `--port`, `ZPUBLISH_PORT`, `config.json`. A schema's messages
 * have the form "expected …"; this adds what was received.
 */
export function problemsOf(
  error: z.ZodError,
  input: unknown,
  place: string,
  path: readonly PropertyKey[] = [],
): Problem[] {
  return error.issues.map((issue) => {
    const full = [...path, ...issue.path];
    const where = full.length === 0 ? place : `${place}: ${formatPath(full)}`;
    if (issue.code === "unrecognized_keys") {
      const keys = issue.keys.map((key) => JSON.stringify(key)).join(", ");
      return `${where}: unknown key ${keys}; ${issue.message}`;
    }
    return `${where}: ${issue.message}, received ${describeValue(valueAt(input, issue.path))}`;
  });
}

/** Makes one `invalid-config` error of problems, one line each. */
export function configError(problems: readonly Problem[]): ZpublishError {
  return new ZpublishError("invalid-config", problems.join("\n"), { details: { problems: problems.length } });
}

/** Writes the path of a value: `datasets.big.variables["a/b/t2m"].chunks[0]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (/^[\w-]+$/.test(String(key))) text += text === "" ? String(key) : `.${String(key)}`;
    else text += `[${JSON.stringify(String(key))}]`;
  }
  return text;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}
