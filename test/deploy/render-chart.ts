import { createHash } from "node:crypto";

/*
 * The part of Go's templates that the chart uses, and of Helm's functions: Helm is in no package registry that tests install from. Stricter
 * than Helm in what could hide a mistake: unknown functions, and values that do not exist, are errors.
 */

type Scope = {
  readonly dot: unknown;
  readonly root: unknown;
  readonly variables: Readonly<Record<string, unknown>>;
};

type Node = string | { readonly action: string; readonly inner: Node[] };

// biome-ignore lint/suspicious/noExplicitAny: values have any type.
type Any = any;

const FUNCTIONS: Readonly<Record<string, (...args: Any[]) => unknown>> = {
  quote: (value) => JSON.stringify(String(value)),
  // JSON is YAML.
  toYaml: (value) => JSON.stringify(value),
  toJson: (value) => JSON.stringify(value),
  toPrettyJson: (value) => JSON.stringify(value, null, 2),
  nindent: (count: number, text: string) => `\n${text.replace(/^/gm, " ".repeat(count))}`,
  sha256sum: (text: string) => createHash("sha256").update(text).digest("hex"),
  add: (...numbers: number[]) => numbers.reduce((sum, each) => sum + each, 0),
  default: (fallback, value) => (isEmpty(value) ? fallback : value),
};

/** Renders a template of the chart. @throws Error if it uses what this does not know, or a value that does not exist. */
export function renderTemplate(template: string, root: object): string {
  const pieces = template.split(/\{\{(-?[\s\S]*?-?)\}\}/);
  const top: Node[] = [];
  const open: Node[][] = [top];
  pieces.forEach((piece, index) => {
    const into = open.at(-1)!;
    if (index % 2 === 0) {
      let text = piece;
      if (pieces[index + 1]?.startsWith("-")) text = text.trimEnd();
      if (pieces[index - 1]?.endsWith("-")) text = text.trimStart();
      into.push(text);
      return;
    }
    const action = piece.replace(/^-|-$/g, "").trim();
    if (action === "end") {
      if (open.length === 1) throw new Error("an end of nothing");
      open.pop();
      return;
    }
    const node = { action, inner: [] };
    into.push(node);
    if (/^(?:if|with|range) /.test(action)) open.push(node.inner);
  });
  if (open.length > 1) throw new Error("expected an end, found none");
  return renderNodes(top, { dot: root, root, variables: {} });
}

function renderNodes(nodes: readonly Node[], scope: Scope): string {
  return nodes.map((node) => (typeof node === "string" ? node : renderAction(node, scope))).join("");
}

function renderAction({ action, inner }: Exclude<Node, string>, scope: Scope): string {
  const [, keyword, rest = ""] = /^(if|with|range) (.*)$/s.exec(action) ?? [];
  if (keyword === undefined) return String(evaluate(action, scope));
  if (keyword === "range") {
    const [, name = "", value = "", list = ""] = /^\$(\w+), \$(\w+) := (.*)$/.exec(rest) ?? [];
    const entries = Object.entries(evaluate(list, scope) as object).sort();
    return entries
      .map(([key, each]) =>
        renderNodes(inner, { ...scope, variables: { ...scope.variables, [name]: key, [value]: each } }),
      )
      .join("");
  }
  const value = evaluate(rest, scope);
  if (isEmpty(value)) return "";
  return renderNodes(inner, keyword === "with" ? { ...scope, dot: value } : scope);
}

function evaluate(pipeline: string, scope: Scope): unknown {
  let value: unknown;
  pipeline.split("|").forEach((command, index) => {
    const [first = "", ...args] = command.trim().split(/\s+/);
    const given = [...args.map((arg) => operand(arg, scope)), ...(index === 0 ? [] : [value])];
    if (/^\w+$/.test(first) && !/^\d/.test(first)) {
      const call = FUNCTIONS[first];
      if (call === undefined) throw new Error(`expected a function, received ${first}`);
      value = call(...given);
    } else value = operand(first, scope);
  });
  return value;
}

function operand(text: string, { dot, root, variables }: Scope): unknown {
  if (/^-?\d+$/.test(text)) return Number(text);
  if (/^".*"$/.test(text)) return JSON.parse(text);
  const [, start = "", path = ""] = /^(\$\w*|)\.?(.*)$/.exec(text) ?? [];
  let value: Any = start === "" ? dot : start === "$" ? root : variables[start.slice(1)];
  for (const name of path.split(".").filter((name) => name !== "")) {
    if (value?.[name] === undefined) throw new Error(`expected a value ${text}, found none`);
    value = value[name];
  }
  return value;
}

function isEmpty(value: unknown): boolean {
  return !value || (typeof value === "object" && Object.keys(value).length === 0);
}
