import { ZpublishError } from "../../../errors.js";

/** Value of a name or an expression in a template. */
export type TemplateValue = string | number | Template;

/** Values by name. */
export type TemplateScope = ReadonlyMap<string, TemplateValue>;

/** A text with parts to fill in. */
export type Template = (scope: TemplateScope) => string;

type Expression = (scope: TemplateScope) => string | number;

/**
 * Compiles a template in the part of jinja that references use: `{{name}}`, `{{name(key='text')}}` and arithmetic with integers.
 * @throws ZpublishError `unsupported` for anything else; so does the result, for unknown names.
 */
export function compileTemplate(text: string): Template {
  if (/\{[%#]/.test(text)) throw unsupported(text);
  const parts = text.split(/\{\{(.*?)\}\}/s).map((part, index): string | Expression => {
    if (index % 2 === 1) return parseExpression(part);
    if (part.includes("{{")) throw unsupported(text);
    return part;
  });
  if (parts.length === 1) return () => text;
  return (scope) => parts.map((part) => (typeof part === "string" ? part : String(part(scope)))).join("");
}

/** Compiles an entry of `templates`: a text, or one that is filled in where it is called. */
export function templateValue(text: string): TemplateValue {
  return text.includes("{{") ? compileTemplate(text) : text;
}

const TOKEN = /\s*(?:(\d+)|([A-Za-z_]\w*)|'([^'\\]*)'|"([^"\\]*)"|(\/\/|[-+*%(),=]))/y;

interface Token {
  readonly kind: "number" | "name" | "text" | "symbol" | "end";
  readonly text: string;
}

function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  const end = source.trimEnd().length;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < end) {
    const match = TOKEN.exec(source);
    if (match === null) throw unsupported(`{{${source}}}`);
    const [, number, name, single, double, symbol] = match;
    if (number !== undefined) tokens.push({ kind: "number", text: number });
    else if (name !== undefined) tokens.push({ kind: "name", text: name });
    else if (symbol !== undefined) tokens.push({ kind: "symbol", text: symbol });
    else tokens.push({ kind: "text", text: single ?? double ?? "" });
  }
  return [...tokens, { kind: "end", text: "" }];
}

/** Nested parentheses, so that a hostile template does not exhaust the stack. */
const MAX_DEPTH = 50;

function parseExpression(source: string): Expression {
  const tokens = tokensOf(source);
  let at = 0;
  let depth = 0;

  function takes(...symbols: string[]): string | undefined {
    const { kind, text } = tokens[at] as Token;
    if (kind !== "symbol" || !symbols.includes(text)) return undefined;
    at++;
    return text;
  }

  function expect(symbol: string): void {
    if (takes(symbol) === undefined) throw unsupported(`{{${source}}}`);
  }

  function chain(next: () => Expression, ...symbols: string[]): Expression {
    let left = next();
    for (let symbol = takes(...symbols); symbol !== undefined; symbol = takes(...symbols)) {
      const operate = OPERATORS[symbol] as (a: number, b: number) => number;
      const [a, b] = [left, next()];
      left = (scope) => checked(operate(integer(a(scope), source), integer(b(scope), source)), source);
    }
    return left;
  }

  const sum = (): Expression => chain(product, "+", "-");
  const product = (): Expression => chain(unary, "*", "//", "%");

  function unary(): Expression {
    if (++depth > MAX_DEPTH) throw unsupported(`{{${source}}}`);
    const sign = takes("-", "+");
    const value = sign === undefined ? primary() : unary();
    depth--;
    return sign === "-" ? (scope) => -integer(value(scope), source) : value;
  }

  function primary(): Expression {
    if (takes("(") !== undefined) {
      const inner = sum();
      expect(")");
      return inner;
    }
    const { kind, text } = tokens[at++] as Token;
    if (kind === "number") return constant(checked(Number(text), source));
    if (kind === "text") return constant(text);
    if (kind !== "name") throw unsupported(`{{${source}}}`);
    const given = takes("(") === undefined ? undefined : callArguments();
    return (scope) => {
      const value = scope.get(text);
      if (value === undefined) throw unsupported(`{{${source}}}`, `'${text}' is not known`);
      if (typeof value !== "function") return value;
      // A template that is called sees its arguments alone, as in fsspec.
      return value(new Map((given ?? []).map(([name, argument]) => [name, argument(scope)])));
    };
  }

  function callArguments(): [string, Expression][] {
    const given: [string, Expression][] = [];
    while (takes(")") === undefined) {
      if (given.length > 0) expect(",");
      const { kind, text } = tokens[at++] as Token;
      if (kind !== "name") throw unsupported(`{{${source}}}`);
      expect("=");
      given.push([text, sum()]);
    }
    return given;
  }

  const expression = sum();
  if (tokens[at]?.kind !== "end") throw unsupported(`{{${source}}}`);
  return expression;
}

/** Python's operators. */
const OPERATORS: Readonly<Record<string, (a: number, b: number) => number>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "//": (a, b) => Math.floor(a / b),
  "%": (a, b) => a - Math.floor(a / b) * b,
};

function constant(value: string | number): Expression {
  return () => value;
}

function integer(value: string | number, source: string): number {
  if (typeof value === "number") return value;
  throw unsupported(`{{${source}}}`, "arithmetic is done with integers");
}

function checked(value: number, source: string): number {
  if (Number.isSafeInteger(value)) return value;
  throw unsupported(`{{${source}}}`, "an integer is out of bounds");
}

function unsupported(
  text: string,
  reason = "names, calls and arithmetic with integers are understood",
): ZpublishError {
  const shown = text.replace(/\?.*$/s, "");
  return new ZpublishError(
    "unsupported",
    `the template '${shown.slice(0, 200)}' of the references: ${reason}`,
  );
}
