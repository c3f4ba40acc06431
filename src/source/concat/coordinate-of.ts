import { messageOf, ZpublishError } from "../../errors.js";

/** Returns the text that the path of a file has for its coordinate. @throws ZpublishError `unsupported` if the path does not match */
export type CoordinateOf = (name: string) => string;

/**
 * Creates what finds the coordinate of a file in its path.
 * @param expression Regular expression with one group.
 * @returns Undefined without an expression.
 * @throws ZpublishError `invalid-config`
 */
export function createCoordinateOf(expression: string | undefined): CoordinateOf | undefined {
  if (expression === undefined) return undefined;
  const pattern = compile(expression);
  return (name) => {
    const text = pattern.exec(name)?.[1];
    if (text !== undefined) return text;
    throw new ZpublishError("unsupported", `expected a path that matches ${expression}, received '${name}'`);
  };
}

function compile(expression: string): RegExp {
  let groups: number;
  let pattern: RegExp;
  try {
    pattern = new RegExp(expression, "u");
    // Matches the empty text, and so tells how many groups there are.
    groups = (new RegExp(`${expression}|`, "u").exec("")?.length ?? 1) - 1;
  } catch (cause) {
    throw new ZpublishError(
      "invalid-config",
      `coordinate: expected a regular expression: ${messageOf(cause)}`,
      {
        cause,
      },
    );
  }
  if (groups === 1) return pattern;
  throw new ZpublishError(
    "invalid-config",
    `coordinate: expected one group in ${expression}, received ${groups}`,
  );
}
