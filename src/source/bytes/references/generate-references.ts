import { ZpublishError } from "../../../errors.js";
import type { CooperativeTask } from "../../../event-loop/cooperative-task.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../../json/json-value.js";
import type { Reference } from "./reference-store.js";
import { compileTemplate, type Template, type TemplateScope, type TemplateValue } from "./template.js";

/** More references are not made by one document. */
const MAX_REFERENCES = 10_000_000;

/**
 * Makes the references that `gen` describes: one for each combination of its dimensions' values.
 * @param templates The document's templates.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function* generateReferences(
  gen: JsonValue,
  templates: TemplateScope,
  set: (key: string, reference: Reference) => void,
): CooperativeTask<void> {
  if (!isJsonArray(gen)) throw invalid("expected an array");
  let count = 0;
  for (const entry of gen) {
    if (!isJsonObject(entry)) throw invalid("expected objects");
    const [key, url, offset, length] = ["key", "url", "offset", "length"].map((name) =>
      templateOf(entry, name),
    );
    if (key === undefined || url === undefined) throw invalid("expected 'key' and 'url'");
    if ((offset === undefined) !== (length === undefined))
      throw invalid("expected 'offset' and 'length', or neither");
    for (const values of combinations(dimensionsOf(entry))) {
      if (++count > MAX_REFERENCES) throw invalid(`expected at most ${MAX_REFERENCES} references`);
      const scope: TemplateScope = new Map([...templates, ...values]);
      const part = offset &&
        length && { offset: integerOf(offset(scope)), byteLength: integerOf(length(scope)) };
      set(key(scope), { url: url(scope), part });
      yield;
    }
  }
}

function templateOf(entry: JsonObject, name: string): Template | undefined {
  const value = entry[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string" && typeof value !== "number")
    throw invalid(`expected '${name}' to be a text`);
  return compileTemplate(String(value));
}

function integerOf(text: string): number {
  const value = Number(text);
  if (/^\s*\d+\s*$/.test(text) && Number.isSafeInteger(value)) return value;
  throw invalid(`expected an offset or a length, received '${text.slice(0, 100)}'`);
}

type Dimension = readonly [name: string, values: Iterable<TemplateValue>];

function dimensionsOf(entry: JsonObject): Dimension[] {
  const { dimensions } = entry;
  if (!isJsonObject(dimensions)) throw invalid("expected 'dimensions' to be an object");
  return Object.entries(dimensions).map(([name, value]) => [name, valuesOf(name, value)]);
}

function valuesOf(name: string, value: JsonValue): Iterable<TemplateValue> {
  if (isJsonArray(value)) {
    return value.map((item) => {
      if (typeof item === "string" || typeof item === "number") return item;
      throw invalid(`expected texts or numbers for the dimension '${name}'`);
    });
  }
  const { start = 0, stop, step = 1 } = isJsonObject(value) ? value : {};
  if (![start, stop, step].every(Number.isSafeInteger) || step === 0) {
    throw invalid(`expected integers as start, stop and step of the dimension '${name}'`);
  }
  return { [Symbol.iterator]: () => range(start as number, stop as number, step as number) };
}

function* range(start: number, stop: number, step: number): Generator<number, undefined> {
  for (let value = start; step > 0 ? value < stop : value > stop; value += step) yield value;
}

/** Yields all combinations, the last dimension first. */
function* combinations([first, ...rest]: readonly Dimension[]): Generator<
  [string, TemplateValue][],
  undefined
> {
  if (first === undefined) {
    yield [];
    return;
  }
  for (const value of first[1]) {
    for (const others of combinations(rest)) yield [[first[0], value], ...others];
  }
}

function invalid(problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `'gen' of the references: ${problem}`);
}
